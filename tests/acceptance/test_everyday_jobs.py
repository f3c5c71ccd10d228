"""What people watch pages for: each job with at most two commands, and reported by the next check."""

from __future__ import annotations

import base64
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from command import Command
from support.browsers import insist_on_browser
from support.papers import pdf
from support.servers import Answer, Request, Server, answer, html

HTML, RSS = "text/html; charset=utf-8", "application/rss+xml"
SHOP = (
    '<title>Lamp</title><h1>Desk lamp</h1><p>A lamp of steel.</p><script type="application/ld+json">'
    '{{"@type": "Product", "name": "Desk lamp", "offers": {{"@type": "Offer", "price": "{price}", '
    '"priceCurrency": "EUR", "availability": "https://schema.org/{stock}"}}}}</script>'
    '<p class="price">{price} €</p><aside>Seen {seen} times today</aside>'
)
JOBS = "<h1>Open positions</h1><ul><li>Data analyst, Lisbon</li>{more}</ul>"
FEED = (
    "<rss version='2.0'><channel><title>News</title>{more}<item><title>Old news</title><link>http://n.example/1</link>"
    "</item></channel></rss>"
)
TERMS = "<h1>Terms</h1><h2>4.2 Returns</h2><p>You may return goods within {days} days of delivery.</p>"
NOISY = "<title>Report</title><main><h1>Report</h1><p>{words}</p></main><footer>Page made at 12:{minute}:07</footer>"
SCRIPT = "document.getElementById('app').innerText = 'Seats free: {n}'"
SCRIPTED = f"<title>Board</title><main id=app></main><script>{SCRIPT}</script>"


@dataclass
class Job:
    """Commands, what the page is before and after, and a part of the line by which the next check reports it."""

    commands: Sequence[str]
    before: Answer
    after: Answer
    reported: str
    environment: dict[str, str] = field(default_factory=dict)


def page(body: str, content_type: str = HTML) -> Answer:
    return answer(body.encode(), "200 OK", f"Content-Type: {content_type}")


def shop(price: str = "39.99", stock: str = "InStock", seen: int = 1) -> Answer:
    return page(SHOP.format(price=price, stock=stock, seen=seen))


WORDS = "What the council said of nets and boats this year, in some words. " * 3
WORKS: dict[str, Job] = {
    "price drop": Job(
        ["add URL --read offers --when 'drop > 10 %'"], shop(), shop("29.99", seen=7), "Price €39.99 → €29.99"
    ),
    "price below a limit": Job(
        ["add URL --read offers --when 'price < 35'"], shop(), shop("34.50"), "Price €39.99 → €34.50"
    ),
    "back in stock": Job(
        ["add URL --read offers --when 'stock appears'"], shop(stock="OutOfStock"), shop(), "Back in stock"
    ),
    "new job posting": Job(
        ["add URL --only added"], page(JOBS.format(more="")),
        page(JOBS.format(more="<li>Senior Rust engineer, Berlin</li>")),
        "New: Senior Rust engineer, Berlin",
    ),
    "new feed item": Job(
        ["add URL"], page(FEED.format(more=""), RSS),
        page(FEED.format(more="<item><title>Ships on Mars</title><link>http://n.example/2</link></item>"), RSS),
        "New entry: Ships on Mars",
    ),
    "headline": Job(
        ["add URL --select h1"], page("<h1>Calm in the north</h1><p>Words."),
        page("<h1>Storm in the north</h1><p>Others."),
        "Calm in the north → Storm in the north",
    ),
    "terms": Job(
        ["add URL"], page(TERMS.format(days=30)), page(TERMS.format(days=14)),
        "You may return goods within 30 → 14 days",
    ),
    "JSON threshold": Job(
        ["add URL --when '$.load > 80'"], page('{"load": 40, "at": "12:00"}', "application/json"),
        page('{"load": 93, "at": "12:05"}', "application/json"), "$.load: 40 → 93",
    ),
    "PDF": Job(
        ["add URL"], answer(pdf(["Fees 2026", "Entry 12 euros"]), "200 OK", "Content-Type: application/pdf"),
        answer(pdf(["Fees 2026", "Entry 15 euros"]), "200 OK", "Content-Type: application/pdf"), "Entry 12 → 15 euros",
    ),
    "noisy page": Job(
        ["add URL"], page(NOISY.format(words=WORDS, minute=11)),
        page(NOISY.format(words=WORDS + "</p><p>The harbour is closed from Monday on.", minute=48)),
        "New: The harbour is closed from Monday on.",
    ),
    "down": Job(
        ["add URL"], page("Words of a service."), answer(b"", "503 Service Unavailable"),
        "1 check failed. The server answered 503 Service Unavailable.", {"DRIFTLINE_FAIL_AFTER": "1"},
    ),
    "table cell": Job(
        ["add URL --when '\"Pro\" < 24'"], page("<table><tr><td>Pro<td>29 €<tr><td>Team<td>99 €</table>"),
        page("<table><tr><td>Pro<td>19 €<tr><td>Team<td>99 €</table>"), "Pro €29.00 → €19.00",
    ),
}  # fmt: skip


