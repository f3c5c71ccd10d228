"""Learn from the edits of a page and from the user's feedback, and explain later edits by both."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from driftline.detection.diff.lines import Line, key_of
from driftline.detection.extract.annotations import is_note
from driftline.detection.messages import short
from driftline.detection.noise.edits import REWRITTEN_PAGE, NotNoise, is_about_stock, line_of, same_words, with_headings
from driftline.detection.noise.volatile import names_money
from driftline.model.change import MINOR_KINDS, Importance, NoiseKind
from driftline.model.outcome import IgnoredParts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from driftline.detection.noise.edits import Experience, JudgedDocument, Judgement, LineEdit, Ruling
    from driftline.noise_memory import Memory

#: what earlier checks of the page, or of others of its host, explain
LEARNED = (NoiseKind.EVERY_CHECK, NoiseKind.COMES_AND_GOES, NoiseKind.OTHER_PAGES)
_UNDONE = (*LEARNED, NoiseKind.EVERY_FETCH)  # what is reported again in a section of which the user says so
_REDRAWN = (NoiseKind.EVERY_FETCH, NoiseKind.COMES_AND_GOES)
_LETTER = re.compile(r"[^\W\d_]")
_ORDER = key_of("order", "")  # of the lines of a page
#: the ruling on an edit that the user called so
_SAID: dict[Importance, Ruling] = {
    Importance.IMPORTANT: NotNoise.MATTERS, Importance.MINOR: NoiseKind.USER_MINOR, Importance.NOISE: NoiseKind.USER,
}  # fmt: skip
_MOST_KEYS = 200  # by which the feedback on one change is remembered
_PROVED = 4  # checks
_SEVERAL = 2  # lines
_FEW_WORDS = 4
_SENTENCE, _SAME = 6, 0.6  # words, and the share of them
_OTHER_PAGES = 3  # of the host, on which the same changes all the time
_LASTING = 60 * 24 * 60  # minutes for which holds what a second fetch proved, however rare the checks are
_LABEL, _EXCERPT = 36, 16  # characters by which a part is named, and of either side of an example
_TELLING = 4  # characters of a word that is more than a unit


def learn(memory: Memory, judgement: Judgement, check: int, at: float, *, reports: bool = True) -> list[bytes]:
    """Remember what changed at the check of this number and time, and return the keys that its whole host may learn.

    Nothing is remembered of a page that was rewritten, nor of its annotations if as many of them changed. Unless the
    check `reports` what is ignored from now on, it is not remembered that this was reported.
    """
    learned = [edit for edit in judgement.edits if not is_note(line_of(edit).text)]
    if len(learned) > REWRITTEN_PAGE:
        return []
    if len(judgement.edits) - len(learned) <= REWRITTEN_PAGE:
        learned = list(judgement.edits)
    # what a second fetch undid may be a change that not all servers have yet: it must still be reported once they do
    edits = [edit for edit in learned if edit.noise is not NoiseKind.EVERY_FETCH]
    # what a second fetch undid has no version, and so no change to give feedback on: it is reported once it has
    undone = judgement.differs_at_every_fetch or not reports
    marks = set[bytes]() if undone else _marks_of(judgement, memory, check, at)
    lines = [line for edit in edits for line in (edit.old, edit.new) if line]
    exchanged, unsteady = _redrawn(learned, memory)
    memory.note({_section_keys(heading)[0] for heading in exchanged}, check, at)
    memory.note({_section_keys(heading)[1] for heading in unsteady}, check, at, within=_LASTING)
    memory.note({_own_keys(line)[1] for line in lines}, check, at)
    # of a line in which only numbers differ, the words are enough: other words in its place matter
    places = {_place(line) for edit in edits for line in (edit.old, edit.new) if line and _is_of_place(edit, line)}
    for_host = memory.note({_own_keys(line)[0] for line in lines} | (places - {b""}), check, at)
    memory.note(marks, check, at)
    return for_host if undone else [*for_host, *_marks_of_new(judgement)]


def _marks_of(judgement: Judgement, memory: Memory, check: int, at: float) -> set[bytes]:
    """Return the marks of the parts that a change ignores: from now on it is known that they were reported."""
    known = {_mark(key) for edit in _ignored(judgement.edits) for key in _part_keys(edit, memory, check, at)}
    return known.union(_marks_of_new(judgement))


def _marks_of_new(judgement: Judgement) -> list[bytes]:
    return [] if judgement.ignored is None else [_mark(key) for key in judgement.ignored.page_keys]


def newly_ignored(
    edits: Sequence[LineEdit], old: JudgedDocument, new: JudgedDocument, experience: Experience,
    is_ruled: Callable[[LineEdit], bool],
) -> IgnoredParts | None:  # fmt: skip
    """Return the parts that earlier checks explain for the first time; None if there are none.

    A part is a section that is drawn anew, or a line and those that replace it. What `is_ruled`, which would be noise
    without any experience, is no news.
    """
    page, now = experience.page, (experience.check, experience.at)
    unknown = [
        edit for edit in _ignored(edits)
        if not any(page.times(_mark(key)) for key in _part_keys(edit, page, *now))
    ]  # fmt: skip
    if not unknown:
        return None
    unknown = [edit for edit in with_headings(unknown, old, new, of_noise=True) if not is_ruled(edit)]
    by_place: dict[bytes, list[LineEdit]] = defaultdict(list)
    parts: list[_Part] = []
    for heading, among in _by_heading(unknown).items():
        section = _section_keys(heading)
        returning = [edit for edit in among if edit.noise is NoiseKind.COMES_AND_GOES]
        if page.times(_mark(section[0])):
            among, returning = [edit for edit in among if edit not in returning], []
        if heading and heading != new.headings.first:  # which heads the whole page, with all of its parts
            redrawn = among if is_redrawn(heading, experience) else returning if _are_several(returning) else []
            if redrawn:
                parts += [] if page.times(_mark(section[0])) else [_Part(heading, "", redrawn[0].noise, {*section})]
                among = [edit for edit in among if edit not in redrawn]
        for edit in among:
            by_place[line_of(edit).place].append(edit)
    parts += [_part(among, experience) for among in by_place.values()]
    if not parts:
        return None
    news = [part for part in parts if _is_news(part, experience)]
    first = (news or parts)[0]
    assert first.noise is not None
    of_host = [part.keys for part in parts if part.noise is NoiseKind.OTHER_PAGES]
    return IgnoredParts(
        label=first.label, example=first.example, others=len(parts) - 1, noise=first.noise,
        page_keys=tuple(sorted(set().union(*[part.keys for part in parts]))[:_MOST_KEYS]),
        host_keys=tuple(sorted(set().union(*of_host))[:_MOST_KEYS]), is_news=bool(news),
    )  # fmt: skip


class _Part(NamedTuple):
    """A part of a page that is ignored: how to name it, what it did, why, and its keys in the memories."""

    label: str
    example: str
    noise: NoiseKind | None
    keys: set[bytes]


def _is_news(part: _Part, experience: Experience) -> bool:
    """Return whether that a part is ignored was not yet reported often enough of other pages of the host."""
    enough = 1 if part.noise is NoiseKind.OTHER_PAGES else _OTHER_PAGES
    return not any(experience.host.times(_mark(key)) >= enough for key in part.keys)


def _ignored(edits: Sequence[LineEdit]) -> list[LineEdit]:
    """Return the edits that earlier checks explain, without those that belong to something that is reported.

    That is a line which another one replaced that matters, or a few of the lines that a section exchanged. Where
    anything is reported, what was only removed is no part of its own.
    """
    muted = [edit for edit in edits if edit.noise in LEARNED]
    real = [edit for edit in edits if edit.noise is None] if muted else []
    if not real:
        return muted
    places = {line.place for edit in real for line in (edit.old, edit.new) if line}
    reported = {edit.heading for edit in real} - {""}
    sections = _sections(edits)
    exchanging = {heading for heading in reported if _are_several(sections[heading])}
    return [
        edit for edit in muted
        if edit.new and edit.new.place not in places
        and not (edit.noise is NoiseKind.COMES_AND_GOES and edit.heading in exchanging)
    ]  # fmt: skip


def _part(among: Sequence[LineEdit], experience: Experience) -> _Part:
    """Return the part that lines in one place are: named by its words, those above a number, or the heading."""
    first = next((edit for edit in among if edit.new), among[0])
    line = line_of(first)
    telling = same_words(first) and any(len(word) >= _TELLING for word in line.masked.split())
    label = line.label or (line.masked if telling else first.heading) or line.text
    before = next((edit.old.text for edit in among if edit.old), "")
    after = next((edit.new.text for edit in among if edit.new), "")
    example = "" if label == line.text else _example(before, after)
    keys = {key for edit in among for key in _part_keys(edit, experience.page, experience.check, experience.at)}
    if first.noise is NoiseKind.OTHER_PAGES:  # whose place may be one that is noisy there
        keys |= {key for key in (line.place, _place(line)) if key}
    return _Part(short(label, _LABEL), example, first.noise, keys)


def _example(before: str, after: str) -> str:
    """Return what became what, of long lines only the words that differ; either may be empty."""
    one, other = before.split(), after.split()
    if max(len(before), len(after)) > _EXCERPT:
        for end in (-1, 0):
            while min(len(one), len(other)) > 1 and one[end] == other[end]:
                del one[end], other[end]
    return " → ".join(short(" ".join(words), _EXCERPT) for words in (one, other) if words)


def _part_keys(edit: LineEdit, memory: Memory, check: int, at: float) -> list[bytes]:
    """Return the keys that name the part which an edit belongs to: its place if that is noisy, and its words.

    A few words, such as those of a state, may stand in several places. They name a part only where no place does.
    """
    found: list[bytes] = []
    for line in (edit.new, edit.old):
        if line is None:
            continue
        place = _place(line)
        noisy = bool(place) and memory.comes_and_goes(place, check, at)
        found += [place] if noisy else ()
        if not noisy or line.label or has_some_words(line):
            found += _own_keys(line)
    return found


def _mark(key: bytes) -> bytes:
    """Return the key under which it is remembered that what has this key is ignored, and was reported as such."""
    return key[::-1]


def feedback_keys(judgement: Judgement, importance: Importance) -> tuple[set[bytes], set[bytes]]:
    """Return the keys by which feedback on a change is remembered, for its page and for its host.

    It is about the edits that decided how important the change was found, or about the order of the lines if that did.
    Where only numbers differ, it holds for these words with any numbers; otherwise also for the place, and for the
    section if several of its lines were exchanged and nothing else. Places and sections count on this page only, and so
    do a few words: on another, they may be about anything. Of a page that was rewritten, the first edits are enough.
    """
    meant = _decisive(judgement)
    page: set[bytes] = {_ORDER} if judgement.moved and not meant else set()
    host: set[bytes] = set()
    sections = _sections(meant)
    if importance is Importance.NOISE and len(sections) == 1 and _are_several(meant):
        page |= {_section_keys(heading)[0] for heading, among in sections.items() if len(among) == len(meant)}
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


def _decisive(judgement: Judgement) -> list[LineEdit]:
    """Return the edits that decided how important a change is; none if the order of the lines did."""
    if judgement.by_order:
        return []
    if judgement.importance is Importance.IMPORTANT:
        return [edit for edit in judgement.edits if edit.noise is None]
    if judgement.importance is Importance.MINOR:
        return [edit for edit in judgement.edits if edit.noise in MINOR_KINDS]
    return list(judgement.edits)


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
    shows as many as before, what it shows is noise. A line of it that was reworded, or has another number, is not.
    Where only single lines were seen to differ from fetch to fetch, others of several words are noise if they were
    there before: a section may have news beside a thought of the day.
    """
    muted: dict[str, NoiseKind] = {}
    in_part: set[str] = set()
    wanted: set[str] = set()
    for heading, among in _sections(edits).items():
        said = experience.page.pinned(_section_keys(heading)[0])
        if said is Importance.IMPORTANT:
            wanted.add(heading)
            continue
        if heading == new.headings.first or all(edit.noise is not None for edit in among):
            continue
        added, removed = _counts(among)
        unsteady = [edit.new for edit in among if edit.noise is NoiseKind.EVERY_FETCH and edit.new]
        if said is Importance.NOISE:
            muted[heading] = NoiseKind.USER
        elif added != removed:
            continue
        elif len(unsteady) >= _SEVERAL or (unsteady and _is_one_list(among, experience.page)):
            muted[heading] = NoiseKind.EVERY_FETCH
        elif is_redrawn(heading, experience):
            muted[heading] = NoiseKind.EVERY_FETCH if unsteady else NoiseKind.EVERY_CHECK
            in_part |= set() if _is_exchanged(heading, experience) else {heading}
    if wanted:
        edits = [
            replace(edit, noise=None) if edit.heading in wanted and edit.noise in _UNDONE else edit for edit in edits
        ]
    return [
        replace(edit, noise=noise)
        if edit.noise is None
        and (noise := muted.get(edit.heading)) is not None
        and (noise is NoiseKind.USER or not _is_same_thing(edit))
        and (edit.heading not in in_part or edit.new is None or _may_be_drawn(edit.new, experience.page))
        else edit
        for edit in edits
    ]


