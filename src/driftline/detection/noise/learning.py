"""What is learned from the edits of a page, what a user says of them, and what both explain later on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftline.detection.diff.lines import Line, key_of
from driftline.detection.extract.annotations import is_note
from driftline.detection.noise.edits import BY_ITSELF, MADE_ANEW, line_of, same_words
from driftline.detection.noise.volatile import names_money, names_stock
from driftline.model import Matter

if TYPE_CHECKING:
    from driftline.detection.noise.edits import Experience, Judgement
    from driftline.noise_memory import Memory

_MOST_SAID = 200  # keys of what a user says of one change
_PROVED = 4  # checks
COMES_AND_GOES, AT_EVERY_CHECK = "what comes and goes", "what changes at nearly every check"
_FEW_WORDS = 4
_SENTENCE, _SAME = 6, 0.6  # words, and the share of them
_OTHER_PAGES = 3  # of the host, on which the same changes all the time


def learn(memory: Memory, judgement: Judgement, check: int) -> list[bytes]:
    """Remember what changed at the check of this number, and say what the whole host may learn from it.

    Nothing is remembered of a page that was made anew, nor of notes if so many of them changed.
    """
    told = [edit for edit in judgement.edits if not is_note(line_of(edit).text)]
    if len(told) > MADE_ANEW:
        return []
    if len(judgement.edits) - len(told) <= MADE_ANEW:
        told = list(judgement.edits)
    # what a second fetch undid may be a change that not all servers have yet: it must still be news when they do
    edits = [edit for edit in told if edit.noise != BY_ITSELF]
    lines = [line for edit in edits for line in (edit.old, edit.new) if line]
    memory.note({_own_keys(line)[1] for line in lines}, check)
    # of a line in which only numbers differ, the words are enough: what else comes to stand there is news
    places = {line.place for edit in edits if not same_words(edit) for line in (edit.old, edit.new) if line}
    return memory.note({_own_keys(line)[0] for line in lines} | (places - {b""}), check)


def said_of(judgement: Judgement, matter: Matter) -> tuple[set[bytes], set[bytes]]:
    """By which a user's word on a change is remembered, for its page and for its host.

    It is about what is noise of it now if it matters, and about the rest if not. Where only numbers differ, it is about
    these words with any numbers; otherwise it is about the place, on that page: on another, the same place may hold
    anything. Of a page that was made anew, the first edits are enough.
    """
    meant = [edit for edit in judgement.edits if bool(edit.noise) == (matter is Matter.MEANINGFUL)]
    page: set[bytes] = set()
    host: set[bytes] = set()
    for edit in meant or judgement.edits:
        lines = [line for line in (edit.old, edit.new) if line]
        host |= {key for line in lines for key in _own_keys(line)}
        if not same_words(edit):
            page |= {line.place for line in lines if line.place}
        if len(page) + len(host) > _MOST_SAID:
            break
    return page | host, host


def said_before(one: Line | None, other: Line | None, experience: Experience) -> str | None:
    """What the user said of such an edit."""
    if not (experience.page.pins or experience.host.pins):
        return None
    for line in (other, one):
        for key in (*_own_keys(line)[::-1], line.place) if line else ():
            matter = experience.page.pinned(key) or experience.host.pinned(key)
            if matter is not None:
                return "" if matter is Matter.MEANINGFUL else "what you called noise"
    return None


def is_proved(one: Line | None, other: Line | None, experience: Experience) -> bool:
    """Whether so many checks say that the edit happens all the time that this counts for any content.

    A few news in a row, or a state that returns, are what a page is watched for.
    """
    lines = [line for line in (one, other) if line]
    keys = [(line.place, *_own_keys(line)) for line in lines]
    return all(max(map(experience.page.times, some)) >= _PROVED for some in keys)


def why_again(one: Line | None, other: Line | None, experience: Experience) -> str | None:
    """What earlier checks say of the edit: that it happens all the time, or that its lines come and go."""
    lines = [line for line in (one, other) if line]
    found = _why_again(one, other, experience) if experience.page or experience.host else None
    if found is not None and any(names_money(line.text) or names_stock(line.text) for line in lines):
        return None  # what prices and stocks do may be what the page is watched for, however often they do it
    return found


def _why_again(one: Line | None, other: Line | None, experience: Experience) -> str | None:
    page, host, check = experience.page, experience.host, experience.check
    lines = [line for line in (one, other) if line]
    if all(page.comes_and_goes(_own_keys(line)[1], check) for line in lines):
        return COMES_AND_GOES
    # a new sentence is news wherever it stands: its place alone does not mute it
    keys = [(b"" if line is other and _is_new(one, line) else line.place, _own_keys(line)[0]) for line in lines]
    if all(page.mutes(place, check) or page.mutes(masked, check) for place, masked in keys):
        return AT_EVERY_CHECK
    if all(max(host.times(place), host.times(masked)) >= _OTHER_PAGES for place, masked in keys):
        return "what changes on other pages of the host all the time"
    return None


def is_reworded(one: Line | None, other: Line | None) -> bool:
    """Whether a line says the same in most of its words, or in all that are not numbers."""
    if one is None or other is None:
        return False
    before, after = set(one.folded.split()), set(other.folded.split())
    most = max(len(before), len(after))
    return one.masked == other.masked or (most >= _SENTENCE and len(before & after) >= _SAME * most)


def _is_new(one: Line | None, other: Line) -> bool:
    """Whether an added line says something of its own: it has a few words, and is no new wording of the old line."""
    return other.folded.count(" ") >= _FEW_WORDS - 1 and not is_reworded(one, other)


def _own_keys(line: Line) -> tuple[bytes, bytes]:
    if line.keys is None:
        line.keys = key_of("masked", line.masked or line.folded), key_of("line", line.folded)
    return line.keys
