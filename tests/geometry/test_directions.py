"""Directions are isotropic, of unit length, and depend on their key alone."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from geoframe.geometry.directions import stream_key, unit_direction, unit_directions


def test_unit_length() -> None:
    norms = unit_directions((3, 32, 32), 0, "a", 0, 8).double().flatten(1).norm(dim=1)
    np.testing.assert_allclose(norms, 1.0, atol=1e-7)


@given(start=st.integers(0, 20), size=st.integers(1, 9))
def test_a_direction_does_not_depend_on_its_block(start: int, size: int) -> None:
    block = unit_directions((2, 3, 3), 5, "image", start, start + size)
    for row in range(size):
        np.testing.assert_array_equal(block[row], unit_direction((2, 3, 3), 5, "image", start + row))


def test_every_part_of_the_key_counts() -> None:
    base = unit_direction((40,), 0, "a", 0)
    for other in (unit_direction((40,), 1, "a", 0), unit_direction((40,), 0, "b", 0), unit_direction((40,), 0, "a", 1)):
        assert abs(float(base @ other)) < 0.7
    assert stream_key("a", "bc") != stream_key("ab", "c")


def test_directions_are_the_same_everywhere_and_always() -> None:
    """Stored results refer to these draws: a change needs a new version of every probe that uses them."""
    found = unit_direction((4,), 0, "astronaut", 0)
    np.testing.assert_allclose(found, GOLDEN, rtol=2e-7)


def test_isotropy() -> None:
    draws = unit_directions((8,), 3, "x", 0, 20000).double().numpy()
    covariance = draws.T @ draws / len(draws)
    np.testing.assert_allclose(covariance, np.eye(8) / 8, atol=5 / 8 / np.sqrt(len(draws)) * 1.5)
    np.testing.assert_allclose(draws.mean(0), 0, atol=5 / np.sqrt(8 * len(draws)))


GOLDEN = np.array([0.298981071, 0.0797198266, 0.873480201, 0.375882238])
