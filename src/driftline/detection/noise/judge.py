"""Decide whether the difference between two documents matters: a verdict, a score and a reason.

The lines of the two are matched, and those left over make the edits. An edit is noise if something explains it: it
stands in a part of the page that changes by itself, only such tokens differ in it, or it was seen to come and go. The
change matters if nothing explains at least one edit.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from driftline.detection.diff.align import gaps
from driftline.detection.diff.lines import folded, match
from driftline.detection.messages import REORDERED, with_example, words_changed
from driftline.detection.noise.edits import (
    NOISE_OF_REGION,
    REWRITTEN_PAGE,
    Experience,
    JudgedDocument,
    Judgement,
    LineEdit,
    NotNoise,
    kind_of,
    line_of,
    same_words,
    why_noise,
    with_headings,
    words_of,
)
from driftline.detection.noise.learning import (
    is_proved,
    is_redrawn,
    is_reworded,
    may_be_redrawn,
    newly_ignored,
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
from driftline.detection.noise.volatile import volatile_noise
from driftline.model.change import Matter, NoiseKind, Region

if TYPE_CHECKING:
    from collections.abc import Sequence

    from driftline.detection.diff.lines import Line, Matching
    from driftline.detection.noise.edits import Ruling
    from driftline.detection.noise.rules import SecondFetch
    from driftline.model.change import Block
    from driftline.model.outcome import IgnoredParts

_REDRAWN = (NoiseKind.EVERY_FETCH, NoiseKind.EVERY_CHECK)
_NEAR = 20  # lines
_SMALL = 400  # characters
_SHOWN_OF_REWRITTEN = 40  # edits that matter, of so many


def judge(old: JudgedDocument, new: JudgedDocument, experience: Experience | None = None) -> Judgement:
    """Return whether what differs between two documents matters, and why."""
    experience = experience or Experience()
    matching = match(old.text, new.text)
    again = fetched_again(experience.again, matching, matching.pairs)
    edits = _edits(old, new, matching, experience, again)
    # sections are learned also where all is noise, and the user may want all of one reported
    of_noise = bool(experience.page.pins) or may_be_redrawn(edits)
    edits = with_headings(edits, old, new, of_noise=of_noise)
    edits = with_redrawn_sections(edits, new, experience)
    real = [edit for edit in edits if edit.noise is None]
    redrawn = {edit.heading for edit in edits if edit.noise in _REDRAWN and edit.heading}
    moved = not real and _moved(old.text, new, experience, redrawn)
    shuffled = moved and again is not None and _moved(again.text, new, experience, redrawn)
    if real:
        words = sum(words_of(edit) for edit in real)
        verdict, score = Matter.MEANINGFUL, 0.5 + 0.5 * (1 - math.exp(-words / 20))
        reason = _described(matching, real)
    elif moved and not shuffled:
        verdict, score, reason = Matter.MEANINGFUL, 0.5, REORDERED
    else:
        verdict, score, reason = Matter.NOISE, min(0.4, 0.02 * len(edits)), why_noise(edits, new.text, old.text)
    return Judgement(
        verdict=verdict, score=round(score, 3), reason=reason, kind=kind_of(edits), edits=edits,
        words_added=matching.words_added, words_removed=matching.words_removed,
        shuffled=shuffled, ignored=ignored_parts(edits, old, new, experience),
    )  # fmt: skip


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
        if not real and _is_doubtful(ruling, one, other, experience) and is_content(one, other, old, new):
            ruling = NotNoise.MATTERS
        noise: NoiseKind | None
        if isinstance(ruling, NoiseKind):
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


def _moved(other: str, new: JudgedDocument, experience: Experience, redrawn: set[str]) -> bool:
    """Return whether lines other than the links of a menu have another order now, as in a table or a ranking.

    The lines of sections that are drawn anew all the time do not count.
    """
    before, after = other.split("\n"), new.text.split("\n")
    if moved := _out_of_order(before, after):
        blocks = new.blocks()
        places = [at for at, text in enumerate(blocks.lines) if text in moved and _has_a_place(blocks[at])]
        headings = {new.headings.above(at) for at in places}
        return any(heading not in redrawn and not is_redrawn(heading, experience) for heading in headings)
    # lines that occur several times may have changed places, as the states of things in a table do
    swapped = before != after and len(before) == len(after) and sorted(before) == sorted(after)
    return swapped and any(
        block.text != text and block.region not in NOISE_OF_REGION and not block.linked
        for text, block in zip(before, new.blocks(), strict=False)
    )


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
