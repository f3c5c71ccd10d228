from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from driftline.detection.examine import Side, weigh
from driftline.detection.extract.annotations import is_note
from driftline.detection.extract.document import Extraction
from driftline.detection.extract.regions import Blocks
from driftline.detection.noise.edits import Experience, JudgedDocument, Judgement, ReadOnce
from driftline.detection.noise.judge_annotations import judge_all
from driftline.detection.noise.learning import feedback_keys, learn
from driftline.model.change import Importance
from driftline.noise_memory import Memory

if TYPE_CHECKING:
    from collections.abc import Callable

ALSO = [["also", name] for name in ("links", "media", "attributes", "metadata")]
HTML = "text/html; charset=utf-8"
FILLER = "<p>" + "A paragraph that says the same at every check, so that the page is not a small one. " * 6 + "</p>"


def judged(
    old: str, new: str, experience: Experience | None = None, filters: list[list[str]] | None = ALSO
) -> Judgement:
    def side(part: str) -> Side:
        body = f"<body>{FILLER}{part}".encode()
        return Side(body, Extraction(body, HTML, filters).text(), 0.0)

    return weigh(side(old), side(new), "", HTML, experience, filters)


@pytest.mark.parametrize(
    ("old", "new", "kind", "reason"),
    [
        ("<a href=/1.zip>Get it</a>", "<a href=/2.zip>Get it</a>", "links", "1 link changed: Get it: /1.zip → /2.zip."),
        ("<p>Sign up</p>", "<p><a href=/go>Sign up</a></p>", "links", "1 link changed: Sign up: none → /go."),
        ("<img src=a.png alt=Map>", "<img src=b.png alt=Map>", "media", "1 image changed: Map: a.png → b.png."),
        ("<img src=a.png>", "", "media", "1 image changed: a.png → none."),
        (
            "<input placeholder='From 9'>", "<input placeholder='From ten'>", "attributes",
            "1 placeholder changed: From 9 → From ten.",
        ),
    ],
)  # fmt: skip
def test_another_link_target_or_image_matters_less_than_text(old: str, new: str, kind: str, reason: str) -> None:
    found = judged(old, new)
    assert (found.importance, found.kind, found.reason) == (Importance.IMPORTANT, kind, reason)
    assert 0.5 <= found.score < judged("<p>one</p>", "<p>two</p>").score


def test_metadata_matters_wherever_it_stands() -> None:
    old, new = (f"<footer></footer><meta name=description content={word}>" for word in ("Open", "Closed"))
    found = judged(old, new)
    assert (found.kind, found.reason) == ("metadata", "The description changed: Open → Closed.")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("<nav><a href=/1>Home</a></nav>", "<nav><a href=/2>Home</a></nav>", "Only the navigation changed."),
        ("<footer><img src=a></footer>", "<footer><img src=b></footer>", "Only the page footer changed."),
        ("<p title='3 minutes ago'>x</p>", "<p title='4 minutes ago'>x</p>", "Only an age changed."),
    ],
)
def test_what_stands_beside_the_content_or_changes_by_itself_is_noise(old: str, new: str, reason: str) -> None:
    found = judged(old, new)
    assert (found.importance, found.reason) == (Importance.NOISE, reason)


def test_tags_that_change_without_the_text_are_reported_if_the_structure_counts() -> None:
    old, new = "<p>The meeting is <b>on</b> Monday.</p>", "<p>The meeting is <em>on</em> Monday.</p>"
    found = judged(old, new, filters=[["also", "structure"]])
    assert (found.importance, found.kind) == (Importance.IMPORTANT, "structure")
    assert found.reason.startswith("The structure changed: ")
    assert judged(old, new, filters=[["also", "links"]]).edits == []


def test_the_label_of_an_image_is_reported_once() -> None:
    assert judged("<img src=a alt=One>", "<img src=a alt=Two>").reason == "1 alt changed: One → Two."
    media = judged("<img src=a alt=One>", "<img src=a alt=Two>", filters=[["also", "media"]])
    assert (media.importance, media.reason) == (Importance.MINOR, "Only the words of links and media changed.")
    beside = judged("<nav><img src=a alt=One></nav>", "<nav><img src=a alt=Two></nav>", filters=[["also", "media"]])
    assert beside.importance is Importance.NOISE


