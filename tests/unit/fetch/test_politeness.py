"""Producers get only links that may be fetched now, by delays, robots.txt and Retry-After of their hosts."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from driftline.errors import FailureKind, StoreUnavailable
from driftline.http.credentials import Access, read_access
from driftline.model.outcome import Document, Link, Verdict
from driftline.model.page import Robots
from driftline.settings import HostSettings
from support.hosts import Records
from support.polite import Queue, Run, allowed

DAY = 86_400.0
IGNORING = {"robots": "ignore"}
FORBIDS = b"User-agent: *\nDisallow: /no/\nCrawl-delay: 5\n"


def test_robots_txt_comes_first_and_once_and_is_no_page() -> None:
    run = Run(["http://a/1", "http://a/2"])
    assert run.take() == ["http://a/robots.txt"]
    assert run.take() == []
    assert run.answer("http://a/robots.txt") == []
    assert run.take() == [], "it was a request like any other"
    assert run.later(1.0) == ["http://a/1"]
    assert [document.link.page_id for document in run.answer("http://a/1")] == [1]
    assert run.later(1.0) == ["http://a/2"]


def test_robots_txt_is_requested_by_the_proxy_of_the_first_page_again_too() -> None:
    run = Run(["http://a/1", "http://a/2"], accesses={1: read_access(bearer="b", proxy="http://p:1")})
    for _ in range(2):
        assert run.later(100.0) == ["http://a/robots.txt"]
        assert run.taken["http://a/robots.txt"].access == Access(proxy="http://p:1")
        run.answer("http://a/robots.txt", status=503)


def test_a_forbidden_page_fails_with_a_reason_and_is_not_handed_out() -> None:
    run = Run(["http://a/no/1", "http://a/2"])
    run.take()
    run.answer("http://a/robots.txt", FORBIDS)
    assert [outcome.document.link.page_id for outcome in run.outcomes] == [1]
    (forbidden,) = run.outcomes
    assert forbidden.verdict is Verdict.FAILED
    assert forbidden.failure is not None
    assert forbidden.failure.kind is FailureKind.ROBOTS
    assert "robots.txt of a" in forbidden.failure.sentence
    assert run.later(5.0) == ["http://a/2"]
    assert run.links.exhausted


def test_the_crawl_delay_of_robots_txt_is_kept() -> None:
    run = Run(["http://a/1", "http://a/2"])
    run.take()
    run.answer("http://a/robots.txt", FORBIDS)
    assert run.later(1.0) == ["http://a/1"]
    run.answer("http://a/1")
    assert run.later(4.9) == []
    assert run.later(0.1) == ["http://a/2"]


def test_a_robots_txt_is_kept_for_a_day() -> None:
    run = Run(["http://a/1"])
    run.take()
    run.answer("http://a/robots.txt", FORBIDS)
    run.links.flush()
    assert run.records.robots["http://a"].text == FORBIDS.decode()
    again = Run(["http://a/no/1", "http://a/2"], run.records)
    assert again.take() == ["http://a/2"]
    assert len(again.outcomes) == 1
    run.records.robots["http://a"] = Robots(text=None, until=999.0)
    assert Run(["http://a/1"], run.records).take() == ["http://a/robots.txt"]


def test_the_delay_that_is_not_over_is_kept_for_the_next_run() -> None:
    run = Run(["http://a/1", "http://b/1", "http://c/1"], Records({"http://c": Robots(text=None, until=2_000.0)}))
    run.take()
    run.answer("http://a/robots.txt", FORBIDS)
    run.answer("http://b/robots.txt", status=429)
    run.answer("http://c/1")
    assert run.later(1.0) == ["http://a/1"]
    run.answer("http://a/1")
    run.links.end()
    assert run.records.quiet == {"a": 1_006.0, "b": 1_005.0}, "and the usual delay need not be stored"
    again = Run(["http://a/1"], run.records)
    assert again.later(5.9) == []
    assert again.later(0.1) == ["http://a/1"]


def test_old_robots_txt_are_forgotten_once_and_only_by_a_run_that_read_another() -> None:
    run = Run(["http://a/1"])
    run.take()
    run.answer("http://a/robots.txt", FORBIDS)
    run.links.flush()
    assert run.records.forgot_at == [], "for that reads all of them"
    run.links.end()
    assert run.records.forgot_at == [run.now]
    again = Run(["http://a/1"], run.records)
    assert again.take() == ["http://a/1"]
    again.links.end()
    assert run.records.forgot_at == [run.now]


def test_a_robots_txt_from_before_a_clock_was_set_back_is_requested_again() -> None:
    records = Records({"http://a": Robots(text=None, until=1_000.0 + 400 * 86_400.0)})
    assert Run(["http://a/1"], records).take() == ["http://a/robots.txt"]


def test_the_rules_of_many_hosts_are_read_from_the_store_when_they_are_needed() -> None:
    records = Records({f"http://h{number}": Robots(text=FORBIDS.decode(), until=2_000.0) for number in range(1_500)})
    run = Run([*[f"http://h{number}/no/1" for number in range(1_500)], "http://h0/no/2"], records)
    while not run.links.exhausted:
        assert run.take() == []
    assert len(run.outcomes) == 1_501


def test_the_store_is_read_once_for_a_new_host() -> None:
    run = Run([f"http://a/{number}" for number in range(200)])
    assert run.take() == ["http://a/robots.txt"]
    assert run.records.looked_for == ["http://a"]


def test_a_robots_txt_that_is_compressed_is_read() -> None:
    import gzip

    run = Run(["http://a/no/1"])
    run.take()
    run.answer("http://a/robots.txt", gzip.compress(FORBIDS), headers="Content-Encoding: gzip\r\n")
    assert len(run.outcomes) == 1


def test_http_and_https_are_one_host_with_two_robots_txt() -> None:
    run = Run(["http://a/1", "https://a/2"])
    assert run.take() == ["http://a/robots.txt"]
    run.answer("http://a/robots.txt", status=404)
    assert run.later(1.0) == ["https://a/robots.txt"]


def test_the_longer_crawl_delay_of_http_and_https_of_one_host_counts() -> None:
    run = Run(["http://a/1", "https://a/2"])
    run.take()
    run.answer("http://a/robots.txt", FORBIDS)
    assert run.later(5.0) == ["https://a/robots.txt"]
    run.answer("https://a/robots.txt", status=404)
    assert run.later(4.9) == []
    assert len(run.later(0.1)) == 1


def test_of_a_robots_txt_that_is_huge_once_decoded_the_beginning_is_read() -> None:
    import gzip

    run = Run(["http://a/no/1", "http://a/2"])
    run.take()
    run.answer("http://a/robots.txt", gzip.compress(FORBIDS + b"#" * 8_000_000), headers="Content-Encoding: gzip\r\n")
    assert [outcome.document.link.page_id for outcome in run.outcomes] == [1]
    assert run.later(5.0) == ["http://a/2"]


def test_of_a_robots_txt_that_is_too_large_to_fetch_what_came_is_read() -> None:
    run = Run(["http://a/no/1", "http://a/2"])
    run.take()
    run.answer("http://a/robots.txt", FORBIDS + b"#" * 600_000, kind=FailureKind.TOO_LARGE)
    assert [outcome.document.link.page_id for outcome in run.outcomes] == [1]


def test_links_on_their_way_to_their_hosts_are_still_to_come() -> None:
    seen: list[bool] = []
    woken: list[bool] = []

    class Slow(Queue):
        def take(self, most: int) -> list[Link]:
            links = super().take(most)
            seen.append(run.links.exhausted)
            return links

    run = Run(["http://a/1", "http://b/1"], given={"robots": "ignore"}, queue=Slow)
    run.links.listen(lambda: woken.append(run.links.exhausted))
    assert len(run.take(1)) == 1
    assert seen == [False], "another thread that takes links meanwhile must not end"
    assert woken == [False], "and is woken when there is something for it"


def test_a_user_in_the_address_makes_no_other_host() -> None:
    run = Run(["http://me:secret@a/1", "http://a/2"])
    assert run.take() == ["http://a/robots.txt"]
    run.answer("http://a/robots.txt", status=404)
    assert run.later(1.0) == ["http://me:secret@a/1"]
    run.answer("http://me:secret@a/1")
    assert run.later(1.0) == ["http://a/2"]


def test_pages_of_a_host_that_is_not_there_fail_without_being_requested() -> None:
    run = Run(["http://a/1", "http://a/2"])
    run.take()
    run.answer("http://a/robots.txt", status=0, kind=FailureKind.DNS)
    assert [outcome.failure.kind for outcome in run.outcomes if outcome.failure] == [FailureKind.DNS] * 2
    assert run.links.exhausted


def test_a_host_that_could_not_be_reached_is_tried_again_by_the_next_run() -> None:
    run = Run(["http://a/1"])
    run.take()
    run.answer("http://a/robots.txt", status=0, kind=FailureKind.REFUSED)
    run.links.flush()
    assert run.records.robots["http://a"].until > run.now
    assert Run(["http://a/1"], run.records).take() == ["http://a/robots.txt"]


def test_the_robots_txt_of_a_busy_host_is_requested_again_before_its_pages_fail() -> None:
    run = Run(["http://a/1"])
    assert run.take() == ["http://a/robots.txt"]
    for wait in (5.0, 10.0):
        run.answer("http://a/robots.txt", status=503)
        assert run.later(wait - 0.1) == []
        assert run.later(0.1) == ["http://a/robots.txt"]
    assert not run.outcomes
    run.answer("http://a/robots.txt", status=503)
    assert [outcome.failure.kind for outcome in run.outcomes if outcome.failure] == [FailureKind.ROBOTS]


def test_hosts_of_ones_own_need_no_robots_txt_and_no_delay() -> None:
    own = HostSettings(delay=0.0, connections=2, robots="ignore")
    run = Run(
        ["http://x.own.example/1", "http://x.own.example/2", "http://a:81/1", "http://b/1"],
        Records(tags={"b": ["mine"]}),
        given={"hosts": {"*.own.example": own, "A": own}, "tags": {"mine": own}},
    )
    assert run.take() == [*run.urls]


def test_a_host_that_sends_a_retry_after_has_its_pages_put_off_and_is_remembered() -> None:
    run = allowed("http://a/1", "http://a/2", "http://a/3")
    run.take()
    assert len(run.answer("http://a/1", status=429, headers="Retry-After: 3600\r\n")) == 1
    assert run.source.later == {2: 3_600.0, 3: 3_600.0}
    assert run.links.paused_hosts == {"a": run.now + 3_600.0}
    assert run.links.exhausted
    assert not run.outcomes, "the outcome of the page that was fetched is decided elsewhere"
    run.links.flush()
    again = Run(["http://a/2"], run.records)
    assert again.take() == []
    assert list(again.source.later) == [1]
    run.records.quiet["a"] = again.now - 1.0
    assert Run(["http://a/2"], run.records).take() == ["http://a/2"]


def test_a_host_that_refuses_even_its_robots_txt_for_long_has_its_pages_put_off() -> None:
    run = Run(["http://a/1", "http://a/2"])
    run.take()
    run.answer("http://a/robots.txt", status=429, headers="Retry-After: 3600\r\n")
    assert sorted(run.source.later) == [1, 2]
    assert run.links.exhausted
    assert not run.outcomes


def test_a_run_right_after_another_waits_for_the_delay_that_is_left() -> None:
    run = Run(["http://a/1"], Records(ended=999.25), given={"robots": "ignore"})
    assert run.take() == []
    assert run.later(0.25) == ["http://a/1"]


def test_a_short_pause_is_waited_for() -> None:
    run = allowed("http://a/1", "http://a/2")
    run.take()
    run.answer("http://a/1", status=503, headers="Retry-After: 30\r\n")
    assert run.later(29.9) == []
    assert run.later(0.1) == ["http://a/2"]
    assert not run.source.later


def test_ten_thousand_pages_of_one_host_hold_up_no_other() -> None:
    many = [f"http://a/{number}" for number in range(10_000)]
    run = Run([*many, "http://b/1"], given={"robots": "ignore"})
    found: list[str] = []
    while (wait := run.links.next_in()) == 0.0 or not found:
        found += run.take(10)
        assert wait in (0.0, None)
    assert found == ["http://a/0", "http://b/1"]
    run.answer("http://a/0")
    assert run.later(1.0) == ["http://a/1"]


def test_of_pages_that_wait_for_long_the_link_is_made_anew_and_those_that_are_gone_make_room() -> None:
    many = [f"http://a/{number}" for number in range(5_000)]
    run = Run(many, given={"host_delay": 0.0, "robots": "ignore"}, gone={4_001})
    (first,) = run.links.take(1)
    while run.links.take(1) or not run.source.exhausted:
        pass
    waiting, found = 0, [first]
    while not run.links.exhausted:
        for link in found:
            waiting += link.sequence == 2
            run.taken = {link.url: link}
            run.answer(link.url)
        found = run.links.take(1)
    assert waiting > 1_000
    assert run.source.later == {4_001: 0.0}


def test_a_redirect_counts_at_the_host_of_its_target() -> None:
    run = Run(["http://a/1", "http://b/1"], given={"robots": "ignore"})
    assert run.take(1) == ["http://a/1"]
    run.answer("http://a/1", headers="Location: http://b/other\r\n\r\nHTTP/1.1 200 OK\r\n", final_url="http://b/other")
    assert run.take() == []
    assert run.later(1.0) == ["http://b/1"]


def test_a_host_behind_a_redirect_sends_a_retry_after_for_itself() -> None:
    run = Run(["http://a/1", "http://b/1", "http://a/2"], given={"robots": "ignore"})
    assert run.take(1) == ["http://a/1"]
    moved = "Location: http://b/dead\r\n\r\nHTTP/1.1 503 X\r\nRetry-After: 3600\r\n"
    run.answer("http://a/1", status=503, headers=moved, final_url="http://b/dead")
    assert run.later(1.0) == ["http://a/2"], "it sent no Retry-After"
    assert [*run.source.later] == [2]
    assert [*run.links.paused_hosts] == ["b"]
    run.links.flush()
    assert [*run.records.quiet] == ["b"]


def test_a_priority_request_goes_before_all_that_waits() -> None:
    run = allowed("http://a/1", "http://a/2")
    assert run.take() == ["http://a/1"]
    requests = run.links.priority_requests(lambda: None)
    again = Link(1, "http://a/1", 1, None)
    run.links.request_first(again, requests)
    run.answer("http://a/1")
    assert run.later(1.0) == []
    assert run.links.granted(requests, 10) == [again]
    run.taken = {"http://a/1": again}
    run.answer("http://a/1")
    assert run.later(1.0) == ["http://a/2"]


def test_what_waits_can_be_given_back_and_come_again() -> None:
    run = allowed("http://a/1", "http://a/2", "http://a/3")
    assert run.take() == ["http://a/1"]
    assert run.links.give_back() == [2, 3]
    assert run.source.later == {2: 0.0, 3: 0.0}
    assert run.links.paused_hosts == {}, "no host sent a Retry-After"
    run.answer("http://a/1")
    assert run.later(1.0) == []
    assert run.links.exhausted
    run.links._put(run.made([3]))
    assert run.later(1.0) == ["http://a/3"]


@pytest.mark.parametrize("asked", [False, True])
def test_what_waits_for_a_robots_txt_can_be_given_back_and_come_again(asked: bool) -> None:
    run = Run(["http://a/1", "http://a/2"])
    run.source.close()
    run.links._put(run.made([1, 2]))
    if asked:
        assert run.take() == ["http://a/robots.txt"]
    assert sorted(run.links.give_back()) == [1, 2]
    if asked:
        run.answer("http://a/robots.txt", FORBIDS)
    assert run.links.give_back() == []
    run.links._put(run.made([2]))
    if not asked:
        assert run.take() == ["http://a/robots.txt"]
        run.answer("http://a/robots.txt", FORBIDS)
    assert run.later(5.0) == ["http://a/2"]


def test_the_delays_of_hosts_are_written_at_the_end_once_the_store_is_back() -> None:
    class Away(Records):
        def keep(self, robots: Mapping[str, Robots], quiet: Mapping[str, float], now: float) -> None:
            tries.append(now)
            if len(tries) == 1:
                raise StoreUnavailable("The database is away.")
            super().keep(robots, quiet, now)

    tries: list[float] = []
    run = Run(["http://a/1"], records=Away(), given={"robots": "ignore"})
    run.take()
    run.answer("http://a/1", status=503, headers="Retry-After: 50\r\n")
    run.links.end(lambda: False)
    assert run.records.quiet == {"a": run.now + 50.0}


def test_a_link_is_neglected_when_it_may_be_fetched_and_no_request_is_under_way() -> None:
    run = Run(["http://a/1", "http://b/1"], given={"robots": "ignore"})
    (link,) = run.links.take(1)
    assert not run.links.neglected(), "a request ends by its own time-out"
    run.links.abandon([link])
    assert run.links.neglected()


def test_a_second_fetch_is_neglected_when_it_may_start_and_does_not() -> None:
    run = allowed("http://a/1")
    assert run.take() == ["http://a/1"]
    requests = run.links.priority_requests(lambda: None)
    run.links.request_first(Link(1, "http://a/1", 1, None), requests)
    assert not run.links.neglected(), "a request is under way"
    run.answer("http://a/1")
    assert run.links.exhausted
    assert not run.links.neglected(), "the delay is not over"
    run.now += 1.0
    assert run.links.neglected()
    run.take()
    assert run.links.neglected(), "it is granted, and was not collected"
    again = run.links.granted(requests, 1)
    assert not run.links.neglected()
    run.links.abandon(again)
    run.now += 1.0
    assert not run.links.neglected()


def test_second_fetches_that_are_refused_or_cancelled_are_not_neglected() -> None:
    run = allowed("http://a/1")
    assert run.take() == ["http://a/1"]
    requests = run.links.priority_requests(lambda: None)
    run.links.request_first(Link(1, "http://a/1", 1, None), requests)
    run.answer("http://a/1", status=429, headers="Retry-After: 3600\r\n")
    assert [link.page_id for link in requests.refused] == [1]
    run.links.request_first(Link(2, "http://b/1", 1, None), requests)
    assert run.links.neglected()
    run.links.cancel(requests)
    run.now += 3_600.0
    assert not run.links.neglected()


def test_a_priority_request_is_not_given_back() -> None:
    run = allowed("http://a/1", "http://a/2")
    assert run.take() == ["http://a/1"]
    requests = run.links.priority_requests(lambda: None)
    again = Link(1, "http://a/1", 1, None)
    run.links.request_first(again, requests)
    assert run.links.give_back() == [2]
    run.answer("http://a/1")
    run.now += 1.0
    assert run.links.granted(requests, 10) == [again]


def test_pages_that_will_take_long_are_reported_once() -> None:
    run = allowed(*[f"http://a/{number}" for number in range(20)])
    assert run.slow == [("a", 20, 1.0)]
    assert allowed("http://a/1").slow == []
    assert allowed("http://a/1", host_delay=50.0).slow == [], "it waits for no other"


def test_once_closed_there_is_nothing_more() -> None:
    run = allowed("http://a/1", "http://a/2")
    run.links.close()
    assert run.take() == []
    assert run.links.exhausted


@pytest.mark.parametrize("at_address", [1, 2])
def test_many_hosts_on_one_address_share_it(at_address: int) -> None:
    urls = [f"http://{host}/{page}" for page in "12" for host in "abcd"]
    run = Run(urls, given={"robots": "ignore", "address_connections": at_address})
    for url in run.take():
        document = Document(run.taken[url], 200, b"", b"", 0, url, 0, run.now, 0.01, None, "192.0.2.1")
        run.links.done([document])
    assert len(run.later(1.0)) == at_address


def test_pages_that_wait_for_a_robots_txt_are_given_back_unless_the_run_was_closed() -> None:
    run, cut_short = Run(["http://a/1"]), Run(["http://a/1"])
    assert run.take() == cut_short.take() == ["http://a/robots.txt"]
    assert run.links.give_back() == [1]
    cut_short.links.close()
    assert (cut_short.links.give_back(), cut_short.source.later) == ([], {})


@pytest.mark.parametrize("met", [True, False])
def test_hosts_are_delayed_after_the_run_of_another_process(met: bool) -> None:
    run = Run(["http://a/1", "http://a/2", "http://b/1"] if met else ["http://a/2", "http://b/1"], given=IGNORING)
    if met:
        assert run.take(1) == ["http://a/1"]
        run.answer("http://a/1")
    run.now += 10.0
    run.records.ended = run.now
    run.links.delay_after_other_runs()
    assert run.take() == []
    assert run.later(0.9) == []
    assert sorted(run.later(0.1)) == ["http://a/2", "http://b/1"]
