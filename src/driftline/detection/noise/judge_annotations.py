"""Decide whether a difference matters for a page of which more is compared than its text (`Also`).

Such a page has lines among its text that describe its links, media and fields: annotations, called notes in the code.
Text and notes are judged apart, so that the text is judged as if there were no notes. A link that was added or removed
with its words is explained by them. A link to another address, a replaced image or another value of a field matters,
unless it stands beside the content.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from driftline.detection.diff.lines import Line, LinePair, match
from driftline.detection.extract.annotations import Note, is_note, note_of, without_notes
from driftline.detection.messages import also_changed, listed, old_to_new, things_changed
from driftline.detection.noise.edits import (
    NOISE_OF_REGION,
    JudgedDocument,
    Judgement,
    LineEdit,
    NotNoise,
    ReadOnce,
    why_noise,
)
from driftline.detection.noise.judge import ignored_parts, judge
from driftline.detection.noise.learning import learned_noise, rule_by_feedback
from driftline.detection.noise.rules import fetched_again
from driftline.detection.noise.volatile import masked, volatile_noise
from driftline.model.change import LEAST_SCORES, MINOR_KINDS, ChangeKind, Importance, NoiseKind, Region
from driftline.model.page import Also
from driftline.plurals import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from driftline.detection.noise.edits import Experience, Ruling
    from driftline.detection.noise.rules import SecondFetch

_SINGLE = (Also.METADATA, Also.STRUCTURE)  # a page has one of each
_NOUNS = {"embedded": "embedded object", "audio": "audio track", "label": "label"}


def judge_all(old: JudgedDocument, new: JudgedDocument, experience: Experience) -> Judgement:
    """Return whether what differs between two documents matters, notes included, and why."""
    of_text = judge(_text_of(old), _text_of(new), experience)
    noted = _edits(old, new, experience)
    if not noted:
        return of_text
    edits = [*of_text.edits, *noted]
    of_text = replace(of_text, ignored=ignored_parts(edits, old, new, experience))
    real = [edit for edit in noted if edit.noise is None]
    if of_text.importance is Importance.IMPORTANT:
        reason = f"{of_text.reason} {also_changed(_counted(real))}" if real else of_text.reason
        return replace(of_text, reason=reason, edits=edits)
    most = Counter(note.kind for edit in real or noted for note in _notes(edit)).most_common(1)[0][0]
    kind = ChangeKind(most.value)
    if real:
        reason = things_changed(_counted(real), _described(real[0]))
        score = LEAST_SCORES[Importance.IMPORTANT]  # any change of text is more
        return replace(of_text, importance=Importance.IMPORTANT, score=score, kind=kind, reason=reason, edits=edits)
    if of_text.importance is Importance.MINOR:
        return replace(of_text, edits=edits)
    if minor := [edit for edit in noted if edit.noise in MINOR_KINDS]:
        score, reason = LEAST_SCORES[Importance.MINOR], why_noise(minor)
        return replace(of_text, importance=Importance.MINOR, score=score, kind=kind, reason=reason, edits=edits)
    return replace(of_text, reason=why_noise(edits), edits=edits, kind=of_text.kind if of_text.edits else kind)


def _text_of(read: JudgedDocument) -> JudgedDocument:
    text = without_notes(read.text)
    return replace(read, text=text, blocks=ReadOnce(lambda: read.blocks().without(is_note)))


def _edits(old: JudgedDocument, new: JudgedDocument, experience: Experience) -> list[LineEdit]:
    """Return the notes that differ, each with what explains it."""
    matching = match(old.text, new.text)
    pairs = _paired(matching.pairs)
    if not pairs:
        return []
    stands = _occurs_in_all(without_notes(old.text), without_notes(new.text))
    again = fetched_again(experience.again, matching, pairs)
    edits: list[LineEdit] = []
    for one, other in pairs:
        ruling = _rule_by_content(one, other, experience, again)
        if experience.leaves_out(one, other) and ruling is not NoiseKind.EVERY_FETCH:
            ruling = NoiseKind.LEFT_OUT
        noise: NoiseKind | None = None
        if isinstance(ruling, NoiseKind):
            noise = ruling
        elif ruling is NotNoise.UNDECIDED:
            noise = _note_noise(one, other, stands, (old.at, new.at)) or learned_noise(one, other, experience)
            if noise is None or noise in MINOR_KINDS:
                noise = _region_noise(one, other, old, new) or noise
        region = new.region_of(other) if other else old.region_of(one)
        edits.append(LineEdit(old=one, new=other, noise=noise, region=region))
    return edits


def _rule_by_content(
    one: Line | None, other: Line | None, experience: Experience, again: SecondFetch | None
) -> Ruling:  # fmt: skip
    """Return the ruling on a note by the user's feedback and a second fetch."""
    ruling = rule_by_feedback(one, other, experience)
    if ruling is NotNoise.UNDECIDED and again is not None and again.differs(one, other):
        return NoiseKind.EVERY_FETCH
    return ruling


def _region_noise(
    one: Line | None, other: Line | None, old: JudgedDocument, new: JudgedDocument
) -> NoiseKind | None:  # fmt: skip
    """Return the region beside the content that a note stands in, if it does."""
    block = new.block_of(other) if other else old.block_of(one)
    # fields are in forms, and the user chose to compare them
    return None if block is None or block.region is Region.FORM else NOISE_OF_REGION.get(block.region)


def _occurs_in_all(*texts: str) -> Callable[[str], bool]:
    """Return a test of whether words occur in all of these texts. Most links are whole lines: few need a search."""
    lines = [set(text.split("\n")) for text in texts]

    @cache
    def stands(words: str) -> bool:
        return all(words in whole or words in text for whole, text in zip(lines, texts, strict=True))

    return stands


def _note_noise(
    one: Line | None, other: Line | None, stands: Callable[[str], bool], at: tuple[float, float]
) -> NoiseKind | None:  # fmt: skip
    """Return what explains the edit of a note by its content."""
    before, after = (note_of(line.text) if line else None for line in (one, other))
    note = after or before
    assert note is not None
    if note.kind is Also.STRUCTURE:
        return None
    if before and after and note.has_address:
        return NoiseKind.LABELS if before.value == after.value else None
    if before and after:
        same_words = masked(before.value) == masked(after.value)
        return volatile_noise(before.value, after.value, *at) if same_words else None
    came_with_words = note.kind is Also.LINKS and note.label and not stands(note.label)
    return NoiseKind.LINKS_WITH_TEXT if came_with_words else None


def _paired(pairs: Iterable[LinePair]) -> list[LinePair]:
    """Return the notes among these, paired by their noun, and by their label too if they have an address."""
    kept: list[LinePair] = []
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


def _notes(edit: LineEdit) -> list[Note]:
    return [note for line in (edit.old, edit.new) if line and (note := note_of(line.text))]


def _counted(edits: Sequence[LineEdit]) -> str:
    counts = Counter((_notes(edit)[-1].noun, _notes(edit)[-1].kind) for edit in edits)
    return listed([
        noun if kind in _SINGLE else count(many, _NOUNS.get(noun, noun)) for (noun, kind), many in counts.items()
    ])  # fmt: skip


def _described(edit: LineEdit) -> str:
    """Return one edit in words."""
    before, after = (note_of(line.text) if line else None for line in (edit.old, edit.new))
    note = after or before
    assert note is not None
    called = f"{note.label}: " if note.label else ""
    return f"{called}{old_to_new(before.value if before else '', after.value if after else '')}"