def _is_same_thing(edit: LineEdit) -> bool:
    """Return whether a line was reworded, or is another number of the same thing: that of another was drawn with it."""
    return is_reworded(edit.old, edit.new) and (edit.old and edit.old.label) == (edit.new and edit.new.label)


def _may_be_drawn(line: Line, page: Memory) -> bool:
    """Return whether a line has few words, or was there before."""
    return not has_some_words(line) or page.times(_own_keys(line)[1]) > 0


def _is_one_list(among: Sequence[LineEdit], page: Memory) -> bool:
    """Return whether the lines that a section has now and a second fetch had too belong to those that it had not.

    A few words stand next to these, or a line was there before. Otherwise there is news beside a thought of the day.
    """
    unsteady = {line_of(edit).place for edit in among if edit.noise is NoiseKind.EVERY_FETCH}
    steady = [edit.new for edit in among if edit.noise is None and edit.new]
    return all(
        (line.place in unsteady and not has_some_words(line)) or page.times(_own_keys(line)[1]) for line in steady
    )


def is_redrawn(heading: str, experience: Experience) -> bool:
    """Return whether the section under this heading was drawn anew several times lately."""
    if not heading:
        return False
    unsteady, now = _section_keys(heading)[1], (experience.check, experience.at)
    return _is_exchanged(heading, experience) or experience.page.comes_and_goes(unsteady, *now, within=_LASTING)


