"""Recognise responses that are not the page: block pages, soft 404s, logins, consent pages, empty shells.

Words alone prove nothing, since a page may be about such things. They count if the page did not have them before, and
if they are its heading or most of its text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from html import unescape

from driftline.detection import messages
from driftline.detection.diff.lines import folded
from driftline.detection.error_pages.patterns import (
    ABOUT_CONSENT,
    AGREE,
    BLOCKED,
    CONSENT,
    CONSENT_WORDS,
    CRASH,
    ERROR,
    ERROR_TITLES,
    FIELD,
    LOGIN,
    LOGIN_PATH,
    MOUNT,
    NEEDS_SCRIPT,
    NUMBERED,
    PARKED,
    PASSWORD,
    SCRIPT,
    TOO_MANY,
    WAITING,
    block_page_of,
)

_SHARE_OF_HEADING, _SHARE_OF_TEXT = 0.4, 0.5  # that words must be, of a heading and of the text
_FIRST = 3  # lines, one of which may be a heading
_TITLE = re.compile(rb"<title\b[^>]{0,500}>([^<]{0,1000})", re.IGNORECASE)
_PARTS = re.compile(r"\s*[|·:]\s|\s-\s")  # of a title, one of which may name the site


@dataclass(frozen=True, kw_only=True)
class Response:
    """The title, text and body of a response, and the text and body of the page before."""

    title: str
    text: str
    body: bytes
    before: str
    old_body: bytes

    @cached_property
    def fresh(self) -> list[str]:
        """Return the lines that the page did not have before."""
        return [folded(line) for line in self.text.split("\n") if line and line not in self._known]

    @cached_property
    def new_title(self) -> str:
        """Return the title if it is new, else an empty string."""
        found = _TITLE.search(self.old_body)
        known = "" if found is None else " ".join(unescape(found[1].decode("utf-8", "replace")).split())
        return "" if self.title == known else folded(self.title)

    @property
    def headings(self) -> list[str]:
        """Return the title and the first lines, as far as they are new."""
        return [self.new_title, *self.fresh[:_FIRST]]

    @cached_property
    def left(self) -> float:
        """Return the share of the old text that is still there, by characters: menus have many short lines."""
        letters = sum(map(len, self._known))
        return sum(map(len, self._kept)) / letters if letters else 0.0

    @property
    def lines_left(self) -> float:
        """Return the share of the old text that is still there, by lines."""
        return len(self._kept) / len(self._known) if self._known else 0.0

    @cached_property
    def _known(self) -> set[str]:
        return set(self.before.split("\n")) - {""}

    @cached_property
    def _kept(self) -> set[str]:
        return self._known.intersection(self.text.split("\n"))

    def is_headed(self, words: re.Pattern[str]) -> bool:
        """Return whether a heading matches these words."""
        return any(map(words.search, self.headings))

    def is_mainly(self, words: re.Pattern[str]) -> bool:
        """Return whether these words are most of a heading, or most of the new text.

        Any page may mention or quote them.
        """
        parts = [part for text in self.headings for part in (text, *_PARTS.split(text))]
        if any(len(found) >= _SHARE_OF_HEADING * len(part) for part in parts if (found := _matched(words, part))):
            return True
        matching = sum(len(line) for line in self.fresh if _matched(words, line))
        return matching > 0 and matching >= _SHARE_OF_TEXT * sum(map(len, self.fresh))


def _matched(words: re.Pattern[str], text: str) -> str:
    """Return what of the text these words match; empty if they are only quoted."""
    found = words.search(text)
    return "" if found is None or text.count('"', 0, found.start()) % 2 else found.group()


_SHORT = 1_500  # characters: block pages and error pages have fewer
_SHORT_AT_FIRST = 600  # characters: the same for a new page
_LONG = 6_000  # characters: consent pages may be long, and errors may have menus around them
_MOST = 0.5  # of the old text: a page that still has so much is the page
_FEW = 80  # characters
_MUCH = 500  # characters: a page that had so many does not become empty on purpose
_HALF = 0.7  # of the old characters
_END = 4_096  # bytes
_SAME_END = 200  # characters before the cut that may differ


def why_broken(title: str, text: str, body: bytes, old_text: str | None = None, old_body: bytes = b"") -> str | None:
    """Return a sentence with the reason why this is not the page; None if it may be.

    `old_text` is that of the page before, None for a new page.
    """
    before = old_text or ""
    reason = None
    if not text and _is_blank(body) and (before or old_text is None):
        return messages.EMPTY_RESPONSE
    if len(text) < (_SHORT if before else _SHORT_AT_FIRST):
        reason = _known_error_page(Response(title=title, text=text, body=body, before=before, old_body=old_body))
        if reason is None and not text and (before or old_text is None):
            reason = messages.NO_TEXT_BUT_SCRIPTS if SCRIPT.search(body) else messages.NO_TEXT
    elif len(text) < _LONG and len(before) >= _MUCH:
        reason = _longer_error_page(Response(title=title, text=text, body=body, before=before, old_body=old_body))
    if reason is None and _broke_off(text, body, before, old_body):
        reason = messages.CUT_OFF_PAGE
    return reason


def _is_blank(body: bytes) -> bool:
    return not body or body.isspace()


def _known_error_page(page: Response) -> str | None:
    """Return a sentence with what a short response is if it is not the page, else None."""
    text, before = page.text, page.before
    if page.left >= _MOST:
        return None
    name = block_page_of(page.body)
    if (name and not block_page_of(page.old_body)) or (page.is_mainly(BLOCKED) and not BLOCKED.search(before[:_SHORT])):
        return messages.block_page(name)
    if len(before) >= _FEW and any(map(CRASH.search, page.fresh)) and not CRASH.search(before):
        return messages.ERROR_PAGE
    replaced = len(before) >= _FEW and not page.left and len(text) < _MUCH
    if not replaced and not (len(before) >= _MUCH and len(text) < len(before) / 2):
        return None
    if page.is_mainly(TOO_MANY) and not TOO_MANY.search(before[:_SHORT]):
        return messages.TOO_MANY_REQUESTS
    if (page.is_mainly(ERROR) or NUMBERED.fullmatch(page.new_title)) and not ERROR.search(before[:_SHORT]):
        return messages.ERROR_PAGE
    heading = f"{page.title}\n{text}"
    if not page.left and PARKED.search(heading) and not PARKED.search(before):
        return messages.PARKED_DOMAIN
    if _is_consent_page(heading, before):
        return messages.CONSENT_PAGE
    if _is_login_page(page):
        return messages.LOGIN_PAGE
    return messages.EMPTY_SHELL if page.lines_left < _MOST and _is_shell(page) else None


def is_login_form(title: str, text: str, body: bytes, url: str) -> bool:
    """Return whether a page that a redirect led to asks for a login: by its address, title or first line."""
    asks = PASSWORD.search(body) is not None
    if len(text) >= _LONG or not (asks or FIELD.search(body)):
        return False
    headed = LOGIN.search(title) or LOGIN.search(text.partition("\n")[0][:_SHORT])
    return bool(headed or (asks and LOGIN_PATH.search(url)))


def _is_login_page(page: Response) -> bool:
    """Return whether it has a new password field, or a field for a name under a heading such as 'Log in'."""
    if PASSWORD.search(page.body) and not PASSWORD.search(page.old_body):
        return True
    return bool(FIELD.search(page.body)) and page.is_headed(LOGIN) and not LOGIN.search(page.before.partition("\n")[0])


def _is_shell(page: Response) -> bool:
    """Return whether nearly all text is gone and nothing new is there, because scripts are to add it."""
    if not page.text or page.is_mainly(NEEDS_SCRIPT):
        return True
    if len(page.text) >= _FEW or len(page.before) < _MUCH or not SCRIPT.search(page.body):
        return False
    nothing_new = all(line in page.title or WAITING.fullmatch(line) for line in page.fresh)
    return nothing_new or (MOUNT.search(page.body) is not None and not MOUNT.search(page.old_body))


def _longer_error_page(page: Response) -> str | None:
    """Return a sentence with what a longer response is: an error by its title, or a long consent page; else None."""
    title, text, before = page.title, page.text, page.before
    lowered = title.lower()
    if any(map(lowered.__contains__, ERROR_TITLES)) and ERROR.search(title) and not ERROR.search(before[:_SHORT]):
        if page.left < _MOST and sum(map(len, page.fresh)) < _SHORT:
            return messages.ERROR_PAGE
    elif any(map(text[:_MUCH].lower().__contains__, CONSENT_WORDS)) and not page.left:
        return messages.CONSENT_PAGE if _is_consent_page(f"{title}\n{text}", before) else None
    return None


def _is_consent_page(text: str, before: str) -> bool:
    """Return whether it is mostly about consent, from its start on and with a button to agree, unlike before."""
    if not CONSENT.search(text[:_MUCH]) or not AGREE.search(text) or CONSENT.search(before[:_SHORT]):
        return False
    return sum([len(line) for line in text.split("\n") if ABOUT_CONSENT.search(line)]) >= _MOST * len(text)


def needs_script(title: str, text: str, body: bytes) -> bool:
    """Return whether the page has no text, or little more than that it needs JavaScript: a browser may show more.

    An empty body does not count.
    """
    if not text:
        return not _is_blank(body)
    return len(text) < _SHORT_AT_FIRST and bool(NEEDS_SCRIPT.search(f"{title}\n{text}"))


def is_error_text(title: str, text: str) -> bool:
    """Return whether a new page has little more text than that there is no such page."""
    return len(text) < _SHORT_AT_FIRST and bool(ERROR.search(title) or ERROR.search(text[:_FEW]))


def _broke_off(text: str, body: bytes, old_text: str, old_body: bytes) -> bool:
    """Return whether the document ends in the middle of its old text, without the end tag that it had."""
    if len(text) >= _HALF * len(old_text) or b"</html" not in old_body[-_END:].lower():
        return False
    start = max(len(text) // 2, len(text) - _SAME_END)
    return b"</html" not in body[-_END:].lower() and old_text.startswith(text[:start])
