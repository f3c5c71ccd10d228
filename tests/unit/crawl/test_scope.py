"""What belongs to a site."""

from __future__ import annotations

import pytest

from driftline.crawl.scope import is_file, scope_of
from driftline.errors import BadSetting

SEED = "https://www.site.example/docs/start.html"


@pytest.mark.parametrize(
    ("within", "inside", "outside"),
    [
        ("host", ["https://site.example/", "http://www.site.example/x", "https://user:pw@site.example/"],
         ["https://api.site.example/", "https://site.example:8443/", "https://notsite.example/"]),
        ("domain", ["https://site.example/", "https://api.site.example/x"],
         ["https://notsite.example/", "https://example/"]),
        ("prefix", ["https://site.example/docs/", "https://site.example/docs/a/b?c"],
         ["https://site.example/", "https://site.example/docs", "https://site.example/other/docs/"]),
    ],
)  # fmt: skip
def test_a_scope_is_a_host_a_domain_or_a_folder(within: str, inside: list[str], outside: list[str]) -> None:
    """With and without www, by either scheme."""
    scope = scope_of([SEED], within)
    assert [url for url in inside if not scope.holds(url)] == []
    assert [url for url in outside if scope.holds(url)] == []


def test_patterns_narrow_it() -> None:
    """What is excluded is out, and with an include only that is in."""
    scope = scope_of([SEED], include=["/docs/*", "*.pdf"], exclude=["*/print/*", "*?share=*"])
    assert scope.holds("https://site.example/docs/a")
    assert scope.holds("https://site.example/files/a.pdf")
    assert not scope.holds("https://site.example/blog/")
    assert not scope.holds("https://site.example/docs/print/a")
    assert not scope.holds("https://site.example/docs/a?share=mail")


@pytest.mark.parametrize("wrong", [{"within": "galaxy"}, {"include": ["*"]}, {"exclude": [" "]}])
def test_what_means_nothing_is_refused(wrong: dict[str, object]) -> None:
    """A pattern that fits everything would find nothing, or leave nothing out."""
    with pytest.raises(BadSetting):
        scope_of([SEED], **wrong)  # type: ignore[arg-type]


def test_files_that_are_no_pages_are_known_by_their_ends() -> None:
    """Documents stay, pictures and archives do not; what stands in a query or a host says nothing."""
    assert is_file("https://site.example/a/logo.PNG?v=2")
    assert is_file("https://site.example/a.tar.gz")
    assert not is_file("https://site.example/report.pdf")
    assert not is_file("https://site.example/view?file=logo.png")
    assert not is_file("https://my.zip/")
