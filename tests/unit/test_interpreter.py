from __future__ import annotations

import gc
import sys
from contextlib import ExitStack

import pytest

from driftline.interpreter import TURN, at_full_speed


def test_the_last_of_several_runs_puts_the_interpreter_back_whatever_the_order() -> None:
    before = sys.getswitchinterval(), gc.get_threshold()
    first, second = ExitStack(), ExitStack()
    first.enter_context(at_full_speed())
    second.enter_context(at_full_speed())
    during = sys.getswitchinterval(), gc.get_threshold()
    assert during[0] == pytest.approx(TURN)
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
