"""What commands take for the id of a change."""

from __future__ import annotations

import pytest

from driftline.cli.options import is_change_id
from driftline.model.change import change_id, check_of


@pytest.mark.parametrize("text", ["12-5", " 12-5 ", "1-1", change_id(7, 300)])
def test_the_id_of_a_change_is_recognised(text: str) -> None:
    assert is_change_id(text)
    assert change_id(*check_of(text.strip())) == text.strip()


@pytest.mark.parametrize("text", ["", "-", "12-", "-5", "12", "12-5-1", "1_2-5", "+1-5", "a-5", "site1-2", "12 - 5"])
def test_what_is_not_the_id_of_a_change_may_be_an_address(text: str) -> None:
    assert not is_change_id(text)
    with pytest.raises(ValueError, match="not the name of a check"):
        check_of(text)
