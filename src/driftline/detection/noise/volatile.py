"""Text that changes by itself: clocks, ages, counters, identifiers, the copyright year.

Two texts that differ only in such tokens are found by masking: without their numbers, dates and identifiers they are
equal. One kind of token after the other is then tried as the explanation. A date or a sum of money in a sentence has
none: often they are all that changes in terms and conditions.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from driftline.model.change import NoiseKind

if TYPE_CHECKING:
    from collections.abc import Sequence

_MONTHS: dict[str, int] = {}
for _number, _names in enumerate(
    (
        "jan january janvier janv januar jänner enero ene gennaio gen janeiro januari stycznia tammikuuta",
        "feb february février févr fevrier februar febrero febbraio fevereiro fev februari lutego helmikuuta",
        "mar march mars märz marzo março maart marca maaliskuuta",
        "apr april avril avr abril abr aprile kwietnia huhtikuuta",
        "may mai mayo maggio mag maio mei maj maja toukokuuta",
        "jun june juin juni junio giugno giu junho czerwca kesäkuuta",
        "jul july juillet juil juli julio luglio lug julho lipca heinäkuuta",
        "aug august août aout agosto ago augustus augusti sierpnia elokuuta",
        "sep sept september septembre septiembre settembre set setembro września syyskuuta",
        "oct october octobre oktober okt octubre ottobre ott outubro out października lokakuuta",
        "nov november novembre noviembre novembro listopada marraskuuta",
        "dec december décembre déc decembre dezember dez diciembre dic dicembre dezembro desember grudnia joulukuuta",
    ),
    start=1,
):
    _MONTHS |= dict.fromkeys(_names.split(), _number)

#: beside a number, these change with it: the halves of the day, and arrows that say whether it rose or fell
_BESIDE_NUMBERS = {"AM", "PM", "am", "pm", *"▲▼△▽⬆⬇↑↓→←↗↘"}
_WRITTEN_MONTHS = {written for name in _MONTHS for written in (name, name.capitalize(), name.upper())}
_NAME_OF_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_DAY_FIRST = re.compile(
    rf"(?<!\d)(\d{{1,2}})(?:st|nd|rd|th|er|\.|º)?\s+(?:de\s+|of\s+)?({_NAME_OF_MONTH})\b\.?,?\s+(?:de\s+)?(\d{{4}})"
)
_MONTH_FIRST = re.compile(rf"\b({_NAME_OF_MONTH})\b\.?\s+(\d{{1,2}})(?:st|nd|rd|th)?,?\s+(\d{{4}})")
_DAY_BEFORE_YEAR = re.compile(r"\s\d{1,2}(?:st|nd|rd|th)?,?\s+\d{4}")
_DAY_OF_MONTH = re.compile(
    rf"(?<!\d)(\d{{1,2}})(?:st|nd|rd|th|er|\.|º)?\s+(?:de\s+|of\s+)?({_NAME_OF_MONTH})\b"
    rf"|\b({_NAME_OF_MONTH})\b\.?\s+(\d{{1,2}})(?!\d)"
)
_YEAR = re.compile(r"\d{4}")
_YEAR_FIRST = re.compile(r"(?<!\d)(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)")
_YEAR_LAST = re.compile(r"(?<!\d)(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})(?!\d)")

# a token that is no address is skipped whole: to try each of its characters as a start takes quadratic time
_MAIL = re.compile(r"\[email[\s\u00a0]+protected\]|([\w.+-]+)(@[\w-]+(?:\.[\w-]+)+)?", re.IGNORECASE)
_BETWEEN_TOKENS = ".,:/()|-"
_TOKEN = re.compile(r"[^\s.,:/()|-]+")
_DIGIT = re.compile(r"\d")
_LEADING = re.compile(r"\d{1,4}(?!\d)")
_TIME = re.compile(
    r"\b(\d{1,2})(?::(\d{2}))? ?([ap])m\b"
    r"|(?:\b|(?<=\dT))(\d{1,2}):(\d{2})(?:(:\d{2})(?:\.\d+)?)?(?:\b|(?=Z))",  # as in 2026-01-31T09:30:00Z too
    re.IGNORECASE,
)
_MADE = re.compile(
    r"\b(?:built|generated|rendered|cached|time|clock|erzeugt|erstellt|uhrzeit|généré|heure|hora)\b", re.IGNORECASE
)
_YEARS = re.compile(r"(?:19|20)\d\d")
_AMOUNT = re.compile(r"\d[.,]\d\d(?!\d)")
_TICKER = re.compile(r"[▲▼△▽⬆⬇↑↓] ?[+-]?\d")
_AUDIENCE = re.compile(
    r"\d(?:[\d.,]*\d)?\s?[km]?\s*(?:(?:people|users|persons|guests)\s+)?(?:are\s+)?"
    r"(?:online|viewers?|viewing|watching|looking|views?|likes?|followers?|subscribers?|comments?|shares?|ratings"
    r"|reviews?|replies|visitors?|upvotes?|points?(?= by\b)"
    r"|kommentare?|aufrufe|bewertungen|antworten|abonnenten|besucher|commentaires?|vues|avis|réponses|abonnés"
    r"|comentarios?|visitas|vistas|respuestas|suscriptores|seguidores|comentários?|visualizações|commenti"
    r"|visualizzazioni|recensioni|risposte|iscritti|reacties|weergaven|beoordelingen|volgers|kommentarer|visningar"
    r"|visninger|komentarzy|komentarze|wyświetleń|комментари\w*|просмотр\w*|yorum|görüntüleme)\b"
    r"|\b(?:online|views|viewers|likes|followers|comments|shares|ratings|reviews|visitors|kommentare|aufrufe"
    r"|commentaires|vues|comentarios|visitas|commenti|reacties|weergaven"
    r"|útil|helpful|hilfreich|utile)\b[\s:(]{1,3}\d[\d.,]*(?:\s?[km]\b)?"
    r"(?:\s(?:out of|of|de|von|sur|su|van|av)\s\d[\d.,]*)?"
    r"|\b(?:viewed|read|saved|shared|played|downloaded|gelesen|angesehen|aufgerufen|geteilt|lue?|vue?|consultée?|leído"
    r"|visto|letto|visualizzato|gelezen|bekeken|läst|visad)\s\d[\d.,]*\s(?:times|mal|fois|veces|volte|vezes|keer|gånger)\b"
    r"|\d[\d.,]*\s?(?:downloads?|téléchargements|descargas)\b"
    r"|\d[\d.,]*\speople\s(?:said|saved|like[ds]?|found|viewed|are interested|subscribed)\b"
    r"|\d+\s?min(?:ute)?s?\.?\s(?:read|lesezeit|de lecture|de lectura|di lettura|de leitura|leestijd)\b",
    re.IGNORECASE,
)
_RULED = re.compile(
    r"\b(?:max(?:imum)?|min(?:imum)?(?!\.?\s(?:read|lese|de lec|di let|de lei|leest))|limits?|needs?|requires?d?"
    r"|at (?:least|most)|up to|per (?:day|week|month|year))\b",
    re.IGNORECASE,
)
_UUID = re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE)
# numbers that identify something: another number identifies something else
_NAMING = re.compile(
    r"\b(?:donat\w*|bitcoin|btc|wallet|bc1\w+|0x[0-9a-f]{40}|sha-?\d*|md5|checksum|fingerprint|account|iban|vat|tax"
    r"|isbn|issn|docket|case|tracking|model|serial|licen[cs]e|patent|konto|compte|cuenta)\b",
    re.IGNORECASE,
)
_COPYRIGHT = re.compile(
    r"©|\(c\)|\bcopyright\b|tous droits réservés|all rights reserved|alle rechte vorbehalten", re.IGNORECASE
)
_NOTICE = re.compile(
    r"\W*(?:©|\(c\)|copyright\b)|.*\b(?:rights reserved|droits réservés|rechte vorbehalten)\W*\Z", re.IGNORECASE
)
_REVISION = re.compile(
    r"\b(?:updated|modified|revised|effective|amended|reviewed|published|version|mise? à jour|modifi|révis|en vigueur"
    r"|actualis|actualiz|modific|vigor|aggiorn|aktualisiert|stand|geändert|gültig|bijgewerkt|gewijzigd|laatst"
    r"|uppdater|senast|gäller|opdater|oppdater|päivit|voimassa|zaktualizowan)"
)
_MEASURED = re.compile(
    r"[€$£¥%]|\b(?:eur|euros?|usd|gbp|dollars?|kr|sek|days?|months?|years?|jours|mois|ans|tage|jahre)\b", re.IGNORECASE
)
# after a number: what it says is a property of something, and no count
_UNIT = re.compile(r"\d\s?(?:k?g|mg|[mcd]?l|km|[cm]m|m²|lbs?|oz|k?wh?|°)(?![\w/])", re.IGNORECASE)
_MONEY = re.compile(r"[€$£¥]\s?\d|\d\s?[€$£¥]|\d\s?(?:eur|usd|gbp|euros?|dollars?)\b", re.IGNORECASE)
_STOCK = re.compile(
    r"\b(?:in|of|low|en|de|no) stock\b|\bsold[ -]?out\b|\b(?:un)?available\b|\bfully booked\b|\bcancell?ed\b"
    r"|\brupture\b|disponib|disponíve|\bépuisé|\bausverkauft\b|\bauf lager\b|\b(?:verfügbar|lieferbar)\b"
    r"|\bagotad|\besaurit|\besgotad|\bleverbaar\b|\bop voorraad\b|\buitverkocht\b|\bslutsåld\b|\bi lager\b",
    re.IGNORECASE,
)
# a part of a word in each alternative of `_STOCK`, in lower case: to search for them first is twenty times faster
_SIGNS_OF_STOCK = (
    "stock", "sold", "available", "booked", "cancel", "rupture", "dispon", "épuisé", "ausverkauft", "lager",
    "verfügbar", "lieferbar", "agotad", "esaurit", "esgotad", "leverbaar", "voorraad", "uitverkocht", "slutsåld",
)  # fmt: skip
_PROTECTED = re.compile(r"\[email[\s\u00a0]+protected\]", re.IGNORECASE)
# the same for `_AGES`
_SIGNS_OF_AGES = ("ago", "esterday", "now", "il y a", "vor ", "hace ", "geleden", "gestern", "gisteren", "назад", "前")
_AGES = re.compile(
    r"\b(?:just now|yesterday|(?:an?|one|\d+)\s+(?:sec(?:ond)?|min(?:ute)?|h(?:ou)?r|day|week|month|year)s?\s+ago"
    r"|\d+\s?(?:s|m|h|d|w|mo|y|mins?|hrs?)\s+ago"
    r"|il y a (?:une?|\d+) \w+|vor (?:eine[rmn]|\d+) \w+|hace (?:una?|\d+) \w+|(?:een|\d+) \w+ geleden"
    r"|\d+ \w+ назад|gestern|gisteren)\b|\d+ ?(?:秒|分|分钟|分鐘|時間|小时|小時|日|天)前",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]{2,}")
_NUMBERED = re.compile(r"\W*\d+(?:\.\d+)*[.)]?\s+[^\W\d_]{2}")
_CALL = re.compile(r"\+\d|\b0\d[\d -]{5,}|\b\d{3}-\d{4}\b|\b(?:call|phone|tel)\b", re.IGNORECASE)
_WEEKDAY = re.compile(
    r"\b(?:mon|tue|wed|thu|fri|sat|sun|mo|di|mi|do|fr|sa|so|lun|mar|mer|jeu|ven|sam|dim)(?:\b|day|tag|di\b)|\b(?:open|hours)\b",
    re.IGNORECASE,
)
_VERSION = re.compile(r"\d+(?:\.\d+){2,}|\b(?:v|version|release|build|rev|revision)[. ]?\d+(?:\.\d+)*", re.IGNORECASE)
_HEAD = 1_000  # characters that are searched: a line may be as long as a book
_COUNT = re.compile(r"\d{1,3}(?:[.,'\u202f\xa0 ]\d{3})+|\d+")
_NO_DIGIT = re.compile(r"\D")
_LARGE, _VERY_LARGE = 100, 10_000
_FEW_WORDS, _SOME_WORDS = 6, 8
_LONG_TOKEN = 10
_LONGEST_DATE = 40  # characters
_LONGEST_NOTICE, _MOST_OF_NOTICE = 100, 12  # characters, and words
_LONGEST_COUNT = 80  # characters of a line in which a count is not part of a sentence
_ONE_DAY = timedelta(days=1)
_MONTHS_A_YEAR = 12
_DAY = 24 * 60  # minutes
_LATE = 15  # minutes that a time of day may be behind, because pages are cached
_AHEAD = 3  # minutes: the clocks of servers are not exact
_ZONES, _WHOLE_HOURS = 30, 60  # minutes: nearly all time zones differ by a multiple of the first, most of the other


def masked(text: str) -> str:
    """Return the text without numbers, dates and the like: equal for two texts that differ only in these."""
    text = _without_mail(text)
    if any(map(text.__contains__, _SIGNS_OF_AGES)):
        text = _AGES.sub(" ", text)
    for mark in _BETWEEN_TOKENS:
        # three times faster than a pattern for such tokens
        text = text.replace(mark, " ")
    tokens = text.split()
    stable = [token for token in tokens if token.isalpha() or not _DIGIT.search(token)]
    if len(stable) < len(tokens) and not _BESIDE_NUMBERS.isdisjoint(stable):
        stable = [token for token in stable if token not in _BESIDE_NUMBERS]
    if not _WRITTEN_MONTHS.isdisjoint(stable):
        stable = [token for token in stable if token not in _WRITTEN_MONTHS]
    return " ".join(stable)


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(_without_mail(text))


def _without_mail(text: str) -> str:
    if "@" not in text and "[email" not in text:
        return text
    return _MAIL.sub(lambda found: "" if found[2] else found[1] or "", text)


def _may_change(token: str) -> bool:
    return token in _WRITTEN_MONTHS if token.isalpha() else _DIGIT.search(token) is not None


def names_revision(text: str) -> bool:
    """Return whether the text is about when the document was changed or comes into force."""
    return bool(_REVISION.search(text[:_HEAD].lower()))


def names_money(text: str) -> bool:
    """Return whether the text names a sum of money."""
    return bool(_MONEY.search(text[:_HEAD]))


def names_stock(text: str) -> bool:
    """Return whether the text is about whether something is in stock or available."""
    head = text[:_HEAD]
    return any(map(head.lower().__contains__, _SIGNS_OF_STOCK)) and _STOCK.search(head) is not None


def without_ages(lines: Sequence[str]) -> list[str]:
    """Return the lines without those that say how long ago something was, and nothing else."""
    return [
        line for line in lines
        if len(line) > _LONGEST_DATE or not any(map(line.__contains__, _SIGNS_OF_AGES)) or not _AGES.fullmatch(line)
    ]  # fmt: skip


def is_copyright_notice(text: str) -> bool:
    """Return whether a line says who holds the copyright, and not much else."""
    return len(text) <= _LONGEST_NOTICE and _NOTICE.match(text) is not None and len(text.split()) <= _MOST_OF_NOTICE


def counts_audience(text: str) -> bool:
    """Return whether the text counts views, comments or the like."""
    return _AUDIENCE.search(text[:_HEAD]) is not None


def differ_in_audience(old: str, new: str) -> bool:
    """Return whether two short texts are equal but for a count of comments, views or the like that only one has."""
    longer = max(old, new, key=len)  # which has the count
    if len(longer) > _LONGEST_COUNT or not _DIGIT.search(longer) or not counts_audience(longer):
        return False
    return _AUDIENCE.sub(" ", old).split() == _AUDIENCE.sub(" ", new).split()


def names_age(text: str) -> bool:
    """Return whether the text says how long ago something was."""
    return any(map(text.__contains__, _SIGNS_OF_AGES)) and _AGES.search(text[:_HEAD]) is not None


def names_contact(text: str) -> bool:
    """Return whether the text has a telephone number or opening hours."""
    head = text[:_HEAD]
    return _CALL.search(head) is not None or (_WEEKDAY.search(head) is not None and _TIME.search(head) is not None)


def dates_in(text: str) -> list[date]:
    """Return the calendar dates near the start of a text, in no particular order."""
    text = text[:_HEAD].lower()
    found: list[date] = []
    if not _YEAR.search(text):
        return found
    for day, month, year in _DAY_FIRST.findall(text):
        found += _date(year, _MONTHS[month], day)
    # to search for names of months is slow, and most texts have no number that may be a day
    for month, day, year in _MONTH_FIRST.findall(text) if _DAY_BEFORE_YEAR.search(text) else ():
        found += _date(year, _MONTHS[month], day)
    for year, month, day in _YEAR_FIRST.findall(text):
        found += _date(year, month, day)
    for one, other, year in _YEAR_LAST.findall(text):
        found += _date(year, other, one) or _date(year, one, other)
    return found


def shift_of_dates(old: str, new: str) -> int | None:
    """Return by how many days a text that is only a date moved; None for any other text."""
    if len(old) > _LONGEST_DATE or len(new) > _LONGEST_DATE:
        return None
    before, after = dates_in(old), dates_in(new)
    if len(before) != 1 or len(after) != 1 or masked(old) or masked(new):
        return None
    return (after[0] - before[0]).days


def undated(text: str) -> tuple[str, ...]:
    """Return the numbers and the like of a text without those of its dates and times."""
    return tuple(_undated(_TIME.sub(" ", text), dates_in(text)))


def is_other_date_format(old: str, new: str) -> bool:
    """Return whether two texts that are equal when `masked` name the same dates, written in another way."""
    before, after = dates_in(old), dates_in(new)
    if not before or len(before) != len(after) or old == new:
        return False
    # of two dates like 02/03/2026 the order of day and month is the same, whichever it is
    ambiguous = bool(_YEAR_LAST.search(old)) != bool(_YEAR_LAST.search(new))
    same = all(
        one == other or (ambiguous and one == _swapped(other))
        for one, other in zip(sorted(before), sorted(after), strict=True)
    )
    return same and _without_dates(old) == _without_dates(new)


def _without_dates(text: str) -> list[str]:
    """Return the words of a text without its dates."""
    text = text.lower()
    for pattern in (_DAY_FIRST, _MONTH_FIRST, _YEAR_FIRST, _YEAR_LAST):
        text = pattern.sub(" ", text)
    return [word for token in text.split() if (word := token.strip(",.;"))]


def _swapped(day: date) -> date:
    """Return the date that 02/03/2026 is in countries where the month comes first."""
    return day.replace(day=day.month, month=day.day) if day.day <= _MONTHS_A_YEAR else day


def volatile_noise(old: str, new: str, old_at: float, new_at: float) -> NoiseKind | None:
    """Return why the difference between two texts that are equal when `masked` means nothing; None if it may matter.

    `old_at` and `new_at` are when the two were fetched, as Unix time. A difference is explained only if all of it is:
    an age beside a price does not explain the price.
    """
    if max(len(old), len(new)) > _HEAD:
        return None
    words = len(_WORD.findall(new))
    found = None
    # in a long sentence, an age or a count is part of the content
    for kind, pattern in _EXPLAINED if words <= _SOME_WORDS else ():
        if pattern.search(new) and not (kind is NoiseKind.AUDIENCE and _RULED.search(new)):
            found = kind if pattern.findall(old) != pattern.findall(new) else found
            old, new = pattern.sub(" ", old), pattern.sub(" ", new)
    before, after = _changing(old), _changing(new)
    if found is None and before == after:
        return NoiseKind.PROTECTED_ADDRESS if _PROTECTED.search(old) or _PROTECTED.search(new) else None
    if _TIME.search(new):
        if _TIME.findall(old) != _TIME.findall(new):
            if not _is_clock(old, new, old_at, new_at, words) and not _is_stamp_of_fetch(new, new_at):
                return None
            found = NoiseKind.CLOCK
        old, new = _TIME.sub(" ", old), _TIME.sub(" ", new)
        before, after = _changing(old), _changing(new)
    if before == after:
        return found
    differing = [token for pair in zip_longest(before, after, fillvalue="") if pair[0] != pair[1] for token in pair]
    return _noise_of_tokens(old, new, differing, old_at, new_at, words)


_EXPLAINED = ((NoiseKind.AGE, _AGES), (NoiseKind.IDENTIFIER, _UUID), (NoiseKind.AUDIENCE, _AUDIENCE))


def _noise_of_tokens(
    old: str, new: str, differing: list[str], old_at: float, new_at: float, words: int
) -> NoiseKind | None:  # fmt: skip
    """Return the same for what is left of two texts without ages, counts and times, by the tokens that differ."""
    this_year = datetime.fromtimestamp(new_at, UTC).year
    if _COPYRIGHT.search(new) and all(_YEARS.fullmatch(token) for token in differing):
        # a year far from now is not the year of a copyright notice
        years = {int(token) for token in differing[1::2]}
        return NoiseKind.COPYRIGHT_YEAR if all(abs(year - this_year) <= 1 for year in years) else None
    if words <= _SOME_WORDS and _TICKER.search(new):
        return NoiseKind.TICKER
    if names_money(new):
        return None
    if _are_fetch_dates(old, new, old_at, new_at):
        return NoiseKind.STAMP if names_revision(new) else NoiseKind.CLOCK
    if names_revision(new):
        return None
    short = words <= _FEW_WORDS
    if dates_in(new) or _MEASURED.search(new) or _UNIT.search(new) or not short or _NUMBERED.match(new):
        return None
    if (days := _days_in(new)) != (before := _days_in(old)):
        today = _is_day_of(before, old_at) and _is_day_of(days, new_at)
        return NoiseKind.CLOCK if today else None
    if all(len(token) >= _LONG_TOKEN and not token.isalpha() for token in differing):
        return None if _NAMING.search(new) else NoiseKind.IDENTIFIER
    if _CALL.search(new) or _AMOUNT.search(new) or not all(token.strip("+%#").isdigit() for token in differing):
        return None
    if _VERSION.findall(old) != _VERSION.findall(new) or any(_YEARS.fullmatch(token) for token in differing):
        return None  # another version, or another year of a date
    # a count of zero, before or after, is more than a count: sold out, or back again
    return None if any(not token.strip("0+%#") for token in differing) else NoiseKind.COUNTER


def _days_in(text: str) -> list[tuple[int, int]]:
    """Return the month and day of dates that need no year, as in '9 January'."""
    found = _DAY_OF_MONTH.findall(text.lower())
    return [(_MONTHS[month or other], int(day or also)) for day, month, other, also in found]


def _is_day_of(days: list[tuple[int, int]], at: float) -> bool:
    """Return whether all of these days are that of a fetch, in any time zone."""
    now = datetime.fromtimestamp(at, UTC)
    near = {(day.month, day.day) for day in (now - _ONE_DAY, now, now + _ONE_DAY)}
    return bool(days) and near.issuperset(days)


def is_creeping(old: str, new: str) -> bool:
    """Return whether both texts are nothing but a count that rose a little: by a hundredth, a large one by a tenth."""
    before, after = (_COUNT.fullmatch(text) for text in (old, new))
    if before is None or after is None:
        return False
    one, other = (int(_NO_DIGIT.sub("", text)) for text in (old, new))
    return _LARGE <= one < other <= one + max(1, one // (10 if one >= _VERY_LARGE else 100))


def _changing(text: str) -> list[str]:
    """Return the tokens of a text that may change by themselves."""
    return [token for token in _tokens(text) if _may_change(token)]


class _Time(NamedTuple):
    """A time of day in a text, in minutes and seconds, and its difference to that of the fetch in minutes."""

    minute: int
    second: str
    off: int


def _times_in(text: str, at: float) -> list[_Time]:
    found: list[_Time] = []
    for hour, minute, half, other_hour, other_minute, second in _TIME.findall(text):
        minutes = (int(hour or other_hour) % 12 if half else int(other_hour)) + (12 if half in ("p", "P") else 0)
        minutes = minutes * 60 + int(minute or other_minute or 0)
        found.append(_Time(minutes, second, (minutes - int(at // 60)) % _DAY))
    return found


def _is_clock(old: str, new: str, old_at: float, new_at: float, words: int) -> bool:
    """Return whether the times that differ between two texts are only those at which they were generated."""
    before, after = _times_in(old, old_at), _times_in(new, new_at)
    exact = all(time.second for time in after)
    if exact and len(before) == len(after) == 1 and _MADE.search(new):
        return True
    # a time that stands alone may be that of a timetable
    zones = _ZONES if exact or masked(new) else _WHOLE_HOURS
    return (exact or words <= _FEW_WORDS) and _are_fetch_times(before, after, old_at, new_at, zones)


def _is_stamp_of_fetch(new: str, new_at: float) -> bool:
    """Return whether a text is nothing but the time of its fetch: a list of such times grows and is cut by itself.

    Without seconds, only time zones of whole hours count: more than half of all times of a timetable are as near to
    that of the fetch in some other one.
    """
    after = _times_in(new, new_at)
    if len(after) != 1 or masked(new):
        return False
    return (_AHEAD - after[0].off) % (_ZONES if after[0].second else _WHOLE_HOURS) <= _AHEAD + _LATE


def _are_fetch_times(before: list[_Time], after: list[_Time], old_at: float, new_at: float, zones: int) -> bool:
    """Return whether all times that differ are the times of the fetches, or count down.

    They may be those of any time zone that differs by a multiple of `zones` minutes.
    """
    if len(before) != len(after):
        return False
    elapsed = (new_at - old_at) / 60
    late = min(_LATE, 1 + elapsed)  # within a minute no clock moves by ten
    for one, other in zip(before, after, strict=True):
        ahead, down = (other.off - one.off) % _DAY, (one.minute - other.minute - elapsed) % _DAY
        follows = min(ahead, _DAY - ahead) <= late and (_AHEAD - other.off) % zones <= _AHEAD + _LATE
        counts_down = one.second != "" and min(down, _DAY - down) <= 1
        if (one.minute, one.second) != (other.minute, other.second) and not follows and not counts_down:
            return False
    return True


def _are_fetch_dates(old: str, new: str, old_at: float, new_at: float) -> bool:
    """Return whether only dates differ, and these are the days of the fetches."""
    before, after = dates_in(old), dates_in(new)
    if not before or len(before) != len(after) or _undated(old, before) != _undated(new, after):
        return False
    then, now = (datetime.fromtimestamp(at, UTC).date() for at in (old_at, new_at))
    return (
        then != now
        and all(abs(day - then) <= _ONE_DAY for day in before)
        and all(abs(day - now) <= _ONE_DAY for day in after)
    )


def _undated(text: str, dates: list[date]) -> list[str]:
    """Return the tokens of a text that may change by themselves, without those of its dates."""
    numbers = {number for day in dates for number in (day.day, day.month, day.year)}

    def is_of_date(token: str) -> bool:
        found = _LEADING.match(token)
        return token in _WRITTEN_MONTHS or (found is not None and int(found[0]) in numbers)

    return [token for token in _changing(text) if not is_of_date(token)]


def _date(year: str | int, month: str | int, day: str | int) -> list[date]:
    try:
        return [date(int(year), int(month), int(day))]
    except ValueError:
        return []
