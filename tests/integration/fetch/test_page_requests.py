"""Pages that are requested by another method, or whose answers look like errors; over a real server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

import driftline
from command import Command
from driftline import FailureKind, UsageError
from driftline.api import workspace_of
from driftline.errors import BadFilter
from support.making import settings
from support.servers import Answer, Request, Server, answer, html, redirect

Filters = Sequence[tuple[str, str]]
LOGIN = "<h1>Sign in</h1><form action=/session><input name=user><input type=password name=secret></form>"


class Office:
    """A server whose answers a test sets, and a watch list."""

    def __init__(self, folder: Path) -> None:
        self.reply: Callable[[Request], Answer] = lambda _: html("Words of the office.")
        self.server = Server(lambda request: self.reply(request))
        self.pages = driftline.open(settings=settings(store=str(folder / "pages.db"), robots="ignore"))

    def check(self, filters: Filters = (), path: str = "/") -> driftline.Check:
        """Add the page if filters are given, and return what a check of it finds."""
        url = self.server.url(path)
        if not self.pages.pages():
            self.pages.add(url, filters=filters)
        self.pages.check()
        return self.pages.history.checks(url, limit=1)[0]


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    made = Office(tmp_path)
    with made.server, made.pages:
        yield made


def sent(request: Request) -> tuple[str, bytes, str | None]:
    return request.method, request.body, request.headers.get("content-type")


@pytest.mark.parametrize(
    ("filters", "method", "body", "kind"),
    [
        ([("data", '{"query": "pens"}')], "POST", b'{"query": "pens"}', "application/json"),
        ([("data", "a=1&b=2")], "POST", b"a=1&b=2", "application/x-www-form-urlencoded"),
        ([("data", "<q/>"), ("content-type", "text/xml")], "POST", b"<q/>", "text/xml"),
        ([("method", "put"), ("data", "[1]")], "PUT", b"[1]", "application/json"),
        ([("method", "POST")], "POST", b"", "application/x-www-form-urlencoded"),
        ([("method", "GET")], "GET", b"", None),
    ],
)
def test_a_page_is_requested_by_its_method_with_its_data_also_to_confirm_a_change(
    office: Office, filters: Filters, method: str, body: bytes, kind: str | None
) -> None:
    seen: list[Request] = []

    def reply(request: Request) -> Answer:
        seen.append(request)
        return html(
            f"Price {3 if len(seen) < 2 else 4} of what was asked for.", 'ETag: "a"' if len(seen) < 2 else "X: y"
        )

    office.reply = reply
    assert office.check(filters).verdict == "new"
    assert office.check().verdict == "changed"
    assert {sent(request) for request in seen} == {(method, body, kind)}
    assert len(seen) == 3, "the change was confirmed"
    assert ("if-none-match" in seen[1].headers) is (method == "GET"), "a validator is about what GET returns"


@pytest.mark.parametrize(
    ("status", "elsewhere", "method"),
    [
        ("303 See Other", False, "GET"), ("302 Found", False, "GET"), ("307 Temporary Redirect", False, "POST"),
        ("308 Permanent Redirect", False, "POST"), ("307 Temporary Redirect", True, "GET"),
    ],
)  # fmt: skip
def test_data_is_sent_to_the_target_of_a_redirect_only_as_browsers_do_and_to_no_other_site(
    office: Office, status: str, elsewhere: bool, method: str
) -> None:
    with Server(lambda _: html("Elsewhere.")) as other:
        target = other.url("/found") if elsewhere else "/found"
        office.reply = lambda request: redirect(target, status=status) if request.path == "/" else html("Found it.")
        assert office.check([("data", "secret=1")]).verdict == "new"
        [found] = (other if elsewhere else office.server).asked_for("/found")
    assert (found.method, found.body) == (method, b"secret=1" if method == "POST" else b"")


@pytest.mark.parametrize("status", ["307 Temporary Redirect", "308 Permanent Redirect"])
def test_data_that_a_redirect_dropped_is_not_sent_again_by_the_next_one(office: Office, status: str) -> None:
    """Neither within a site nor through another one, which could have it sent to any page."""
    with Server(lambda _: redirect(office.server.url("/delete"), status=status)) as other:
        for first in (redirect("/form"), redirect(other.url("/away"))):
            steps = {"/": first, "/form": redirect("/found", status=status)}
            office.reply = lambda request, steps=steps: steps.get(request.path) or html("Found.")  # type: ignore[misc]
            office.check([("data", "secret=1")])
    for path in ("/found", "/delete"):
        assert [(one.method, one.body) for one in office.server.asked_for(path)] == [("GET", b"")]


def test_an_accepted_status_says_nothing_about_answers_with_another(office: Office) -> None:
    wall = b"<title>Just a moment...</title><script>window._cf_chl_opt={}</script><p>Checking your browser"
    office.reply = lambda _: answer(wall, "200 OK", "Content-Type: text/html")
    assert office.check([("accept", "404,empty"), ("keep", "sold out")]).failure is not None


def test_a_page_that_was_never_checked_is_not_accepted_as_it_may_be_later(office: Office, driftline: Command) -> None:
    url = office.server.url("/")
    driftline("add", url, "--later")
    ended = driftline("check", url, "--accept")
    assert ended.status == 2
    assert "was never checked: check it without --accept first" in ended.err


@pytest.mark.parametrize("given", ["404", "4xx", "500,404", "404,empty"])
def test_an_answer_with_an_accepted_status_is_the_page(office: Office, given: str) -> None:
    office.reply = lambda _: answer(
        b"<h1>Not found</h1><p>No such seat yet.", "404 Not Found", "Content-Type: text/html"
    )
    assert office.check([("accept", given)]).verdict == "new"
    office.reply = lambda _: html("<h1>Seat 12</h1><p>It is free from noon on.")
    assert office.check().verdict == "changed"
    office.reply = lambda _: answer(
        b"<h1>Not found</h1><p>No such seat yet.", "404 Not Found", "Content-Type: text/html"
    )
    assert office.check().verdict == "changed", "also an error after the page"


def test_other_error_statuses_stay_failures(office: Office) -> None:
    office.reply = lambda _: answer(b"<h1>Not found</h1>", "404 Not Found", "Content-Type: text/html")
    found = office.check([("accept", "5xx,empty")])
    assert found.failure is not None
    assert found.failure.kind is FailureKind.STATUS


def test_an_accepted_status_counts_where_a_redirect_leads(office: Office) -> None:
    office.reply = lambda request: (
        redirect("/gone") if request.path == "/" else answer(b"Gone for good.", "410 Gone", "Content-Type: text/plain")
    )
    assert office.check([("accept", "410")]).verdict == "new"


@pytest.mark.parametrize("body", [b"", b"<!doctype html><title></title><body></body>"])
def test_an_empty_page_is_a_page_if_that_is_accepted(office: Office, body: bytes) -> None:
    empty = answer(body, "200 OK", "Content-Type: text/html; charset=utf-8")
    office.reply = lambda _: empty
    assert office.check([("accept", "empty")]).verdict == "new"
    office.reply = lambda _: html("A first entry, after all.")
    assert office.check().verdict == "changed"
    office.reply = lambda _: empty
    assert office.check().verdict == "changed"


def test_a_login_form_that_a_redirect_leads_to_is_no_first_version(office: Office) -> None:
    office.reply = lambda request: redirect("/login?next=%2F") if request.path == "/" else html(LOGIN)
    found = office.check()
    assert found.failure is not None
    assert found.failure.kind is FailureKind.BROKEN
    assert "log in" in found.failure.sentence
    workspace_of(office.pages).catalog.accept([page.id for page in office.pages.pages()])
    assert office.check().verdict == "new"
    assert office.pages.pages()[0].versions == 1, "unless its user accepts it"


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(lambda _: html(LOGIN), id="without a redirect"),
        pytest.param(lambda r: redirect("/new") if r.path == "/" else html("Words. " + LOGIN[18:]), id="elsewhere"),
        pytest.param(lambda r: redirect("/login") if r.path == "/" else html("How to log in, in words."), id="no form"),
        pytest.param(
            lambda r: redirect("/docs/auth") if r.path == "/" else html("Words of it. <input type=email name=news>"),
            id="a newsletter",
        ),
        pytest.param(lambda r: redirect("/login/") if r.path == "/login" else html(LOGIN), id="another spelling"),
    ],
)
def test_other_pages_with_or_about_a_login_are_first_versions(
    office: Office, reply: Callable[[Request], Answer], request: pytest.FixtureRequest
) -> None:
    office.reply = reply
    assert office.check(path="/login" if "spelling" in request.node.name else "/").verdict == "new"


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ([("method", "DELETE")], "There is no 'method DELETE': use GET, POST or PUT"),
        ([("accept", "40")], "There is no 'accept 40': use an error status such as 404 or 5xx, or empty"),
        ([("accept", "200")], "use an error status such as"),
        ([("data", "a"), ("content-type", "text/x\r\nEvil: 1")], "The content type"),
        ([("content-type", "text/xml")], "give both"),
        ([("method", "GET"), ("data", "a=1")], "needs the 'method' POST or PUT"),
        ([("data", "a=1"), ("data", "a=2")], "A page has one 'data': give only one of a=1 or a=2"),
    ],
)
def test_requests_that_make_no_sense_are_refused(office: Office, filters: Filters, message: str) -> None:
    with pytest.raises(BadFilter, match=message):
        office.pages.add("https://example.com/", filters=filters)


def test_a_page_is_either_rendered_or_requested_with_data(office: Office) -> None:
    with pytest.raises(UsageError, match="A browser requests a page by GET"):
        office.pages.add("https://example.com/", filters=[("data", "a=1")], render=driftline.Render())
    office.pages.add("https://example.com/", filters=[("data", "a=1")])
    with pytest.raises(UsageError, match="A browser requests a page by GET"):
        office.pages.edit("https://example.com/", render=driftline.Render())