def test_a_link_that_was_added_with_its_words_is_reported_as_these() -> None:
    found = judged("", "<p>There is a <a href=/new>new paper</a> on it.</p>")
    assert (found.kind, found.reason) == ("text", "7 words added in one place: There is a new paper on it.")
    also = judged("<a href=/1>Get</a>", "<p>There is more.</p><a href=/2>Get</a>")
    assert (also.kind, also.reason) == ("text", "3 words added in one place: There is more. Also changed: 1 link.")


def test_text_is_judged_as_it_is_on_a_page_of_which_only_text_counts() -> None:
    old, new = "<p>It costs $5.</p><a href=/a>x</a>", "<p>It costs $6.</p><a href=/b>x</a>"
    found = judged(old, new)
    alone = judged(old, new, filters=None)
    assert (found.importance, found.score, found.kind) == (alone.importance, alone.score, "price")


def test_links_are_held_against_those_that_are_called_the_same() -> None:
    old = "<ul><li><a href=/p/one>Alpha</a><li><a href=/p/two>Beta</a></ul>"
    new = "<ul><li><a href=/p/three>Alpha</a><li><a href=/p/one>Beta</a></ul>"
    assert judged(old, new).reason == "2 links changed: Alpha: /p/one → /p/three."


def test_what_a_second_fetch_undoes_or_every_check_brings_is_noise() -> None:
    old, new, third = (f"<p>Look</p><img src={name}.png>" for name in ("a", "b", "c"))
    again = Extraction(f"<body>{FILLER}{third}".encode(), HTML, ALSO).text()
    found = judged(old, new, Experience(again=again))
    assert (found.importance, found.differs_at_every_fetch) == (Importance.NOISE, True)

    memory = Memory()
    verdicts: list[Importance] = []
    pictures = [
        f"<p>Look</p><img src=/{name}.png><p>End</p>" for name in ("amber", "birch", "cedar", "dahlia", "elder")
    ]
    for check, (one, other) in enumerate(pairwise(pictures), start=2):
        found = judged(one, other, Experience(page=memory, check=check, at=check * 3_600.0))
        learn(memory, found, check, check * 3_600.0)
        verdicts.append(found.importance)
    assert verdicts == [Importance.IMPORTANT, Importance.IMPORTANT, Importance.NOISE, Importance.NOISE]


def test_the_blocks_without_notes_are_made_once_for_all_edits() -> None:
    made: list[int] = []

    class Counted(Blocks):
        def without(self, unwanted: Callable[[str], bool]) -> Blocks:
            made.append(len(self))
            return super().without(unwanted)

    def read(word: str) -> JudgedDocument:
        lines = [line for number in range(40) for line in (f"{word} {number}", f"[link] {word} → /{number}")]
        return JudgedDocument(text="\n".join(lines), title="", at=0.0, blocks=ReadOnce(lambda: Counted(lines)))

    assert len(judge_all(read("Before"), read("Afterwards"), Experience()).edits) > 40
    assert made in ([80], [80, 80])


def test_a_headline_that_looks_like_a_note_is_text() -> None:
    found = judged("<p>[video] Minister stays</p>", "<p>[video] Minister resigns today</p>")
    assert (found.importance, found.kind) == (Importance.IMPORTANT, "text")


@pytest.mark.parametrize(("links", "noted"), [(290, True), (310, False)])
def test_what_is_learned_of_the_text_does_not_hang_on_how_many_links_changed(links: int, *, noted: bool) -> None:
    menus = ("".join(f"<p><a href=/{to}/{at}>Part {at}</a></p>" for at in range(links)) for to in ("old", "new"))
    old, new = (f"{menu}<p>{word}</p>" for menu, word in zip(menus, ("Dogs bark", "Cats purr"), strict=True))
    memory, found = Memory(), judged(old, new)
    assert len(found.edits) > links
    learn(memory, found, 2, 0.0)
    alone = Memory()
    text = [edit for edit in found.edits if not any(line and is_note(line.text) for line in (edit.old, edit.new))]
    learn(alone, replace(found, edits=text), 2, 0.0)
    assert memory
    assert (memory.to_bytes() != alone.to_bytes()) is noted


def test_what_is_feedback_keys_a_page_made_anew_takes_a_bounded_number_of_keys() -> None:
    old, new = ("".join(f"<p><a href=/{to}/{at}>Part {at}</a></p>" for at in range(900)) for to in ("old", "new"))
    for_page, for_host = feedback_keys(judged(old, new), Importance.NOISE)
    assert 100 < len(for_host) <= len(for_page) <= 206
