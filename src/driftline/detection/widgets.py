"""What comes and goes on a page as a whole and is none of its content: consent banners with their lists, calendars.

What stands next to a widget is no part of it, even if both came at once: a banner must not hide what a page has to say.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from driftline.detection.edits import WHERE
from driftline.detection.explaining import HEAD, SHORT
from driftline.detection.impostors import ABOUT_CONSENT
from driftline.detection.places import placed
from driftline.detection.wording import Wording
from driftline.model import Region

if TYPE_CHECKING:
    from collections.abc import Sequence

    from driftline.detection.edits import Read
    from driftline.detection.matching import Line, Pair

_CONSENT = Wording({
    "cookie": r"\bcookies?\b.*\b(?:accept|consent|prefer|settings|agree|refus|manage)",
    "we value your privacy": r"we value your privacy",
    "continue without accepting": r"continue without accepting",
    "we and our": r"\bwe and our (?:\d[\d.,]* )?(?:selected )?(?:third )?part(?:ner|ies)",
    "store and/or access": r"store and/or access information on a device",
})  # fmt: skip
_CONSENT_BUTTON = re.compile(
    r"(?:accept|allow|reject|refuse|decline|deny)(?: all)?(?: cookies)?"
    r"|(?:customi[sz]e|manage|cookie)(?: your| my)? (?:preferences|settings|choices|options)"
    r"|(?:manage )?(?:privacy|cookies?|consent)(?: consent)? (?:management|preferences|settings|choices|manager)",
    re.IGNORECASE,
)
_COOKIES = re.compile(r"\b(?:cookies?|gdpr|your (?:consent|privacy))\b", re.IGNORECASE)
_BANNERS = (Region.CONSENT, Region.DIALOG)
_BANNER = WHERE[Region.CONSENT]
_TELLING = 0.05  # of the lines of a consent banner
_MOST = 0.5  # of the letters between the first and the last line of a consent banner
_CALENDAR = "a calendar"
_DAYS = {str(day) for day in range(1, 29)}


def widgets_of(pairs: Sequence[Pair], old: Read, new: Read) -> dict[Line, str]:
    """The lines that are part of a widget that came or went, and what it is."""
    there: dict[bytes, list[tuple[Line, Read]]] = defaultdict(list)
    for one, other in pairs:
        if other is None and one is not None:
            there[one.place].append((one, old))
        elif one is None and other is not None:
            there[other.place].append((other, new))
    found: dict[Line, str] = {}
    # where both texts have something of their own
    gone, come = ({line.place for line in lines if line} for lines in zip(*pairs, strict=True)) if pairs else ((), ())
    rewritten = {*gone} & {*come}
    for place, among in there.items():
        asking = {line for line, _ in among if _asks_consent(line.folded[:HEAD])}
        if len(asking) >= max(1, _TELLING * len(among)):
            found |= dict.fromkeys(_banner(among, asking, place in rewritten), _BANNER)
        elif {line.folded for line, _ in among} >= _DAYS:
            found |= {line: _CALENDAR for line, _ in among if len(line.folded) < SHORT}
    return found


def _banner(among: Sequence[tuple[Line, Read]], asking: set[Line], rewritten: bool) -> set[Line]:
    """Those lines that are part of the banner in which the `asking` ones ask for consent.

    A banner has a region of its own, unless it fills so much of the page that it counts for none. Then it is what
    speaks of cookies, and what stands in between, if that is about little else and the place was not `rewritten`.
    """
    banner = asking.union(line for line, read in among if line not in asking and _is_in_banner(line, read))
    if len(banner) < len(among) and not rewritten:
        first, last = min(line.at for line in banner), max(line.at for line in banner)
        between = [line for line, _ in among if first <= line.at <= last]
        about = sum(len(line.folded) for line in between if line in banner or ABOUT_CONSENT.search(line.folded[:HEAD]))
        if about >= _MOST * sum(len(line.folded) for line in between):
            banner.update(between)
    return banner


def _is_in_banner(line: Line, read: Read) -> bool:
    if _COOKIES.search(line.folded[:HEAD]):
        return True
    block = placed(line, read)
    return block is not None and block.region in _BANNERS


def _asks_consent(text: str) -> bool:
    return _CONSENT_BUTTON.fullmatch(text) is not None or _CONSENT.stands_in(text)
