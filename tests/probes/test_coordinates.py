"""What ray probes say about directions and images: indices, ids of both ends, units."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
import torch

import geoframe as gf
from geoframe.errors import BadInput
from geoframe.merge import merge
from geoframe.testing import CLASSES, SHAPE, tiny_encoder, tiny_images

BASIS = 192  # pixels of the tiny images
SUBSAMPLED = (
    gf.GIProbe(n_directions=5, step=1.0),
    gf.BoundsProbe(n_directions=5, step=1.0),
    gf.LinearityProbe(n_directions=5, step=1.0),
)


@pytest.fixture(scope="module")
def spectrum():
    return gf.measure(gf.JacobianProbe(), tiny_encoder(), tiny_images(1), device="cpu")["singular_value"]


@pytest.mark.parametrize("probe", SUBSAMPLED, ids=lambda probe: probe.label)
def test_a_direction_keeps_its_index_in_the_complete_basis(probe, spectrum):
    found = gf.measure(probe, tiny_encoder(), tiny_images(2), device="cpu")
    assert found["direction"].values.tolist() == [0, 48, 96, 143, 191]
    assert found["direction"].attrs["units"] == "1"
    assert "direction" not in found.data_vars
    value = found["singular_value"].isel(image=0)
    np.testing.assert_allclose(value.sel(direction=0), spectrum[0, 0])
    assert (value.sel(direction=slice(12, None)) == 0).all()  # there are 12 features


def test_probes_of_other_parts_of_the_basis_align():
    few, more = (
        gf.measure(gf.GIProbe(n_directions=n, step=1.0), tiny_encoder(), tiny_images(1), device="cpu")["gi"]
        for n in (2, 3)
    )
    assert (few - more).direction.values.tolist() == [0, BASIS - 1]
    assert ((few - more) == 0).all()


def test_random_directions_are_numbered_as_drawn():
    found = gf.measure(gf.GIProbe(along="random", n_directions=3, step=1.0), tiny_encoder(), tiny_images(1))
    assert found["direction"].values.tolist() == [0, 1, 2]


def test_cells_of_encoders_of_other_sizes_are_joined_by_it():
    flat = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 4), torch.nn.ReLU())
    small = gf.ModuleEncoder(flat, torch.nn.Linear(4, 3), input_shape=(1, 4, 4), name="small")
    tiny = tiny_encoder()
    images = tiny_images(2), gf.TensorSet(torch.rand(2, 1, 4, 4), name="four")
    probe = gf.GIProbe(n_directions=4, step=1.0)
    parts = {(0, 0): gf.measure(probe, tiny, images[0]), (1, 1): gf.measure(probe, small, images[1])}
    merged = merge(parts, (tiny, small), images)
    assert merged["direction"].values.tolist() == [0, 5, 10, 15, 64, 127, 191]
    for place, part in parts.items():
        cell = merged.isel(encoder=place[0], probeset=place[1])["gi"]
        np.testing.assert_array_equal(cell.sel(direction=part["direction"]), part["gi"])
        assert int(cell.notnull().sum()) == part["gi"].size


@attrs.frozen(kw_only=True)
class Odd(gf.Probe):
    """Declares an index that is another one for each image."""

    images_per_call = 1
    outputs = {"x": gf.Output(("k",)), "k": gf.Output(("k",), dtype="int64", shared=True)}

    def measure(self, encoder, batch):
        return {"x": torch.zeros(1, 2), "k": [0, int(batch.ids[0])]}


def test_an_index_that_differs_between_images_is_refused():
    with pytest.raises(BadInput, match=r"Odd.measure returned 'k' with other values for other images.*shared=True"):
        gf.measure(Odd(), tiny_encoder(), tiny_images(2))


def same_class_encoder() -> gf.ModuleEncoder:
    """One class everywhere, so that every ray is covered."""
    head = torch.nn.Linear(12, CLASSES)
    head.weight.data.zero_()
    head.bias.data = torch.tensor([1.0, 0.0, 0.0, 0.0])
    return attrs.evolve(tiny_encoder(), head=head)


def reference() -> gf.TensorSet:
    pixels = torch.rand(6, *SHAPE, generator=torch.Generator().manual_seed(9))
    return gf.TensorSet(pixels, labels=[0, 1, 0, 1, 0, 1], ids=[f"train-{i}" for i in range(6)], name="train")


@pytest.mark.parametrize(
    "probe",
    [
        gf.RayCoverageProbe(reference=reference(), n_reference=2, step=0.5),
        gf.TrajectoryProbe(reference=reference(), n_reference=2, points=3),
        gf.AlignmentProbe(vectors="difference", reference=reference(), n_reference=2),
        gf.TubeProbe(reference=reference(), rays=2, points=2, directions=2, step=1.0),
    ],
    ids=lambda probe: probe.label,
)
def test_both_ends_of_a_ray_can_be_looked_up(probe):
    images = tiny_images(3)
    found = gf.measure(probe, same_class_encoder(), images, device="cpu")
    assert "reference_id" in found.coords
    assert found["image_id"].values.tolist() == ["0", "1", "2"]
    assert found["label"].values.tolist() == [0, 1, 2]
    merged = merge({(0, 0): found}, (same_class_encoder(),), (images,)).isel(encoder=0, probeset=0)
    for ds in (found, merged):
        ids = ds["reference_id"][ds["reference"]].values
        assert all(name in ("train-0", "train-2", "train-4") for name in ids.ravel())
        assert ds["image_id"].values.tolist() == ["0", "1", "2"]
    if "test_image" in found:
        assert set(merged["image_id"][merged["test_image"]].values) <= {"0", "1", "2"}
    pixels = reference().load(SHAPE).image("train-2")
    np.testing.assert_array_equal(pixels, reference().x[2])


def test_an_unknown_id_is_one_line():
    with pytest.raises(gf.UnknownName, match=r"no image 'trian-2'; did you mean .*'train-2'"):
        reference().load(SHAPE).image("trian-2")


@pytest.mark.parametrize("probe", SUBSAMPLED, ids=lambda probe: probe.label)
def test_units_say_what_a_length_of_one_is(probe):
    units = {}
    for scale in ("diagonal", "unit"):
        changed = probe.evolve(scale=scale, n_directions=2)
        found = gf.measure(changed, tiny_encoder(), tiny_images(1), device="cpu")
        assert not any("scaled direction" in found[name].attrs["units"] for name in found.variables)
        units[scale] = found[next(name for name in ("gi", "alpha") if name in found)].attrs["units"]
        if "slope" in found:
            one = {"diagonal": "diagonal of the input box", "unit": "raw-pixel L2"}[scale]
            assert found["slope"].attrs["units"] == f"logit / {one}"
        if "distance_negative" in found:
            length = np.sqrt(BASIS) if scale == "diagonal" else 1.0
            negative = found["gi_negative" if "gi" in found else "alpha_negative"]
            np.testing.assert_allclose(found["distance_negative"], negative * length)
    assert units == {"diagonal": "diagonals of the input box", "unit": "raw-pixel L2"}


def test_units_of_a_gradient():
    found = gf.measure(gf.AlignmentProbe(), tiny_encoder(), tiny_images(1), device="cpu")
    assert found["length"].attrs["units"] == "nat / raw-pixel L2"
    assert not {"reference", "reference_id"} & set(found.variables)
