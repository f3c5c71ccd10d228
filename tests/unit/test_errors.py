"""The exceptions: one root, and the tree drawn in `errors` is the real one."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import driftline
from driftline import errors

ROOT = Path(driftline.__file__).parent
BUILT_IN = {"Exception", "BaseException", "OSError", "RuntimeError", "ValueError", "LookupError", "KeyError"}
BRANCH = re.compile(r"^((?:[│ ] {3})*)(?:[├└]── )?([A-Z]\w+) {2,}\S")


def drawn() -> dict[str, str]:
    """Each exception of the drawing with the one that it stands under."""
    parents: dict[str, str] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        found = BRANCH.match(line)
        if found is None:
            continue
        depth = len(found[1]) // 4 + ("── " in line)
        path[depth:] = [found[2]]
        assert found[2] not in parents, f"{found[2]} is drawn twice"
        parents[found[2]] = path[depth - 1] if depth else "Exception"
    return parents


def defined() -> dict[str, str]:
    """Each exception of the package with its base, those left out that do not leave their modules."""
    bases: dict[str, str] = {}
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and len(node.bases) == 1 and isinstance(node.bases[0], ast.Name):
                bases[node.name] = node.bases[0].id
    return {name: base for name, base in bases.items() if not name.startswith("_") and is_exception(name, bases)}


def is_exception(name: str, bases: dict[str, str]) -> bool:
    while name in bases:
        name = bases[name]
    return name in BUILT_IN


def test_the_drawn_tree_is_the_real_one() -> None:
    assert drawn() == defined()


def test_all_exceptions_have_one_root() -> None:
    assert [name for name, base in defined().items() if base in BUILT_IN] == ["DriftlineError"]
