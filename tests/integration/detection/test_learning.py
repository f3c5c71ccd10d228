from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import pytest

import driftline
from driftline import Plan
from driftline.errors import FailureKind, UnknownChange, UsageError
from driftline.model.change import Importance
from driftline.model.outcome import Proof, Verdict
from support.making import settings
from support.servers import Answer, Request, Server, html
from support.worlds import WIRINGS

FILLER = "<p>" + "A paragraph that says the same at every check, so that the page is not a small one. " * 6 + "</p>"
WORDS = ("amber", "birch", "cedar", "dahlia", "elder", "fern", "gorse", "hazel", "iris", "jasmine")


class Site:
    """Pages whose parts a test rewrites between checks; a part may be a function that is asked at every request."""

    def __init__(self, where: str, *, confirm: bool) -> None:
        self.parts: dict[str, str | Callable[[], str]] = {}
        self.instead: Answer | None = None
        self.answers: Callable[[Request], Answer] = self.page
        self.requests = 0
        self.server = Server(self._answer)
        self.pages = driftline.open(settings=settings(store=where, confirm=confirm))

    def _answer(self, request: Request) -> Answer:
        self.requests += 1
        return self.answers(request)

    def page(self, request: Request) -> Answer:
        if self.instead is not None:
            return self.instead
        parts = [part if isinstance(part, str) else part() for part in self.parts.values()]
        return html(f"<main>{FILLER}{''.join(parts)}<p>The end of {request.path}.</p></main>")


def tip(word: str) -> str:
    return f"<p>Tip of the day: try {word} in your garden, and tell a friend of it.</p>"


@pytest.fixture
def site(where: str) -> Iterator[Site]:
    made = Site(where, confirm=False)
    with made.server, made.pages:
        yield made


@pytest.fixture
def confirmed(where: str) -> Iterator[Site]:
    made = Site(where, confirm=True)
    with made.server, made.pages:
        yield made


def test_a_place_that_changes_at_every_check_becomes_noise_and_other_places_do_not(site: Site) -> None:
    site.pages.add(site.server.url("/"))
    found: list[int] = []
    for word in WORDS[:6]:
        site.parts = {"tip": tip(word), "fee": "<p>It is free.</p>"}
        found.append(site.pages.check().changed)
    assert found == [0, 1, 1, 0, 0, 0]
    newest = site.pages.history.checks(site.server.url("/"))[0]
    assert newest.change is not None
    assert newest.change.reason == "Only what changes at nearly every check changed."
    site.parts["fee"] = "<p>It costs a fortune.</p>"
    assert site.pages.check().changed == 1


def test_what_is_learned_on_some_pages_of_a_host_holds_for_the_others(site: Site) -> None:
    known = [site.server.url(f"/{number}") for number in range(3)]
    other = site.server.url("/other")
    site.pages.add(*known, other)
    for word in WORDS[:4]:
        site.parts = {"tip": tip(word), "after": "<p>More tips.</p>"}
        site.pages.check(*known)
    site.pages.check(other)
    site.parts["tip"] = tip("juniper")
    report = site.pages.check(other)
    assert (report.changed, report.noisy) == (0, 1)


SENTENCES = (
    "The council repairs the old bridge before winter comes.",
    "A bakery opens in the market street next week.",
    "Trains to the coast leave an hour later.",
    "Readers meet the author of a book about rivers.",
    "Farmers hope for an early harvest this year.",
    "Students built a satellite that is launched in spring.",
    "Nobody has seen these paintings for eighty years.",
)


def test_new_sentences_are_reported_however_often_their_place_changes(site: Site) -> None:
    site.pages.add(site.server.url("/"))
    found: list[int] = []
    for sentence in SENTENCES:
        site.parts = {"news": f"<p>{sentence}</p>"}
        found.append(site.pages.check().changed)
    assert found == [0] + [1] * (len(SENTENCES) - 1)


def test_new_sentences_are_reported_although_all_pages_of_the_host_change_there(site: Site) -> None:
    site.pages.add(*[site.server.url(f"/{number}") for number in range(8)])
    found: list[int] = []
    for sentence in SENTENCES:
        site.parts = {"news": f"<p>{sentence}</p>"}
        found.append(site.pages.check().changed)
    assert found == [0] + [8] * (len(SENTENCES) - 1)


