from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that geoframe takes for $GEOFRAME_DATA/weights; torch's and the hub's caches are empty too."""
    monkeypatch.setenv("GEOFRAME_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    folder = tmp_path / "data" / "weights"
    folder.mkdir(parents=True)
    return folder
