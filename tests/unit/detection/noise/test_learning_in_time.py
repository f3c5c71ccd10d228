"""What is learned along the checks of a page, and what must never be."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from driftline.detection.extract.document import Extraction
from driftline.detection.noise.edits import Experience, JudgedDocument, ReadOnce
from driftline.detection.noise.judge import judge
from driftline.detection.noise.learning import feedback_keys, learn
from driftline.model.change import Importance
from driftline.noise_memory import Memory

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FILLER = "<p>" + "A paragraph that says the same at every check, so that the page is not a small one. " * 6 + "</p>"
HOUR, DAY = 3_600.0, 86_400.0
REPORTED, MUTED = Importance.IMPORTANT, Importance.NOISE


def verdicts(pages: Sequence[str], every: float = HOUR, *, small: bool = False) -> list[Importance]:
    """Return the importance of each page but the first, checked one after the other, each as the last one taught."""
    memory = Memory()
    found: list[Importance] = []
    for check, (old, new) in enumerate(pairwise(pages), start=2):
        now = Experience(page=memory, check=check, at=check * every)
        judgement = judge(read(old, (check - 1) * every, small=small), read(new, check * every, small=small), now)
        learn(memory, judgement, check, check * every)
        found.append(judgement.importance)
    return found


def read(markup: str, at: float, *, small: bool = False) -> JudgedDocument:
    body = f"<title>Page</title><main>{'' if small else FILLER}{markup}</main>".encode()
    blocks = Extraction(body, "text/html; charset=utf-8").blocks()
    text = "\n".join(blocks.lines)
    return JudgedDocument(text=text, title="Page", at=at, blocks=ReadOnce(lambda: blocks, blocks))


def test_a_number_that_stands_alone_is_learned_by_what_stands_above_it() -> None:
    pages = [f"<p>Latency</p><p>{number} ms</p><p>Seats</p><p>12</p>" for number in (54, 109, 71, 88, 93, 60)]
    assert verdicts(pages) == [REPORTED, REPORTED, MUTED, MUTED, MUTED]
    assert verdicts([*pages, pages[-1].replace("<p>12<", "<p>3<")])[-1] is REPORTED, "another number is not learned"


@pytest.mark.parametrize("every", [HOUR, DAY, 14 * DAY])
def test_new_entries_of_a_list_are_reported_however_alike_they_are(every: float) -> None:
    entries = [f"<li>SA-26:{number:02} Advisory of the kernel, access bypass</li>" for number in range(12)]
    pages = ["<ul>" + "".join(reversed(entries[: most + 1])) + "</ul>" for most in range(len(entries))]
    assert set(verdicts(pages, every)) == {REPORTED}


@pytest.mark.parametrize("every", [HOUR, DAY, 14 * DAY])
def test_a_lead_story_is_reported_each_time_it_is_replaced(every: float) -> None:
    stories = [
        "Council agrees to repair the old bridge", "Trains to the coast leave an hour later",
        "Library invites readers to an evening", "Rain is expected for the whole weekend",
        "Students launch a satellite they built", "Bakery opens its doors at the market",
        "Farmers hope for an early harvest now", "Museum shows paintings nobody has seen",
    ]  # fmt: skip
    assert set(verdicts([f"<h2>{story}</h2><p>Read on</p>" for story in stories], every)) == {REPORTED}


def test_a_count_in_a_sentence_is_news_on_a_page_that_is_checked_every_other_week() -> None:
    pages = [f"<p>There are {number} places left in the course</p>" for number in (30, 28, 25, 21, 20, 16)]
    assert set(verdicts(pages, 14 * DAY)) == {REPORTED}
    assert verdicts(pages, HOUR)[-1] is MUTED


def test_a_price_that_changes_all_the_time_is_muted_beside_the_content_only() -> None:
    rates = [f"BTC/EUR {number}.05 Euro 2.7%" for number in (33847, 33852, 34019, 33978, 33963, 33810)]
    for pages in ([f"<p>{rate}</p>" for rate in rates], [f"<h2>{rate}</h2>" for rate in rates]):
        assert set(verdicts(pages)) == {REPORTED}
    assert verdicts([f"</main><nav><p>{rate}</p></nav>" for rate in rates])[2:] == [MUTED] * 3


def test_prose_with_a_word_about_stock_is_learned_like_any_other() -> None:
    variants = [
        "<p>The service is available to everybody who lives here, and to those who only work here during the week, "
        f"as a guest of {who}.</p>"
        for who in ("the city", "the county")
    ]
    assert verdicts([variants[number % 2] for number in range(9)])[-1] is MUTED
    states = ["<p>In stock</p>", "<p>Sold out</p>"]
    assert verdicts([states[number % 2] for number in range(9)])[-1] is REPORTED


def test_sentences_that_alternate_are_learned_on_small_pages_and_with_words_about_stock_too() -> None:
    for one, other in (
        ("The offer is available to all of our readers", "The offer is available to friends of the house"),
        ("The concert in the park was not cancelled", "Nothing in the park is cancelled this summer"),
    ):
        variants = [f"<p>{one}</p>", f"<p>{other}</p>"]
        assert verdicts([variants[number % 2] for number in range(9)])[-1] is MUTED
        assert verdicts([variants[number % 2] for number in range(9)], small=True)[-1] is MUTED
        assert verdicts([variants[number % 2] for number in range(3)], small=True)[-1] is REPORTED
    states = ["<p>The bridge is open</p>", "<p>The bridge is closed</p>"]
    assert set(verdicts([states[number % 2] for number in range(12)], small=True)) == {REPORTED}


POOL = ("Blue lamp", "Red lamp", "Oak desk", "Pine shelf", "Wool rug", "Brass hook", "Tall mirror")


def box(chance: random.Random) -> str:
    """Return a section that shows three things of seven, with their prices."""
    drawn = chance.sample(POOL, 3)
    things = "".join(f"<p>{name}</p><p>{10 + POOL.index(name)} €</p>" for name in drawn)
    return f"<h1>Green chair</h1><p>In stock</p><h2>Others also bought</h2>{things}<h2>Reviews</h2><p>None yet</p>"


def test_a_section_that_is_drawn_anew_at_every_fetch_is_noise_and_nothing_beside_it_is() -> None:
    chance = random.Random(5)
    memory, shown = Memory(), box(chance)
    found: list[Importance] = []
    for check in range(2, 12):
        again, old, shown = box(chance), shown, box(chance)
        now = Experience(page=memory, check=check, at=check * HOUR, again=read(again, 0.0).text)
        judgement = judge(read(old, (check - 1) * HOUR), read(shown, check * HOUR), now)
        learn(memory, judgement, check, check * HOUR)
        found.append(judgement.importance)
    assert found.count(REPORTED) <= 1
    for other in (
        shown.replace("In stock", "Sold out"), shown.replace("None yet", "It broke after a week of use"),
        shown.replace("<h2>Reviews", "<p>Green cushion to go with it</p><h2>Reviews"),
    ):  # fmt: skip
        now = Experience(page=memory, check=12, at=12 * HOUR, again=read(other, 0.0).text)
        assert judge(read(shown, 11 * HOUR), read(other, 12 * HOUR), now).importance is REPORTED


def fetched_box(seed: int, check: int, fetch: int) -> str:
    return box(random.Random(f"{seed} {check} {fetch}"))


def drawn(every: float, checks: int, draw: Callable[[int, int], str]) -> list[Importance]:
    """Return the verdicts on a page of which a second fetch, number 1, may have something else than the first."""
    memory = Memory()
    found: list[Importance] = []
    old = draw(1, 0)
    for check in range(2, checks):
        shown = draw(check, 0)
        at = check * every
        now = Experience(page=memory, check=check, at=at, again=read(draw(check, 1), at).text)
        judgement = judge(read(old, at - every), read(shown, at), replace(now, again=None))
        if judgement.importance is REPORTED:
            judgement = judge(read(old, at - every), read(shown, at), now)
        learn(memory, judgement, check, at)
        found.append(judgement.importance)
        old = old if judgement.differs_at_every_fetch else shown  # such a page gets no version
    return found


@pytest.mark.parametrize("every", [HOUR, DAY, 14 * DAY])
def test_a_section_that_a_second_fetch_proves_stays_learned_however_rare_the_checks_are(every: float) -> None:
    for seed in range(5):
        found = drawn(every, 50, partial(fetched_box, seed))
        assert found.count(REPORTED) <= 5
        assert REPORTED not in found[12:]


@pytest.mark.parametrize("every", [HOUR, DAY, 14 * DAY])
@pytest.mark.parametrize("between", ["<p>Read on</p>", ""])
def test_news_in_the_section_of_a_thought_that_differs_at_every_fetch_is_reported(every: float, between: str) -> None:
    stories = ("Council repairs the bridge", "Trains leave an hour later", "Library invites all readers")

    def today(check: int, fetch: int) -> str:
        story = f"{stories[check // 4 % 3]} for the {check // 4}th time"
        thought = random.Random(f"{check} {fetch}").sample(WORDS, 5)
        return f"<h1>News</h1><h2>Today</h2><p>{story}</p>{between}<p>Thought: {' '.join(thought)}</p>"

    found = drawn(every, 40, today)
    assert [check for check, verdict in enumerate(found, start=2) if verdict is REPORTED] == [*range(4, 40, 4)]


WORDS = ("amber", "birch", "cedar", "dahlia", "elder", "fern", "gorse", "hazel", "iris", "jasmine", "kelp", "lilac")


def states(*words: str) -> str:
    """Return a list of services with the state of each."""
    names = ("Mail", "Files", "Search")
    rows = "".join(f"<p>{name}</p><p>{word}</p>" for name, word in zip(names, words, strict=True))
    return f"<h1>Services</h1><h2>Status</h2>{rows}"


def test_a_state_is_not_muted_because_another_thing_is_in_it_now_and_then() -> None:
    fine, slow = "Operational", "Degraded"
    pages = [states(fine if number % 2 else slow, fine, fine) for number in range(12)]
    assert verdicts(pages)[-6:] == [MUTED] * 6
    assert verdicts([*pages, states(slow, slow, fine)])[-1] is REPORTED
    assert verdicts([*pages, states(fine, slow, fine)])[-1] is REPORTED


def test_a_state_that_was_never_seen_is_reported_where_two_others_alternate() -> None:
    fine, slow = "Operational", "Degraded"
    pages = [states(fine if number % 2 else slow, "Paused", "Paused") for number in range(12)]
    assert verdicts([*pages, states("Major outage", "Paused", "Paused")])[-1] is REPORTED


def test_a_number_of_the_same_thing_is_reported_in_a_section_that_is_drawn_anew() -> None:
    chance = random.Random(7)
    memory, shown = Memory(), box(chance)
    for check in range(2, 12):
        old, shown = shown, box(chance)
        judgement = judge(
            read(old, (check - 1) * HOUR), read(shown, check * HOUR),
            Experience(page=memory, check=check, at=check * HOUR),
        )  # fmt: skip
        learn(memory, judgement, check, check * HOUR)
    price = next(f"{10 + at} €" for at in range(len(POOL)) if f">{10 + at} €<" in shown)
    now = Experience(page=memory, check=12, at=12 * HOUR)
    assert judge(read(shown, 0.0), read(shown.replace(price, "99 €"), 12 * HOUR), now).importance is REPORTED


def test_one_feedback_on_a_section_that_is_drawn_anew_is_enough() -> None:
    chance = random.Random(6)
    shown = [box(chance) for _ in range(8)]
    memory = Memory()
    for number, (old, new) in enumerate(pairwise(shown)):
        judgement = judge(read(old, 0.0), read(new, 14 * DAY), Experience(page=memory, check=number, at=14 * DAY))
        assert (judgement.importance is REPORTED) is (number == 0)
        if not number:
            memory.pin(feedback_keys(judgement, Importance.NOISE)[0], Importance.NOISE)


def test_feedback_on_a_price_does_not_hold_for_other_pages_of_the_host() -> None:
    old, new, other = (read(f"<p>Price: {price}</p>", 0.0) for price in ("5 €", "7 €", "39.99 €"))
    page_keys, host_keys = feedback_keys(judge(old, new), Importance.NOISE)
    page, host = Memory(), Memory()
    page.pin(page_keys, Importance.NOISE)
    host.pin(host_keys, Importance.NOISE)
    assert judge(new, other, Experience(page=page, host=host, check=3, at=HOUR)).importance is MUTED
    assert judge(new, other, Experience(host=host, check=3, at=HOUR)).importance is REPORTED


def test_a_list_of_news_is_reported_however_often_it_has_other_entries() -> None:
    titles = [f"{who} {what}" for who in ("The mayor", "A baker", "The team") for what in (
        "opens a new school", "wins the long race", "sells the old house", "plants many trees")]  # fmt: skip
    pages = [
        "<h2>Latest news</h2>"
        + "".join(f"<p>{title}</p>" for title in titles[at : at + 4])
        + "<h2>Contact</h2><p>Us</p>"
        for at in range(0, 9, 2)
    ]
    assert set(verdicts(pages)) == {REPORTED}


def test_to_agree_that_a_change_is_important_makes_no_noise_of_it_important() -> None:
    page = "<p>Fees are due within {} days.</p><p>{} people are online</p>"
    old, new = page.format(10, 41), page.format(30, 57)
    judgement = judge(read(old, 0.0), read(new, DAY), Experience())
    assert [edit.noise is None for edit in judgement.edits].count(True) == 1
    keys, _ = feedback_keys(judgement, Importance.IMPORTANT)
    memory = Memory()
    memory.pin(keys, Importance.IMPORTANT)
    later = new.replace("57", "63")
    again = judge(read(new, DAY), read(later, 2 * DAY), Experience(page=memory, check=3, at=2 * DAY))
    assert again.importance is Importance.NOISE
