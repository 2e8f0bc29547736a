from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache of this test's own."""
    monkeypatch.setenv("GEOFRAME_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Go on in another cache, and come back."""
    count = iter(range(100))

    def move(name: str | None = None) -> None:
        monkeypatch.setenv("GEOFRAME_CACHE", str(tmp_path / (name or f"cache-{next(count)}")))

    return move
