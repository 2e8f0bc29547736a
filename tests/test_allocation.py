from __future__ import annotations

import platform

import pytest

from geoframe.allocation import keep_freed_memory


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_glibc_agrees():
    assert keep_freed_memory()


def test_other_libraries_are_left_alone(monkeypatch):
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    assert keep_freed_memory.__wrapped__() is False
