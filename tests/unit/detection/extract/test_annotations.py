from __future__ import annotations

import pytest
from selectolax.lexbor import LexborHTMLParser

from driftline.detection.extract.annotations import attributes_of, is_note, note_of, set_notes, without_notes
from driftline.detection.extract.document import Extraction
from driftline.detection.extract.filters import check_filters
from driftline.errors import BadFilter
from driftline.model.page import Also, FilterKind


def lines(markup: str, also: str = "all", **more: str) -> list[str]:
    filters = check_filters([(FilterKind.ALSO, also), *more.items()])
    return Extraction(markup.encode(), "text/html; charset=utf-8", filters).text().split("\n")


def test_a_note_stands_after_its_line_which_reads_as_it_does_without() -> None:
    markup = "<p>See the <a href=/terms>terms</a> for more.</p><p>And <b>so</b> on.</p>"
    assert lines(markup, "links") == ["See the terms for more.", "[link] terms → /terms", "And so on."]
    plain = Extraction(markup.encode(), "text/html").text()
    assert without_notes("\n".join(lines(markup, "links"))) == plain


@pytest.mark.parametrize(
    ("also", "markup", "found"),
    [
        ("links", "<a href=https://a.example/x?id=4>File</a>", ["File", "[link] File → a.example/x?id=4"]),
        ("links", "<a href=/x><img src=y alt=Home></a>", ["[link] Home → /x"]),
        ("links", "<p>One <a href='#top'>Top</a><a href='javascript:go()'>Go</a></p>", ["One Top Go"]),
        ("media", "<img src=/q3.png alt='Third quarter'>", ["[image] Third quarter → /q3.png"]),
        ("media", "<video><source src=/a.mp4></video>", ["[video] → /a.mp4"]),
        ("media", "<img src=data:image/gif;base64,R0 data-src=/real.jpg>", ["[image] → /real.jpg"]),
        ("media", "<img src=/spacer.gif srcset='/s.jpg 1x, /l.jpg 2x'>", ["[image] → /s.jpg"]),
        ("media", "<iframe src=https://www.youtube.com/embed/abc></iframe>", ["[frame] → /embed/abc"]),
        ("media", "<p>x</p><iframe src=https://c.example/consent></iframe><img src=/p width=1>", ["x"]),
        ("attributes", "<input placeholder='Your name'>", ["[placeholder] Your name"]),
        ("attributes", "<input value=Ann><input type=hidden value=secret>", ["[value] Ann"]),
        ("attributes", "<abbr title='World Wide Web'>WWW</abbr>", ["WWW", "[title] World Wide Web"]),
        ("attributes", "<button aria-label=Close></button><button aria-label=Go>On</button>", ["[label] Close", "On"]),
        ("attributes", "<img src=x alt=Cat>", ["[alt] Cat"]),
        ("metadata", "<title>T</title><meta name=robots content=x>", ["[the title] T", "[the rule for robots] x"]),
        ("links", "<p hidden>Old <a href=/x>x</a></p><p>y</p>", ["y"]),
    ],
)  # fmt: skip
def test_an_annotation_is_a_line_among_the_text(also: str, markup: str, found: list[str]) -> None:
    assert lines(markup, also) == found


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<a href='http://a.example/x'>x</a>", "<a href='https://a.example/x?utm_source=mail&fbclid=12'>x</a>"),
        ("<a href='/x;jsessionid=1A?a=1'>x</a>", "<a href='/x;jsessionid=2B?a=1&sid=77#there'>x</a>"),
        ("<a href='/f.pdf?Expires=1&Signature=a'>x</a>", "<a href='/f.pdf?Expires=2&Signature=b'>x</a>"),
        ("<a href='/f?h=AT1dSzp1deO0SxwKwcdrRWqRNvmx'>x</a>", "<a href='/f?h=AT2bWMrjOwri-RLX2xEsJTZ7N1P'>x</a>"),
        (
            "<a href='/f?st=2026-01-02T03:04:05Z&rev=1a2b3c4d'>x</a>",
            "<a href='/f?st=2026-01-03T03:04Z&rev=9f8e7d6c'>x</a>",
        ),
        ("<a href='/f?oe=66A1B2C3&session=9a8b7c6d5e'>x</a>", "<a href='/f?oe=66A1B9D3&session=1f2e3d4c5b'>x</a>"),
        ("<a href='/f?at=1783773973646'>x</a>", "<a href='/f?at=1783773985406'>x</a>"),
        ("<a href='/cdn-cgi/l/email-protection#1'>x</a>", "<a href='/cdn-cgi/l/email-protection#2'>x</a>"),
        ("<img src='https://img1.example.com/a.png?v=1'>", "<img src='//img2.example.com/a.png?v=2&w=640'>"),
        ("<img src=/photo-300x200.jpg>", "<img src=/photo-1024x768.jpg>"),
        ("<img src=/app/1.0.21/icon.png>", "<img src=/app/1.0.22/icon.png>"),
        ("<img src=https://ad.doubleclick.net/one>", "<img src=https://ad.doubleclick.net/two>"),
        ("<img src=data:image/gif;base64,AA>", "<img src=data:image/gif;base64,BB>"),
        ("<input type=hidden value=a><p nonce=1>x</p>", "<input type=hidden value=b><p nonce=2>x</p>"),
    ],
)
def test_what_changes_by_itself_in_an_address_is_not_written_down(old: str, new: str) -> None:
    assert lines(old) == lines(new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<a href=/price-1.pdf>x</a>", "<a href=/price-2.pdf>x</a>"),
        ("<a href=/watch?v=abc>x</a>", "<a href=/watch?v=abd>x</a>"),
        ("<a href=/get?id=1BxiMVs0XRA5nFMdKvBdBZjgm>x</a>", "<a href=/get?id=9CyjNWt1YSB6oGNeLwCeCAkhn>x</a>"),
        ("<a href=//a.example/x>x</a>", "<a href=//b.example/x>x</a>"),
        ("<a href=/doc?rev=7>x</a>", "<a href=/doc?rev=8>x</a>"),
        ("<a href=/law?state=CA>x</a>", "<a href=/law?state=NY>x</a>"),
        ("<a href=/show?policy=refunds>x</a>", "<a href=/show?policy=returns-of-2026>x</a>"),
        ("<a href=/f?st=3>x</a>", "<a href=/f?st=4>x</a>"),
        ("<a href=/talks?session=morning>x</a>", "<a href=/talks?session=evening>x</a>"),
        ("<a href=/watch?v=dQw4w9WgXcQ>x</a>", "<a href=/watch?v=9bZkp7q19f0>x</a>"),
        ("<iframe src=//youtube.com/watch?v=abc></iframe>", "<iframe src=//youtube.com/watch?v=abd></iframe>"),
        ("<iframe src=//a.example/maps?q=Oslo></iframe>", "<iframe src=//a.example/maps?q=Rome></iframe>"),
        ("<img src=/a.png>", "<img src=/b.png>"),
        ("<img src=/image?id=1>", "<img src=/image?id=2>"),
    ],
)
def test_a_link_to_another_address_is_another_note(old: str, new: str) -> None:
    assert lines(old) != lines(new)


