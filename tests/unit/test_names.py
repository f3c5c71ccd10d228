"""Names that a newcomer can rely on: every module and public type has its own, and each test is beside its module."""

from __future__ import annotations

from support.names import (
    MOST_MODULES,
    ROOT,
    duplicate_modules,
    duplicate_types,
    modules,
    stray_test_files,
    stray_test_folders,
)

BAD_NAMES = {
    "ahead", "asked", "claims", "common", "fleeting", "helpers", "impostors", "manners", "misc", "noticing", "saying",
    "util", "utils", "villains",
}  # fmt: skip


def test_no_two_modules_share_a_name() -> None:
    assert duplicate_modules() == {}


def test_no_two_public_classes_or_type_aliases_share_a_name() -> None:
    assert duplicate_types() == {}


def test_modules_are_few_and_named_for_what_they_hold() -> None:
    assert len(modules()) < MOST_MODULES
    assert not BAD_NAMES & {path.stem for path in modules()}


def test_the_folders_of_tests_are_those_of_the_package() -> None:
    assert stray_test_folders() == []


def test_a_unit_test_is_named_after_its_module() -> None:
    """`test_<module>.py` or `test_<module>_<topic>.py`, in the folder of that module."""
    assert stray_test_files() == []


def test_a_package_that_defines_something_counts_as_a_module() -> None:
    packages = {path.parent.name for path in modules() if path.name == "__init__.py"}
    assert ROOT.name in packages
    assert "detection" not in packages