def test_two_variants_that_alternate_are_reported_twice_and_then_no_more(site: Site) -> None:
    site.pages.add(site.server.url("/"))
    found: list[int] = []
    for word in ("amber", "birch", "amber", "birch", "amber"):
        site.parts = {"offer": f"<p>Our members choose {word}, and so should you when you are here.</p>"}
        found.append(site.pages.check().changed)
    assert found == [0, 1, 1, 0, 0]


def test_news_in_the_content_are_reported_until_they_come_at_every_check(site: Site) -> None:
    site.pages.add(site.server.url("/"))
    found: list[int] = []
    for news in (
        "Storm at sea",
        "Mayor resigns",
        "Bridge closed",
        "Team wins",
        "Fire out",
        "War ends",
        "Rain",
        "Snow",
        "Hail",
    ):
        site.parts = {"news": f"<h2>{news}</h2>"}
        found.append(site.pages.check().changed)
    assert found == [0, 1, 1, 1, 1, 0, 0, 0, 0]


def test_a_state_of_the_content_that_returns_is_reported(site: Site) -> None:
    site.pages.add(site.server.url("/"))
    found: list[int] = []
    for state in ("All systems operational", "Major outage", "All systems operational", "Major outage"):
        site.parts = {"state": f"<p>{state}</p>"}
        found.append(site.pages.check().changed)
    assert found == [0, 1, 1, 1]


def test_what_is_added_beside_a_counter_is_reported(site: Site) -> None:
    site.pages.add(site.server.url("/"))
    for views in (17, 29, 43, 58):
        site.parts = {"views": f"<p>{views} views</p>"}
        assert site.pages.check().changed == 0
    site.parts = {"views": "<p>61 views</p><p>We close for good on the last day of the year.</p>"}
    assert site.pages.check().changed == 1


def test_availability_is_reported_however_often_it_changes(site: Site) -> None:
    site.pages.add(site.server.url("/"))
    found: list[int] = []
    for stock in ["In stock", "Sold out"] * 4:
        site.parts = {"stock": f"<p>{stock}</p>"}
        found.append(site.pages.check().changed)
    assert found == [0] + [1] * 7


def test_a_price_is_reported_however_often_it_changes(site: Site) -> None:
    site.pages.add(site.server.url("/"))
    found: list[int] = []
    for price in range(20, 28):
        site.parts = {"price": f"<p>It costs ${price} today.</p>"}
        found.append(site.pages.check().changed)
    assert found == [0] + [1] * 7


@pytest.mark.parametrize("plan", WIRINGS)
def test_what_differs_between_two_fetches_in_a_row_is_no_change(confirmed: Site, plan: Plan) -> None:
    numbers = count()
    confirmed.parts = {"story": lambda: f"<p>You may like the story of {WORDS[next(numbers) % len(WORDS)]}.</p>"}
    confirmed.pages.add(confirmed.server.url("/"))
    confirmed.pages.check(plan=plan)
    report = confirmed.pages.check(plan=plan)
    assert (report.changed, report.noisy, report.unchanged) == (0, 1, 1)
    newest = confirmed.pages.history.checks(confirmed.server.url("/"))[0]
    assert (newest.verdict, newest.proof, newest.version) == (Verdict.UNCHANGED, Proof.NOISE, None)
    assert newest.reason == "What differed was different again when the page was fetched once more."
    assert len(confirmed.pages.history.checks(confirmed.server.url("/"), news_only=True)) == 1
    confirmed.parts["fee"] = "<p>It costs a fortune.</p>"
    assert confirmed.pages.check(plan=plan).changed == 1


def test_a_page_that_is_another_at_every_fetch_is_judged_alike_at_every_check(confirmed: Site) -> None:
    numbers = count()
    stories = ["Nothing like the others", "Quite another tip today", "Yet more to read here", "Old words for whales"]
    confirmed.parts = {"story": lambda: f"<p>{stories[next(numbers) % 4]}</p>"}
    confirmed.pages.add(confirmed.server.url("/"))
    for _ in range(6):
        confirmed.pages.check()
    checks = confirmed.pages.history.checks(confirmed.server.url("/"))
    assert {(one.verdict, one.proof, one.version, one.reason) for one in checks[:-1]} == {
        (Verdict.UNCHANGED, Proof.NOISE, None, "What differed was different again when the page was fetched once more.")
    }