def _is_exchanged(heading: str, experience: Experience) -> bool:
    """Return whether that section exchanged several lines at a time."""
    return experience.page.comes_and_goes(_section_keys(heading)[0], experience.check, experience.at)


def _by_heading(edits: Sequence[LineEdit]) -> dict[str, list[LineEdit]]:
    """Return the edits by the heading above them, which is empty above the first one."""
    found: dict[str, list[LineEdit]] = defaultdict(list)
    for edit in edits:
        found[edit.heading].append(edit)
    return found


def _sections(edits: Sequence[LineEdit]) -> dict[str, list[LineEdit]]:
    """Return the same without those above the first heading."""
    found = _by_heading(edits)
    found.pop("", None)
    return found


def _counts(among: Sequence[LineEdit]) -> tuple[int, int]:
    """Return how many lines some edits add, and how many they remove."""
    return sum(edit.new is not None for edit in among), sum(edit.old is not None for edit in among)


def _are_several(among: Sequence[LineEdit]) -> bool:
    """Return whether edits exchange several lines for several others."""
    return min(_counts(among)) >= _SEVERAL


def may_be_redrawn(edits: Sequence[LineEdit]) -> bool:
    """Return whether some edits that are noise may be those of a section that is drawn anew."""
    drawn = [edit for edit in edits if edit.noise in _REDRAWN]
    return any(edit.noise is NoiseKind.EVERY_FETCH for edit in drawn) or _are_several(drawn)


