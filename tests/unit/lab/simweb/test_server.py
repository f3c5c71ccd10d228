"""Answers and pacing of the simulated web, without a network."""

from __future__ import annotations

import gzip
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.lab.simweb.responses import Answers, PageRequest
from driftline.lab.simweb.server import TICK, Pacer
from driftline.lab.simweb.world import Noise, ServerFailure, World


def world(**fields: object) -> World:
    return World.from_fields({"pages": 40, "hosts": 3, "size_mean": 20_000, "change_rate": 0.5, **fields})


def asked(page: int = 5, *, generation: int = 0, attempt: int = 0, gzip: bool = True, more: str = "") -> PageRequest:
    head = f"get /p/{page:05d} http/1.1\r\nhost: x\r\n{more}".lower().encode()
    return PageRequest(page, generation, attempt, head, gzip)


def split(answer: bytes) -> tuple[int, dict[str, str], bytes]:
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    return int(status.split()[1]), dict(line.split(": ", 1) for line in lines), body


@pytest.mark.parametrize("noise", ["off", "hidden", "visible"])
def test_a_compressed_answer_is_one_gzip_member_of_the_body(noise: Noise) -> None:
    here = world(noise=noise)
    answers = Answers(here)
    for attempt in range(3):
        status, headers, body = split(answers.answer(asked(generation=2, attempt=attempt)))
        assert status == 200
        assert headers["Content-Encoding"] == "gzip"
        assert int(headers["Content-Length"]) == len(body)
        expected = here.body(5, here.revision(5, 2), generation=2, attempt=attempt)
        assert gzip.decompress(body) == expected
        # The standard library reads on after the first member: make sure that there was just one.
        assert body.count(b"\x1f\x8b\x08\0\0\0\0\0\0\xff") == 1


def test_without_gzip_the_body_is_sent_as_it_is() -> None:
    here = world(noise="hidden")
    _, headers, body = split(Answers(here).answer(asked(gzip=False)))
    assert "Content-Encoding" not in headers
    assert body == here.body(5, 0)


def test_a_page_compresses_as_real_ones_do() -> None:
    here = world(size_mean=67_000, sizes="fixed")
    _, _, body = split(Answers(here).answer(asked()))
    assert 20_000 < len(body) < 33_000


def test_an_answer_is_the_same_whether_remembered_or_made_again() -> None:
    forgetful, mindful = Answers(world(), remembered=1), Answers(world())
    for page in (1, 2, 1, 2):
        assert forgetful.answer(asked(page)) == mindful.answer(asked(page))


def test_head_gets_the_head_of_what_get_would_get() -> None:
    answers = Answers(world())
    got = answers.answer(asked())
    head = answers.answer(asked()._replace(head=b"head /p/00005 http/1.1\r\n"))
    assert got.startswith(head)
    assert head.endswith(b"\r\n\r\n")


def test_an_etag_comes_back_as_not_modified_until_the_page_changes() -> None:
    here = world(etag=True)
    answers = Answers(here)
    page = min(here.truth(1))
    _, headers, _ = split(answers.answer(asked(page)))
    ask = f"If-None-Match: {headers['ETag']}\r\n"
    status, again, body = split(answers.answer(asked(page, more=ask)))
    assert (status, again["ETag"], body) == (304, headers["ETag"], b"")
    assert split(answers.answer(asked(page, generation=1, more=ask)))[0] == 200


def test_with_noise_no_etag_matches() -> None:
    answers = Answers(world(etag=True, noise="hidden"))
    _, headers, _ = split(answers.answer(asked()))
    status, _, _ = split(answers.answer(asked(attempt=1, more=f"If-None-Match: {headers['ETag']}\r\n")))
    assert status == 200


def test_last_modified_comes_back_as_not_modified_until_the_page_changes() -> None:
    here = world(last_modified=True)
    answers = Answers(here)
    page = min(here.truth(1))
    _, headers, _ = split(answers.answer(asked(page)))
    ask = f"If-Modified-Since: {headers['Last-Modified']}\r\n"
    assert split(answers.answer(asked(page, more=ask)))[0] == 304
    assert split(answers.answer(asked(page, generation=1, more=ask)))[0] == 200


def test_a_date_that_is_none_is_ignored() -> None:
    answers = Answers(world(last_modified=True))
    assert split(answers.answer(asked(more="If-Modified-Since: once upon a time\r\n")))[0] == 200


