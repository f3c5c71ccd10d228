"""Whether a difference matters: a verdict, a score and a reason in words for two readings of a page.

The lines of the two are matched, and what is left over makes the edits. An edit is noise if something is known that
explains it: it stands where pages change by themselves, only such tokens differ in it, or it was seen to come and go. A
page has changed in a way that matters if one edit is left that nothing explains.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from driftline.detection.diff.align import gaps
from driftline.detection.diff.lines import folded, match
from driftline.detection.noise.edits import (
    MADE_ANEW,
    WHERE,
    Edit,
    Experience,
    JudgedDocument,
    Judgement,
    kind_of,
    only,
    told,
    words_of,
)
from driftline.detection.noise.learning import AT_EVERY_CHECK, COMES_AND_GOES, is_proved, is_reworded
from driftline.detection.noise.refetch import fetched_again
from driftline.detection.noise.region_rules import (
    is_content,
    may_be_label,
    why_counted,
    why_there,
    widgets_of,
    with_labels,
)
from driftline.detection.noise.rules import COPY, Context, jitter_of, why_wherever
from driftline.model import Matter, Region

if TYPE_CHECKING:
    from collections.abc import Sequence

    from driftline.detection.diff.lines import Line, Matching
    from driftline.detection.noise.refetch import Again

_SMALL = 400  # letters
_SHOWN_ANEW = 40  # edits that matter, of so many


def judge(old: JudgedDocument, new: JudgedDocument, experience: Experience | None = None) -> Judgement:
    """Whether what differs between the two readings matters, and why."""
    experience = experience or Experience()
    matching = match(old.text, new.text)
    again = fetched_again(experience.again, matching, matching.pairs)
    edits = _edits(old, new, matching, experience, again)
    real = [edit for edit in edits if not edit.noise]
    moved = not real and _moved(old.text, new)
    shuffled = moved and again is not None and _moved(again.text, new)
    if real:
        words = sum(words_of(edit) for edit in real)
        verdict, score = Matter.MEANINGFUL, 0.5 + 0.5 * (1 - math.exp(-words / 20))
        reason = told(matching.sentence, real)
    elif moved and not shuffled:
        verdict, score, reason = Matter.MEANINGFUL, 0.5, "The same words stand in another order."
    else:
        verdict, score, reason = Matter.NOISE, min(0.4, 0.02 * len(edits)), only(edits, new.text, old.text)
    return Judgement(
        verdict=verdict, score=round(score, 3), reason=reason, kind=kind_of(edits), edits=edits,
        words_added=matching.words_added, words_removed=matching.words_removed,
        shuffled=shuffled,
    )  # fmt: skip


def _edits(
    old: JudgedDocument, new: JudgedDocument, matching: Matching, experience: Experience, again: Again | None
) -> list[Edit]:  # fmt: skip
    """Every edit with what explains it; of a page that was made anew, only as many as show that it was."""
    context = Context(
        old_at=old.at, new_at=new.at, matching=matching,
        titles={folded(old.title), folded(new.title)}, jitter=jitter_of(matching.pairs),
        small=experience.selected or len(new.text) < _SMALL, experience=experience,
        widgets=widgets_of(matching.pairs, old, new), again=again,
    )  # fmt: skip
    edits: list[Edit] = []
    real = 0
    # what was only removed comes last: to see where it stood, the old document must be read again
    for one, other in sorted(matching.pairs, key=lambda pair: pair[1] is None):
        if real > _SHOWN_ANEW and len(matching.pairs) > MADE_ANEW:
            break
        noise = why_wherever(one, other, context)
        if not real and _is_doubtful(noise, one, other, experience) and is_content(one, other, old, new):
            noise = ""
        if noise is None and other:
            noise = why_there(one, other, new) or why_counted(one, other, new, context)
        elif noise is None:
            noise = "" if real else why_there(one, other, old)
        edits.append(Edit(old=one, new=other, noise=noise))
        real += not noise and not may_be_label(one, other)
    return with_labels(edits)


def _is_doubtful(noise: str | None, one: Line | None, other: Line | None, experience: Experience) -> bool:
    """Whether what explains an edit is no reason to keep silent if it is part of the content.

    In a table or under a heading, what stands elsewhere too says something new. And that something changed twice in a
    row, or came and went, proves nothing yet where other words stand now, and not another one in the same sentence.
    """
    if noise in (COMES_AND_GOES, AT_EVERY_CHECK):
        # that something went is told by what came instead; where it stood, only the old document tells, read again
        return other is not None and not is_reworded(one, other) and not is_proved(one, other, experience)
    return noise == COPY


def _moved(other: str, new: JudgedDocument) -> bool:
    """Whether lines stand in another order, other than links in a menu: a table, or a ranking."""
    before, after = other.split("\n"), new.text.split("\n")
    if moved := _out_of_order(before, after):
        return any(
            block.text in moved and not (block.region in WHERE and (block.linked or block.region is Region.CONSENT))
            for block in new.blocks()
        )
    # what stands several times may have taken turns, as the states of things in a table do
    taken = before != after and len(before) == len(after) and sorted(before) == sorted(after)
    return taken and any(
        block.text != text and block.region not in WHERE and not block.linked
        for text, block in zip(before, new.blocks(), strict=False)
    )


def _out_of_order(before: Sequence[str], after: Sequence[str]) -> set[str]:
    """Which of the lines that stand once in both texts are in another order."""
    once = {text for text, count in Counter(before).items() if count == 1}
    once &= {text for text, count in Counter(after).items() if count == 1}
    old, new = ([text for text in texts if text in once] for texts in (before, after))
    return {text for gap in gaps(old, new) for text in old[gap.i : gap.j]} if old != new else set()
