"""Learn from the edits of a page and from the user's feedback, and explain later edits by both."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from driftline.detection.diff.lines import Line, key_of
from driftline.detection.extract.annotations import is_note
from driftline.detection.noise.edits import REWRITTEN_PAGE, NotNoise, line_of, same_words
from driftline.detection.noise.volatile import names_money, names_stock
from driftline.model.change import MINOR_KINDS, Importance, NoiseKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from driftline.detection.noise.edits import Experience, JudgedDocument, Judgement, LineEdit, Ruling
    from driftline.noise_memory import Memory

_LETTER = re.compile(r"[^\W\d_]")
_ORDER = key_of("order", "")  # of the lines of a page
#: the ruling on an edit that the user called so
_SAID: dict[Importance, Ruling] = {
    Importance.IMPORTANT: NotNoise.MATTERS, Importance.MINOR: NoiseKind.USER_MINOR, Importance.NOISE: NoiseKind.USER,
}  # fmt: skip
_MOST_KEYS = 200  # by which the feedback on one change is remembered
_PROVED = 4  # checks
_SEVERAL = 2  # lines
_SHORT = 100  # characters
_FEW_WORDS = 4
_SENTENCE, _SAME = 6, 0.6  # words, and the share of them
_OTHER_PAGES = 3  # of the host, on which the same changes all the time


def learn(memory: Memory, judgement: Judgement, check: int, at: float) -> list[bytes]:
    """Remember what changed at the check of this number and time, and return the keys that its whole host may learn.

    Nothing is remembered of a page that was rewritten, nor of its annotations if as many of them changed.
    """
    learned = [edit for edit in judgement.edits if not is_note(line_of(edit).text)]
    if len(learned) > REWRITTEN_PAGE:
        return []
    if len(judgement.edits) - len(learned) <= REWRITTEN_PAGE:
        learned = list(judgement.edits)
    # what a second fetch undid may be a change that not all servers have yet: it must still be reported once they do
    edits = [edit for edit in learned if edit.noise is not NoiseKind.EVERY_FETCH]
    lines = [line for edit in edits for line in (edit.old, edit.new) if line]
    memory.note({_section_key(heading) for heading in _redrawn(learned, memory)}, check, at)
    memory.note({_own_keys(line)[1] for line in lines}, check, at)
    # of a line in which only numbers differ, the words are enough: other words in its place matter
    places = {_place(line) for edit in edits for line in (edit.old, edit.new) if line and _is_of_place(edit, line)}
    return memory.note({_own_keys(line)[0] for line in lines} | (places - {b""}), check, at)


def feedback_keys(judgement: Judgement, importance: Importance) -> tuple[set[bytes], set[bytes]]:
    """Return the keys by which feedback on a change is remembered, for its page and for its host.

    If the change is important to the user, the feedback is about the edits taken for noise or minor so far, otherwise
    about the others. Where lines have another order and nothing else matters, it is about their order. Where only
    numbers differ, it holds for these words with any numbers; otherwise also for the place, and for the section if
    several of its lines were exchanged and nothing else. Places and sections count on this page only, and so do a few
    words: on another, they may be about anything. Of a page that was rewritten, the first edits are enough.
    """
    meant = _meant(judgement, importance)
    page: set[bytes] = set() if meant or not judgement.moved else {_ORDER}
    host: set[bytes] = set()
    sections = _sections(meant)
    if importance is Importance.NOISE and len(sections) == 1 and min(_counts(meant)) >= _SEVERAL:
        page |= {_section_key(heading) for heading, among in sections.items() if len(among) == len(meant)}
    for edit in meant:
        lines = [line for line in (edit.old, edit.new) if line]
        page |= {key for line in lines for key in _own_keys(line)}
        if not same_words(edit):
            page |= {line.place for line in lines if line.place}
        # a few words with another number may be about anything on another page, such as a price: too little to mute it
        host |= {_own_keys(line)[1] for line in lines}
        host |= {_own_keys(line)[0] for line in lines if importance is Importance.IMPORTANT or _is_telling(line)}
        if len(page | host) > _MOST_KEYS:
            break
    return page | host, host


def _meant(judgement: Judgement, importance: Importance) -> list[LineEdit]:
    """Return the edits that feedback on a change is about."""
    if judgement.importance is Importance.MINOR:
        return [edit for edit in judgement.edits if edit.noise in MINOR_KINDS]
    meant = [edit for edit in judgement.edits if (edit.noise is not None) == (importance is Importance.IMPORTANT)]
    return meant or ([] if judgement.moved else list(judgement.edits))


def said_of_order(experience: Experience) -> Importance | None:
    """Return what the user called another order of the lines of the page; None if nothing."""
    return experience.page.pinned(_ORDER)


def mutes_numbers(label: str, experience: Experience) -> bool:
    """Return whether numbers below these words change at nearly every check."""
    return experience.page.mutes(key_of("number", label), experience.check, experience.at)


def with_redrawn_sections(
    edits: Sequence[LineEdit], new: JudgedDocument, experience: Experience
) -> list[LineEdit]:  # fmt: skip
    """Return the edits, those of a section that is drawn anew at every fetch explained by that.

    Such a section, as 'Others also bought', shows some of a set of things, and shows them again later. As long as it
    shows as many as before, what it shows is noise.
    """
    muted: dict[str, NoiseKind] = {}
    for heading, among in _sections(edits).items():
        if heading == new.headings.first or all(edit.noise is not None for edit in among):
            continue
        added, removed = _counts(among)
        if any(edit.noise is NoiseKind.EVERY_FETCH and edit.new for edit in among) and added == removed:
            muted[heading] = NoiseKind.EVERY_FETCH
        elif experience.page.pinned(_section_key(heading)) is Importance.NOISE:
            muted[heading] = NoiseKind.USER
        elif added == removed and is_redrawn(heading, experience):
            muted[heading] = NoiseKind.EVERY_CHECK
    return [
        replace(edit, noise=muted[edit.heading]) if edit.noise is None and edit.heading in muted else edit
        for edit in edits
    ]


def is_redrawn(heading: str, experience: Experience) -> bool:
    """Return whether the section under this heading was drawn anew several times lately."""
    return bool(heading) and experience.page.comes_and_goes(_section_key(heading), experience.check, experience.at)


def _sections(edits: Sequence[LineEdit]) -> dict[str, list[LineEdit]]:
    """Return the edits by the heading above them, without those above the first heading."""
    found: dict[str, list[LineEdit]] = defaultdict(list)
    for edit in edits:
        if edit.heading:
            found[edit.heading].append(edit)
    return found


def _counts(among: Sequence[LineEdit]) -> tuple[int, int]:
    """Return how many lines some edits add, and how many they remove."""
    return sum(edit.new is not None for edit in among), sum(edit.old is not None for edit in among)


def _redrawn(edits: Sequence[LineEdit], memory: Memory) -> list[str]:
    """Return the headings of sections in which several lines were exchanged, one of which was there before.

    That a news list has other entries is news: they do not come back.
    """
    return [
        heading
        for heading, among in _sections(edits).items()
        if min(_counts(among)) >= _SEVERAL
        and (
            any(edit.noise is NoiseKind.EVERY_FETCH for edit in among)
            or any(edit.new is not None and memory.times(_own_keys(edit.new)[1]) for edit in among)
        )
    ]


def _section_key(heading: str) -> bytes:
    return key_of("section", heading)


def _is_telling(line: Line) -> bool:
    """Return whether the words of a line say what its numbers are, on any page of a host."""
    return len(line.masked.split()) >= _FEW_WORDS and not names_money(line.text)


def rule_by_feedback(one: Line | None, other: Line | None, experience: Experience) -> Ruling:
    """Return the ruling on such an edit by the user's feedback, UNDECIDED if there is none."""
    if not (experience.page.pins or experience.host.pins):
        return NotNoise.UNDECIDED
    for line in (other, one):
        for key in (*_own_keys(line)[::-1], line.place) if line else ():
            # what a line became on another page of the host says nothing about what it became here
            of_host = experience.host.pinned(key) if line is other or other is None else None
            importance = experience.page.pinned(key) or of_host
            if importance is not None:
                return _SAID[importance]
    return NotNoise.UNDECIDED


