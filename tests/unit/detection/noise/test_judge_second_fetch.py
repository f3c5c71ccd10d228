"""A page that seems changed is fetched once more: old, new and again are its texts."""

from __future__ import annotations

import pytest

from driftline.detection.extract.document import Extraction
from driftline.detection.noise.edits import Experience, JudgedDocument, Judgement, ReadOnce
from driftline.detection.noise.judge import judge
from driftline.model.change import Importance

FILLER = "<p>" + "A paragraph that says the same at every check, so that the page is not a small one. " * 6 + "</p>"
BY_ITSELF, CHANGED, REORDERED = (Importance.NOISE, True), (Importance.IMPORTANT, False), (Importance.MINOR, False)


def read(markup: str) -> JudgedDocument:
    def reading() -> Extraction:
        return Extraction(f"<title>Page</title><body>{markup}</body>".encode(), "text/html; charset=utf-8")

    return JudgedDocument(text=reading().text(), title="Page", at=0.0, blocks=ReadOnce(lambda: reading().blocks()))


def judged(old: str, new: str, again: str, around: str = FILLER) -> Judgement:
    return judge(read(around + old), read(around + new), Experience(again=read(around + again).text))


def verdict_of(found: Judgement) -> tuple[Importance, bool]:
    return found.importance, found.differs_at_every_fetch


@pytest.mark.parametrize(
    ("old", "new", "again"),
    [
        ("<p>Amber is a stone.</p>", "<p>Birch is a tree.</p>", "<p>Amber is a stone.</p>"),
        ("<p>The tip of today is amber.</p>", "<p>The tip of today is birch.</p>", "<p>The tip of today is cedar.</p>"),
        ("<p>Nothing like the other.</p>", "<p>Quite another tip today!</p>", "<p>Yet something else here.</p>"),
        ("<p>One.</p><p>Two.</p>", "<p>Blue whales sing</p><p>Rain is wet</p>", "<p>Old news</p><p>No more</p>"),
        ("<p>One.</p>", "<p>Blue whales sing</p><p>Rain is wet</p>", "<p>Old news</p>"),
        ("<ol><li>Ann<li>Bert<li>Carl</ol>", "<ol><li>Carl<li>Ann<li>Bert</ol>", "<ol><li>Bert<li>Carl<li>Ann</ol>"),
        ("<ol><li>Ann<li>Bert<li>Carl</ol>", "<ol><li>Carl<li>Ann<li>Bert</ol>", "<ol><li>Ann<li>Bert<li>Carl</ol>"),
    ],
)
def test_what_a_second_fetch_undoes_or_makes_another_of_is_no_change(old: str, new: str, again: str) -> None:
    assert verdict_of(judged(old, new, new)) == (REORDERED if "<ol>" in old else CHANGED)
    assert verdict_of(judged(old, new, again)) == BY_ITSELF


def test_what_went_beside_a_line_that_is_another_at_every_fetch_is_a_change() -> None:
    fee = "<p>Fees are paid back.</p>"
    tips = "<p>Nothing like the other.</p>", "<p>Quite another tip today!</p>", "<p>Yet something else here.</p>"
    assert verdict_of(judged(tips[0] + fee, tips[1], tips[2])) == CHANGED
    assert verdict_of(judged(tips[0] + fee, tips[1] + fee, tips[2] + fee)) == BY_ITSELF


def test_another_order_that_stays_is_a_change_whatever_else_comes_and_goes() -> None:
    ranks = "<ol><li>Ann<li>Bert<li>Carl</ol>", "<ol><li>Carl<li>Ann<li>Bert</ol>"
    tips = "<p>The tip of today is amber.</p>", "<p>The tip of today is birch.</p>", "<p>The tip of today is cedar.</p>"
    assert verdict_of(judged(ranks[0] + tips[0], ranks[1] + tips[1], ranks[1] + tips[2])) == REORDERED


def test_a_page_of_which_nothing_stays_looks_like_a_block_page_and_its_change_stands() -> None:
    assert verdict_of(judged("<p>amber 1</p>", "<p>birch 2</p>", "<p>cedar 3</p>", around="")) == CHANGED
