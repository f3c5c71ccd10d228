"""Fit the weights of the score of important changes (`WEIGHTS` and `BIAS` in `driftline.detection.noise.edits`).

Usage: fit_score.py FOLDER…, each with labelled pages as `driftline lab detection` takes them: pairs.jsonl and pairs/,
or chains.jsonl and chains/. The rules decide which changes are important. Of these, a logistic regression tells the
wanted ones from false alarms, by a few features. It prints the weights, and for 5 folds by host how many wanted changes
have a higher score than all but so many false alarms: by the model, and by the number of words as before.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections import Counter
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from driftline.detection.examine import Side, weigh
from driftline.detection.extract.document import Extraction
from driftline.detection.noise.edits import Experience, Features, JudgedDocument, ReadOnce, features_of
from driftline.detection.noise.learning import learn
from driftline.model.change import Importance
from driftline.noise_memory import Memory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from driftline.detection.noise.edits import LineEdit

_HTML = "text/html"
_FOLDS, _PENALTY = 5, 5.0
_SHOWN = 8  # false alarms


class Step(NamedTuple):
    """Two versions of a page that follow each other, and whether the change is wanted, None if that is not known."""

    host: str
    number: int
    files: tuple[Path, Path]
    times: tuple[float, float]
    wanted: bool | None


class Sample(NamedTuple):
    """An important change."""

    host: str
    headline: str
    features: Features
    words: int
    wanted: bool


def _steps(folder: Path) -> Iterator[Step]:
    for row in _rows(folder / "pairs.jsonl"):
        files = folder / "pairs" / row["before"], folder / "pairs" / row["after"]
        times = _time(row["time_before"]), _time(row["time_after"])
        yield Step(row["host"], 1, files, times, row["label"] == "meaningful")
    for row in _rows(folder / "chains.jsonl"):
        for number, (old, new) in enumerate(pairwise(row["versions"]), start=1):
            files = folder / "chains" / old["file"], folder / "chains" / new["file"]
            wanted = None if new["label"] is None else new["label"] == "meaningful"
            yield Step(row["page"], number, files, (_time(old["time"]), _time(new["time"])), wanted)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    if path.exists():
        yield from map(json.loads, path.read_text(encoding="utf-8").splitlines())


def _time(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _samples(folder: Path) -> Iterator[Sample]:
    memory = Memory()
    for step in _steps(folder):
        if step.number == 1:
            memory = Memory()
        before, after = (path.read_bytes() for path in step.files)
        old, new = Extraction(before, _HTML), Extraction(after, _HTML)
        title, blocks = new.title(), new.blocks()
        sides = [Side(before, old.text(), step.times[0]), Side(after, "\n".join(blocks.lines), step.times[1], blocks)]
        if sides[0].text == sides[1].text:
            continue
        now = Experience(page=memory, check=step.number, at=step.times[1])
        judgement = weigh(sides[0], sides[1], title, _HTML, now)
        learn(memory, judgement, step.number, step.times[1])
        important = [edit for edit in judgement.edits if edit.noise is None]
        if judgement.importance is Importance.IMPORTANT and important and step.wanted is not None:
            read = JudgedDocument(text=sides[1].text, title=title, at=0.0, blocks=ReadOnce(new.blocks, blocks))
            words = sum(map(_words_of, important))
            yield Sample(step.host, judgement.headline, features_of(judgement.edits, read), words, step.wanted)


def _fit(values: NDArray[np.float64], wanted: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return bias and weights of a logistic regression, wanted changes and false alarms counting for the same."""
    columns = np.c_[np.ones(len(values)), values]
    penalty = np.eye(columns.shape[1]) * _PENALTY
    penalty[0, 0] = 1e-6
    counted = np.where(wanted == 1, weights, weights * (weights[wanted == 1].sum() / weights[wanted == 0].sum()))
    found = np.zeros(columns.shape[1])
    for _ in range(50):
        sure = 1 / (1 + np.exp(-columns @ found))
        slope = columns.T @ (counted * (sure - wanted)) + penalty @ found
        curve = (columns * (counted * sure * (1 - sure))[:, None]).T @ columns + penalty
        found -= np.linalg.solve(curve, slope)
    return found


def _above(scores: NDArray[np.float64], wanted: NDArray[np.float64]) -> list[int]:
    """Return how many wanted changes have a higher score than all false alarms, all but one, but two and so on."""
    alarms = np.sort(scores[wanted == 0])[::-1][:_SHOWN]
    return [int((scores[wanted == 1] > alarm).sum()) for alarm in alarms]


def main(folders: list[Path]) -> None:
    """Print the weights, and how well the score tells wanted changes from false alarms."""
    samples = {folder: list(_samples(folder)) for folder in folders}
    every = [sample for some in samples.values() for sample in some]
    values = np.array([sample.features for sample in every])
    wanted = np.array([sample.wanted for sample in every], np.float64)
    same = Counter((sample.host, sample.headline) for sample in every)
    weights = np.array([1 / same[sample.host, sample.headline] for sample in every])  # the same alarm counts once
    fold = np.array([zlib.crc32(sample.host.encode()) % _FOLDS for sample in every])
    scores = np.zeros(len(every))
    for number in range(_FOLDS):
        rest = fold != number
        found = _fit(values[rest], wanted[rest], weights[rest])
        scores[~rest] = np.c_[np.ones((~rest).sum()), values[~rest]] @ found
    bias, *found_weights = _fit(values, wanted, weights).round(2).tolist()
    print(f"BIAS = {bias}; WEIGHTS = {Features(*found_weights)}")
    of_folder = np.repeat(np.arange(len(folders)), [len(some) for some in samples.values()])
    words = np.array([sample.words for sample in every], np.float64)
    for number, folder in enumerate(folders):
        here = of_folder == number
        print(f"{folder}: {int(wanted[here].sum())} wanted, {int((1 - wanted[here]).sum())} false alarms")
        print("  wanted above all but 0, 1, 2, … false alarms, by the model:", _above(scores[here], wanted[here]))
        print("  the same by the number of words:                           ", _above(words[here], wanted[here]))


def _words_of(edit: LineEdit) -> int:
    """Return how many different words were added or removed."""
    before, after = (set(line.text.split()) if line else set[str]() for line in (edit.old, edit.new))
    return len(before ^ after)


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
