"""Whether a difference matters for a page of which more counts than its text.

Text and notes are judged apart, so that the one reads as it does without the other. A note is noise if something
explains it, as with text: a link that came or went with its words is told by these, and one that leads elsewhere, an
image that was replaced or a field that says something else matters unless it stands beside the content.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from driftline.detection.diff.lines import Line, Pair, match
from driftline.detection.diff.markup import counted, listed, turned
from driftline.detection.extract.annotations import Note, is_note, note_of, without_notes
from driftline.detection.noise.edits import BY_ITSELF, WHERE, Edit, JudgedDocument, Judgement, only
from driftline.detection.noise.judge import judge
from driftline.detection.noise.learning import said_before, why_again
from driftline.detection.noise.refetch import fetched_again
from driftline.detection.noise.region_rules import placed
from driftline.detection.noise.volatile import masked, why_fleeting
from driftline.model import Also, Matter, Region

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from driftline.detection.noise.edits import Experience

_SCORE = 0.5  # the least of what matters: any change of text is more
_NOUNS = {"embedded": "embedded object", "audio": "audio track", "label": "label"}


def judge_all(old: JudgedDocument, new: JudgedDocument, experience: Experience) -> Judgement:
    """Whether what differs between two readings matters, notes included, and why."""
    said = judge(_text_of(old), _text_of(new), experience)
    noted = _edits(old, new, experience)
    if not noted:
        return said
    edits = [*said.edits, *noted]
    real = [edit for edit in noted if not edit.noise]
    if said.verdict is Matter.MEANINGFUL:
        reason = f"{said.reason} Also changed: {_counted(real)}." if real else said.reason
        return replace(said, reason=reason, edits=edits)
    kind = Counter(note.kind.value for edit in real or noted for note in _notes(edit)).most_common(1)[0][0]
    if real:
        counts = _counted(real)
        reason = f"{counts[0].upper()}{counts[1:]} changed: {_told(real[0])}."
        return replace(said, verdict=Matter.MEANINGFUL, score=_SCORE, kind=kind, reason=reason, edits=edits)
    return replace(said, reason=only(edits), edits=edits, kind=said.kind if said.edits else kind)


def _text_of(read: JudgedDocument) -> JudgedDocument:
    # asked for with every edit
    return replace(read, text=without_notes(read.text), blocks=cache(lambda: read.blocks().without(is_note)))


def _edits(old: JudgedDocument, new: JudgedDocument, experience: Experience) -> list[Edit]:
    """The notes that differ, each with what explains it."""
    matching = match(old.text, new.text)
    pairs = _paired(matching.pairs)
    if not pairs:
        return []
    stands = _standing_in(without_notes(old.text), without_notes(new.text))
    again = fetched_again(experience.again, matching, pairs)
    edits: list[Edit] = []
    for one, other in pairs:
        noise = said_before(one, other, experience)
        if noise is None and again is not None and again.differs(one, other):
            noise = BY_ITSELF
        if noise is None:
            noise = _why(one, other, stands, (old.at, new.at)) or why_again(one, other, experience)
        if noise is None:
            block = placed(other, new) if other else placed(one, old)
            # fields stand in forms: what they say there is what somebody asked for
            noise = "" if block is None or block.region is Region.FORM else WHERE.get(block.region, "")
        edits.append(Edit(old=one, new=other, noise=noise))
    return edits


def _standing_in(*texts: str) -> Callable[[str], bool]:
    """Whether words stand in all of these texts. Most links are lines of their own, so that few need a search."""
    lines = [set(text.split("\n")) for text in texts]

    @cache
    def stands(words: str) -> bool:
        return all(words in whole or words in text for whole, text in zip(lines, texts, strict=True))

    return stands


def _why(
    one: Line | None, other: Line | None, stands: Callable[[str], bool], at: tuple[float, float]
) -> str | None:  # fmt: skip
    """What explains the edit of a note by what it says."""
    before, after = (note_of(line.text) if line else None for line in (one, other))
    note = after or before
    assert note is not None
    if note.kind is Also.STRUCTURE:
        return None
    if before and after and note.has_address:
        return "the words of links and media" if before.value == after.value else None
    if before and after:
        same_words = masked(before.value) == masked(after.value)
        return why_fleeting(before.value, after.value, *at) if same_words else None
    came_with_words = note.kind is Also.LINKS and note.label and not stands(note.label)
    return "links that came or went with their words" if came_with_words else None


def _paired(pairs: Iterable[Pair]) -> list[Pair]:
    """The notes among these, paired with those of the same noun, and of the same name if they have an address."""
    kept: list[Pair] = []
    removed: list[Line] = []
    added: list[Line] = []
    for pair in pairs:
        one, other = (line if line and is_note(line.text) else None for line in pair)
        if one and other and _key(one, by_label=True) == _key(other, by_label=True):
            kept.append((one, other))
            continue
        removed += [one] if one else []
        added += [other] if other else []
    for by_label in (True, False):
        waiting: dict[tuple[str, str], list[Line]] = defaultdict(list)
        for line in reversed(added):
            waiting[_key(line, by_label=by_label)].append(line)
        found = [(line, same.pop()) for line in removed if (same := waiting[_key(line, by_label=by_label)])]
        kept += found
        taken = {id(line) for pair in found for line in pair}
        removed, added = ([line for line in side if id(line) not in taken] for side in (removed, added))
    return [*kept, *((line, None) for line in removed), *((None, line) for line in added)]


def _key(line: Line, *, by_label: bool) -> tuple[str, str]:
    note = note_of(line.text)
    assert note is not None
    return note.noun, (note.label if by_label else note.value) if note.has_address else ""


def _notes(edit: Edit) -> list[Note]:
    return [note for line in (edit.old, edit.new) if line and (note := note_of(line.text))]


def _counted(edits: Sequence[Edit]) -> str:
    counts = Counter(_notes(edit)[-1].noun for edit in edits)
    return listed([
        noun if noun.startswith("the ") else counted(many, _NOUNS.get(noun, noun)) for noun, many in counts.items()
    ])  # fmt: skip


def _told(edit: Edit) -> str:
    """One edit in words."""
    before, after = (note_of(line.text) if line else None for line in (edit.old, edit.new))
    note = after or before
    assert note is not None
    called = f"{note.label}: " if note.label else ""
    return f"{called}{turned(before.value if before else '', after.value if after else '')}"
