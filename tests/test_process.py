from __future__ import annotations

import os
import platform
import signal

import pytest

from geoframe.process import interrupts_later, keep_freed_memory, share_cores


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_glibc_agrees():
    assert keep_freed_memory()


def test_a_value_the_user_has_set_stays(monkeypatch):
    monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
    share_cores()
    assert os.environ["GOMP_SPINCOUNT"] == "1000"
    monkeypatch.setenv("GOMP_SPINCOUNT", "7")
    share_cores()
    assert os.environ["GOMP_SPINCOUNT"] == "7"


def test_other_libraries_are_left_alone(monkeypatch):
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    assert keep_freed_memory.__wrapped__() is False


@pytest.fixture
def heeded():
    """Python's own handler of Ctrl-C, whoever starts the tests: a shell's background job ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_is_heeded_after_the_work(heeded):
    done = []

    def work():
        with interrupts_later():
            signal.raise_signal(signal.SIGINT)
            done.append(True)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == [True]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