def test_a_change_is_fetched_twice_and_nothing_else_is(confirmed: Site) -> None:
    confirmed.pages.add(confirmed.server.url("/"))
    confirmed.pages.check()
    confirmed.pages.check()
    assert confirmed.requests == 2
    confirmed.parts["fee"] = "<p>It costs a fortune.</p>"
    assert confirmed.pages.check().changed == 1
    assert confirmed.requests == 4


def test_a_change_that_one_of_two_servers_has_is_reported_once_both_have_it(confirmed: Site) -> None:
    fees = iter(["free", *["a fortune", "free"] * 3, "a fortune", "a fortune"])
    confirmed.parts["fee"] = lambda: f"<p>It costs {next(fees)} to be a member here.</p>"
    confirmed.pages.add(confirmed.server.url("/"))
    confirmed.pages.check()
    assert [confirmed.pages.check().changed for _ in range(4)] == [0, 0, 0, 1]


def test_a_second_fetch_that_is_another_page_undoes_no_change(confirmed: Site) -> None:
    confirmed.pages.add(confirmed.server.url("/"))
    confirmed.pages.check()
    confirmed.parts["fee"] = "<p>It costs a fortune.</p>"
    usual = confirmed.answers
    confirmed.answers = lambda request: (
        usual(request) if confirmed.requests == 2 else html("Slow down, please. Thank you.")
    )
    assert confirmed.pages.check().changed == 1
    assert confirmed.requests == 3


def test_a_page_of_one_line_is_never_muted(site: Site) -> None:
    urls = [site.server.url(f"/{number}") for number in range(4)]
    said = {"now": ""}
    site.answers = lambda _request: html(said["now"])
    site.pages.add(*urls)
    for words in ("All systems work.", "The mail is slow.", "Nothing works at all.", "It is being looked into."):
        said["now"] = words
        site.pages.check(*urls[:3])
    site.pages.check(urls[3])
    said["now"] = "A great outage in the north."
    assert site.pages.check().changed == 4


def test_a_wall_is_a_failed_check_and_the_version_stays(confirmed: Site) -> None:
    url = confirmed.server.url("/")
    confirmed.pages.add(url)
    confirmed.pages.check()
    confirmed.instead = html("Checking your browser before you access this site.")
    report = confirmed.pages.check()
    assert (report.failed, report.changed) == (1, 0)
    failure = confirmed.pages.pages()[0].failure
    assert failure is not None
    assert failure.kind is FailureKind.BROKEN
    confirmed.instead = None
    assert confirmed.pages.check().unchanged == 1


def test_what_the_user_calls_noise_is_noise_from_then_on(site: Site) -> None:
    url = site.server.url("/")
    site.parts["news"] = "<p>News: the amber fair opens on the hill behind the mill.</p>"
    site.pages.add(url)
    site.pages.check()
    site.parts["news"] = "<p>News: a choir sings in the old town hall tonight.</p>"
    change = site.pages.check().changes[0]
    assert site.pages.history.feedback(change.id, Importance.NOISE) == url
    judged = site.pages.history.checks(url)[0].change
    assert judged is not None
    assert (judged.importance, judged.said, judged.reason) == (Importance.NOISE, Importance.NOISE, change.reason)
    assert [(said.change, said.importance, said.found) for said in site.pages.history.all_feedback()] == [
        (change.id, Importance.NOISE, Importance.IMPORTANT)
    ]
    site.parts["news"] = "<p>News: nobody knows what happened at the harbour.</p>"
    assert site.pages.check().noisy == 1
    site.parts["fee"] = "<p>It costs a fortune.</p>"
    assert site.pages.check().changed == 1


def test_feedback_on_a_change_of_a_selected_part_is_about_all_reported_edits(site: Site) -> None:
    url = site.server.url("/")
    site.pages.add(url, filters=[("select", "main")])
    site.parts = {"tip": "", "between": "<p>It is free.</p>", "news": "<p>News: the fair opens on the hill.</p>"}
    for word in WORDS[:4]:
        site.parts["tip"] = tip(word)
        if word == WORDS[3]:
            site.parts["news"] = "<p>News: a choir sings in the old town hall tonight.</p>"
        report = site.pages.check()
    site.pages.history.feedback(report.changes[0].id, Importance.NOISE)
    site.parts["tip"] = tip(WORDS[5])
    assert site.pages.check().noisy == 1, "of what somebody selected, nothing falls silent by itself"


