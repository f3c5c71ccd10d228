from __future__ import annotations

import pytest

from driftline.detection.extract.document import Extraction


def text_of(markup: str, *filters: tuple[str, str]) -> str:
    return Extraction(markup.encode(), "text/html", filters or None).text()


@pytest.mark.parametrize(
    "panel",
    [
        '<div role="tabpanel" hidden>{}</div>',
        '<section role="region" aria-labelledby="h" style="display: none">{}</section>',
        '<div class="js-accordion-target" hidden="true">{}</div>',
        '<div class="collapsible" style="display:none">{}</div>',
        '<div id="FAQ-3" hidden>{}</div>',
        '<div class="tab hide" style="display:none">{}</div>',
        '<p hidden="until-found">{}</p>',
        '<button aria-controls="a b" aria-expanded="false">More</button><div id="b" hidden>{}</div>',
        '<a href="#more">More</a><div id="more" style="display:none">{}</div>',
    ],
)
def test_what_a_reader_opens_is_read_as_if_it_were_open(panel: str) -> None:
    assert "Refunds take 14 days." in text_of(panel.format("Refunds take 14 days."))


@pytest.mark.parametrize(
    "part",
    [
        "<div hidden>{}</div>",
        '<div id="trace" style="display:none">{}</div>',
        '<div class="table datab tabular" hidden>{}</div>',
        '<section role="region" hidden>{}</section>',
        '<input aria-controls="found"><div id="found" hidden>{}</div>',
        '<a href="#">Top</a><div id="" hidden>{}</div>',
    ],
)
def test_hidden_text_that_cannot_be_opened_is_not_read(part: str) -> None:
    assert "a1b2c3" not in text_of(f"<p>seen</p>{part.format('a1b2c3')}")


def test_what_is_hidden_in_a_panel_stays_so() -> None:
    markup = '<div role="tabpanel" hidden><p>Read me.</p><p hidden>token 17</p></div>'
    assert text_of(markup) == "Read me."


OPENED = '<nav><a href="#more">More</a></nav><main><p>Seen</p><div id="more" hidden>Refunds take 14 days.</div></main>'


@pytest.mark.parametrize("filters", [("select", "css:main"), ("drop", "nav"), ("select", "xpath://main")])
def test_a_panel_is_read_though_a_filter_leaves_out_what_opens_it(filters: tuple[str, str]) -> None:
    assert text_of(OPENED, filters) == "Seen\nRefunds take 14 days."


@pytest.mark.parametrize("selector", ["#price", "xpath://*[@id='price']"])
@pytest.mark.parametrize(
    "part",
    [
        "<div id=price hidden>5 euros</div>",
        '<div id=price style="display:none">5 euros</div>',
        '<input id=price type=submit value="5 euros">',
        '<img id=price alt="5 euros">',
        '<script id=price type="application/json">5 euros</script>',
    ],
)
def test_a_selected_element_is_read_although_it_shows_no_text(part: str, selector: str) -> None:
    assert text_of(f"<p>A lamp</p>{part}", ("select", selector)) == "5 euros"
