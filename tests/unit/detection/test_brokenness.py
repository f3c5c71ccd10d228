from __future__ import annotations

import pytest

from driftline.detection.brokenness import why_broken

PAGE = "\n".join(f"Paragraph {number} of terms that go on for quite a while, as terms do." for number in range(40))
BODY = f"<html><body>{PAGE}</body></html>".encode()


@pytest.mark.parametrize(
    ("title", "text", "reason"),
    [
        ("Just a moment...", "Checking your browser before you access example.com", "wall"),
        ("Access Denied", "You don't have permission to access this server. Reference #18.2d", "wall"),
        ("example.com", "Verify you are human by completing the action below.", "wall"),
        ("404 Not Found", "Nothing here. Go home.", "error page"),
        ("Oops", "503 Service Unavailable", "error page"),
        ("Shop", "We are down for maintenance.", "error page"),
        ("Shop", "", "empty shell"),
        ("Shop", "You need to enable JavaScript to run this app.", "empty shell"),
    ],
)
def test_an_answer_that_is_not_the_page_is_told(title: str, text: str, reason: str) -> None:
    told = why_broken(title, text, b"<html></html>", PAGE, BODY)
    assert told is not None
    assert reason in told


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("Terms", PAGE + "\nOne paragraph more."),
        ("Cookies", PAGE + "\nYour browser needs JavaScript, and we may verify that you are human."),
        ("Status", "All systems work. " * 40),
        ("Highway 404", "Highway 404 is closed for the winter. Please take another road. " * 3),
    ],
)
def test_a_page_that_says_something_is_not_broken(title: str, text: str) -> None:
    assert why_broken(title, text, b"<html></html>", PAGE, BODY) is None


CONCERT = "\n".join(f"Band {number} plays in the town hall, and everybody may come." for number in range(3))


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("404 Not Found", "Not Found\nThe requested URL was not found on this server."),
        ("Concert", "503 Service Unavailable\nNo server is available to handle this request."),
        ("Concert", "Error establishing a database connection"),
        ("Concert", "We'll be back soon\nThe site is down for maintenance."),
    ],
)
def test_an_error_in_the_place_of_a_short_page_is_told(title: str, text: str) -> None:
    told = why_broken(title, text, b"<html></html>", CONCERT, b"<html></html>")
    assert told == "The answer is an error page, though the server calls it good."


def test_a_page_that_is_still_there_may_speak_of_walls_and_errors() -> None:
    for more in ("We now use a captcha; please verify you are human.", "Sorry for the 503 service unavailable."):
        assert why_broken("Concert", f"{CONCERT}\n{more}", b"", CONCERT, b"") is None
    article = f"{PAGE[:700]}\nPlease verify you are a human. Enable JavaScript and cookies to continue."
    assert why_broken("How sites tell people from robots", article, b"") is None


def test_a_page_that_always_said_so_says_it_on_purpose() -> None:
    assert why_broken("", "503 service unavailable", b"", "504 gateway timeout", b"") is None
    assert why_broken("", "You have been blocked 5 times", b"", "You have been blocked 4 times", b"") is None


LOGIN = b"<form><input name=user><input name=word type='password'></form>"


def test_a_login_in_the_place_of_the_page_is_told() -> None:
    words = "Welcome to Example, the place for examples of all kinds and sizes. Sign in to go on. Forgot your password?"
    told = why_broken("Example", words, LOGIN, PAGE, BODY)
    assert told == "The site asks to log in instead of showing the page."
    assert why_broken("Example", words, b"<form></form>", PAGE, BODY) is None, "there is no login"
    assert why_broken("Example", words, LOGIN, PAGE, BODY + LOGIN) is None, "there always was one"
    assert why_broken("Example", PAGE, LOGIN, PAGE, BODY) is None, "the page is still there"
    assert why_broken("Example", words, LOGIN, "A few words.", BODY) is None, "there never was much"
    assert why_broken("Example", words, LOGIN) is None, "a new page may be a login"


def test_a_page_without_any_text_is_told_unless_it_never_had_any() -> None:
    for old in (None, "A few words."):
        told = why_broken("Example", "", b"<div id=app></div>", old)
        assert told is not None
        assert told.startswith("The page shows no text")
    assert why_broken("Example", "", b"<div id=app></div>", "") is None


def test_a_new_page_that_says_something_is_broken_only_if_it_is_a_wall() -> None:
    assert why_broken("Just a moment...", "Checking your browser", b"") is not None
    assert why_broken("404", "Not found", b"") is None


def test_a_page_that_breaks_off_in_the_middle_is_told() -> None:
    assert why_broken("Terms", PAGE[: len(PAGE) // 2], BODY[: len(BODY) // 2], PAGE, BODY) is not None
    shorter = PAGE[: len(PAGE) // 2]
    assert why_broken("Terms", shorter, f"<html>{shorter}</html>".encode(), PAGE, BODY) is None