def test_validators_are_sent_only_when_enabled() -> None:
    _, headers, _ = split(Answers(world()).answer(asked(more="If-None-Match: *\r\n")))
    assert "ETag" not in headers
    assert "Last-Modified" not in headers


def test_failing_pages_answer_an_error_or_less_than_they_promise() -> None:
    answers = Answers(world())
    assert split(answers.failed("server_error", asked()))[0] == 500
    assert split(answers.failed("not_found", asked()))[0] == 404
    status, headers, body = split(answers.failed("cut_short", asked()))
    assert status == 200
    assert 0 < len(body) < int(headers["Content-Length"])


@pytest.mark.parametrize("failure", ["server_error", "not_found", "cut_short"])
def test_a_failing_page_has_no_body_for_head_either(failure: ServerFailure) -> None:
    head = asked()._replace(head=b"head /p/00005 http/1.1\r\n")
    assert Answers(world()).failed(failure, head).endswith(b"\r\n\r\n")


def release_all(pacer: Pacer[str], now: float) -> list[tuple[float, str, bytes, bool]]:
    found = []
    while len(pacer):
        found += [(now, who, bytes(part), done) for who, part, done in pacer.release(now)]
        now += TICK
    return found


@given(
    sizes=st.lists(st.integers(min_value=1, max_value=200_000), min_size=1, max_size=20),
    rate=st.integers(min_value=50_000, max_value=50_000_000),
)
def test_a_paced_link_delivers_everything_at_its_rate(sizes: list[int], rate: int) -> None:
    pacer = Pacer[str](rate=rate, now=0.0)
    for number, size in enumerate(sizes):
        pacer.submit(str(number), bytes([number]) * size, 0.0)
    found = release_all(pacer, 0.0)
    for number, size in enumerate(sizes):
        assert b"".join(part for _, who, part, _ in found if who == str(number)) == bytes([number]) * size
    assert Counter(who for _, who, _, done in found if done) == {str(number): 1 for number in range(len(sizes))}
    assert abs(found[-1][0] - sum(sizes) / rate) <= 2 * TICK


def test_receivers_are_served_round_robin() -> None:
    pacer = Pacer[str](rate=10_000_000, now=0.0)
    for who in ("a", "b", "c"):
        pacer.submit(who, bytes(100_000), 0.0)
    turns = [who for _, who, _, _ in release_all(pacer, 0.0)]
    assert turns[:3] == ["a", "b", "c"]
    assert max(Counter(turns).values()) - min(Counter(turns).values()) <= 2


def test_an_idle_link_saves_up_no_more_than_a_tick() -> None:
    pacer = Pacer[str](rate=1_000_000, now=0.0)
    pacer.submit("late", bytes(1_000_000), 60.0)
    assert sum(len(part) for _, part, _ in pacer.release(60.0)) == 1_000_000 * TICK


def test_a_link_that_was_not_served_for_a_while_catches_up() -> None:
    pacer = Pacer[str](rate=1_000_000, now=0.0)
    pacer.submit("a", bytes(1_000_000), 0.0)
    pacer.release(0.0)
    assert sum(len(part) for _, part, _ in pacer.release(0.1)) == pytest.approx(100_000, abs=1)


def test_small_receivers_do_not_wait_for_large_ones() -> None:
    pacer = Pacer[str](rate=1_000_000, now=0.0)
    pacer.submit("large", bytes(1_000_000), 0.0)
    pacer.submit("small", bytes(100), 0.0)
    done = {who: now for now, who, _, end in release_all(pacer, 0.0) if end}
    assert done["small"] < done["large"] / 10


def test_who_went_away_is_forgotten() -> None:
    pacer = Pacer[str](rate=1_000_000, now=0.0)
    pacer.submit("a", bytes(50_000), 0.0)
    pacer.submit("b", bytes(50_000), 0.0)
    pacer.forget("a")
    assert {who for _, who, _, _ in release_all(pacer, 0.0)} == {"b"}


def test_time_never_runs_backwards_in_what_is_released() -> None:
    pacer = Pacer[str](rate=3_000_000, now=0.0)
    pacer.submit("a", bytes(200_000), 0.0)
    assert all(one[0] <= two[0] for one, two in pairwise(release_all(pacer, 0.0)))
