"""Versions with the same text that differ otherwise: no difference that is shown is empty."""

from __future__ import annotations

from pathlib import Path

import pytest

import driftline
from support.making import settings
from support.servers import Answer, Request, Server, answer

HTML, JSON = "text/html; charset=utf-8", "application/json"
PAGE = (
    "<title>{title}</title><{tag} class={name}>Words that <a href=/{link}>stay</a></{tag}><img src=/{image}>"
    "<input placeholder={field}>"
)
FIRST = {"title": "A", "tag": "p", "name": "a", "link": "a", "image": "a", "field": "a"}


def page(**other: str) -> str:
    return PAGE.format(**FIRST | other)


@pytest.mark.parametrize(
    ("content_type", "first", "last", "kind"),
    [
        (HTML, page(), page(link="b"), "links"),
        (HTML, page(), page(image="b"), "media"),
        (HTML, page(), page(field="b"), "attributes"),
        (HTML, page(), page(tag="div"), "structure"),
        (HTML, page(), page(title="B"), "metadata"),
        (HTML, page(), page(name="b"), "unseen"),
        (HTML, page(), f"<!-- x -->{page()}", "unseen"),
        (JSON, '{"a": 1, "b": 2}', '{"a":1,"b":2}', "unseen"),
    ],
)
def test_versions_of_the_same_text_still_show_what_differs(
    tmp_path: Path, content_type: str, first: str, last: str, kind: str
) -> None:
    bodies = iter((first, '["other"]' if content_type == JSON else "<p>Something else altogether.", last))

    def script(_request: Request) -> Answer:
        return answer(next(bodies).encode(), "200 OK", f"Content-Type: {content_type}")

    known = settings(store=str(tmp_path / "pages.db"), confirm=False)
    with Server(script) as server, driftline.open(settings=known) as pages:
        url = server.url("/")
        pages.add(url)
        for _ in range(3):
            pages.check(fresh=True)
        (found,) = pages.history.markup_changes(url, 1, 3)
        assert (found.name, pages.diff(url, 1, 3), pages.history.word_diff(url, 1, 3)) == (kind, "", [])
        assert f"The text is the same; {found.words} changed." in pages.history.html_diff(url, 1, 3)
