"""The target of a redirect is fetched like any link: after the delay of its host, and if robots.txt allows it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from driftline.errors import FailureKind, StoreUnavailable
from driftline.model.outcome import Document, Link
from driftline.model.page import Robots
from support.hosts import Records
from support.polite import Run

OPEN = {"robots": "ignore"}
FORBIDS = b"User-agent: *\nDisallow: /no/\n"


def summaries(documents: list[Document]) -> list[tuple[int, str, str, int]]:
    """Of which pages these are, where they were found, and after how many redirects."""
    return [(one.link.page_id, one.link.url, one.final_url, one.redirects) for one in documents]


def test_a_redirect_to_another_host_waits_for_a_permit_there() -> None:
    run = Run(["http://b/1", "http://a/1", "http://b/2"], given=OPEN)
    assert run.take() == ["http://b/1", "http://a/1"]
    at_b = run.taken["http://b/1"]
    assert run.redirect("http://a/1", "http://b/x") == []
    assert run.later(10.0) == [], "there is a request under way"
    run.taken = {"http://b/1": at_b}
    run.answer("http://b/1")
    assert run.later(0.9) == []
    assert run.later(0.1) == ["http://b/x"], "what was begun is finished first"
    assert summaries(run.answer("http://b/x")) == [(2, "http://a/1", "http://b/x", 1)]
    assert run.later(0.9) == []
    assert run.later(0.1) == ["http://b/2"]


def test_the_host_that_redirects_is_free_again_after_its_delay() -> None:
    run = Run(["http://a/1", "http://a/2"], given=OPEN)
    assert run.take() == ["http://a/1"]
    run.redirect("http://a/1", "http://b/x")
    assert run.take() == ["http://b/x"]
    assert run.later(1.0) == ["http://a/2"]


def test_many_pages_that_redirect_to_one_host_are_fetched_one_after_the_other() -> None:
    run = Run([f"http://h{number}/" for number in range(50)], given=OPEN)
    for url in run.take():
        run.redirect(url, f"http://b/{url[7:-1]}")
    found: list[int] = []
    while not run.links.exhausted:
        (only,) = run.take()
        at_b = run.taken
        assert run.later(0.5) == []
        run.taken = at_b
        found += [document.link.page_id for document in run.answer(only)]
        assert run.later(0.5) == []
        run.now += 0.5
    assert found == [*range(1, 51)]


def test_a_redirect_within_the_host_is_followed_at_once_and_counts() -> None:
    run = Run(["http://a/1", "http://a/2"], given=OPEN)
    run.take()
    assert run.redirect("http://a/1", "/there") == []
    assert run.take() == ["http://a/there"], "and nothing else of the host"
    run.now += 5.0
    assert summaries(run.answer("http://a/there")) == [(1, "http://a/1", "http://a/there", 1)]
    assert run.later(0.9) == [], "the delay counts from the last answer"
    assert run.later(0.1) == ["http://a/2"]


def test_hosts_that_redirect_within_themselves_share_their_address_too() -> None:
    run = Run(
        [f"http://{host}/{page}" for page in "12" for host in "abcd"],
        given={"robots": "ignore", "address_connections": 2},
    )
    for url in run.take():
        run.redirect(url, "/en", address="192.0.2.1")
    for url in run.take():
        run.answer(url)  # over the connection that is open
    assert len(run.later(1.0)) == 2


def test_the_robots_txt_of_the_other_host_is_fetched_first_and_obeyed() -> None:
    run = Run(["http://a/1", "http://a/2"])
    run.take()
    run.answer("http://a/robots.txt", status=404)
    assert run.later(1.0) == ["http://a/1"]
    run.redirect("http://a/1", "http://b/no/x")
    assert run.take() == ["http://b/robots.txt"]
    run.answer("http://b/robots.txt", FORBIDS)
    (forbidden,) = run.outcomes
    assert forbidden.failure is not None
    assert forbidden.failure.kind is FailureKind.ROBOTS
    assert forbidden.failure.sentence.startswith("The page redirects to http://b/no/x: the robots.txt of b asks not")
    assert summaries([forbidden.document]) == [(1, "http://a/1", "http://b/no/x", 1)]
    assert run.later(1.0) == ["http://a/2"]
    run.redirect("http://a/2", "http://b/yes")
    assert run.later(1.0) == ["http://b/yes"]
    run.answer("http://b/yes")
    assert run.links.exhausted


def test_a_password_is_not_shown_with_the_reason() -> None:
    run = Run(["http://a/1"], given=OPEN | {"hosts": {"b": {"robots": "obey"}}})
    run.take()
    run.redirect("http://a/1", "http://me:sesame@b/no/x")
    run.take()
    run.answer("http://b/robots.txt", FORBIDS)
    (forbidden,) = run.outcomes
    assert forbidden.failure is not None
    assert "sesame" not in forbidden.failure.sentence


def test_robots_txt_holds_within_the_host_too() -> None:
    run = Run(["http://a/1", "http://a/2"])
    run.take()
    run.answer("http://a/robots.txt", FORBIDS)
    assert run.later(1.0) == ["http://a/1"]
    run.redirect("http://a/1", "/no/x")
    assert [summaries([outcome.document]) for outcome in run.outcomes] == [[(1, "http://a/1", "http://a/no/x", 1)]]
    assert run.take() == []
    assert run.later(1.0) == ["http://a/2"], "after its delay"


def test_from_http_to_https_is_within_the_host_once_both_robots_txt_are_known() -> None:
    run = Run(["http://a/1", "http://a/2"])
    run.take()
    run.answer("http://a/robots.txt", status=404)
    assert run.later(1.0) == ["http://a/1"]
    run.redirect("http://a/1", "https://a/1")
    assert run.take() == []
    assert run.later(1.0) == ["https://a/robots.txt"]
    run.answer("https://a/robots.txt", status=404)
    assert run.later(1.0) == ["https://a/1"]
    run.answer("https://a/1")
    assert run.later(1.0) == ["http://a/2"]
    run.redirect("http://a/2", "https://a/2")
    assert run.take() == ["https://a/2"]


def test_a_robots_txt_that_redirects_is_waited_for_and_counts_for_its_own_host() -> None:
    run = Run(["http://b/1", "http://a/1", "http://a/no/1"], given={"hosts": {"b": {"robots": "ignore"}}})
    assert sorted(run.take()) == ["http://a/robots.txt", "http://b/1"]
    at_b = run.taken["http://b/1"]
    assert run.redirect("http://a/robots.txt", "http://b/robots-of-a") == []
    assert run.take() == [], "b has a request in flight"
    run.taken = {"http://b/1": at_b}
    run.answer("http://b/1")
    assert run.later(1.0) == ["http://b/robots-of-a"]
    assert run.answer("http://b/robots-of-a", FORBIDS) == []
    assert [outcome.document.link.url for outcome in run.outcomes] == ["http://a/no/1"]
    assert run.take() == ["http://a/1"]


def test_a_robots_txt_that_redirects_to_that_of_another_host_counts_for_both() -> None:
    run = Run(["http://a/1", "http://a/2"])
    run.take()
    run.redirect("http://a/robots.txt", "http://www.a/robots.txt")
    assert run.take() == ["http://www.a/robots.txt"]
    run.answer("http://www.a/robots.txt", FORBIDS)
    assert run.later(1.0) == ["http://a/1"]
    run.redirect("http://a/1", "http://www.a/1")
    assert run.take() == ["http://www.a/1"]
    run.answer("http://www.a/1")
    assert run.later(1.0) == ["http://a/2"]
    run.redirect("http://a/2", "http://www.a/no/2")
    assert [outcome.document.link.page_id for outcome in run.outcomes] == [2]


@pytest.mark.parametrize(
    ("headers", "kind", "origins"),
    [
        ("Content-Encoding: gzip\r\n", None, {"http://a"}),
        ("", FailureKind.TOO_LARGE, {"http://a", "http://www.a"}),
        ("", FailureKind.CONNECTION, {"http://a"}),
    ],
    ids=["not decodable", "too large", "cut off"],
)
def test_a_robots_txt_of_another_host_counts_for_that_one_only_if_it_could_be_read(
    headers: str, kind: FailureKind | None, origins: set[str]
) -> None:
    run = Run(["http://a/1"])
    run.take()
    run.redirect("http://a/robots.txt", "http://www.a/robots.txt")
    run.take()
    run.answer("http://www.a/robots.txt", FORBIDS, headers=headers, kind=kind)
    run.links.flush()
    assert run.records.robots.keys() == origins


def test_pages_that_are_given_back_ask_anew_for_a_robots_txt_that_waited_elsewhere() -> None:
    run = Run(["http://b/1", "http://a/1"], given={"hosts": {"b": {"robots": "ignore"}}})
    assert sorted(run.take()) == ["http://a/robots.txt", "http://b/1"]
    run.redirect("http://a/robots.txt", "http://b/robots-of-a")
    assert run.links.give_back() == [2]
    run.links._put(run.made([2]))
    assert run.later(1.0) == ["http://a/robots.txt"]


def test_hosts_whose_robots_txt_redirect_to_each_other_do_not_deadlock() -> None:
    run = Run(["http://a/1", "http://b/1"])
    assert sorted(run.take()) == ["http://a/robots.txt", "http://b/robots.txt"]
    run.redirect("http://a/robots.txt", "http://b/robots.txt")
    run.redirect("http://b/robots.txt", "http://a/robots.txt")
    assert sorted(run.later(1.0)) == ["http://a/robots.txt", "http://b/robots.txt"]
    for url in [*run.taken]:
        run.answer(url, kind=FailureKind.REDIRECTS)
    assert sorted(run.later(1.0)) == ["http://a/1", "http://b/1"]


def test_a_page_that_redirects_to_a_host_with_a_retry_after_is_postponed() -> None:
    run = Run(["http://b/1", "http://a/1", "http://a/2"], given=OPEN)
    assert sorted(run.take()) == ["http://a/1", "http://b/1"]
    run.answer("http://b/1", status=503, headers="Retry-After: 3600\r\n")
    run.redirect("http://a/1", "http://b/x")
    assert run.source.later == {2: pytest.approx(3_600.0)}
    assert [*run.links.paused_hosts] == ["b"]
    assert run.later(1.0) == ["http://a/2"]
    run.answer("http://a/2")
    assert run.links.exhausted


def test_pages_wait_no_more_for_a_robots_txt_that_is_at_such_a_host() -> None:
    run = Run(["http://b/1", "http://a/1"], given={"hosts": {"b": {"robots": "ignore"}}})
    assert sorted(run.take()) == ["http://a/robots.txt", "http://b/1"]
    run.answer("http://b/1", status=503, headers="Retry-After: 3600\r\n")
    run.redirect("http://a/robots.txt", "http://b/robots-of-a")
    assert [*run.source.later] == [2]
    assert run.links.exhausted


def test_a_retry_after_of_a_redirect_target_counts_for_its_host() -> None:
    run = Run(["http://a/1", "http://b/1", "http://a/2"], given=OPEN)
    assert run.take(1) == ["http://a/1"]
    run.redirect("http://a/1", "http://b/x")
    assert run.take(1) == ["http://b/x"]
    (refused,) = run.answer("http://b/x", status=503, headers="Retry-After: 3600\r\n")
    assert summaries([refused]) == [(1, "http://a/1", "http://b/x", 1)]
    assert run.later(1.0) == ["http://a/2"], "it sent no Retry-After"
    assert [*run.source.later] == [2]
    run.links.flush()
    assert [*run.records.quiet] == ["b"]


def test_the_target_of_a_redirect_is_kept_however_many_links_wait() -> None:
    run = Run([f"http://h{number}/" for number in range(2_500)], given=OPEN | {"hosts": {"b": {"robots": "obey"}}})
    for url in run.take(2_500):
        run.redirect(url, f"http://b/{url[7:-1]}")
    run.take()
    run.answer("http://b/robots.txt", status=404)
    found: set[str] = set()
    while not run.links.exhausted:
        (only,) = run.later(1.0)
        found |= {document.link.url for document in run.answer(only)}
    assert found == set(run.urls)


def test_the_second_fetch_takes_its_redirects_as_priority_requests() -> None:
    run = Run(["http://b/1"], given=OPEN)
    assert run.take() == ["http://b/1"]
    at_b = run.taken
    requests = run.links.priority_requests(lambda: None)
    run.links.request_first(Link(2, "http://a/1", 1, None), requests)
    run.taken = {link.url: link for link in run.links.granted(requests, 9)}
    run.redirect("http://a/1", "/inside", requests)
    run.taken = {link.url: link for link in run.links.granted(requests, 9)}
    run.redirect("http://a/inside", "http://b/x", requests)
    assert run.links.granted(requests, 9) == []
    run.taken = at_b
    run.answer("http://b/1")
    assert run.later(1.0) == []
    run.taken = {link.url: link for link in run.links.granted(requests, 9)}
    assert summaries(run.answer("http://b/x")) == [(2, "http://a/1", "http://b/x", 2)]
    assert run.links.exhausted


@pytest.mark.parametrize("answer", [None, FORBIDS])
def test_the_second_fetch_ends_where_it_is_not_known_that_it_may_go_on(answer: bytes | None) -> None:
    run = Run(["http://b/1"] if answer else [], given={"hosts": {"a": {"robots": "ignore"}}})
    run.take()
    if answer is not None:
        run.answer("http://b/robots.txt", answer)
    requests = run.links.priority_requests(lambda: None)
    run.links.request_first(Link(2, "http://a/1", 1, None), requests)
    run.taken = {link.url: link for link in run.links.granted(requests, 9)}
    assert run.redirect("http://a/1", "http://b/no/x", requests) == []
    assert [link.page_id for link in requests.refused] == [2]
    assert run.outcomes == []
    run.links.request_first(again := Link(3, "http://a/2", 1, None), requests)
    run.now += 1.0
    assert run.links.granted(requests, 9) == [again], "the host that redirected is free"


def test_redirects_that_cannot_be_followed_for_the_store_fails_give_back_their_permits() -> None:
    class Away(Records):
        def robots_of(self, origins: Sequence[str]) -> dict[str, Robots]:
            if "http://elsewhere" in origins:
                raise StoreUnavailable("The database is away.")
            return super().robots_of(origins)

    hosts = {name: {"robots": "ignore"} for name in "abc"}
    run = Run(["http://a/1", "http://b/1", "http://c/1"], records=Away(), given={"hosts": hosts})
    run.take()
    targets = {"http://a/1": "/2", "http://b/1": "http://elsewhere/", "http://c/1": "/2"}
    with pytest.raises(StoreUnavailable):
        run.links.done([run.redirected(url, target) for url, target in targets.items()])
    assert run.take() == ["http://a/2"], "it was followed before"
    run.answer("http://a/2")
    assert run.links.statistics().in_use == 0


def test_pages_that_redirect_to_one_host_are_reported_if_that_takes_long() -> None:
    run = Run([f"http://h{number}/" for number in range(20)], given=OPEN)
    for url in run.take():
        run.redirect(url, f"http://b/{url[7:-1]}")
    assert [name for name, _, _ in run.slow] == ["b"]