def _redrawn(edits: Sequence[LineEdit], memory: Memory) -> tuple[list[str], list[str]]:
    """Return the headings of sections that exchanged several lines, and of those of which a second fetch has others.

    The former if a second fetch has several others, or one of the lines was there before; once a section is known for
    it, one line is enough. That a news list has other entries is news: they do not come back.
    """
    exchanged: list[str] = []
    unsteady: list[str] = []
    for heading, among in _sections(edits).items():
        known = memory.times(_section_keys(heading)[0]) >= _SEVERAL
        others = sum(edit.noise is NoiseKind.EVERY_FETCH and edit.new is not None for edit in among)
        back = any(edit.new is not None and memory.times(_own_keys(edit.new)[1]) for edit in among)
        if (known or _are_several(among)) and (back or others >= _SEVERAL):
            exchanged.append(heading)
        # what second fetches proved stays so as long as lines come back: there is none once all of it is noise
        if others or (back and memory.times(_section_keys(heading)[1]) >= _SEVERAL):
            unsteady.append(heading)
    return exchanged, unsteady


def _section_keys(heading: str) -> tuple[bytes, bytes]:
    """Return the keys of a section: for that it exchanges its lines, and for that second fetches have others."""
    return key_of("section", heading), key_of("drawn", heading)


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
    if any(is_about_stock([line]) for line in lines):
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
    return has_some_words(other) and not is_reworded(one, other)


def has_some_words(line: Line) -> bool:
    """Return whether a line has so many words that it can be recognised by them, wherever it stands."""
    return line.folded.count(" ") >= _FEW_WORDS - 1


def is_new_state(
    line: Line, replaced: Sequence[Line], experience: Experience, *, is_repeated: Callable[[Line], bool]
) -> bool:  # fmt: skip
    """Return whether a few words are news although these words, or this place, change all the time.

    That is a state, such as 'Degraded', which other things have too, in a place where it did not change before; or one
    that was never seen where others alternate.
    """
    if line.label or has_some_words(line):
        return False
    page, host, now = experience.page, experience.host, (experience.check, experience.at)
    if max(page.times(line.place), host.times(line.place)) < _SEVERAL and is_repeated(line):
        return True
    return not page.times(_own_keys(line)[1]) and any(
        old.masked != line.masked and page.comes_and_goes(_own_keys(old)[1], *now) for old in replaced
    )


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
