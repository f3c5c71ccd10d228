"""Comments divide no line: frameworks put them between the words of a sentence."""

from __future__ import annotations

import pytest

from driftline.detection.extract.document import Extraction

HTML = "text/html; charset=utf-8"


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("<p>Price: <!-- -->$<!-- -->90", "Price: $90"),
        ("<p>Price: <!--$-->$90<!--/$-->", "Price: $90"),
        ("<p><!----->90<!-----> €", "90 €"),
        ("<p>9<!-- > a tag <b> in it -->0", "90"),
        ("<p>9<!-- a\nb -->0", "90"),
        ("<p>a<!--[if IE]><p>for old browsers</p><![endif]-->b", "ab"),
        ("<p>a<!-->b-->c", "ab-->c"),
        ("<p>a<!--->b", "ab"),
        ("<p>a<!-- b --!>c", "ac"),
        ("<p>a<!-- never closed", "a"),
        ("<p>a <script>document.write('<!-- ')</script>b<p>c --> d", "a b\nc --> d"),
        ("<p>a <script><!--\nx()\n//--></script>b", "a b"),
        ("<p>a <style><!-- p {} --></style>b", "a b"),
        ("<p>a<!-- <script>x</script> -->b", "ab"),
        ("<p>9<!--[if IE]><script src=x></script><![endif]--> euros", "9 euros"),
        ("<p>one</p><!-- a <!-- b --><p>Price 5</p><p>more</p>", "one\nPrice 5\nmore"),
        ("<img alt='<!-- no alt'><p>one</p><!--<p>old</p>--><p>two</p>", "one\ntwo"),
        ("<p>a <<!-- x -->script>Price 5</p><p>more</p>", "a <script>Price 5\nmore"),
        ("<p>a<!--!> hidden text -->", "a"),
        ("<p><textarea>a <!-- b --> c</textarea>", "a <!-- b --> c"),
        ("<p><b>5</b><!-- x --><i>€</i>", "5€"),
        ("<p><b>5</b> <!-- x --> <i>€</i>", "5 €"),
        ("<p>Price: €1<wbr>,299", "Price: €1,299"),
        ("<div>a</div><!-- x --><div>b</div>", "a\nb"),
        ("<p>5 <span>€</span><!-- x --><b>now</b>", "5 €now"),
        ("<p>one<!-- --><p>two", "one\ntwo"),
        ("<p>a &lt;!-- b --&gt; c", "a <!-- b --> c"),
        ("<b>a</b><!-- x --> <i>b</i>", "a b"),
    ],
)
@pytest.mark.parametrize("filters", [None, [["drop", ".none"]], [["select", "body"]]])
def test_a_comment_divides_no_line(body: str, shown: str, filters: list[list[str]] | None) -> None:
    seen = Extraction(body.encode(), HTML, filters)
    assert seen.text() == shown


def test_a_trigger_and_an_ignored_text_match_across_comments() -> None:
    kept = Extraction(b"<p>only 3<!-- --> left<p>x<!-- -->y", HTML, [["ignore", "3 left"]])
    assert kept.text() == "xy"
