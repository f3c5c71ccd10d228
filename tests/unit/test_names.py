"""Names that a newcomer can rely on: every module and every public class has a name of its own."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import driftline

ROOT = Path(driftline.__file__).parent
MOST_MODULES = 230
BAD_NAMES = {
    "ahead", "asked", "claims", "common", "fleeting", "helpers", "impostors", "manners", "misc", "noticing", "saying",
    "util", "utils", "villains",
}  # fmt: skip


def modules() -> list[Path]:
    """Every module of the package; those that only make a folder a package do not count."""
    return [path for path in ROOT.rglob("*.py") if path.name != "__init__.py"]


def twice(names: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: sorted(found) for name, found in names.items() if len(found) > 1}


def test_no_two_modules_share_a_name() -> None:
    names: dict[str, list[str]] = defaultdict(list)
    for path in modules():
        names[path.stem].append(str(path.relative_to(ROOT)))
    for folder in (path.parent for path in ROOT.rglob("__init__.py")):
        names[f"{folder.name}/"].append(str(folder.relative_to(ROOT)))
    print(f"{len(modules())} modules, {len(twice(names))} duplicate names")
    assert not twice(names)


def test_no_two_public_classes_share_a_name() -> None:
    names: dict[str, list[str]] = defaultdict(list)
    for path in ROOT.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                names[node.name].append(str(path.relative_to(ROOT)))
    print(f"{len(names)} public classes, {len(twice(names))} duplicate names")
    assert not twice(names)


def test_modules_are_few_and_named_for_what_they_hold() -> None:
    assert len(modules()) < MOST_MODULES
    assert not BAD_NAMES & {path.stem for path in modules()}