def is_proved(one: Line | None, other: Line | None, experience: Experience) -> bool:
    """Return whether the edit happened at so many checks that it is noise even in the content.

    After fewer checks it may be some news in a row, or a state that returned: pages are watched for that.
    """
    lines = [line for line in (one, other) if line]
    keys = [(line.place, *_own_keys(line)) for line in lines]
    return all(max(map(experience.page.times, some)) >= _PROVED for some in keys)


def learned_noise(
    one: Line | None, other: Line | None, experience: Experience, *, beside: bool = False
) -> NoiseKind | None:
    """Return how earlier checks explain the edit: it happens all the time, or its lines come and go; else None.

    What prices and stocks do may be what the page is watched for, however often they do it, unless they are `beside`
    the content.
    """
    found = _learned_noise(one, other, experience) if experience.page or experience.host else None
    lines = [line for line in (one, other) if line] if found is not None and not beside else ()
    if any(names_money(line.text) for line in lines):
        return None
    if any(map(is_about_stock, lines)):
        return alternating_noise(one, other, experience)
    return found


def alternating_noise(one: Line | None, other: Line | None, experience: Experience) -> NoiseKind | None:
    """Return COMES_AND_GOES if the lines are sentences that came and went several times; else None.

    That needs more proof than anything else: a state that alternates may be what the page is watched for.
    """
    page, now = experience.page, (experience.check, experience.at)
    lines = [line for line in (one, other) if line] if page else []
    alternate = lines and all(
        line.folded.count(" ") >= _SENTENCE - 1
        and not names_money(line.text)
        and page.times(_own_keys(line)[1]) >= _PROVED
        and page.comes_and_goes(_own_keys(line)[1], *now)
        for line in lines
    )
    return NoiseKind.COMES_AND_GOES if alternate else None


