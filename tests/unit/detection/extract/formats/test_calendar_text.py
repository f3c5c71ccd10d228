from __future__ import annotations

import pytest

from driftline.detection.extract.document import Extraction

PARTY = """BEGIN:VEVENT
UID:1@x.example
DTSTAMP:{stamp}
DTSTART;TZID=Europe/Berlin:20261224T180000
SUMMARY:Party\\, with
  music
LOCATION:Hall 1
BEGIN:VALARM
TRIGGER:-PT15M
END:VALARM
END:VEVENT
"""
MARKET = """BEGIN:VEVENT
UID:2@x.example
DTSTAMP:{stamp}
DTSTART;VALUE=DATE:20261201
SUMMARY:Market
END:VEVENT
"""
LINES = [
    "X-WR-CALNAME: Town",
    "SUMMARY: Market",
    "DTSTART: 2026-12-01",
    "SUMMARY: Party, with music",
    "DTSTART: 2026-12-24 18:00 Europe/Berlin",
    "LOCATION: Hall 1",
]


def calendar(*events: str, stamp: str = "20261101T000000Z") -> str:
    inside = "".join(events).format(stamp=stamp)
    return f"BEGIN:VCALENDAR\nVERSION:2.0\nX-WR-CALNAME:Town\n{inside}END:VCALENDAR\n"


def lines(text: str, content_type: str = "text/calendar; charset=utf-8") -> list[str]:
    return Extraction(text.encode(), content_type).text().split("\n")


@pytest.mark.parametrize(
    "content_type", ["text/calendar", "text/x-calendar", "", "text/plain", "application/octet-stream"]
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_events_are_read_in_the_order_in_which_they_start(content_type: str, end: str) -> None:
    assert lines(calendar(PARTY, MARKET).replace("\n", end), content_type) == LINES


def test_when_and_in_which_order_the_file_was_made_is_no_difference() -> None:
    assert lines(calendar(MARKET, PARTY, stamp="20261102T101010Z")) == LINES


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("DTSTART:20261224T180005Z", "DTSTART: 2026-12-24 18:00:05 UTC"),
        ("DUE:20261224T180000Z", "DUE: 2026-12-24 18:00 UTC"),
        ("DESCRIPTION:one\\ntwo\\; three", "DESCRIPTION: one two; three"),
        ('ATTENDEE;CN="Ann: B":mailto:ann@x.example', "ATTENDEE: mailto:ann@x.example"),
        ("URL:https://x.example/20261224", "URL: https://x.example/20261224"),
    ],
)
def test_a_property_is_shown_as_people_write_it(line: str, shown: str) -> None:
    assert lines(calendar(f"BEGIN:VTODO\n{line}\nEND:VTODO\n"))[1:] == [shown]


def test_text_of_broken_calendars_is_not_lost() -> None:
    odd = "BEGIN:VEVENT\nDTSTART:20261201\nSUMMARY:a\u2028b\nDESCRIPTION:one\nand two\n"
    unfinished = f"BEGIN:VCALENDAR\n{odd}{odd.replace('20261201', '20261202')}"
    assert lines(unfinished) == [
        *("SUMMARY: a b", "DTSTART: 2026-12-01", "DESCRIPTION: one and two"),
        *("SUMMARY: a b", "DTSTART: 2026-12-02", "DESCRIPTION: one and two"),
    ]


def test_a_text_that_is_no_calendar_is_plain_text() -> None:
    assert lines("Dates:\n1 May") == ["Dates:", "1 May"]
