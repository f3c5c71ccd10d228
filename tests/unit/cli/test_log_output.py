"""The log on standard error: `-v`, `-vv` and `--log-format`."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from driftline.cli.log_output import LogFormat, restored_log, set_up_log
from driftline.cli.output import complain, say

LOG = logging.getLogger("driftline.somewhere")


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    with restored_log():
        yield


def log_all() -> None:
    LOG.debug("a step")
    LOG.info("host %s paused", "a.example", extra={"host": "a.example", "seconds": 30.0})
    LOG.error("it broke at http://me:sesame@a.example/\n")


@pytest.mark.parametrize(
    ("verbosity", "levels"), [(0, ["error"]), (1, ["info", "error"]), (5, ["debug", "info", "error"])]
)
@pytest.mark.parametrize("log_format", ["text", "json"])
def test_each_v_shows_more(
    verbosity: int, levels: list[str], log_format: LogFormat, capsys: pytest.CaptureFixture[str]
) -> None:
    set_up_log(verbosity, log_format)
    log_all()
    lines = capsys.readouterr().err.splitlines()
    assert [json.loads(line)["level"] if log_format == "json" else line.split()[1] for line in lines] == levels


def test_a_json_line_has_the_fields_of_the_record(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_log(1, "json")
    log_all()
    found = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert found[0].pop("time").endswith("Z")
    assert found[0] == {
        "level": "info", "logger": "driftline.somewhere", "message": "host a.example paused", "host": "a.example",
        "seconds": 30.0,
    }  # fmt: skip


def test_a_line_of_text_has_them_too(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_log(1, "text")
    log_all()
    first = capsys.readouterr().err.splitlines()[0]
    assert first.endswith(" info    driftline.somewhere: host a.example paused host='a.example' seconds=30.0")


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_no_password_and_no_control_character_is_logged(
    log_format: LogFormat, capsys: pytest.CaptureFixture[str]
) -> None:
    set_up_log(0, log_format)
    LOG.error("http://me:sesame@a.example/ \x1b[31m said", extra={"url": "http://me:sesame@b.example/"})
    said = capsys.readouterr().err
    assert "sesame" not in said
    assert "\x1b" not in said


def test_an_exception_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_log(0, "json")
    try:
        1 / 0  # noqa: B018 it raises
    except ZeroDivisionError:
        LOG.exception("it broke")
    (line,) = capsys.readouterr().err.splitlines()
    assert "ZeroDivisionError" in json.loads(line)["exception"]


def test_with_json_everything_on_standard_error_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_log(0, "json")
    say("Waiting for ", ("a.example", "red"), to_stderr=True)
    complain("It does not work.")
    say("The result.")
    captured = capsys.readouterr()
    found = [json.loads(line) for line in captured.err.splitlines()]
    assert [(one["level"], one["message"]) for one in found] == [
        ("info", "Waiting for a.example"), ("error", "It does not work."),
    ]  # fmt: skip
    assert captured.out == "The result.\n"
