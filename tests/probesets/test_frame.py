from __future__ import annotations

import warnings

import attrs
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageFile
from torchvision import transforms

from geoframe.errors import BadInput
from geoframe.probeset import ProbeSet, Record
from geoframe.probesets.folder import ImageFolder
from geoframe.probesets.frame import cover, frame, resize_pixels, resized_size
from geoframe.probesets.photos import photo_file
from geoframe.probesets.pictures import open_picture


def noise(size, mode="RGB"):
    channels = len(Image.new(mode, (1, 1)).getbands())
    data = np.random.default_rng(0).integers(0, 256, size[0] * size[1] * channels, dtype=np.uint8)
    return Image.frombytes(mode, size, data.tobytes())


@pytest.mark.parametrize("name", ["rocket", "chelsea"])
def test_a_photo_is_framed_as_by_torchvisions_preset(name):
    image = open_picture(photo_file(name))
    preset = transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor()])
    assert torch.equal(frame(image, (3, 224, 224), name), preset(image))


@pytest.mark.parametrize("size", [(300, 257), (257, 300), (256, 256), (100, 40)])
def test_odd_sizes_are_framed_as_by_torchvision(size):
    preset = transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor()])
    assert torch.equal(frame(noise(size), (3, 224, 224), "x"), preset(noise(size)))


def test_an_image_of_the_inputs_size_is_taken_as_it_is():
    image = noise((28, 20))
    expected = torch.from_numpy(np.array(image)).permute(2, 0, 1) / 255
    assert torch.equal(frame(image, (3, 20, 28), "x"), expected)


@given(st.tuples(st.integers(1, 900), st.integers(1, 900)), st.tuples(st.integers(1, 300), st.integers(1, 300)))
def test_cover_is_the_smallest_size_that_holds_the_crop(size, target):
    height, width = cover(size, target)
    assert height >= target[0]
    assert width >= target[1]
    assert height == target[0] or width == target[1]


@given(st.tuples(st.integers(1, 900), st.integers(1, 900)), st.tuples(st.integers(1, 300), st.integers(1, 300)))
def test_the_crop_always_fits(size, target):
    height, width = resized_size(size, (3, *target))
    assert height >= target[0]
    assert width >= target[1]


def test_resizing_in_floats_agrees_with_pil_up_to_rounding():
    image = open_picture(photo_file("coffee"))
    pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1) / 255
    small = image.resize((300, 200), Image.Resampling.BILINEAR)
    expected = torch.from_numpy(np.array(small)).permute(2, 0, 1) / 255
    assert (resize_pixels(pixels, (200, 300)) - expected).abs().max() < 1.6 / 255


def test_grey_is_replicated_and_colour_turns_to_luma():
    grey = noise((8, 8), "L")
    plain = frame(grey, (1, 8, 8), "x")
    assert torch.equal(frame(grey, (3, 8, 8), "x"), plain.expand(3, 8, 8))
    red = Image.new("RGB", (8, 8), (255, 0, 0))
    assert torch.equal(frame(red, (1, 8, 8), "x"), torch.full((1, 8, 8), 76 / 255))
    assert torch.equal(frame(grey.convert("RGB"), (1, 8, 8), "x"), plain)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("mode", ["LA", "RGBA"])
def test_alpha_is_dropped_where_opaque_and_refused_where_not(mode, channels, tmp_path):
    image = noise((8, 8), mode)
    image.putalpha(255)
    assert torch.equal(frame(image, (channels, 8, 8), "x"), frame(image.convert(mode[:-1]), (channels, 8, 8), "x"))
    image.putpixel((3, 3), (*image.getpixel((3, 3))[:-1], 254))
    image.save(tmp_path / "clear.png")
    with pytest.raises(BadInput, match=r"clear\.png has transparent pixels.*flatten"):
        frame(open_picture(tmp_path / "clear.png"), (channels, 8, 8), "x")


@pytest.mark.parametrize("clear", [0, 200])
def test_a_palettes_transparent_colour_counts_only_where_it_is_used(clear, tmp_path):
    image = Image.new("P", (8, 8), 0)
    image.putpalette([i for n in range(256) for i in (n, 255 - n, 7)])
    image.save(tmp_path / "palette.png", transparency=clear)
    opened = open_picture(tmp_path / "palette.png")
    if clear == 0:
        with pytest.raises(BadInput, match="transparent"):
            frame(opened, (3, 8, 8), "x")
    else:
        pixels = frame(opened, (3, 8, 8), "x")
        assert torch.equal(pixels[:, 0, 0], torch.tensor([0.0, 1.0, 7 / 255]))


def test_cmyk_is_converted_as_pil_does(tmp_path):
    noise((8, 8), "CMYK").save(tmp_path / "print.jpg")
    image = open_picture(tmp_path / "print.jpg")
    assert image.mode == "CMYK"
    assert torch.equal(frame(image, (3, 8, 8), "x"), frame(image.convert("RGB"), (3, 8, 8), "x"))


def test_sixteen_bit_grey_is_refused(tmp_path):
    Image.fromarray(np.full((8, 8), 40000, dtype=np.uint16)).save(tmp_path / "deep.png")
    with pytest.raises(BadInput, match=r"deep\.png has 16 bits"):
        open_picture(tmp_path / "deep.png")
    with pytest.raises(BadInput, match="16 bits"):
        frame(Image.fromarray(np.full((8, 8), 40000, dtype=np.uint16)), (3, 8, 8), "x")


