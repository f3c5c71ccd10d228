from __future__ import annotations

from driftline.detection.noise.edits import Features, score_of

FEW = Features(rewritten_sentence=0.0, new_sentence=0.0, links=0.0, noise=0.0)


def test_the_score_says_how_sure_it_is_that_a_change_is_wanted() -> None:
    entry, link = score_of(FEW), score_of(FEW._replace(links=1.0))
    sentence, paragraph = score_of(FEW._replace(rewritten_sentence=1.0)), score_of(FEW._replace(new_sentence=1.0))
    assert 0.5 < link < entry < sentence < paragraph < 1
    assert score_of(FEW._replace(noise=0.9)) < entry


def test_no_features_leave_the_range_of_important_changes() -> None:
    for part in (0.0, 0.5, 1.0):
        assert 0.5 < score_of(Features(0.0, 0.0, part, part)) <= score_of(Features(1.0, 1.0, 0.0, 0.0)) < 1
