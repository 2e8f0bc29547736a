"""run.json: the plan, where it was computed, and a log of cells. The only place where times and paths may be."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from geoframe.files import write_json
from geoframe.loading import FoundStudy
from geoframe.plan import Cell, Plan
from geoframe.provenance import machine, versions
from geoframe.store import FORMAT, RunFolder


class RunLog:
    """Writes run.json, whole each time; the log of earlier runs in the same folder is kept."""

    def __init__(self, folder: RunFolder) -> None:
        self._path = folder.run_json
        before = folder.read() or {}
        self._data: dict[str, Any] = {"log": before.get("log", [])}

    def begin(self, found: FoundStudy, plan: Plan, set: Sequence[str]) -> None:
        """Write what is about to be run."""
        study = plan.study
        self._data = {
            "format": FORMAT,
            "study": {
                "name": study.name,
                "title": study.title,
                "reference": found.reference,
                "preset": study.preset,
                "set": list(set),
                "changes": list(study.changes),
            },
            "plan": plan.to_json(),
            "provenance": {
                "versions": versions(),
                **machine(),
                "git_commit": found.commit,
            },
            "log": self._data["log"],
        }
        write_json(self._path, self._data)

    def ended(self, cell: Cell, seconds: float, cause: str = "") -> None:
        """Log a finished or failed cell."""
        self._append({"cell": cell.key, "label": cell.label, "status": "failed" if cause else "done",
                      "seconds": round(seconds, 3), **({"cause": cause} if cause else {})})  # fmt: skip

    def interrupted(self) -> None:
        """Log that the run was stopped."""
        self._append({"status": "interrupted"})

    def _append(self, entry: dict[str, Any]) -> None:
        self._data["log"].append({**entry, "at": datetime.now(UTC).isoformat(timespec="seconds")})
        write_json(self._path, self._data)