def test_minor_changes_are_counted_and_listed_on_request(site: Site) -> None:
    url = site.server.url("/")
    site.parts["list"] = "<ul><li>Ann Archer</li><li>Bert Baker</li><li>Carl Cooper</li></ul>"
    site.pages.add(url)
    site.pages.check()
    site.parts["list"] = "<ul><li>Carl Cooper</li><li>Ann Archer</li><li>Bert Baker</li></ul>"
    report = site.pages.check()
    assert (report.changed, report.minor, report.noisy, report.changes, report.events) == (1, 1, 0, [], [])
    site.parts["list"] = "<ul><li>Bert Baker</li><li>Carl Cooper</li><li>Ann Archer</li></ul>"
    report = site.pages.check(min_importance="minor")
    assert (report.minor, report.changes[0].importance) == (1, Importance.MINOR)
    assert report.events[0].headline == report.changes[0].headline == "In another order: Bert Baker"
    assert list(site.pages.changes()) == []
    assert [event.importance for event in site.pages.changes(min_importance="minor")] == [Importance.MINOR] * 2
    newest, *_ = site.pages.history.checks(url, news_only=True)
    assert (newest.verdict, newest.change and newest.change.importance) == ("changed", Importance.MINOR)


def test_the_order_of_a_page_is_as_important_as_the_user_says(site: Site) -> None:
    orders = ("Ann", "Bert", "Carl"), ("Carl", "Ann", "Bert"), ("Bert", "Carl", "Ann")
    pages = [f"<ol>{''.join(f'<li>{name} runs fast</li>' for name in names)}</ol>" for names in orders]
    site.pages.add(site.server.url("/"))
    for said, figures in (
        (Importance.IMPORTANT, (1, 0, 0)), (Importance.NOISE, (0, 0, 1)), (Importance.MINOR, (1, 1, 0)),
    ):  # fmt: skip
        site.parts["rank"] = pages[0]
        site.pages.check()
        site.parts["rank"] = pages[1]
        site.pages.check()
        change = site.pages.history.checks(site.server.url("/"))[0].change
        assert change is not None
        site.pages.history.feedback(change.id, said)
        site.parts["rank"] = pages[2]
        report = site.pages.check()
        assert (report.changed, report.minor, report.noisy) == figures


def test_what_the_user_calls_minor_is_minor_from_then_on(site: Site) -> None:
    site.parts["news"] = "<p>News: the amber fair opens on the hill behind the mill.</p>"
    site.pages.add(site.server.url("/"))
    site.pages.check()
    site.parts["news"] = "<p>News: a choir sings in the old town hall tonight.</p>"
    site.pages.history.feedback(site.pages.check().changes[0].id, Importance.MINOR)
    site.parts["news"] = "<p>News: nobody knows what happened at the harbour.</p>"
    (change,) = site.pages.check(min_importance="minor").changes
    assert (change.importance, change.reason) == (Importance.MINOR, "Only what you called minor changed.")
    assert change.headline.endswith(" → News: nobody knows what happened at the harbour.")
    site.pages.history.feedback(change.id, Importance.IMPORTANT)
    site.parts["news"] = "<p>News: everybody has heard of the harbour by now.</p>"
    assert site.pages.check().changes[0].importance is Importance.IMPORTANT


def test_what_the_user_marks_as_important_is_reported_from_then_on(site: Site) -> None:
    url = site.server.url("/")
    site.parts["visits"] = "<p>1,024 views</p>"
    site.pages.add(url)
    site.pages.check()
    site.parts["visits"] = "<p>1,187 views</p>"
    assert site.pages.check().noisy == 1
    change = site.pages.history.checks(url)[0].change
    assert change is not None
    site.pages.history.feedback(change.id, Importance.IMPORTANT)
    site.parts["visits"] = "<p>1,311 views</p>"
    assert site.pages.check().changed == 1