class Stage:
    """A server with one page, and the commands of a user who waits between two of them."""

    def __init__(self, driftline: Command) -> None:
        self._driftline = driftline
        self.reply: Callable[[Request], Answer] = lambda _: html("Nothing yet.")
        self.server = Server(lambda request: self.reply(request))

    def user(self, line: str, path: str = "/page", **environment: str) -> str:
        words = shlex.split(line.replace("URL", self.server.url(path)))
        ended = self._driftline(*words, DRIFTLINE_CHECK_ADDED="true", **environment)
        assert ended.status == 0, ended
        return ended.out


@pytest.fixture
def stage(driftline: Command) -> Iterator[Stage]:
    made = Stage(driftline)
    with made.server:
        yield made


@pytest.mark.parametrize("job", WORKS.values(), ids=WORKS)
def test_a_job_takes_one_command_and_is_reported_by_the_next_check(stage: Stage, job: Job) -> None:
    stage.reply = lambda _: job.before
    for command in job.commands:
        stage.user(command, **job.environment)
    assert ": 0 new, 0 changed, 1 unchanged" in stage.user("check", **job.environment)
    stage.reply = lambda _: job.after
    assert job.reported in stage.user("check", **job.environment).splitlines()[0]


def test_a_page_that_was_down_is_reported_when_it_is_up(stage: Stage) -> None:
    stage.reply = lambda _: answer(b"", "500 Internal Server Error")
    stage.user("add URL")
    stage.reply = lambda _: page("Words of a service.")
    assert stage.user("check").splitlines()[0].startswith("recovered")


def test_a_page_behind_a_password_takes_two_commands(stage: Stage) -> None:
    price = {"now": "12"}

    def reply(request: Request) -> Answer:
        if request.headers.get("authorization") != f"Basic {base64.b64encode(b'me:open').decode()}":
            return answer(b"", "401 Unauthorized", 'WWW-Authenticate: Basic realm="x"')
        return page(f"<h1>Account</h1><p>Balance: {price['now']} €</p>")

    stage.reply = reply
    stage.user("add URL --later")
    stage.user("access URL --basic me:open")
    assert ": 1 new" in stage.user("check")
    price["now"] = "8"
    assert "Balance 12 € → 8 €" in stage.user("check").splitlines()[0]


def test_a_whole_site_takes_one_command(stage: Stage, tmp_path: Path) -> None:
    pages = {"/": "<a href=/a>A</a> <a href=/b>B</a> Welcome to the site.", "/a": "Words of a.", "/b": "Words of b."}

    def reply(request: Request) -> Answer:
        found = pages.get(request.path)
        return answer(b"", "404 Not Found") if found is None else page(f"<title>{request.path}</title><p>{found}")

    stage.reply = reply
    stage.user("crawl URL --watch", "/")
    stage.user("check")
    pages["/b"] = "Words of b, and news of the harbour."
    assert "/b" in stage.user("check").splitlines()[0]


def test_a_page_that_is_drawn_by_a_script_takes_one_command(stage: Stage) -> None:
    insist_on_browser()
    stage.reply = lambda _: page(SCRIPTED.format(n=3))
    stage.user("add URL --render")
    stage.reply = lambda _: page(SCRIPTED.format(n=9))
    assert "Seats free: 3 → 9" in stage.user("check").splitlines()[0]
