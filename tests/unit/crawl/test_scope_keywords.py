"""Keywords say which links come first."""

from __future__ import annotations

import pytest

from driftline.crawl.scope import Focus, keywords_of
from driftline.errors import BadSetting


def test_keywords_come_with_commas_or_one_by_one() -> None:
    """Each once, whatever their case."""
    assert keywords_of(["Privacy, cookies ", "privacy", " data   protection"]) == (
        "privacy", "cookies", "data protection",
    )  # fmt: skip
    assert keywords_of([]) == ()
    with pytest.raises(BadSetting):
        keywords_of([" , "])


def test_a_text_is_about_words_that_it_repeats() -> None:
    """From nothing to 1, the beginnings of words count, parts within others do not."""
    focus = Focus(["cookie"])
    assert focus.text("We bake bread.") == 0.0
    assert 0.0 < focus.text("A Cookie is small.") < focus.text("Cookies, cookies, cookies.")
    assert focus.text("cookie " * 50) == 1.0
    assert focus.text("supercookie") == 0.0


def test_a_link_counts_by_its_anchor_its_address_and_its_page() -> None:
    """The anchor most."""
    focus = Focus(["privacy"])
    url, other = "https://site.example/privacy-policy", "https://site.example/about"
    by_anchor, by_address, by_page = focus.link(other, "Privacy", 0), focus.link(url, "", 0), focus.link(other, "", 1.0)
    assert by_anchor > by_page > by_address > 0.0
    assert focus.link(url, "Privacy", 1.0) == pytest.approx(1.0)
    assert focus.link(other, "About", 0.0) == 0.0