def test_after_feedback_is_withdrawn_changes_are_judged_as_without_it(site: Site) -> None:
    url = site.server.url("/")
    site.pages.add(url)
    changes: list[str] = []
    for news in ("the amber fair opens on the hill", "a choir sings in the old town hall", "a ship came in today"):
        site.parts["news"] = f"<p>News: {news}.</p>"
        changes += [change.id for change in site.pages.check().changes]
    for change in changes:
        site.pages.history.feedback(change, Importance.NOISE)
    assert site.pages.history.forget_feedback(changes[1]) == url
    site.parts["news"] = "<p>News: nobody knows what happened at the harbour.</p>"
    assert site.pages.check().noisy == 1, "the same was said of the other one"
    site.pages.history.forget_feedback(changes[0])
    assert site.pages.history.all_feedback() == []
    site.parts["news"] = "<p>News: everybody knows it by now, and is sorry.</p>"
    assert site.pages.check().changed == 1
    assert all(check.change is None or check.change.said is None for check in site.pages.history.checks(url))
    with pytest.raises(UnknownChange):
        site.pages.history.forget_feedback(changes[0])


def test_feedback_on_a_removed_page_does_not_hold_for_its_host_unless_given_on_another(site: Site) -> None:
    one, two, three = (site.server.url(path) for path in ("/one", "/two", "/three"))
    site.pages.add(one, two, three)
    for views in ("1,024", "1,187"):
        site.parts["views"] = f"<p>{views} views</p>"
        site.pages.check()
    for url in (one, two):
        change = site.pages.history.checks(url)[0].change
        assert change is not None
        site.pages.history.feedback(change.id, Importance.IMPORTANT)
    site.pages.remove(one)
    site.parts["views"] = "<p>1,311 views</p>"
    assert site.pages.check(three).changed == 1, "the same was said of the second"
    site.pages.remove(two)
    site.parts["views"] = "<p>1,502 views</p>"
    assert site.pages.check(three).noisy == 1


def test_the_opposite_feedback_replaces_the_first_and_is_withdrawn_with_it(site: Site) -> None:
    url = site.server.url("/")
    site.parts["visits"] = "<p>1,024 views</p>"
    site.pages.add(url)
    site.pages.check()
    site.parts["visits"] = "<p>1,187 views</p>"
    site.pages.check()
    change = site.pages.history.checks(url)[0].change
    assert change is not None
    site.pages.history.feedback(change.id, Importance.NOISE)
    site.pages.history.feedback(change.id, Importance.IMPORTANT)
    assert [said.importance for said in site.pages.history.all_feedback()] == [Importance.IMPORTANT]
    site.parts["visits"] = "<p>1,311 views</p>"
    assert site.pages.check().changed == 1
    site.pages.history.forget_feedback(change.id)
    site.parts["visits"] = "<p>1,502 views</p>"
    assert site.pages.check().noisy == 1, "a counter, as it is by itself"


def test_what_is_withdrawn_while_a_page_is_checked_does_not_come_back(site: Site) -> None:
    url = site.server.url("/")
    site.pages.add(url)
    for news in ("the amber fair opens on the hill", "a choir sings in the old town hall"):
        site.parts["news"] = f"<p>News: {news}.</p>"
        report = site.pages.check()
    change = report.changes[0].id
    site.pages.history.feedback(change, Importance.NOISE)

    def withdrawing() -> str:
        if site.pages.history.all_feedback():
            site.pages.history.forget_feedback(change)
        return "<p>News: a ship came in today.</p>"

    site.parts["news"] = withdrawing
    site.pages.check()
    site.parts["news"] = "<p>News: nobody knows what happened at the harbour.</p>"
    assert site.pages.check().changed == 1


@pytest.mark.parametrize(
    "name", ["", "1", "x-y", "01-1", "0-1", "1-1000000000", "99999999999999999999-1", "-1-2", "１-２"]
)
def test_feedback_on_what_is_no_id_is_refused(site: Site, name: str) -> None:
    with pytest.raises(UsageError):
        site.pages.history.feedback(name, Importance.NOISE)


def test_feedback_on_a_change_that_never_was_is_refused(site: Site) -> None:
    with pytest.raises(UnknownChange):
        site.pages.history.feedback("1-99", Importance.NOISE)
