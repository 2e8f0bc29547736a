from __future__ import annotations

import pytest

from geoframe.cli.values import bytes_of, numbers, shape_of
from geoframe.errors import BadInput


@pytest.mark.parametrize("text", ["3x32x16", "3,32,16", "3×32×16", "3, 32, 16"])
def test_shapes(text):
    assert shape_of(text, "--input-shape") == (3, 32, 16)


@pytest.mark.parametrize(("text", "value"), [("0.5", 0.5), ("1,2,3", (1.0, 2.0, 3.0))])
def test_numbers(text, value):
    assert numbers(text, "--mean") == value


@pytest.mark.parametrize(
    ("text", "size"), [("1048576", 2**20), ("512MB", 2**29), ("2GiB", 2**31), ("1.5g", 3 * 2**29), ("64 kB", 2**16)]
)
def test_sizes(text, size):
    assert bytes_of(text, "--memory") == size


@pytest.mark.parametrize("read", [shape_of, numbers, bytes_of])
def test_nothing_is_nothing(read):
    assert read(None, "--option") is None


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (shape_of, "3x32"),
        (shape_of, "axbxc"),
        (numbers, "1,,2"),
        (numbers, "one"),
        (bytes_of, "0"),
        (bytes_of, "10"),
        (bytes_of, "5TB"),
    ],
)
def test_what_cannot_be_read_names_the_option(read, text):
    with pytest.raises(BadInput, match=f"--option '{text}': give"):
        read(text, "--option")
