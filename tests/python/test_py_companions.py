# SPDX-License-Identifier: Apache-2.0
"""Masks and boxes beside an image: masks have to have its geometry, and boxes that do not follow
the pixels give a warning."""

import re
import warnings

import pytest
from cli_tools import good
from py_tools import encoded, need_penstock, pixels

penstock = need_penstock()
pytest.importorskip("numpy")

BOXES = "field '%s' looks like boxes .* while the pipeline crops, resizes or flips '%s'"


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    """Two images, a mask, and numbers that may be boxes."""
    path = tmp_path_factory.mktemp("packs") / "a.pen"
    schema = {"image": "image", "other": "image", "mask": "mask", "label": "i64",
              "BBoxes": "f32[2,4]", "box_kind": "i64", "corners": "f32[4]"}
    with penstock.Writer(path, schema) as writer:
        for i in range(8):
            picture = encoded(pixels(i, 60, 50))
            writer.add(image=picture, other=picture, mask=encoded(pixels(i, 60, 50).convert("L")),
                       label=i, BBoxes=[[0, 0, 1, 1], [0, 0, 2, 2]], box_kind=i,
                       corners=[1, 2, 3, 4])
    return penstock.open(path)


def load(pack, pipeline):
    return penstock.Loader(pack, 4, pipeline=pipeline, output="numpy", threads=1, memory="64MiB")


SAME = [
    ("random_crop 32 | hflip", "random_crop 32 | hflip"),
    ("random_crop 32 padding=4 fill=9 | hflip", "random_crop 32 padding=4 fill=255 | hflip"),
    ("resize 40,44 lanczos", "resize 40,44"),
    ("random_resized_crop 24 bicubic | vflip", "random_resized_crop 24 nearest | vflip"),
    ("random_crop 32 | color_jitter 0.4 | hflip | random_erasing", "random_crop 32 | hflip"),
    ("random_crop 32 | hflip", "random_crop 32 | hflip | resize 16,16"),
    ("center_crop 32,32", "center_crop 32"),
]


@pytest.mark.parametrize("image, mask", SAME)
def test_a_mask_with_the_geometry_of_its_image(pack, image, mask):
    with load(pack, {"image": f"decode | {image}", "mask": f"decode | {mask}"}) as loader:
        next(iter(loader))


OTHER = [
    ("random_crop 32", "center_crop 32", "'center_crop size=32,32', where the image has "
     "'random_crop size=32,32"),
    ("random_crop 32 | hflip", "random_crop 32", "nothing more, where the image has 'hflip p=0.5'"),
    ("random_crop 32", "random_crop 32 | hflip", "'hflip p=0.5', where the image has nothing more"),
    ("random_crop 32 | hflip", "random_crop 32 | vflip", "'vflip p=0.5', where"),
    ("random_crop 32 | hflip 0.5", "random_crop 32 | hflip 0.4", "'hflip p=0.4', where"),
    ("hflip | random_crop 32", "random_crop 32 | hflip", "'random_crop .*, where .* 'hflip p=0.5'"),
    ("random_crop 32", "random_crop 16", "'random_crop size=16,16"),
    ("random_crop 32 padding=4", "random_crop 32", ".* padding=0"),
    ("random_resized_crop 24", "random_resized_crop 24 scale=0.5,1", ".* scale=0.5,1"),
    ("resize 40,40", "resize 20,20", "'resize size=20,20"),
    ("random_crop 32", "random_crop 32 | resize 40,40 | center_crop 32", "'center_crop"),
    ("random_crop 32 | resize 16,16", "random_crop 32", "nothing more, where .* 'resize size=16"),
]


@pytest.mark.parametrize("image, mask, message", OTHER)
def test_a_mask_with_another_geometry_is_refused(pack, image, mask, message):
    start = "the geometry of mask 'mask' differs from that of image 'image': "
    with pytest.raises(penstock.InvalidError, match=start + message):
        load(pack, {"image": f"decode | {image}", "mask": f"decode | {mask}"})
    with pytest.raises(penstock.InvalidError, match=start + message):  # in any order
        load(pack, {"mask": f"decode | {mask}", "image": f"decode | {image}"})


def test_a_mask_may_belong_to_any_image(pack):
    one, two = "decode | center_crop 24", "decode | random_crop 32"
    with load(pack, {"image": one, "other": two, "mask": two}) as loader:
        next(iter(loader))
    with load(pack, {"mask": two}) as loader:  # and it may come alone
        next(iter(loader))
    with pytest.raises(penstock.InvalidError, match="that of image 'image': 'hflip"):
        load(pack, {"image": one, "other": two, "mask": "decode | hflip | center_crop 24"})


def test_a_mask_has_the_upright_size_of_its_image(tmp_path):
    from PIL import Image

    turned = Image.Exif()
    turned[0x0112] = 6  # stored on its side: upright it is 50 x 60
    image = encoded(pixels(1, 60, 50), "JPEG", exif=turned)
    with penstock.Writer(tmp_path / "a.pen", {"image": "image", "mask": "mask"}) as writer:
        for width, height in ((50, 60), (60, 50)):
            writer.add(image=image, mask=encoded(pixels(1, width, height).convert("L"), "PNG"))
    pipeline = {"image": "decode | center_crop 24", "mask": "decode | center_crop 24"}
    with penstock.Loader(tmp_path / "a.pen", 1, order="sequential", pipeline=pipeline,
                         output="numpy", threads=1, memory="64MiB") as loader:
        batches = iter(loader)
        next(batches)
        with pytest.raises(penstock.InvalidError, match=re.escape(
                "mask 'mask': expected the size of 'image' (50 x 60), found 60 x 50")):
            next(batches)


def warned(pack, pipeline):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with load(pack, pipeline) as loader:
            for _ in range(2):
                for _ in loader:
                    pass
    return [(str(one.message), one.filename) for one in seen]


@pytest.mark.parametrize("geometry", ["center_crop 24", "hflip | resize 24,24"])
def test_boxes_beside_a_moved_image_give_one_warning(pack, geometry):
    (text, where), = warned(pack, {"image": f"decode | {geometry}", "BBoxes": "tensor"})
    assert re.search(BOXES % ("BBoxes", "image"), text) and where == __file__
    (text, _), = warned(pack, {"BBoxes": "tensor", "other": f"decode | {geometry}"})
    assert re.search(BOXES % ("BBoxes", "other"), text)


@pytest.mark.parametrize("pipeline", [
    None,  # no boxes
    "decode | center_crop 24",
    {"image": "decode | center_crop 24", "label": "tensor"},  # no boxes
    {"image": "decode | center_crop 24", "corners": "tensor"},  # another name
    {"image": "decode | center_crop 24", "box_kind": "tensor"},  # another shape
])
def test_no_warning_without_reason(pack, pipeline):
    assert warned(pack, pipeline) == []


def test_doctor_prints_the_warning(pack):
    result = good("doctor", pack.path, "--seconds", "1", "--batch", "4", "--threads", "1",
                  "--pipeline", "image: decode | center_crop 24; BBoxes: tensor")
    assert re.search("warning: " + BOXES % ("BBoxes", "image"), result.err)