def test_sixteen_bit_colour_which_pil_would_cut_is_refused(tmp_path):
    import struct
    import zlib

    def chunk(tag, data):
        return struct.pack(">I", len(data)) + tag + data + struct.pack(">I", zlib.crc32(tag + data))

    header = struct.pack(">IIBBBBB", 4, 4, 16, 2, 0, 0, 0)
    body = zlib.compress((b"\0" + bytes(range(24))) * 4)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")
    (tmp_path / "deep.png").write_bytes(png)
    with pytest.raises(BadInput, match=r"deep\.png has 16 bits"):
        open_picture(tmp_path / "deep.png")
    with Image.open(tmp_path / "deep.png") as image:
        assert image.mode == "RGB"
        with pytest.raises(BadInput, match=r"deep\.png has 16 bits"):
            frame(image, (3, 4, 4), "x")


@pytest.mark.parametrize("mode", ["I", "F"])
def test_other_depths_are_refused(mode):
    with pytest.raises(BadInput, match=f"mode {mode}"):
        frame(Image.new(mode, (8, 8)), (3, 8, 8), "x")


def test_orientation_in_exif_is_ignored(tmp_path):
    image, exif = noise((16, 8)), Image.Exif()
    exif[0x0112] = 6
    image.save(tmp_path / "turned.png", exif=exif)
    assert torch.equal(frame(open_picture(tmp_path / "turned.png"), (3, 8, 16), "x"), frame(image, (3, 8, 16), "x"))


@pytest.mark.parametrize("suffix", ["jpg", "png"])
def test_a_truncated_file_is_named_whatever_pil_is_set_to(suffix, picture, monkeypatch):
    path = picture(f"cut.{suffix}", size=(64, 64))
    path.write_bytes(path.read_bytes()[:-2000])
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    with pytest.raises(BadInput, match=rf"cut\.{suffix}: .*truncated"):
        open_picture(path)
    with Image.open(path) as image, pytest.raises(BadInput, match=rf"cut\.{suffix}: .*truncated"):
        frame(image, (3, 8, 8), "x")
    assert ImageFile.LOAD_TRUNCATED_IMAGES is True


def test_a_file_that_is_no_image_is_named(tmp_path):
    (tmp_path / "text.jpg").write_text("hello")
    with pytest.raises(BadInput, match=r"text\.jpg: it is no image"):
        open_picture(tmp_path / "text.jpg")
    with pytest.raises(BadInput, match=r"none\.jpg: .*No such file"):
        open_picture(tmp_path / "none.jpg")


@pytest.mark.parametrize("limit", [200, 100])
def test_a_decompression_bomb_is_an_error_and_no_warning(limit, picture, monkeypatch):
    path = picture("bomb.png", size=(16, 16))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
    with warnings.catch_warnings(record=True) as seen, pytest.raises(BadInput, match=r"bomb\.png.*decompression bomb"):
        open_picture(path)
    assert not seen


def test_pictures_have_one_or_three_channels():
    with pytest.raises(BadInput, match="the encoder takes 4"):
        frame(noise((8, 8)), (4, 8, 8), "x")


@pytest.mark.parametrize(
    ("pixels", "message"),
    [
        (torch.zeros(3, 4, 4), r"'x' has shape \(3, 4, 4\), but the encoder takes \(3, 8, 8\)"),
        (torch.zeros(3, 8, 8, dtype=torch.uint8), "divided by 255"),
        (torch.full((3, 8, 8), float("nan")), "NaN"),
        (torch.full((3, 8, 8), -0.1), "values from -0.1"),
        (torch.full((3, 8, 8), 255.0), "to 255"),
        ("photo.png", "is a str"),
    ],
)
def test_bad_records_are_refused(pixels, message):
    with pytest.raises(BadInput, match=message):
        frame(pixels, (3, 8, 8), "x")


@attrs.frozen(kw_only=True)
class Listed(ProbeSet):
    items: tuple = ()

    def records(self):
        return iter(self.items)


def test_a_set_is_loaded_in_order():
    items = (Record("b", 1, noise((8, 8))), Record("a", 2, torch.rand(3, 8, 8, dtype=torch.float64)))
    images = Listed(items=items).load((3, 8, 8))
    assert (images.ids, images.labels, len(images)) == (("b", "a"), (1, 2), 2)
    assert images.pixels.dtype == torch.float32
    assert images.pixels.shape == (2, 3, 8, 8)
    assert torch.equal(images.pixels[1], items[1].image.float())


def test_equal_ids_and_empty_sets_are_refused():
    record = Record("a", 0, noise((8, 8)))
    with pytest.raises(BadInput, match="'listed' holds two images with the id 'a'"):
        Listed(items=(record, record)).load((3, 8, 8))
    with pytest.raises(BadInput, match="'listed' holds no image"):
        Listed().load((3, 8, 8))


def test_a_file_name_of_unknown_encoding_is_refused(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    Image.new("RGB", (8, 8)).save(folder / "a.png")
    try:
        (folder / "a.png").rename(folder / "caf\udce9.png")
    except OSError:
        pytest.skip("this file system takes UTF-8 only")
    with pytest.raises(BadInput, match=r"the name 'caf\\udce9.png' isn't valid UTF-8: rename that file"):
        ImageFolder(folder).load((3, 4, 4))