def is_about_stock(line: Line) -> bool:
    """Return whether a line is about whether something is available; in a long one such words mean something else."""
    return len(line.text) < _SHORT and names_stock(line.text)


def _learned_noise(one: Line | None, other: Line | None, experience: Experience) -> NoiseKind | None:
    page, host, now = experience.page, experience.host, (experience.check, experience.at)
    lines = [line for line in (one, other) if line]
    if all(page.comes_and_goes(_own_keys(line)[1], *now) for line in lines):
        return NoiseKind.COMES_AND_GOES
    if other and _is_new(one, other):
        return None  # a new sentence matters even in a place, or with the words, that change all the time
    keys = [(_place(line), _own_keys(line)[0]) for line in lines]
    if all(page.mutes(place, *now) or page.mutes(masked, *now) for place, masked in keys):
        return NoiseKind.EVERY_CHECK
    if all(max(host.times(place), host.times(masked)) >= _OTHER_PAGES for place, masked in keys):
        return NoiseKind.OTHER_PAGES
    return None


def is_reworded(one: Line | None, other: Line | None) -> bool:
    """Return whether two lines share most of their words, or all that are not numbers."""
    if one is None or other is None:
        return False
    before, after = set(one.folded.split()), set(other.folded.split())
    most = max(len(before), len(after))
    return one.masked == other.masked or (most >= _SENTENCE and len(before & after) >= _SAME * most)


def _is_new(one: Line | None, other: Line) -> bool:
    """Return whether an added line has several words and is not another wording of the old line."""
    return other.folded.count(" ") >= _FEW_WORDS - 1 and not is_reworded(one, other)


def _is_of_place(edit: LineEdit, line: Line) -> bool:
    """Return whether the place of a line is learned: not if it has words, and these stayed the same."""
    return not same_words(edit) or bool(line.label)


def _place(line: Line) -> bytes:
    """Return the key of the place of a line; that of a number is another, so that it does not mute words there."""
    return key_of("number", line.place.hex()) if line.label and line.place else line.place


def _own_keys(line: Line) -> tuple[bytes, bytes]:
    if line.keys is None:
        named = line.masked if _LETTER.search(line.masked) else ""
        # of a line that is only numbers, what it counts stands above it
        masked = key_of("masked", named) if named else key_of("number", line.label or line.folded)
        line.keys = masked, key_of("line", line.folded)
    return line.keys
