"""`access`: credentials, headers and proxies that are sent with the requests for a page."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from driftline.api import workspace_of
from driftline.cli.options import JsonOption, StoreOption, opened
from driftline.cli.output import clean, print_json, say
from driftline.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from driftline.http.credentials import Access


def access(
    urls: Annotated[list[str] | None, typer.Argument(metavar="URL", help="Watched pages.", show_default=False)] = None,
    tag: Annotated[
        str | None,
        typer.Option(
            "--tag", metavar="TAG", help="Set it for all pages with this tag, now and later.", show_default=False
        ),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(
            "--header", "-H", metavar="'NAME: VALUE'", help="Send this header; may be repeated.", show_default=False
        ),
    ] = None,
    cookie: Annotated[
        list[str] | None,
        typer.Option("--cookie", metavar="'NAME=VALUE'", help="Send this cookie; may be repeated.", show_default=False),
    ] = None,
    basic: Annotated[
        str | None,
        typer.Option(
            "--basic", metavar="USER:PASSWORD", help="Log in with HTTP Basic authentication.", show_default=False
        ),
    ] = None,
    bearer: Annotated[
        str | None, typer.Option("--bearer", metavar="TOKEN", help="Send this bearer token.", show_default=False)
    ] = None,
    proxy: Annotated[
        str | None,
        typer.Option("--proxy", metavar="URL", help="Fetch through this proxy; none for no proxy.", show_default=False),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(
            "--without",
            metavar="NAME",
            show_default=False,
            help="Remove the header or cookie with this name, or basic, bearer or proxy.",
        ),
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Remove everything that is set, before adding any.")] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Set passwords, headers or a proxy for pages, or show them.

    Secrets are sent only to the origin of the page and never shown. Any value may be env:NAME, which is read from that
    environment variable at every fetch. A password or token given as - is read from standard input.
    """  # fmt: skip
    from driftline.http.credentials import Access, read_access
    from driftline.store.pages import check_tags

    if urls and tag is not None:
        raise UsageError("Give either URLs or --tag, not both.")
    if tag is not None:
        (tag,) = check_tags([tag])
    if basic == "-" and bearer == "-":
        raise UsageError("Only one secret can be read from standard input: give the other one as env:NAME.")
    basic, bearer = _from_input(basic), _from_input(bearer)
    for option, values in (
        ("--header", header), ("--cookie", cookie), ("--basic", [basic]), ("--bearer", [bearer]), ("--proxy", [proxy]),
    ):  # fmt: skip
        if "" in (values or ()):
            raise UsageError(f"{option} is empty: is a variable not set? Use --without to remove what is set.")
    given = read_access(
        headers=header or (), cookies=cookie or (), basic=basic or "", bearer=bearer or "", proxy=proxy or ""
    )

    def edit(kept: Access) -> Access:
        return given.before((Access() if clear else kept).without(without or ()))

    changes = bool(given or without or clear)
    if changes and not (urls or tag):
        raise UsageError("Which pages? Give their URLs, or --tag.")
    with opened(store, make=False) as watch_list:
        workspace = workspace_of(watch_list)
        pages = workspace.catalog.find_all(urls) if urls else []
        if changes and tag:
            workspace.accesses.edit_tag(tag, watch_list.pages(tag), edit)
        elif changes:
            workspace.accesses.edit_pages(pages, edit)
        of_pages, of_tags = workspace.accesses.all()
        unused = workspace.catalog.unused_tags([tag] if tag else [] if urls else of_tags)
    found = _selected(of_pages, of_tags, [page.url for page in pages], tag)
    if as_json:
        print_json({name: one.shown() for name, one in found.items()})
    else:
        for name, one in found.items():
            say(clean(f"{name}: {', '.join(one.shown()) or 'nothing set'}"))
        for label in sorted({label for page in pages for label in page.tags if label in of_tags}):
            say(clean(f"tag {label}: {', '.join(of_tags[label].shown())}"))
        if not found:
            say(
                "Nothing is set for any page: set a header with \"driftline access URL --header 'NAME: VALUE'\".",
                to_stderr=True,
            )
    for name in unused:
        say(clean(f"No page has the tag '{name}' yet: see the tags in use with 'driftline list'."), to_stderr=True)


def _selected(
    of_pages: Mapping[str, Access], of_tags: Mapping[str, Access], urls: list[str], tag: str | None
) -> Mapping[str, Access]:
    """Return what is set for these pages or this tag; without either, for everything."""
    from driftline.http.credentials import Access

    if urls:
        return {url: of_pages.get(url, Access()) for url in urls}
    if tag:
        return {f"tag {tag}": of_tags.get(tag, Access())}
    return {**of_pages, **{f"tag {name}": one for name, one in of_tags.items()}}


def _from_input(given: str | None) -> str | None:
    return sys.stdin.readline().rstrip("\r\n") if given == "-" else given
