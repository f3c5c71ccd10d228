"""The public names of the package: exactly those that it lists, and every type that they accept or return."""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import sys
from collections.abc import Iterator
from importlib import import_module
from types import FunctionType
from typing import ForwardRef

import pydantic
import pytest

import driftline

MOST_METHODS = 19
INTERNAL = {(driftline.Stop, "listen"), (driftline.Stop, "unlisten")}  # for threads of a run that wait for the request
CLASSES = [one for name in driftline.__all__ if inspect.isclass(one := getattr(driftline, name))]
FUNCTIONS = [one for name in driftline.__all__ if inspect.isfunction(one := getattr(driftline, name))]


def annotations_of(public: type) -> Iterator[str]:
    """Yield the annotations of the fields, public methods and properties of a class."""
    yield from map(text_of, inspect.get_annotations(public).values())
    for name, member in vars(public).items():
        function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        if inspect.isfunction(function) and not name.startswith("_") and (public, name) not in INTERNAL:
            yield from map(text_of, function.__annotations__.values())


def text_of(annotation: object) -> str:
    return annotation.__forward_arg__ if isinstance(annotation, ForwardRef) else str(annotation)


def imported_by(module: str) -> dict[str, tuple[str, str]]:
    """Return where the names of a module come from, also those that are imported for annotations only."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    found = {node.name: (module, node.name) for node in tree.body if isinstance(node, ast.ClassDef)}
    for alias in tree.body:  # such as Policy = Literal[…]
        if isinstance(alias, ast.Assign) and isinstance(alias.targets[0], ast.Name):
            found[alias.targets[0].id] = (module, alias.targets[0].id)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("driftline"):
            found |= {one.asname or one.name: (node.module, one.name) for one in node.names}
    return found


def types_of(module: str, annotations: Iterator[str]) -> set[str]:
    """Return the types of the package that these annotations name."""
    origins = imported_by(module)
    names = {node.id for text in annotations for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    return {origins[name][1] for name in names if name in origins}


def test_every_listed_name_can_be_had() -> None:
    for name in driftline.__all__:
        assert getattr(driftline, name) is not None


def test_they_are_offered_by_completion() -> None:
    """Although they are imported on first use."""
    assert set(driftline.__all__) <= set(dir(driftline))


def test_help_shows_them() -> None:
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        help(driftline)
    for name in ("class Driftline", "class PageHistory", "open(", "load_settings(", "driftline.open("):
        assert name in shown.getvalue()


@pytest.mark.parametrize("public", CLASSES, ids=lambda one: one.__name__)
def test_every_type_that_a_public_class_names_is_public(public: type) -> None:
    own = () if issubclass(public, pydantic.BaseModel) else annotations_of(public)  # its fields are plain values
    assert types_of(public.__module__, iter(own)) - set(driftline.__all__) == set()


@pytest.mark.parametrize("public", FUNCTIONS, ids=lambda one: one.__name__)
def test_every_type_that_a_public_function_names_is_public(public: FunctionType) -> None:
    annotations = map(text_of, public.__annotations__.values())
    assert types_of(public.__module__, annotations) - set(driftline.__all__) == set()


@pytest.mark.parametrize("public", CLASSES, ids=lambda one: one.__name__)
def test_every_public_class_and_method_says_what_it_does(public: type) -> None:
    assert inspect.getdoc(public)
    for name, member in vars(public).items():
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)):
            assert inspect.getdoc(member), f"{public.__name__}.{name}"


def test_the_main_class_has_few_public_members(tmp_path_factory: pytest.TempPathFactory) -> None:
    with driftline.open(tmp_path_factory.mktemp("few") / "pages.db") as pages:
        public = [name for name in dir(pages) if not name.startswith("_")]
    print(f"{len(public)} public methods and groups: {', '.join(public)}")
    assert len(public) <= MOST_METHODS


def test_the_command_and_the_library_are_one_version() -> None:
    assert driftline.__version__ == import_module("driftline.version").__version__
