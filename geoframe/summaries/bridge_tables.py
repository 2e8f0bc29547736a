"""The tables of the bridge study."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from geoframe.summaries.tables import NONE, number, percent

if TYPE_CHECKING:
    import xarray as xr

Rows = tuple[list[str], list[list[str]]]


def tables(label: str, ds: xr.Dataset) -> list[tuple[str, list[str], list[list[str]]]]:
    """Return title, headers and rows of all tables; those with nothing in them are left out, but for the first."""
    parts = {
        "": question(ds),
        "beyond local geometry, and controls": related(
            ds, {"q25 | tr G, q₀, ‖x‖": "q25, given tr G, q₀, ‖x‖", "η_J": "η_J", "q25, permuted": "q25, permuted"}
        ),
        "other distances": related(ds, {"b": "b (best attack)", "tube": "tube, mid-ray"}),
        "peaks": peaks(ds),
        "networks": networks(ds),
        "distances with each other": pairs(ds),
        "between checkpoints": between(ds),
    }
    return [(f"{label}, {t}" if t else label, *part) for t, part in parts.items() if part[1] or not t]


def question(ds: xr.Dataset) -> Rows:
    """η* with q25, by itself and given η_J, and the verdict."""
    headers = ["networks", "η* of", "peaks", "ρ(η*, q25) (n)", "ceiling", "given η_J", "beyond η_J?"]
    rows = [
        [
            *names(cell),
            f"{int(cell['peaks'])}/{int(cell['images'])}",
            rho(cell.sel(relation="q25"), counted=True),
            number(cell["ceiling"], 2),
            rho(cell.sel(relation="q25 | η_J")),
            str(cell["verdict"].item()),
        ]
        for cell in cells(ds)
    ]
    return headers, rows


def related(ds: xr.Dataset, columns: dict[str, str]) -> Rows:
    """ρ of η* with what the columns say, and n; columns and rows without any are left out."""
    measured = {k: text for k, text in columns.items() if bool(ds["rho_n"].sel(relation=k).any())}
    found = [(names(cell), [rho(cell.sel(relation=k), counted=True) for k in measured]) for cell in cells(ds)]
    rows = [[*who, *values] for who, values in found if set(values) - {NONE}]
    return ["networks", "η* of", *(f"with {text} (n)" for text in measured.values())], rows


def peaks(ds: xr.Dataset) -> Rows:
    """How many images have a peak, where it is, how reliable, and what is held there."""
    headers = ["networks", "η* of", "images", "peaks", "at the end", "absent", "median η*", "reliability", "kept (%)"]
    rows = [
        [
            *names(cell),
            *(str(int(cell[name])) for name in ("images", "peaks", "at_end", "absent")),
            number(cell["peak_median"]),
            number(cell["peak_reliability"], 2),
            percent(cell["kept_median"], 3),
        ]
        for cell in cells(ds)
    ]
    return headers, rows


def networks(ds: xr.Dataset) -> Rows:
    """What the networks of each state are like."""
    headers = ["networks", "fit (%)", "test (%)", "q25", "at cap", "reliability", "b", "none found", "q25/half-space"]
    rows = []
    for state in ds["state"].values:
        cell = ds.sel(state=state)
        missing = NONE if np.isnan(float(cell["b_missing"])) else str(int(cell["b_missing"]))
        rows.append(
            [
                str(state),
                *(percent(cell[f"{name}_accuracy"], 3) for name in ("train", "test")),
                number(cell["q25_median"]),
                str(int(cell["q25_censored"])),
                number(cell["q25_reliability"], 2),
                number(cell["b_median"]),
                missing,
                number(cell["half_space"], 2),
            ]
        )
    return headers, rows


def pairs(ds: xr.Dataset) -> Rows:
    """ρ of distances with each other, and n; columns and rows without any are left out."""
    known = [p for p in ds["pair"].values if bool(ds["pair_rho_n"].sel(pair=p).any())]
    found = [
        (str(state), [rho(ds.sel(state=state, pair=pair), "pair_rho", counted=True) for pair in known])
        for state in ds["state"].values
    ]
    rows = [[state, *values] for state, values in found if set(values) - {NONE}]
    return ["networks", *(f"{pair} (n)" for pair in map(str, known))], rows


def between(ds: xr.Dataset) -> Rows:
    """ρ of the medians of networks."""
    rows = [
        [str(o), str(int(ds["between_rho_n"].sel(output=o))), rho(ds.sel(output=o), "between_rho")]
        for o in ds["output"].values
    ]
    return ["η* of", "networks", "ρ(median η*, median q25)"], rows


def cells(ds: xr.Dataset) -> Iterator[xr.Dataset]:
    """Yield each state and output."""
    for state in ds["state"].values:
        for output in ds["output"].values:
            yield ds.sel(state=state, output=output)


def names(cell: xr.Dataset) -> list[str]:
    """State and output."""
    return [str(cell[name].item()) for name in ("state", "output")]


def rho(cell: xr.Dataset, name: str = "rho", counted: bool = False) -> str:
    """Write a correlation with its interval, and the number of images where asked for."""
    value, low, high = (float(cell[f"{name}{end}"]) for end in ("", "_low", "_high"))
    if not np.isfinite(value):
        return NONE
    text = f"{value:.2f}" if not np.isfinite([low, high]).all() else f"{value:.2f} {_between(low, high)}"
    return f"{text} ({int(cell[f'{name}_n'])})" if counted else text


def _between(low: float, high: float) -> str:
    return f"[{low:.2f}, {high:.2f}]"
