"""URLs of the same page are one for a crawl."""

from __future__ import annotations

import pytest

from driftline.urls.equivalence import as_user_of, key_of, without_session

PAGE = "https://shop.example/article/7"
TOKEN = "9f8a7b6c5d4e3f2a"


@pytest.mark.parametrize(
    "url",
    [
        f"{PAGE}?sid={TOKEN}",
        f"{PAGE}?PHPSESSID=abc",
        f"{PAGE};jsessionid={TOKEN}",
        f"https://shop.example/(S({TOKEN}))/article/7",
        f"https://shop.example/sid-{TOKEN}/article/7",
        f"https://shop.example/sessionid={TOKEN}/article/7",
    ],
)
def test_a_session_id_is_left_out(url: str) -> None:
    """Wherever a session stands in an address, the page is the same without it."""
    assert without_session(url) == PAGE


@pytest.mark.parametrize(
    "url",
    [
        f"{PAGE}?sid=5",
        f"{PAGE}?session=2026-spring-keynote",
        f"{PAGE}?session_id=1234",
        f"{PAGE}?s=iphone15promax256gb",
        f"https://git.example/commit/{TOKEN}",
        "https://shop.example/session-notes/article/7",
        "https://shop.example/a(b)/7",
    ],
)
def test_what_may_choose_a_page_is_kept(url: str) -> None:
    """The number of a story or a talk, what is searched for and the name of a commit are no sessions."""
    assert without_session(url) == url


def test_other_parameters_stay_when_a_session_goes() -> None:
    """Only what is a session is dropped, with the mark before it if nothing else is left."""
    assert without_session(f"{PAGE}?a=1&PHPSESSID=x&b=2") == f"{PAGE}?a=1&b=2"


def test_the_order_of_parameters_and_the_scheme_do_not_matter() -> None:
    """Permutations of a query are one page."""
    assert key_of(f"{PAGE}?a=1&b=2") == key_of(f"{PAGE.replace('https', 'http')}?b=2&a=1")


def test_other_values_and_other_paths_are_other_pages() -> None:
    """What differs in more than the order is not the same."""
    keys = {key_of(url) for url in (PAGE, f"{PAGE}?a=1", f"{PAGE}?a=2", f"{PAGE}/", "https://other.example/article/7")}
    assert len(keys) == 5


@pytest.mark.parametrize(
    ("page", "url", "taken"),
    [
        ("http://a.example/x", "http://me:pw@a.example/y", "http://a.example/y"),
        ("http://me:pw@a.example/x", "http://a.example/y?z=/@", "http://me:pw@a.example/y?z=/@"),
        ("http://me:pw@a.example/x", "http://you:no@a.example/y", "http://me:pw@a.example/y"),
        ("http://me:pw@a.example/x", "http://b.example/", "http://b.example/"),
        ("https://me:pw@a.example/x", "http://a.example/y", "http://a.example/y"),
        ("", "http://me:pw@a.example/s.xml", "http://a.example/s.xml"),
    ],
)
def test_a_link_cannot_choose_the_user_name(page: str, url: str, taken: str) -> None:
    """A link goes out as the user of its page, at the page's own origin."""
    assert as_user_of(page, url) == taken
