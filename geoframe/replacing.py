"""What a run is about to replace: the published results of another study file, or of other settings."""

from __future__ import annotations

from geoframe.plan import Plan
from geoframe.store import RunFolder


def replaced(folder: RunFolder, reference: str, plan: Plan) -> str:
    """Say in one line whose results a run replaces; "" where there are none, or all of them stay.

    Parameters
    ----------
    folder : RunFolder
    reference : str
        `FoundStudy.reference` of the study that is run.
    plan : Plan
    """
    before = folder.read()
    if before is None or not folder.results.exists():
        return ""
    study, whose = before["study"], ""
    if study["reference"] and reference and study["reference"] != reference:
        whose = f"of {study['reference']}"
    elif study["preset"] != plan.study.preset:
        whose = f"of preset {study['preset']}"
    elif (changes := study.get("changes", [])) != list(plan.study.changes):
        whose = f"with {_few(changes)}" if changes else "without these changes"
    elif not {cell["key"] for cell in before["plan"]} <= set(plan.unique()):
        whose = "of the study as it was before"
    if not whose:
        return ""
    return f"the results in {folder.path} are {whose}: this run replaces them (finished cells stay)"


def _few(changes: list[str]) -> str:
    more = f" and {len(changes) - 1} more" if len(changes) > 1 else ""
    return f"{changes[0]}{more}"
