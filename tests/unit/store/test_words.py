from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.errors import UsageError
from driftline.store.words import Term, count_words, letters_of, lines_of, parse, tokens_of, unified_text
from support.properties import searched

texts = st.text() | st.text(st.sampled_from("ab é*\"()^:-+{}\\'´ß½⒈ﷺ退が가ไـ x\u0301\u0308 "))


def words(text: str) -> list[str]:
    return [token.word for token in tokens_of(unified_text(text))]


def shown(query: str) -> list[str]:
    """The terms of a query, each as it could be written again."""
    return [" ".join(term.words) + ("*" if term.is_prefix else "") for term in parse(query)]


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("refund policy", ["refund", "policy"]),
        ('"refund policy" days', ["refund policy", "days"]),
        ('"refund policy', ["refund policy"]),
        ("refund*", ["refund*"]),
        ('"our refu*"', ["our refu*"]),
        ("refund *", ["refund"]),
        ("opt-out", ["opt out"]),
        ("1,299.00", ["1 299 00"]),
        ("don't", ["don t"]),
        ("a OR b AND NOT c NEAR(d)", ["a", "or", "b", "and", "not", "c", "near d"]),
        ("title:x ^y -z", ["title x", "y", "z"]),
        ("refund Refund REFUND", ["refund"]),
        ("退款政策", ["退 款 政 策"]),
        ("50 % & more", ["50", "more"]),
    ],
)  # fmt: skip
def test_a_query_is_words_phrases_and_beginnings(query: str, terms: list[str]) -> None:
    assert shown(query) == terms


@pytest.mark.parametrize("query", ["", "   ", '""', "*", "% & -", '"', "\x00", "\udcff", "…", "_"])
def test_a_query_without_a_word_is_refused_with_a_sentence(query: str) -> None:
    with pytest.raises(UsageError, match=r"no word to search for.*\.$"):
        parse(query)


def test_a_query_of_very_many_words_is_refused_with_a_sentence() -> None:
    with pytest.raises(UsageError, match=r"at most 50 words\.$"):
        parse(" ".join(f"word{number}" for number in range(51)))


@searched
@given(texts)
def test_any_query_is_parsed_or_refused(query: str) -> None:
    try:
        terms = parse(query)
    except UsageError:
        return
    assert all(all(term.words) for term in terms)


@searched
@given(texts)
def test_a_word_has_no_character_that_means_something_to_a_database(text: str) -> None:
    for word in words(text):
        assert all(character.isalnum() or not character.isascii() for character in word)


@searched
@given(texts)
def test_words_are_counted_as_they_are_found(text: str) -> None:
    lines = unified_text(text).split("\n")
    counts = count_words(lines)
    assert counts.total() == sum(len(tokens_of(line)) for line in lines)
    assert set(counts) == {token.word for line in lines for token in tokens_of(line)}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Rückgabe", "RUCKGABE"),
        ("Straße", "STRASSE"),
        ("café", "cafe\u0301"),
        ("İstanbul", "istanbul"),
        ("Ещё", "ЕЩЕ"),
        ("Αθήνα", "ΑΘΗΝΑ"),
        ("ᾳ", "α"),
        ("ﬁnal", "final"),
        ("Ｆｕｌｌ", "full"),
        ("Daten\u00adschutz", "Datenschutz"),
        ("كِتَاب", "كتاب"),
        ("שָׁלוֹם", "שלום"),
        ("か\u3099", "が"),
    ],
)
def test_case_and_accents_do_not_matter(one: str, other: str) -> None:
    assert words(one) == words(other)


@pytest.mark.parametrize(("one", "other"), [("が", "か"), ("パリ", "ハリ"), ("हिन्दी", "हन्दा"), ("12", "21")])
def test_what_makes_another_word_matters(one: str, other: str) -> None:
    assert words(one) != words(other)


def test_a_word_of_an_indian_script_stays_whole() -> None:
    assert len(words("हिन्दी में")) == 2


def test_a_term_is_found_where_it_stands() -> None:
    line = "Our Refund-Policy: refunds within 14 days."
    tokens = tokens_of(line)
    found = {
        query: [line[start:end] for start, end in parse(query)[0].places(tokens)]
        for query in ("refund", "refund*", '"refund policy"', '"within 1*"', "14", '"policy refund"')
    }
    assert found == {
        "refund": ["Refund"],
        "refund*": ["Refund", "refunds"],
        '"refund policy"': ["Refund-Policy"],
        '"within 1*"': ["within 14"],
        "14": ["14"],
        '"policy refund"': [],
    }


@searched
@given(texts, st.data())
def test_a_quick_look_passes_over_no_line_that_has_the_term(text: str, data: st.DataObject) -> None:
    for line in unified_text(text).split("\n"):
        tokens = tokens_of(line)
        if tokens:
            start = data.draw(st.integers(0, len(tokens) - 1))
            end = data.draw(st.integers(start + 1, len(tokens)))
            term = Term(words=tuple(token.word for token in tokens[start:end]))
            assert term.places(tokens)
            assert term.may_stand_in(letters_of(line))


def test_a_quick_look_knows_drawn_out_letters_signs_and_words_that_are_too_long() -> None:
    for line in ("Acme™ policy", "مـــرحبا بكم", f"a {'x' * 100} b", "Daten\u00adschutz – Straße"):
        term = Term(words=tuple(token.word for token in tokens_of(line)))
        assert term.may_stand_in(letters_of(line))
    assert not Term(words=("refund",)).may_stand_in(letters_of("Nothing of the kind"))


def test_an_overlong_word_is_compared_by_its_beginning() -> None:
    assert Term(words=("x" * 64,)).places(tokens_of("x" * 1_000)) == [(0, 1_000)]


def test_bytes_that_are_no_text_are_read_all_the_same() -> None:
    assert lines_of(b"one\xff\ntwo") == ["one\ufffd", "two"]
