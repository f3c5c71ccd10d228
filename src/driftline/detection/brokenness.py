"""Answers that are not the page, though the server calls them good: walls, errors, logins, consents, parked domains,
empty shells, halves.

A page that turns into one of these has not changed: it could not be read. So the check fails, and the version in force
stays. Only short texts are looked at, for a page may well be about such things, and a wall never says much. What the
page said before counts too: one that always said so says it on purpose, so the first version of a page may be anything
but a wall.
"""

from __future__ import annotations

from driftline.detection.impostors import (
    ABOUT_CONSENT,
    AGREE,
    CONSENT,
    CONSENT_WORDS,
    ERROR,
    ERROR_TITLES,
    FIELD,
    LOGIN,
    NEEDS_SCRIPT,
    PARKED,
    PASSWORD,
    WALL,
    wall_of,
)

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
_A_SHELL = "The answer is an empty shell: what the page said is gone, perhaps for want of JavaScript."
_A_LOGIN = "The site asks to log in instead of showing the page."
_A_CONSENT = "The site asks for consent to cookies or the like instead of showing the page."
_FOR_SALE = "The domain is parked or for sale: the page is not there any more."
_SILENT = "The page shows no text: perhaps it is drawn by JavaScript, which only --render runs."


def why_broken(title: str, text: str, body: bytes, old_text: str | None = None, old_body: bytes = b"") -> str | None:
    """Why this is not the page, in a sentence; None if it may well be. `old_text` is what a known page said before."""
    before = old_text or ""
    told = None
    if len(text) < (_SHORT if before else _SHORT_AT_FIRST):
        told = _impostor(title, text, body, before, old_body)
        if told is None and not text and (before or old_text is None):
            told = _SILENT
    elif len(text) < _LONG and len(before) >= _MUCH:
        told = _among_other_things(title, text, before)
    if told is None and _broke_off(text, body, before, old_body):
        told = "The page broke off in the middle."
    return told


def _impostor(title: str, text: str, body: bytes, before: str, old_body: bytes) -> str | None:
    """What a short text is, if it is not the page."""
    left = _left_of(before, text)
    heading = f"{title}\n{text}"
    if left < _MOST:
        name = wall_of(body)
        if (name and not wall_of(old_body)) or (WALL.search(heading) and not WALL.search(before[:_SHORT])):
            return _WALLED.format(f" of {name}" if name else "")
    replaced = len(before) >= _FEW and not left and len(text) < _MUCH
    if not replaced and not (len(before) >= _MUCH and len(text) < len(before) / 2 and left < _MOST):
        return None
    if (ERROR.search(title) or ERROR.search(text[:_MUCH])) and not ERROR.search(before[:_SHORT]):
        return _AN_ERROR
    if not left and PARKED.search(heading) and not PARKED.search(before):
        return _FOR_SALE
    if _asks_for_consent(heading, before):
        return _A_CONSENT
    asks = not left and (LOGIN.search(title) or LOGIN.search(text.partition("\n")[0]))
    if asks and FIELD.search(body) and not LOGIN.search(before.partition("\n")[0]):
        return _A_LOGIN
    if (len(text) < _FEW and len(before) >= _MUCH) or NEEDS_SCRIPT.search(text):
        return _A_SHELL
    return _A_LOGIN if PASSWORD.search(body) and not PASSWORD.search(old_body) else None


def _among_other_things(title: str, text: str, before: str) -> str | None:
    """What a longer text is, if it is not the page: an error that says so in its title, or a long plea for consent."""
    lowered = title.lower()
    if any(map(lowered.__contains__, ERROR_TITLES)) and ERROR.search(title) and not ERROR.search(before[:_SHORT]):
        known = set(before.split("\n"))
        fresh = [line for line in text.split("\n") if line not in known]
        if _left_of(before, text) < _MOST and sum(map(len, fresh)) < _SHORT:
            return _AN_ERROR
    elif any(map(text[:_MUCH].lower().__contains__, CONSENT_WORDS)) and not _left_of(before, text):
        return _A_CONSENT if _asks_for_consent(f"{title}\n{text}", before) else None
    return None


def _asks_for_consent(text: str, before: str) -> bool:
    """Whether it speaks of consent from the start and of little else, with something to agree by, as it never did."""
    if not CONSENT.search(text[:_MUCH]) or not AGREE.search(text) or CONSENT.search(before[:_SHORT]):
        return False
    return sum([len(line) for line in text.split("\n") if ABOUT_CONSENT.search(line)]) >= _MOST * len(text)


def needs_script(title: str, text: str) -> bool:
    """Whether the page shows nothing, or little more than that it wants JavaScript: a browser may show more."""
    return not text or (len(text) < _SHORT_AT_FIRST and bool(NEEDS_SCRIPT.search(f"{title}\n{text}")))


def says_error(title: str, text: str) -> bool:
    """Whether a page of which nothing is known says, and says little else, that there is no such page."""
    return len(text) < _SHORT_AT_FIRST and bool(ERROR.search(title) or ERROR.search(text[:_FEW]))


def _left_of(before: str, text: str) -> float:
    """The share of what the page said before that it still says, by line."""
    lines = set(before.split("\n")) - {""}
    return len(lines.intersection(text.split("\n"))) / len(lines) if lines else 0.0


def _broke_off(text: str, body: bytes, old_text: str, old_body: bytes) -> bool:
    """Whether the document ends in the middle of what it said before, without the end that it had."""
    if len(text) >= _HALF * len(old_text) or b"</html" not in old_body[-_END:].lower():
        return False
    start = max(len(text) // 2, len(text) - _SAME_END)
    return b"</html" not in body[-_END:].lower() and old_text.startswith(text[:start])
