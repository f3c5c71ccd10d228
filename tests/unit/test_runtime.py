from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from driftline.runtime import SWITCH_INTERVAL, MemoryTrimmer, at_full_speed, command_name


def test_the_last_of_several_runs_puts_the_interpreter_back_whatever_the_order() -> None:
    before = sys.getswitchinterval(), gc.get_threshold()
    first, second = ExitStack(), ExitStack()
    first.enter_context(at_full_speed())
    second.enter_context(at_full_speed())
    during = sys.getswitchinterval(), gc.get_threshold()
    assert during[0] == pytest.approx(SWITCH_INTERVAL)
    assert during[1][0] > before[1][0]
    first.close()
    assert (sys.getswitchinterval(), gc.get_threshold()) == during
    second.close()
    assert (sys.getswitchinterval(), gc.get_threshold()) == before


def test_a_run_that_fails_puts_the_interpreter_back() -> None:
    before = sys.getswitchinterval(), gc.get_threshold()
    with pytest.raises(ZeroDivisionError), at_full_speed():
        raise ZeroDivisionError
    assert (sys.getswitchinterval(), gc.get_threshold()) == before


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="only glibc is set up")
def test_what_is_as_large_as_a_page_is_never_kept_once_it_is_freed() -> None:
    """By itself malloc takes a block from its heap once a larger one was freed."""
    program = """if True:
        import ctypes
        from driftline.runtime import limit_free_memory

        class Info(ctypes.Structure):
            _fields_ = [(f"field{number}", ctypes.c_size_t) for number in range(10)]

        mallinfo = ctypes.CDLL(None).mallinfo2
        mallinfo.restype = Info
        limit_free_memory()
        some = bytes(8_000_000)
        del some
        outside = mallinfo().field3
        some = bytes(4_000_000)
        print(mallinfo().field3 - outside)
    """
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout == "1\n", "the number of blocks outside of the heap"


def test_free_memory_is_given_back_now_and_then() -> None:
    times = iter((0.0, 14.9, 15.0, 15.1, 16.0, 30.1, 30.1))
    trimmer = MemoryTrimmer(ticks=lambda: next(times))
    try:
        assert [trimmer.trim() for _ in range(4)] == [False, True, False, True]
    finally:
        gc.unfreeze()


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a virtual environment whose command is being run."""
    program = tmp_path / "check out" / ".venv" / "bin" / "driftline"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(program)])
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path / "check out"


def test_the_command_is_named_by_its_path_if_the_shell_would_not_find_it(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(checkout)
    assert command_name() == ".venv/bin/driftline"
    monkeypatch.chdir(Path(__file__).parent)
    assert command_name() == f"'{checkout}/.venv/bin/driftline'"


def test_the_command_is_driftline_if_the_shell_finds_it(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(checkout / ".venv" / "bin"))
    assert command_name() == "driftline"


def test_the_command_is_driftline_in_a_program_that_uses_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["my_program.py"])
    assert command_name() == "driftline"
