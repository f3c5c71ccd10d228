from __future__ import annotations

import pytest

from driftline.detection.extract.regions import region_of_element
from driftline.model.change import Region


@pytest.mark.parametrize(
    ("name", "region"),
    [
        ("site-footer", Region.FOOTER),
        ("footnotes", None),
        ("barefoot", None),
        ("mainNav", Region.NAVIGATION),
        ("navy", None),
        ("MegaMenu open", Region.NAVIGATION),
        ("recently-viewed", Region.ASIDE),
        ("decent-text", None),
        ("col-12 ads", Region.ADVERTISEMENT),
        ("roads heads", None),
        ("cookiebar footer", Region.CONSENT),
        ("footer cookiebar", Region.FOOTER),
        ("livechat-box", Region.DIALOG),
        ("chateau", None),
        ("side-bar", Region.ASIDE),
        ("overlay dark", Region.DIALOG),
        ("card id-LinkOverlay", None),
        ("no-header wide", None),
        ("has-footer site-nav", Region.NAVIGATION),
        ("newsticker", None),
        ("stock-ticker", Region.ASIDE),
    ],
)
def test_a_name_gives_the_region_by_its_first_known_word(name: str, region: Region | None) -> None:
    assert region_of_element("div", {"class": name}) is region


def test_the_start_of_an_endless_name_is_enough() -> None:
    assert region_of_element("div", {"class": f"footer {'x' * 100_000}"}) is Region.FOOTER
    assert region_of_element("div", {"class": f"{'x' * 100_000} footer"}) is None
