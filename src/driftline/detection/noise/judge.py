"""Decide whether the difference between two documents matters: its importance, a score and a reason.

The lines of the two are matched, and those left over make the edits. An edit is noise if something explains it: it
stands in a part of the page that changes by itself, only such tokens differ in it, or it was seen to come and go. The
change matters if nothing explains at least one edit.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from driftline.detection.diff.align import gaps
from driftline.detection.diff.lines import folded, is_value, label_above, match, without_gaps, without_hints
from driftline.detection.messages import REORDERED, with_example, words_changed
from driftline.detection.noise.edits import (
    MOST_OF_NOISE,
    NOISE_OF_REGION,
    REWRITTEN_PAGE,
    Experience,
    JudgedDocument,
    Judgement,
    LineEdit,
    NotNoise,
    features_of,
    kind_of,
    line_of,
    same_words,
    score_of,
    why_noise,
    with_headings,
)
from driftline.detection.noise.learning import (
    is_proved,
    is_redrawn,
    is_reworded,
    learned_noise,
    may_be_redrawn,
    mutes_numbers,
    newly_ignored,
    rule_by_feedback,
    said_of_order,
    with_redrawn_sections,
)
from driftline.detection.noise.region_rules import (
    counter_noise,
    is_content,
    may_be_label,
    region_noise,
    widgets_of,
    with_labels,
)
from driftline.detection.noise.rules import Context, fetched_again, jitter_of, rule_by_content
from driftline.detection.noise.volatile import (
    counts_audience,
    dates_in,
    names_money,
    undated,
    volatile_noise,
    without_ages,
)
from driftline.model.change import LEAST_SCORES, MINOR_KINDS, Importance, NoiseKind, Region

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from driftline.detection.diff.lines import Line, Matching
    from driftline.detection.extract.regions import Blocks
    from driftline.detection.noise.edits import Ruling
    from driftline.detection.noise.rules import SecondFetch
    from driftline.model.change import Block
    from driftline.model.outcome import IgnoredParts

_REDRAWN = (NoiseKind.EVERY_FETCH, NoiseKind.EVERY_CHECK)
_NEAR = 20  # lines
_SMALL = 400  # characters
_MANY = 3  # lines
_SHOWN_OF_REWRITTEN = 40  # edits that matter, of so many


def judge(old: JudgedDocument, new: JudgedDocument, experience: Experience | None = None) -> Judgement:
    """Return whether what differs between two documents matters, and why."""
    experience = experience or Experience()
    matching = match(old.text, new.text)
    again = fetched_again(experience.again, matching, matching.pairs)
    edits = _edits(old, new, matching, experience, again)
    if _have_same_letters(matching):
        edits = [replace(edit, noise=edit.noise or NoiseKind.TYPOGRAPHY) for edit in edits]
    if matching.restyled and all(edit.noise is not None for edit in edits):
        edits += [_restyled(one, other, old, new, experience) for one, other in matching.restyled]
    edits = _once_each(edits)
    # sections are learned also where all is noise, and the user may want all of one reported
    of_noise = bool(experience.page.pins) or may_be_redrawn(edits)
    edits = with_redrawn_sections(with_headings(edits, old, new, of_noise=of_noise), new, experience)
    decisive = [edit for edit in edits if edit.noise is None]
    redrawn = {edit.heading for edit in edits if edit.noise in _REDRAWN and edit.heading}
    order = Importance.NOISE if decisive or experience.only else _order(old.text, new, experience, redrawn)
    moved = order is not Importance.NOISE
    shuffled = moved and again is not None and _order(again.text, new, experience, redrawn) is not Importance.NOISE
    moved = moved and not shuffled
    by_order = False
    if decisive:
        importance, score, reason = (
            Importance.IMPORTANT,
            score_of(features_of(edits, new)),
            _described(matching, decisive),
        )
    elif moved and (importance := said_of_order(experience) or order) is not Importance.NOISE:
        score, reason, by_order = LEAST_SCORES[importance], REORDERED, True
    elif decisive := [edit for edit in edits if edit.noise in MINOR_KINDS]:
        importance, score, reason = Importance.MINOR, LEAST_SCORES[Importance.MINOR], why_noise(decisive)
    else:
        score, reason = min(MOST_OF_NOISE, 0.02 * len(edits)), why_noise(edits, new.text, old.text)
        importance = Importance.NOISE
    return Judgement(
        importance=importance, score=round(score, 3), reason=reason, kind=kind_of(decisive or edits), edits=edits,
        words_added=matching.words_added, words_removed=matching.words_removed, moved=moved, by_order=by_order,
        shuffled=shuffled, ignored=ignored_parts(edits, old, new, experience) if len(edits) <= REWRITTEN_PAGE else None,
    )  # fmt: skip


def _have_same_letters(matching: Matching) -> bool:
    """Return whether two texts differ in nothing but spaces and line breaks."""
    removed = sorted([one for one, _ in matching.pairs if one], key=_position)
    added = sorted([other for _, other in matching.pairs if other], key=_position)
    # the lines that differ are much fewer than those of both texts
    one, other = (without_gaps(" ".join([line.text for line in lines])) for lines in (removed, added))
    return one == other != "" and "".join(matching.old.split()) == "".join(matching.new.split())


def _position(line: Line) -> int:
    return line.at


def _once_each(edits: Sequence[LineEdit]) -> list[LineEdit]:
    """Return the edits; one that is made in many lines at once, as 'Updated today' in each row, counts once.

    A price, or a number that stands alone, is that of its row.
    """
    if sum([edit.noise is None for edit in edits]) < _MANY:
        return list(edits)
    same: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for at, edit in enumerate(edits):
        if edit.noise is None and edit.old and edit.new and same_words(edit):
            text = edit.new.folded
            if dates_in(text):
                same[edit.new.masked, *undated(text)].append(at)
            elif not edit.new.label and not names_money(text):
                same[text,].append(at)
    copies = {at for places in same.values() if len(places) >= _MANY for at in places[1:]}
    return [replace(edit, noise=NoiseKind.COPY) if at in copies else edit for at, edit in enumerate(edits)]


def _restyled(
    one: Line | None, other: Line | None, old: JudgedDocument, new: JudgedDocument, experience: Experience
) -> LineEdit:  # fmt: skip
    """Return the edit of a line that has other quotes, dashes or gaps now, or another hint."""
    line = other or one
    assert line is not None
    hint = (
        one is None
        or other is None
        or (without_hints(one.folded) != one.folded) != (without_hints(other.folded) != other.folded)
    )
    ruling = rule_by_feedback(one, other, experience)
    noise: NoiseKind | None = ruling if isinstance(ruling, NoiseKind) else None
    if ruling is NotNoise.UNDECIDED:
        block = new.block_of(other) if other else old.block_of(one)
        beside = None if block is None else NOISE_OF_REGION.get(block.region)
        learned = learned_noise(one, other, experience)
        noise = learned or beside or (NoiseKind.HINT if hint else NoiseKind.TYPOGRAPHY)
    region = new.region_of(other) if other else old.region_of(one)
    return LineEdit(old=one, new=other, noise=noise, region=region)


def ignored_parts(
    edits: Sequence[LineEdit], old: JudgedDocument, new: JudgedDocument, experience: Experience
) -> IgnoredParts | None:  # fmt: skip
    """Return the parts of a page that are noise for the first time by what was learned, and by nothing else."""

    def is_ruled(edit: LineEdit) -> bool:
        if edit.new is None:
            block = _block_near(line_of(edit), old.text, new)
            if block is None or block.region is Region.MAIN:
                return False
            return block.region in NOISE_OF_REGION or block.linked
        if region_noise(edit.old, edit.new, new) is not None:
            return True
        block = new.block_of(edit.new)
        if edit.old is None or block is None or block.region is Region.MAIN or not same_words(edit):
            return False
        return volatile_noise(edit.old.folded, edit.new.folded, old.at, new.at) is NoiseKind.COUNTER

    return newly_ignored(edits, old, new, experience, is_ruled)


def _block_near(line: Line, text: str, new: JudgedDocument) -> Block | None:
    """Return the block of the nearest line above a removed one that is still there; None if there is none near.

    To see where the removed line stood itself would mean to parse the old document again.
    """
    above = text.split("\n")[max(0, line.at - _NEAR) : line.at]
    blocks = new.blocks()
    places = {one: at for at, one in enumerate(blocks.lines)}
    return next((blocks[places[one]] for one in reversed(above) if one in places), None)


def _described(matching: Matching, real: Sequence[LineEdit]) -> str:
    """Return the sentence that counts what changed, with the edit itself if only one matters."""
    sentence = words_changed(matching.words_added, matching.words_removed, matching.places)
    if len(real) != 1:
        return sentence
    return with_example(sentence, *(line.text if line else "" for line in (real[0].old, real[0].new)))


def _edits(
    old: JudgedDocument, new: JudgedDocument, matching: Matching, experience: Experience, again: SecondFetch | None
) -> list[LineEdit]:  # fmt: skip
    """Return every edit with what explains it; of a page that was rewritten, only as many as are needed to show it."""
    context = Context(
        old_at=old.at, new_at=new.at, matching=matching,
        titles={folded(old.title), folded(new.title)}, jitter=jitter_of(matching.pairs),
        small=experience.selected or len(new.text) < _SMALL, experience=experience,
        widgets=widgets_of(matching.pairs, old, new), again=again,
    )  # fmt: skip
    edits: list[LineEdit] = []
    real = 0
    # what was only removed comes last: to see where it stood, the old document must be parsed again
    for one, other in sorted(matching.pairs, key=lambda pair: pair[1] is None):
        if real > _SHOWN_OF_REWRITTEN and len(matching.pairs) > REWRITTEN_PAGE:
            break
        ruling = rule_by_content(one, other, context)
        if experience.leaves_out(one, other) and ruling is not NoiseKind.EVERY_FETCH:
            ruling = NoiseKind.LEFT_OUT
        if not real and _is_doubtful(ruling, one, other, experience) and is_content(one, other, old, new):
            ruling = NotNoise.MATTERS
        noise: NoiseKind | None
        if ruling in MINOR_KINDS and ruling is not NoiseKind.USER_MINOR and other:
            noise = region_noise(one, other, new) or ruling
        elif isinstance(ruling, NoiseKind):
            noise = ruling
        elif ruling is NotNoise.MATTERS:
            noise = None
        elif other:
            noise = region_noise(one, other, new) or counter_noise(one, other, new, context)
        else:
            noise = None if real else region_noise(one, other, old)
        region = new.region_of(other) if other else old.region_of(one)
        edits.append(LineEdit(old=one, new=other, noise=noise, region=region))
        real += noise is None and not may_be_label(one, other)
    return with_labels(edits)


def _is_doubtful(ruling: Ruling, one: Line | None, other: Line | None, experience: Experience) -> bool:
    """Return whether what explains an edit is not enough if the edit is part of the content.

    In a table or under a heading, a copy of text from elsewhere is new information. And that a text changed twice in a
    row, or appeared and disappeared, proves nothing yet where there are other words now, unless the sentence is the
    same.
    """
    if ruling in (NoiseKind.COMES_AND_GOES, NoiseKind.EVERY_CHECK):
        # a removed line is explained by what replaced it; to see where it stood would mean to parse the old document
        return other is not None and not is_reworded(one, other) and not is_proved(one, other, experience)
    return ruling is NoiseKind.COPY


def _order(other: str, new: JudgedDocument, experience: Experience, redrawn: set[str]) -> Importance:
    """Return how important it is that lines have another order now.

    Another order of entries is minor, that of links in a menu and of sections that are drawn anew all the time is
    noise. A number that stands below other words now, and states of things that changed places in a table, are
    important.
    """
    before, after = other.split("\n"), new.text.split("\n")
    if moved := _out_of_order(without_ages(before), without_ages(after)):
        blocks = new.blocks()
        places = [at for at, text in enumerate(blocks.lines) if text in moved and _has_a_place(blocks[at])]
        headings = {new.headings.above(at) for at in places}
        if all(heading in redrawn or is_redrawn(heading, experience) for heading in headings):
            return Importance.NOISE
        relabelled = any(_is_relabelled(before, after, at, experience) for at in places)
        important = relabelled or _are_exchanged(before, after, blocks) or bool(in_other_sections(other, new))
        return Importance.IMPORTANT if important else Importance.MINOR
    # lines that occur several times may have changed places, as the states of things in a table do
    swapped = before != after and len(before) == len(after) and sorted(before) == sorted(after)
    matters = swapped and any(
        block.text != text and block.region not in NOISE_OF_REGION and not block.linked
        for text, block in zip(before, new.blocks(), strict=False)
    )
    return Importance.IMPORTANT if matters else Importance.NOISE


def in_other_sections(other: str, new: JudgedDocument) -> list[tuple[str, str, str]]:
    """Return lines of the content that stand under another heading or term now, as a job that was filled, and both."""
    blocks = new.blocks()
    begin = {*new.headings.texts, *new.terms()}
    if not begin:
        return []
    before, after = _sections(other.split("\n"), begin), _sections(blocks.lines, begin)
    once = {text for text, count in Counter(blocks.lines).items() if count == 1}
    return [
        (text, before[text], after[text]) for at, text in enumerate(blocks.lines)
        if text in once and text not in begin and text in before and before[text] != after[text]
        and blocks[at].region not in NOISE_OF_REGION and not blocks[at].linked
    ]  # fmt: skip


def _sections(lines: Sequence[str], begin: AbstractSet[str]) -> dict[str, str]:
    """Return, for each line, the last one above it with which a section begins."""
    found: dict[str, str] = {}
    section = ""
    for line in lines:
        found[line] = section
        if line in begin:
            section = line
    return found


def _are_exchanged(before: Sequence[str], after: Sequence[str], blocks: Blocks) -> bool:
    """Return whether lines changed places one by one between others that stayed, as the cells of a column do."""
    places = _exchanged(before, after)
    return any(at < len(blocks) and not blocks[at].linked and not counts_audience(after[at]) for at in places)


def _exchanged(before: Sequence[str], after: Sequence[str]) -> list[int]:
    """Return where lines changed places one by one between others that stayed; nothing if more than that happened."""
    if len(before) != len(after) or sorted(before) != sorted(after):
        return []
    places = [at for at, (one, other) in enumerate(zip(before, after, strict=True)) if one != other]
    return [] if any(following == at + 1 for at, following in pairwise(places)) else places


def exchanged_lines(old: str, new: str) -> list[tuple[str, str, str]]:
    """Return lines that changed places between others that stayed: the line above, and the line before and after."""
    before, after = old.split("\n"), new.split("\n")
    return [(after[at - 1] if at else "", before[at], after[at]) for at in _exchanged(before, after)]


def _is_relabelled(before: Sequence[str], after: Sequence[str], at: int, experience: Experience) -> bool:
    """Return whether a line is a number that stands below other words now, and does not change there all the time."""
    if at >= len(after) or not is_value(after[at]):
        return False
    label = label_above(after, at)
    return label != label_above(before, before.index(after[at])) and not mutes_numbers(label, experience)


def _has_a_place(block: Block) -> bool:
    """Return whether the place of a block among others means something."""
    return not (block.region in NOISE_OF_REGION and (block.linked or block.region is Region.CONSENT))


def first_moved(old: str, new: str) -> str:
    """Return the first line that has another place among the others in the new text; empty if there is none."""
    after = new.split("\n")
    moved = _out_of_order(old.split("\n"), after)
    lines = [line for line in after if line in moved]
    return next((line for line in lines if any(map(str.isalpha, line))), lines[0] if lines else "")


def _out_of_order(before: Sequence[str], after: Sequence[str]) -> set[str]:
    """Return those of the lines that occur once in both texts that are in another order."""
    once = {text for text, count in Counter(before).items() if count == 1}
    once &= {text for text, count in Counter(after).items() if count == 1}
    old, new = ([text for text in texts if text in once] for texts in (before, after))
    return {text for gap in gaps(old, new) for text in old[gap.i : gap.j]} if old != new else set()
