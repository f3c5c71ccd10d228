from __future__ import annotations

import pytest

from driftline.detection.extract.document import refuse_deep
from driftline.errors import UnreadableBody


@pytest.mark.parametrize(
    "markup",
    [
        "<div>" * 20_000,
        "<div>" * 20_000 + "x" + "</div>" * 20_000,
        "</div>" * 20_000 + "<DIV class=a>" * 20_000,
        "<b><a href='x'>" * 10_000,
        "<p>words</p>" * 50_000 + "<span>" * 20_000,
    ],
)
def test_tags_nested_deeper_than_in_any_page_are_refused(markup: str) -> None:
    for given in (markup, markup.encode()):
        with pytest.raises(UnreadableBody, match="nested more than 10,000 tags deep"):
            refuse_deep(given)


@pytest.mark.parametrize(
    "markup",
    [
        "<div>" * 5_000 + "</div>" * 5_000,
        "<div><b>words</b></div>" * 30_000,
        "<table>" + "<tr><td>cell<td>cell" * 30_000,
        "<ul>" + "<li>word<br>" * 30_000,
        "<svg>" + "<path d='M0 0'/>" * 30_000 + "</svg>",
        "<img src=x>" * 30_000,
        "a < b and c <d " * 1_000,
    ],
)
def test_a_long_page_is_not_a_deep_one(markup: str) -> None:
    for page in (markup, markup.encode()):
        try:
            refuse_deep(page)
        except UnreadableBody as error:
            pytest.fail(str(error))
