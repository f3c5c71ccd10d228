from __future__ import annotations

import pytest

from driftline.detection.diff.markup import MarkupChange, kinds, kinds_between, sentence
from driftline.durations import utc
from driftline.model.outcome import Version

TEXT = "<p>The same words.</p>"


def page(body: str = TEXT, head: str = "<title>A page</title>") -> str:
    return f"<!doctype html><html><head>{head}</head><body>{body}</body></html>"


def only(old: str, new: str) -> MarkupChange:
    (kind,) = kinds(old, new)
    return kind


def version(body: bytes, text: str = "words", **given: str) -> Version:
    known = {"url": "http://a.example/", "title": "", "content_type": "text/html", "charset": "utf-8"} | given
    return Version(
        number=1, at=utc(0.0), size=len(body), body=body, text=text.encode(),
        final_url=known.pop("final_url", known["url"]), **known,
    )  # fmt: skip


def test_equal_documents_differ_in_nothing() -> None:
    assert kinds(page(), page()) == []
    assert sentence([], same_text=True) == ""


@pytest.mark.parametrize(
    ("old", "new", "words", "example"),
    [
        ("<a href=/a>Terms</a>", "<a href=/b>Terms</a>", "1 link", "Terms: /a → /b"),
        ("<a href=/a>Terms</a>", "<a>Terms</a>", "1 link", "removed: Terms: /a"),
        ("<img src=a.png alt=Cat>", "<img src=b.png alt=Cat>", "1 image", "Cat: a.png → b.png"),
        ("<img src=a.png alt=Cat>", "<img src=a.png alt=Dog>", "1 image", "a.png: Cat → Dog"),
        ("", "<video><source src=a.mp4></video>", "1 video", "added: a.mp4"),
        ("<img src=a><iframe src=b></iframe>", "", "1 image and 1 frame", "removed: a"),
        ("<input placeholder=Name>", "<input placeholder=City>", "1 placeholder", "placeholder: Name → City"),
        ("<input type=text value=Go>", "<input type=text value=Send>", "1 value", "value: Go → Send"),
        ("<p title=One>x</p>", "<p>x</p>", "1 title", "title: One → none"),
        ("<div><b>words</b></div>", "<div><i>words</i></div>", "1 tag", "<b> → <i>"),
        ("<ul></ul>", "<ol></ol><ol></ol>", "2 tags", "<ul> → <ol> <ol>"),
        ("<script>a</script>", "<script>b</script>", "scripts, styles or invisible attributes", ""),
        ("<p class=a>x</p>", "<p class=b>x</p>", "scripts, styles or invisible attributes", ""),
    ],
)
def test_a_difference_besides_the_text_has_its_kind(old: str, new: str, words: str, example: str) -> None:
    kind = only(page(TEXT + old), page(TEXT + new))
    assert kind.words == words
    assert kind.examples == ((example,) if example else ()) or example in kind.examples


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("<title>A</title>", "<title>B</title>", "the title"),
        ("", "<META NAME=Description CONTENT='What it is'>", "the description"),
        ("<link rel=canonical href=/a>", "<link rel=canonical href=/b>", "the canonical address"),
        ("<meta name=robots content=all>", "<meta name=robots content=none>", "the rule for robots"),
        ("<title>A</title>", "<meta name=description content=x>", "the title and the description"),
    ],
)
def test_metadata_is_named(old: str, new: str, words: str) -> None:
    kind = only(page(head=old), page(head=new))
    assert (kind.name, kind.words) == ("metadata", words)


def test_a_link_of_which_only_the_words_changed_is_a_matter_of_the_text() -> None:
    assert kinds(page("<a href=/a>Terms</a>"), page("<a href=/a>Rules</a>")) == []


def test_new_text_brings_its_tags_along() -> None:
    assert kinds(page(TEXT), page(f"{TEXT}<p>More words.</p>")) == []


def test_an_example_of_a_long_text_shows_where_it_differs() -> None:
    start = "words that are the same in both and go on and on " * 5
    kind = only(*(page(head=f"<meta name=description content='{start}{end}'>") for end in ("old end", "new end")))
    assert "old end → …" in kind.examples[0]
    assert kind.examples[0].endswith("new end")


def test_only_a_few_examples_are_given() -> None:
    links = "".join(f"<a href=/{number}>{number}</a>" for number in range(40))
    kind = only(page(TEXT + links), page(TEXT + links.replace("href=/", "href=/new/")))
    assert kind.count == 40
    assert len(kind.examples) < 10


def test_the_kinds_are_listed_in_a_sentence() -> None:
    found = kinds(
        page(f"{TEXT}<a href=/a>A</a><a href=/b>B</a><img src=c>"),
        page(f"{TEXT}<a href=/x>A</a><a href=/y>B</a><img src=z>", head="<title>Another</title>"),
    )
    assert sentence(found, same_text=True) == "The text is the same; the title, 2 links and 1 image changed."
    assert sentence(found, same_text=False) == "Also changed: the title, 2 links and 1 image."


def test_versions_with_the_same_text_always_differ_in_some_kind() -> None:
    hidden = [f"<p>words</p><p hidden>{word}</p>".encode() for word in ("one", "two")]
    assert [kind.name for kind in kinds_between(*map(version, hidden))] == ["unseen"]
    spaced = (version(body, content_type="text/plain") for body in (b"words", b"words "))
    assert [kind.name for kind in kinds_between(*spaced)] == ["unseen"]
    assert kinds_between(version(b"words"), version(b"words")) == []


def test_words_that_are_not_read_are_not_called_code() -> None:
    old, new = (version(f"<p>words</p><aside>{word}</aside>".encode()) for word in ("one", "two"))
    found = sentence(kinds_between(old, new), same_text=True)
    assert found == "The text is the same; words that are hidden or left out by filters changed."
    styled = (version(f"<style>{word}</style><p>words</p>".encode()) for word in ("one", "two"))
    assert "invisible attributes" in sentence(kinds_between(*styled), same_text=True)
    marked = version(b"\xef\xbb\xbf<p>words</p>"), version(b"<p>words</p>")
    assert "the bytes it was sent as" in sentence(kinds_between(*marked), same_text=True)


def test_another_address_and_another_type_are_kinds_too() -> None:
    old = version(b"words", content_type="text/plain")
    new = version(b"words", final_url="http://b.example/")
    address, kind = kinds_between(old, new)
    assert address.examples == ("http://a.example/ → http://b.example/",)
    assert kind.examples == ("text/plain → text/html",)


def test_the_password_of_an_address_is_not_shown() -> None:
    long = "x" * 90  # so that the example begins amid the address
    old, new = (version(b"words", final_url=f"http://me:secret{long}@a.example/{to}") for to in ("1", "2"))
    assert [kind.examples for kind in kinds_between(old, new)] == [
        ("http://me:***@a.example/1 → http://me:***@a.example/2",)
    ]


def test_bodies_are_read_in_their_own_charset() -> None:
    old, new = (version(f"<title>{title}</title>".encode("latin-1"), charset="latin-1") for title in ("é", "è"))
    (kind,) = kinds_between(old, new)
    assert kind.examples == ("the title: é → è",)


def test_a_deeply_nested_page_is_compared_too() -> None:
    # to look at all that each of them holds would take many minutes
    deep = "<b title={}>" + "<b title=x>" * 20_000 + "<object data=x>" * 20_000 + "words " * 200_000
    (kind,) = kinds(deep.format("x"), deep.format("y"))
    assert kind.examples == ("title: x → y",)
