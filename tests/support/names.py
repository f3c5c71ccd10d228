"""The names of the package's modules and public types, and where its tests are."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import driftline

ROOT = Path(driftline.__file__).parent
TESTS = Path(__file__).parent.parent
MOST_MODULES = 230
_MIRRORED = ("unit", "integration")
#: tests of the package as a whole, which no single module owns
_OF_ALL = {"test_names.py"}


@cache
def modules() -> list[Path]:
    """Every module of the package; one that only makes a folder a package does not count."""
    return [path for path in sorted(ROOT.rglob("*.py")) if path.name != "__init__.py" or _defines(path)]


def _defines(path: Path) -> bool:
    return any(isinstance(node, ast.ClassDef | ast.FunctionDef) for node in ast.parse(path.read_text()).body)


def duplicate_modules() -> dict[str, list[str]]:
    """Names that more than one module, or more than one package, has."""
    files = [(path.stem, path) for path in modules() if path.name != "__init__.py"]
    folders = [(f"{path.parent.name}/", path.parent) for path in ROOT.rglob("__init__.py")]
    return _twice([*files, *folders])


@cache
def duplicate_types() -> dict[str, list[str]]:
    """Names that more than one public class or type alias has."""
    return _twice((name, path) for path in ROOT.rglob("*.py") for name in _types(ast.parse(path.read_text()).body))


def _types(body: Iterable[ast.stmt]) -> Iterator[str]:
    """Public classes and type aliases, also those that are only for annotations."""
    for node in body:
        if isinstance(node, ast.If):  # TYPE_CHECKING
            yield from _types([*node.body, *node.orelse])
        elif isinstance(node, ast.ClassDef):
            yield from _public(node.name)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield from _alias(node.targets[0].id)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield from _alias(node.target.id)


def _alias(name: str) -> Iterator[str]:
    """The name if it is written as types are; T is a parameter of a generic type wherever it is used."""
    if name[0].isupper() and not name.isupper() and not name.startswith("T_"):
        yield from _public(name)


def _public(name: str) -> Iterator[str]:
    if not name.startswith("_"):
        yield name


def _twice(named: Iterable[tuple[str, Path]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for name, path in named:
        found[name].append(str(path.relative_to(ROOT)))
    return {name: sorted(paths) for name, paths in found.items() if len(paths) > 1}


def stray_test_folders() -> list[str]:
    """Folders of tests that the package does not have."""
    folders = {path.parent.relative_to(TESTS / kind) for kind in _MIRRORED for path in _test_files(kind)}
    return sorted(str(folder) for folder in folders if not (ROOT / folder).is_dir())


def stray_test_files() -> list[str]:
    """Unit tests that are named after no module of their folder; a package that defines something goes by its name."""
    return sorted(
        str(path.relative_to(TESTS)) for path in _test_files("unit") if path.name not in _OF_ALL and not _owner(path)
    )


def _test_files(kind: str) -> Iterator[Path]:
    return (TESTS / kind).rglob("test_*.py")


def _owner(path: Path) -> bool:
    folder = ROOT / path.parent.relative_to(TESTS / "unit")
    known = {one.parent.name if one.name == "__init__.py" else one.stem for one in modules() if one.parent == folder}
    words = path.stem.removeprefix("test_").split("_")
    return any("_".join(words[:end]) in known for end in range(1, len(words) + 1))
