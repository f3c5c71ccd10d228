from __future__ import annotations

import pytest

from driftline.detection.noise.rules import Wording

FEES = Wording({"fee": r"\bfees?\b.*\bwaived\b", "gratuit": r"\bgratuite?s?\b"})


@pytest.mark.parametrize("text", ["All fees are waived.", "ALL FEES ARE WAIVED", "Livraison Gratuite"])
def test_a_wording_occurs_in_a_text_whatever_its_case(text: str) -> None:
    assert FEES.occurs_in(text)


@pytest.mark.parametrize("text", ["", "Nothing of the kind", "Waived are the coffees", "The fees are due"])
def test_a_single_word_of_a_wording_does_not_match(text: str) -> None:
    assert not FEES.occurs_in(text)
