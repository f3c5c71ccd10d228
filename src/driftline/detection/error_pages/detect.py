"""What an answer says that the page did not say before, and whether it says a thing plainly or only mentions it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from html import unescape

from driftline.detection.diff.lines import folded
from driftline.detection.error_pages.patterns import (
    ABOUT_CONSENT,
    AGREE,
    CONSENT,
    CONSENT_WORDS,
    CRASH,
    ERROR,
    ERROR_TITLES,
    FIELD,
    LOGIN,
    MOUNT,
    NEEDS_SCRIPT,
    NUMBERED,
    PARKED,
    PASSWORD,
    SCRIPT,
    TOO_MANY,
    WAITING,
    WALL,
    wall_of,
)

_SHARE_OF_HEADING, _SHARE_OF_TEXT = 0.4, 0.5  # of a heading, and of all that is said
_FIRST = 3  # lines, one of which may be a heading
_TITLE = re.compile(rb"<title\b[^>]{0,500}>([^<]{0,1000})", re.IGNORECASE)
_PARTS = re.compile(r"\s*[|·:]\s|\s-\s")  # of a title, one of which may name the site


@dataclass(frozen=True, kw_only=True)
class Saying:
    """The title of an answer, its text and its body, and what the page was before."""

    title: str
    text: str
    body: bytes
    before: str
    old_body: bytes

    @cached_property
    def fresh(self) -> list[str]:
        """The lines that the page did not have before."""
        return [folded(line) for line in self.text.split("\n") if line and line not in self._known]

    @cached_property
    def new_title(self) -> str:
        """Its title, unless the page had the same before."""
        found = _TITLE.search(self.old_body)
        known = "" if found is None else " ".join(unescape(found[1].decode("utf-8", "replace")).split())
        return "" if self.title == known else folded(self.title)

    @property
    def headings(self) -> list[str]:
        """What the answer calls itself, as the page never did: its title, and the lines that it begins with."""
        return [self.new_title, *self.fresh[:_FIRST]]

    @cached_property
    def left(self) -> float:
        """The share of the letters of what the page said before that it still says: menus have many lines of few."""
        letters = sum(map(len, self._known))
        return sum(map(len, self._kept)) / letters if letters else 0.0

    @property
    def lines_left(self) -> float:
        """The same by line."""
        return len(self._kept) / len(self._known) if self._known else 0.0

    @cached_property
    def _known(self) -> set[str]:
        return set(self.before.split("\n")) - {""}

    @cached_property
    def _kept(self) -> set[str]:
        return self._known.intersection(self.text.split("\n"))

    def is_headed(self, words: re.Pattern[str]) -> bool:
        """Whether these words stand in a heading."""
        return any(map(words.search, self.headings))

    def is_mainly(self, words: re.Pattern[str]) -> bool:
        """Whether these words are what it has to say: they make a heading, or there is little else.

        A page may well mention or quote them, for it may be about such things.
        """
        parts = [part for text in self.headings for part in (text, *_PARTS.split(text))]
        if any(len(found) >= _SHARE_OF_HEADING * len(part) for part in parts if (found := _said(words, part))):
            return True
        telling = sum(len(line) for line in self.fresh if _said(words, line))
        return telling > 0 and telling >= _SHARE_OF_TEXT * sum(map(len, self.fresh))


def _said(words: re.Pattern[str], text: str) -> str:
    """What of the text these words match; nothing if they only stand in quotes."""
    found = words.search(text)
    return "" if found is None or text.count('"', 0, found.start()) % 2 else found.group()


_SHORT = 1_500  # letters: walls and error pages say no more
_SHORT_AT_FIRST = 600  # letters: of a page that nothing is known of
_LONG = 6_000  # letters: what asks for consent may explain itself, and errors may stand among menus
_MOST = 0.5  # of the lines before: a page that still says so much is there
_FEW = 80  # letters
_MUCH = 500  # letters: a page that said so much before does not fall silent on purpose
_HALF = 0.7  # of the letters before
_END = 4_096  # bytes
_SAME_END = 200  # letters before the place where it broke off that may differ

_WALLED = "The site put up a wall{} instead of the page: it wants proof that a person is there."
_AN_ERROR = "The answer is an error page, though the server calls it good."
_TOO_OFTEN = "The site says that it was asked too often, instead of showing the page."
_A_SHELL = "The answer is an empty shell: what the page said is gone, perhaps for want of JavaScript."
_A_LOGIN = "The site asks to log in instead of showing the page."
_A_CONSENT = "The site asks for consent to cookies or the like instead of showing the page."
_FOR_SALE = "The domain is parked or for sale: the page is not there any more."
_EMPTY = "The answer is empty: the server sent no page."
_SILENT = "The page shows no text."
_SILENT_BUT_SCRIPTED = "The page shows no text: perhaps it is drawn by JavaScript, which only --render runs."


def why_broken(title: str, text: str, body: bytes, old_text: str | None = None, old_body: bytes = b"") -> str | None:
    """Why this is not the page, in a sentence; None if it may well be. `old_text` is what a known page said before."""
    before = old_text or ""
    told = None
    if not text and _is_blank(body) and (before or old_text is None):
        return _EMPTY
    if len(text) < (_SHORT if before else _SHORT_AT_FIRST):
        told = _impostor(Saying(title=title, text=text, body=body, before=before, old_body=old_body))
        if told is None and not text and (before or old_text is None):
            told = _SILENT_BUT_SCRIPTED if SCRIPT.search(body) else _SILENT
    elif len(text) < _LONG and len(before) >= _MUCH:
        told = _among_other_things(Saying(title=title, text=text, body=body, before=before, old_body=old_body))
    if told is None and _broke_off(text, body, before, old_body):
        told = "The page broke off in the middle."
    return told


def _is_blank(body: bytes) -> bool:
    return not body or body.isspace()


def _impostor(said: Saying) -> str | None:
    """What a short text is, if it is not the page."""
    text, before = said.text, said.before
    if said.left >= _MOST:
        return None
    name = wall_of(said.body)
    if (name and not wall_of(said.old_body)) or (said.is_mainly(WALL) and not WALL.search(before[:_SHORT])):
        return _WALLED.format(f" of {name}" if name else "")
    if len(before) >= _FEW and any(map(CRASH.search, said.fresh)) and not CRASH.search(before):
        return _AN_ERROR
    replaced = len(before) >= _FEW and not said.left and len(text) < _MUCH
    if not replaced and not (len(before) >= _MUCH and len(text) < len(before) / 2):
        return None
    if said.is_mainly(TOO_MANY) and not TOO_MANY.search(before[:_SHORT]):
        return _TOO_OFTEN
    if (said.is_mainly(ERROR) or NUMBERED.fullmatch(said.new_title)) and not ERROR.search(before[:_SHORT]):
        return _AN_ERROR
    heading = f"{said.title}\n{text}"
    if not said.left and PARKED.search(heading) and not PARKED.search(before):
        return _FOR_SALE
    if _asks_for_consent(heading, before):
        return _A_CONSENT
    if _asks_to_log_in(said):
        return _A_LOGIN
    return _A_SHELL if said.lines_left < _MOST and _is_shell(said) else None


def _asks_to_log_in(said: Saying) -> bool:
    """Whether it has a field for a password, as the page never had, or one for a name and says what it is for."""
    if PASSWORD.search(said.body) and not PASSWORD.search(said.old_body):
        return True
    return bool(FIELD.search(said.body)) and said.is_headed(LOGIN) and not LOGIN.search(said.before.partition("\n")[0])


def _is_shell(said: Saying) -> bool:
    """Whether next to nothing is left of a page that said much, and nothing new is said: scripts are to say it."""
    if not said.text or said.is_mainly(NEEDS_SCRIPT):
        return True
    if len(said.text) >= _FEW or len(said.before) < _MUCH or not SCRIPT.search(said.body):
        return False
    silent = all(line in said.title or WAITING.fullmatch(line) for line in said.fresh)
    return silent or (MOUNT.search(said.body) is not None and not MOUNT.search(said.old_body))


def _among_other_things(said: Saying) -> str | None:
    """What a longer text is, if it is not the page: an error that says so in its title, or a long plea for consent."""
    title, text, before = said.title, said.text, said.before
    lowered = title.lower()
    if any(map(lowered.__contains__, ERROR_TITLES)) and ERROR.search(title) and not ERROR.search(before[:_SHORT]):
        if said.left < _MOST and sum(map(len, said.fresh)) < _SHORT:
            return _AN_ERROR
    elif any(map(text[:_MUCH].lower().__contains__, CONSENT_WORDS)) and not said.left:
        return _A_CONSENT if _asks_for_consent(f"{title}\n{text}", before) else None
    return None


def _asks_for_consent(text: str, before: str) -> bool:
    """Whether it speaks of consent from the start and of little else, with something to agree by, as it never did."""
    if not CONSENT.search(text[:_MUCH]) or not AGREE.search(text) or CONSENT.search(before[:_SHORT]):
        return False
    return sum([len(line) for line in text.split("\n") if ABOUT_CONSENT.search(line)]) >= _MOST * len(text)


def needs_script(title: str, text: str, body: bytes) -> bool:
    """Whether the page shows nothing, or little more than that it wants JavaScript: a browser may show more.

    Of an answer without any content it shows nothing either.
    """
    if not text:
        return not _is_blank(body)
    return len(text) < _SHORT_AT_FIRST and bool(NEEDS_SCRIPT.search(f"{title}\n{text}"))


def says_error(title: str, text: str) -> bool:
    """Whether a page of which nothing is known says, and says little else, that there is no such page."""
    return len(text) < _SHORT_AT_FIRST and bool(ERROR.search(title) or ERROR.search(text[:_FEW]))


def _broke_off(text: str, body: bytes, old_text: str, old_body: bytes) -> bool:
    """Whether the document ends in the middle of what it said before, without the end that it had."""
    if len(text) >= _HALF * len(old_text) or b"</html" not in old_body[-_END:].lower():
        return False
    start = max(len(text) // 2, len(text) - _SAME_END)
    return b"</html" not in body[-_END:].lower() and old_text.startswith(text[:start])
