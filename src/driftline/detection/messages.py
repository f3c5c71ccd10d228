"""The sentences that people read: why a change is noise, and why a response is not the page.

Every enum that decides something gets its words here; those of headlines are in `headline_words`.

Nothing is decided in this module, and no other part of the package may decide anything by the words that it returns.
It needs no parser, so that the main process can import it too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftline.model.change import NoiseKind
from driftline.plurals import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

OUT_OF_MEMORY = "Reading the page took more memory than is allowed."
WORKER_CRASHED = "Reading the page crashed its worker process."
NO_WORKERS = "The process that reads pages could not be started, or ended: try again, or 'driftline doctor'."
REORDERED = "The same words stand in another order."
NOT_AWAITED = "Nothing that was added or removed is what the page waits for."
AWAITED = "What the page waits for happened."
ACCEPTED = "You accepted the page as it is now."
REFILTERED = "The page did not change: it is read through other filters than before."
REREAD = "The page did not change: it is read in another way than before."

ERROR_PAGE = "The response is an error page, although its status says that all is well."
TOO_MANY_REQUESTS = "The site says that it got too many requests, instead of showing the page."
EMPTY_SHELL = "The response is an empty shell: the text of the page is gone, perhaps because it needs JavaScript."
LOGIN_PAGE = "The site asks to log in instead of showing the page."
CONSENT_PAGE = "The site asks for consent to cookies or the like instead of showing the page."
PARKED_DOMAIN = "The domain is parked or for sale: the page is not there any more."
EMPTY_RESPONSE = "The response is empty: the server sent no page."
NO_TEXT = "The page shows no text."
NO_TEXT_BUT_SCRIPTS = "The page shows no text: perhaps it is drawn by JavaScript, which only --render runs."
CUT_OFF_PAGE = "The page broke off in the middle."
BECAME_EMPTY = "The response is empty, but the document was not."
NO_FEED = "The response is a web page, but the document was a feed."
ERROR_MESSAGE = "The response is an error message, although its status says that all is well."
CUT_OFF_DOCUMENT = "The document broke off in the middle."

_NOISE: dict[NoiseKind, str] = {
    NoiseKind.AGE: "an age",
    NoiseKind.AUDIENCE: "a count of views or the like",
    NoiseKind.CLOCK: "a clock",
    NoiseKind.COPYRIGHT_YEAR: "the copyright year",
    NoiseKind.COUNTER: "a counter",
    NoiseKind.IDENTIFIER: "an identifier",
    NoiseKind.PROTECTED_ADDRESS: "how an email address is protected",
    NoiseKind.STAMP: "the date of an update, which is that of the check",
    NoiseKind.TICKER: "a ticker",
    NoiseKind.TIME_ZONE: "dates that move with the time zone",
    NoiseKind.CALENDAR: "a calendar",
    NoiseKind.COPY: "another copy of what is on the page anyway",
    NoiseKind.COPYRIGHT: "the copyright notice",
    NoiseKind.DATE_FORMAT: "how dates are written",
    NoiseKind.FOR_MACHINES: "text that is there for machines",
    NoiseKind.HINT: "hints such as 'opens in a new window'",
    NoiseKind.LABELS: "the words of links and media",
    NoiseKind.LINKS: "links",
    NoiseKind.LINKS_WITH_TEXT: "links that were added or removed with their words",
    NoiseKind.ORDER: "the order of things",
    NoiseKind.PROMOTION: "a promotion",
    NoiseKind.TITLE: "the title",
    NoiseKind.TYPOGRAPHY: "how quotes, dashes or gaps are written",
    NoiseKind.ADVERTISEMENT: "an advertisement",
    NoiseKind.ASIDE: "what stands beside the content",
    NoiseKind.CONSENT: "a consent banner",
    NoiseKind.DIALOG: "a dialog",
    NoiseKind.FOOTER: "the page footer",
    NoiseKind.FORM: "a form",
    NoiseKind.HEADER: "the page header",
    NoiseKind.NAVIGATION: "the navigation",
    NoiseKind.COMES_AND_GOES: "what comes and goes",
    NoiseKind.EVERY_CHECK: "what changes at nearly every check",
    NoiseKind.EVERY_FETCH: "what differs from one fetch to the next",
    NoiseKind.LEFT_OUT: "what the filter 'only' leaves out",
    NoiseKind.OTHER_PAGES: "what changes on other pages of the host all the time",
    NoiseKind.USER: "what you called noise",
    NoiseKind.USER_MINOR: "what you called minor",
}
_LONGEST = 100  # characters of a text in a sentence
_ELLIPSIS = "…"


def only_noise(kinds: Iterable[NoiseKind]) -> str:
    """Return the sentence for a change that these kinds of noise explain."""
    return f"Only {listed([_NOISE[kind] for kind in kinds])} changed."


def place_beside_content(kind: NoiseKind) -> str:
    """Return where an edit stands that this kind of noise explains; empty for links, which stand anywhere."""
    return "" if kind is NoiseKind.LINKS else f"In {_NOISE[kind]}"


def words_changed(added: int, removed: int, places: int) -> str:
    """Return the sentence that counts the words which were added and removed."""
    where = "in one place" if places == 1 else f"in {places:,} places"
    counts = [f"{count(added, 'word')} added"] if added else []
    counts += [f"{count(removed, 'word')} removed"] if removed else []
    return f"{' and '.join(counts)} {where}." if counts else f"The same words stand in another order {where}."


def with_example(sentence: str, before: str, after: str) -> str:
    """Return the sentence with one edit as an example; `before` or `after` may be empty."""
    what = old_to_new(before, after) if before and after else short(before or after)
    return f"{sentence.removesuffix('.')}: {what.removesuffix('.')}."


def also_changed(things: str) -> str:
    """Return the sentence for what changed besides the text."""
    return f"Also changed: {things}."


def things_changed(things: str, example: str) -> str:
    """Return the sentence for what changed where the text did not."""
    return f"{things[0].upper()}{things[1:]} changed: {example}."


def block_page(provider: str) -> str:
    """Return the sentence for a page that wants proof that the visitor is a person; `provider` may be empty."""
    of = f" of {provider}" if provider else ""
    return f"The site shows a block page{of} instead of the page: it wants proof that a person is there."


def took_too_long(seconds: float) -> str:
    """Return the sentence for a page that was not read within its deadline."""
    return f"Reading the page took longer than {seconds:g} seconds."


def own_failure(error: Exception) -> str:
    """Return the sentence for an error of ours, as opposed to one of the page."""
    return f"Driftline itself failed to read this page ({type(error).__name__}: {error})."


def old_to_new(old: str, new: str) -> str:
    """Return both texts with an arrow in between, long ones from shortly before where they begin to differ."""
    skipped = 0
    if max(len(old), len(new)) > _LONGEST:
        shared = next((at for at, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), 0)
        skipped = max(0, shared - _LONGEST // 4)
    before, after = (f"{_ELLIPSIS}{text[skipped:]}" if skipped and text else text for text in (old, new))
    return f"{short(before) or 'none'} → {short(after) or 'none'}"


def short(text: str, longest: int = _LONGEST) -> str:
    """Return the text, or as much of it as fits into so many characters."""
    return text if len(text) <= longest else f"{text[: longest - 1]}{_ELLIPSIS}"


def excerpts(old: str, new: str, longest: int) -> tuple[str, str]:
    """Return both texts, each cut to so many characters around the place where they begin to differ."""
    if len(old) <= longest and len(new) <= longest:
        return old, new
    skipped = max(0, _shared(old, new) - longest // 4) if old and new else 0
    before, after = (f"{_ELLIPSIS}{text[skipped + 1 :]}" if skipped else text for text in (old, new))
    return short(before, longest), short(after, longest)


def _shared(old: str, new: str) -> int:
    """Return how many characters both texts begin with, by halving: a line may be as long as a book."""
    least, most = 0, min(len(old), len(new))
    while least < most:
        half = (least + most + 1) // 2
        if old[least:half] == new[least:half]:
            least = half
        else:
            most = half - 1
    return least


def listed(words: Sequence[str], last: str = "and") -> str:
    """Return words as they stand in a sentence: 'one, two and three'."""
    return f" {last} ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))
