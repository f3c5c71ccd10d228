"""The table of hostile servers: their pages are checked together, and none may disturb the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from driftline.lab.acts import edited, page
from driftline.lab.hostile import TIMES, Stage, certificates, measure, outcome_of
from driftline.lab.local import open_local
from driftline.lab.villains import ORDINARY, VILLAINS, Villain
from driftline.model import Outcome, Page


@dataclass
class Checked:
    """What the last check of each villain's page came to, and where its page stands."""

    outcomes: dict[str, tuple[str, str]]
    pages: dict[str, Page]
    requests: dict[str, int]


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checked]:
    """A run over those that are to take too long, one over all others, and one over those to be checked twice.

    Only the first has short times, for how fast the others answer depends on the machine, whose servers are here.
    """
    with ExitStack() as stack:
        made = stack.enter_context(certificates())
        if made.authority is None:
            pytest.skip("there is no openssl command to make certificates with")
        stages = {one.name: stack.enter_context(Stage(one, made)) for one in (ORDINARY, *VILLAINS)}
        store = str(tmp_path_factory.mktemp("hostile") / "pages.db")
        found: dict[str, tuple[str, str]] = {}

        def told(outcomes: Sequence[Outcome]) -> None:
            found.update((one.document.link.url, outcome_of(one)) for one in outcomes)

        late = [stages[one.name].url for one in VILLAINS if one.ends == "timed-out"]
        with open_local(store, ca_file=made.authority, **TIMES) as watch_list:
            watch_list.add(*[stage.url for stage in stages.values()])
            watch_list.check(*late, told=told)
        with open_local(store, ca_file=made.authority, worker_deadline=TIMES["worker_deadline"]) as watch_list:
            watch_list.check(*[stage.url for stage in stages.values() if stage.url not in late], told=told)
            watch_list.check(*[stages[one.name].url for one in VILLAINS if one.checks == 2], told=told)
            pages = {page.url: page for page in watch_list.pages()}
        yield Checked(
            outcomes={name: found[stage.url] for name, stage in stages.items()},
            pages={name: pages[stage.url] for name, stage in stages.items()},
            requests={name: len(stage.requests) for name, stage in stages.items()},
        )


@pytest.mark.parametrize("villain", [pytest.param(one, id=one.name) for one in (ORDINARY, *VILLAINS)])
def test_it_costs_one_check_that_says_what_was_wrong(checked: Checked, villain: Villain) -> None:
    outcome, reason = checked.outcomes[villain.name]
    assert outcome in villain.ends.split("|"), reason
    assert villain.says in reason
    standing = checked.pages[villain.name]
    assert standing.checks == villain.checks
    if outcome in ("new", "changed"):
        assert (reason, standing.versions) == ("", villain.checks)
    else:
        assert standing.versions == villain.checks - 1, "what failed is never kept as a version"
        assert reason[0].isupper()
        assert reason.endswith(".")
        assert "\n" not in reason
        assert "Driftline itself" not in reason


def test_no_server_is_asked_again_and_again(checked: Checked) -> None:
    assert max(checked.requests.values()) <= 11, "ten redirects are followed"


def test_a_row_that_breaks_its_bounds_or_ends_otherwise_does_not_hold() -> None:
    large = Villain(name="large", act=edited(body=lambda n: b"<p>" + b"word " * 1_000_000), ends="new", mb=1)
    late = Villain(name="late", act=page(body=b"<p>words"), ends="new", seconds=0.0)
    other = Villain(name="other", act=page(body=b"<p>words"), ends="too-large")
    ordinary, *rows = measure([large, late, other])
    assert ordinary.holds
    assert [row.holds for row in rows] == [False] * 3
    assert rows[0].peak_mb > ordinary.peak_mb + 5, "what a page takes shows in the figure"