def test_filters_work_on_notes_as_on_text() -> None:
    markup = "<title>T</title><nav><a href=/n>Home</a></nav><main><p>Get <a href=/f>it</a> here, all of it.</p></main>"
    assert lines(markup, "links,metadata", select="main") == [
        "[the title] T",
        "Get it here, all of it.",
        "[link] it → /f",
    ]
    assert lines(markup, "links,metadata", ignore="[link]") == ["[the title] T", "Home", "Get it here, all of it."]


def test_the_structure_is_a_line_that_counts_the_tags() -> None:
    markup = "<script>x</script><main><p>one <b>two</b></p><p><a href=/x>three</a></p></main>"
    assert lines(markup, "structure")[0] == "[the structure] b 1, body 1, main 1, p 2"
    assert lines(markup, "structure")[1:] == ["one two", "three"]


def test_a_page_cannot_pass_off_marks_as_its_own() -> None:
    markup = "<p>a\x86[link] x → /y\x87b</p><img src=/z alt='\x80q\x87'>"
    assert lines(markup, "media") == ["a[link] x → /yb", "[image] q → /z"]


def test_lines_are_distinguished_from_notes() -> None:
    note = note_of("[link] A → B → /x")
    assert note is not None
    assert (note.kind, note.label, note.value) == (Also.LINKS, "A → B", "/x")
    assert not any(map(is_note, ("[link]", "[other] x → /y", "link → /x", "", "[video] Minister resigns")))


@pytest.mark.parametrize("tag", ["b title=x", "b aria-label=x", "object data=x", "a href=/x><object data=x"])
def test_elements_that_stand_in_each_other_by_the_thousands_are_read(tag: str) -> None:
    # to look at all that each of them holds would take many minutes
    tree = LexborHTMLParser(f"<body>{f'<{tag}>' * 20_000}{'words ' * 200_000}")
    assert all(said == "x" for _, _, said in attributes_of(tree))
    set_notes(tree, ["links", "media"])


def test_a_title_that_repeats_the_text_of_its_element_is_no_note() -> None:
    assert lines("<b title='one  two'> one <i>two</i> </b>", "attributes") == ["one two"]
    assert lines("<b title='one two'>one two three</b>", "attributes") == ["one two three", "[title] one two"]


def test_what_can_count_is_named_if_something_else_is_given() -> None:
    assert check_filters([("also", "media, links")]) == [("also", "links"), ("also", "media")]
    with pytest.raises(
        BadFilter, match=r"There is no 'also colours': use links, media, attributes, metadata, structure or all"
    ):
        check_filters([("also", "links,colours")])
