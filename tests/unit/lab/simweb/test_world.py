"""The simulated web as pure numbers."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from driftline.errors import BadSetting
from driftline.lab.simweb.world import LARGEST_PAGE, World, lognormal, real_size
from support.properties import searched_briefly

SMALL = World(pages=300, hosts=7, size_mean=12_000, sizes="fixed", change_rate=0.1)

revisions = st.integers(min_value=0, max_value=40)
pages = st.integers(min_value=0, max_value=299)


def text_of(html: bytes, selector: str = "body") -> str:
    tree = LexborHTMLParser(html)
    for hidden in tree.css("script, style"):
        hidden.decompose()
    found = tree.css_first(selector)
    assert found is not None
    return " ".join(found.text(separator=" ").split())


def outside_of_main(html: bytes) -> bytes:
    start, _, rest = html.partition(b"<main>")
    _, _, end = rest.partition(b"</main>")
    return start + end


def test_equal_worlds_agree_on_the_truth_and_on_every_byte() -> None:
    one, two = World(**SMALL.fields()), World.from_fields(SMALL.fields())
    assert one.truth(5) == two.truth(5)
    assert [one.body(page, 3) for page in range(20)] == [two.body(page, 3) for page in range(20)]


def test_another_seed_makes_another_world() -> None:
    other = World.from_fields({**SMALL.fields(), "seed": 2})
    assert other.truth(1) != SMALL.truth(1)
    assert other.body(1, 0) != SMALL.body(1, 0)


def test_nothing_changed_before_the_first_generation() -> None:
    assert SMALL.truth(0) == frozenset()
    assert SMALL.revision(4, 0) == 0


def test_about_the_given_share_of_pages_changes() -> None:
    world = World(pages=20_000, change_rate=0.05)
    assert len(world.truth(1)) == pytest.approx(1000, rel=0.1)
    assert World(pages=50, change_rate=0).truth(1) == frozenset()
    assert World(pages=50, change_rate=1).truth(1) == frozenset(range(50))


@given(page=pages, generation=st.integers(min_value=1, max_value=12))
def test_the_revision_counts_the_generations_that_changed_the_page(page: int, generation: int) -> None:
    before, after = SMALL.revision(page, generation - 1), SMALL.revision(page, generation)
    assert after - before == SMALL.changes(page, generation)
    assert SMALL.changes(page, generation) == (SMALL.changed_at(page, generation) == generation)


def test_changes_between_generations_add_up_in_both_directions() -> None:
    expected = SMALL.truth(2) | SMALL.truth(3) | SMALL.truth(4)
    assert SMALL.changed_between(1, 4) == SMALL.changed_between(4, 1) == expected
    assert SMALL.changed_between(3, 3) == frozenset()


@given(page=pages, revision=revisions)
@searched_briefly
def test_title_and_heading_name_the_page(page: int, revision: int) -> None:
    html = SMALL.body(page, revision)
    name = f"Page {page} of host {SMALL.address(page % SMALL.hosts)}"
    assert text_of(html, "title") == text_of(html, "h1") == name
    assert f"<!-- {name} -->".encode() in html


@given(page=pages, revision=st.integers(min_value=1, max_value=40))
@searched_briefly
def test_a_revision_changes_visible_text_and_only_inside_main(page: int, revision: int) -> None:
    before, after = SMALL.body(page, revision - 1), SMALL.body(page, revision)
    assert text_of(before, "main") != text_of(after, "main")
    assert outside_of_main(before) == outside_of_main(after)


@given(page=pages, revision=st.sets(revisions, min_size=2, max_size=2))
@searched_briefly
def test_no_two_revisions_look_the_same(page: int, revision: set[int]) -> None:
    first, second = revision
    assert text_of(SMALL.body(page, first)) != text_of(SMALL.body(page, second))


def test_without_noise_every_answer_is_the_same() -> None:
    assert SMALL.body(3, 1) == SMALL.body(3, 1, generation=4, attempt=9)


def test_hidden_noise_changes_bytes_but_not_the_text() -> None:
    world = World.from_fields({**SMALL.fields(), "noise": "hidden"})
    first, second = world.body(3, 1, attempt=0), world.body(3, 1, attempt=1)
    assert first != second
    assert text_of(first) == text_of(second) == text_of(SMALL.body(3, 1))


def test_visible_noise_changes_only_the_footer_of_the_text() -> None:
    world = World.from_fields({**SMALL.fields(), "noise": "visible"})
    first, second = world.body(3, 1, attempt=0), world.body(3, 1, attempt=1)
    assert text_of(first, "footer") != text_of(second, "footer")
    assert text_of(first, "main") == text_of(second, "main")


@pytest.mark.parametrize(
    ("host", "address"),
    [(0, "127.1.0.1"), (42, "127.1.0.43"), (253, "127.1.0.254"), (254, "127.1.1.1"), (65_024, "127.2.0.1")],
)
def test_hosts_are_loopback_addresses(host: int, address: str) -> None:
    assert SMALL.address(host) == address


def test_a_url_names_the_host_and_the_page() -> None:
    assert World(pages=100, hosts=50).url(42, 8080) == "http://127.1.0.43:8080/p/00042"


def test_fixed_pages_are_all_about_the_mean() -> None:
    world = World(pages=50, sizes="fixed")
    assert all(abs(len(world.body(page, 0)) - 67_000) < 1000 for page in range(50))


def test_real_sizes_average_the_mean_and_spread_as_real_pages_do() -> None:
    world = World(pages=4000, size_mean=67_000)
    sizes = sorted(world.size(page) for page in range(world.pages))
    assert statistics.mean(sizes) == pytest.approx(67_000, rel=0.1)
    assert 0.4 < statistics.median(sizes) / statistics.mean(sizes) < 0.6
    assert sizes[-1] <= LARGEST_PAGE


def test_real_pages_follow_the_measured_quantiles() -> None:
    assert real_size(0.60) == pytest.approx(128_000)
    assert real_size(0.23) < real_size(0.3) < real_size(0.40)


def test_a_page_is_made_to_its_size() -> None:
    world = World(pages=200)
    for page in range(200):
        assert abs(len(world.body(page, 0)) - world.size(page)) < 1000 or world.size(page) < 6000


def test_lognormal_delays_have_the_given_mean() -> None:
    shares = [(step + 0.5) / 20_000 for step in range(20_000)]
    delays = [lognormal(mean=0.9, sigma=0.5, share=share) for share in shares]
    assert statistics.mean(delays) == pytest.approx(0.9, rel=0.01)
    assert statistics.median(delays) < 0.9


def test_delays_of_a_world_have_its_mean_and_repeat() -> None:
    world = World(pages=5000, latency=0.3, latency_shape="lognormal")
    delays = [world.delay(page, 2) for page in range(5000)]
    assert statistics.mean(delays) == pytest.approx(0.3, rel=0.05)
    assert delays == [world.delay(page, 2) for page in range(5000)]
    assert world.delay(1, 2) != world.delay(1, 3)


def test_other_shapes_of_latency_are_constant() -> None:
    assert World(latency=0.3).delay(1, 0) == 0
    assert World(latency=0.3, latency_shape="fixed").delay(1, 0) == 0.3


def test_the_given_share_of_pages_fails_in_all_ways() -> None:
    world = World(pages=10_000, error_rate=0.1)
    failures = [world.failure(page, 1) for page in range(world.pages)]
    assert sum(failure is not None for failure in failures) == pytest.approx(1000, rel=0.15)
    assert set(failures) == {None, "server_error", "not_found", "cut_short"}
    assert failures != [world.failure(page, 2) for page in range(world.pages)]


@pytest.mark.parametrize(
    "fields",
    [{"pages": 0}, {"change_rate": 2}, {"noise": "loud"}, {"latency": -1}, {"size_mean": 0}, {"colour": "red"}],
)
def test_a_world_that_cannot_be_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(BadSetting):
        World.from_fields(fields)
