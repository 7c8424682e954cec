# SPDX-License-Identifier: Apache-2.0
"""Several views of one field: their draws, the forms of their pipelines, and that they depend on
nothing else. tests/unit/test_load_views.c compares their pixels for each kind of file."""

import hashlib
import itertools
import pathlib
import pickle
import re
import sys
import tarfile

import pytest
from cli_tools import add_member, good
from PIL import Image
from py_tools import encoded, need_penstock, pixels
from remote_tools import options

penstock = need_penstock()
np = pytest.importorskip("numpy")
from penstock import ops  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "long"))
import _draws  # noqa: E402

N, WIDTH, HEIGHT, SEED = 24, 120, 90, 7
SCHEMA = {"image": "image", "mask": "mask", "label": "i64"}
VIEWS = (
    "a = image: decode | random_crop 40,50 | hflip; b = image: decode | random_crop 40,50 | hflip; "
    "many = image: decode | random_resized_crop 16 scale=0.05,0.4 nearest | repeat 3; "
    "image: decode | random_crop 40,50; "
    "m = mask of=many: decode | random_resized_crop 16 scale=0.05,0.4 | repeat 3; "
    "same = mask of=image: decode | random_crop 40,50; label: tensor"
)


def places(number):
    """Every pixel says where it is, and the mask is the sum."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(np.uint8)
    image = np.stack([x, y, np.full_like(x, number)], -1)
    return {"image": encoded(Image.fromarray(image)), "mask": encoded(Image.fromarray(x + y)),
            "label": number}


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    path = tmp_path_factory.mktemp("views") / "places.pen"
    penstock.write(path, map(places, range(N)), SCHEMA, block_samples=4)
    return penstock.open(path)


def all_of(pack, pipeline=VIEWS, epoch=0, **settings):
    """{name: array of all samples, in the order of the pack}"""
    settings = {"seed": SEED, "output": "numpy", **settings}
    with penstock.Loader(pack, N, pipeline=pipeline, **settings) as loader:
        loader.set_epoch(epoch)
        return {name: array.copy() for name, array in next(iter(loader))._asdict().items()}


# ---- draws ----


def crop_of(pixels):
    """The place of the box, and whether it is flipped, by what its pixels say."""
    left, right = int(pixels[0, 0, 0]), int(pixels[0, -1, 0])
    return min(left, right), int(pixels[0, 0, 1]), left > right


@pytest.mark.parametrize("epoch", [0, 3])
def test_draws_are_those_of_the_view(pack, epoch):
    found = all_of(pack, epoch=epoch)
    for sample, view in itertools.product(range(N), ("a", "b", "image")):
        name = None if view == "image" else view  # a field of the pack is no view
        draw = _draws.Draw(SEED, epoch, sample, "random_crop", view=name)
        box = _draws.random_crop(draw, WIDTH, HEIGHT, (40, 50))
        flip = name and _draws.Draw(SEED, epoch, sample, "hflip", view=name).happens(0.5)
        assert crop_of(found[view][sample]) == (box.x, box.y, bool(flip))


def test_each_repeat_has_its_own_draws(pack):
    found = all_of(pack)
    assert found["many"].shape == (N, 3, 16, 16, 3)
    for sample, repeat in itertools.product(range(N), range(3)):
        draw = _draws.Draw(SEED, 0, sample, "random_resized_crop", view="many", repeat=repeat)
        box = _draws.random_resized_crop(draw, WIDTH, HEIGHT, (0.05, 0.4))
        pixels = found["many"][sample, repeat]
        x, y = pixels[..., 0].astype(int), pixels[..., 1].astype(int)
        assert box.x <= x.min() and x.max() < box.x + box.w and x.max() - x.min() >= box.w * 7 // 8
        assert box.y <= y.min() and y.max() < box.y + box.h and y.max() - y.min() >= box.h * 7 // 8


def test_masks_follow_the_view_they_name(pack):
    found = all_of(pack)
    sums = found["many"][..., 0] + found["many"][..., 1]
    assert found["m"].shape == (N, 3, 16, 16) and (found["m"] == sums).all()
    assert (found["same"] == found["image"][..., 0] + found["image"][..., 1]).all()


def test_other_fields_change_nothing(pack):
    """A field of the pack has the draws that it has without views, and a view those of its name."""
    found = all_of(pack)
    alone = all_of(pack, "decode | random_crop 40,50")
    assert (found["image"] == alone["image"]).all() and (found["label"] == alone["label"]).all()
    for view in VIEWS.split("; ")[:3]:
        name = view.split()[0]
        assert (all_of(pack, view)[name] == found[name]).all()


def test_a_sample_that_is_listed_twice(pack):
    found = all_of(pack, subset=[3, 3] * (N // 2))
    assert (found["a"][0] != found["a"][1]).any() and (found["many"][0] != found["many"][1]).any()
    assert (found["a"][0] == all_of(pack)["a"][3]).all()


def test_samples_by_number(pack):
    found = all_of(pack, epoch=2)
    dataset = penstock.Dataset(pack, VIEWS, seed=SEED, output="numpy")
    for sample in (0, 5):
        values = dataset[2, sample]
        assert len(values) == len(found)
        for value, array in zip(values, found.values(), strict=True):
            assert np.array_equal(value, array[sample])


# ---- forms ----


def full_text(pack, pipeline):
    with penstock.Loader(pack, 4, pipeline=pipeline, output="numpy") as loader:
        return loader.pipeline


def test_forms_of_a_pipeline(pack):
    crop = [ops.decode(), ops.random_crop((40, 50)), ops.hflip()]
    small = "decode | random_resized_crop 16 scale=0.05,0.4 | repeat 3"
    views = {
        "a": [ops.source("image"), *crop],
        "b": "image: decode | random_crop 40,50 | hflip",
        "many": [ops.source("image"), small.replace("0.4", "0.4 nearest")],
        "image": "decode | random_crop 40,50",
        "m": [ops.source("mask", of="many"), small],
        "same": "mask of=image: decode | random_crop 40,50",
        "label": "tensor",
    }
    text = full_text(pack, VIEWS)
    assert full_text(pack, views) == full_text(pack, text) == text
    assert text.startswith("a = image: decode mode=rgb | random_crop")
    assert "; m = mask of=many: decode" in text
    assert pickle.loads(pickle.dumps(ops.source("x", of="y"))) == ops.source("x", of="y")
    assert full_text(pack, ["image: decode", ops.center_crop(8)]) == full_text(
        pack, (part for part in ["image: decode", "center_crop 8"]))
    named = {"image": [ops.source("image"), *crop]}
    assert full_text(pack, named) == full_text(pack, {"image": crop})


def test_names_with_spaces(tmp_path):
    penstock.write(tmp_path / "p.pen", [{"my image": places(0)["image"]}], {"my image": "image"})
    pipeline = {"view: 1": [ops.source("my image"), ops.decode(), ops.center_crop(8)]}
    with penstock.Loader(tmp_path / "p.pen", 1, pipeline=pipeline, output="numpy") as loader:
        assert loader.pipeline.startswith('"view: 1" = "my image": decode')
        assert next(iter(loader))[0].shape == (1, 8, 8, 3)


@pytest.mark.parametrize(("pipeline", "message"), [
    ([ops.source("image"), ops.decode()], r"pipeline: source names no result; use a dict: \{'vie"),
    ({"a": [ops.decode(), ops.source("image")]}, "pipeline: a: source must be the first operation"),
    ({"a": [ops.source("image"), ops.source("image")]}, "pipeline: a: source must be the first"),
    ({"a": "image: decode | center_crop 8", "m": "mask: decode | center_crop 8"},
     re.escape("mask 'm': name the view that it follows: 'm = mask of=a: ...'")),
])
def test_wrong_forms(pack, pipeline, message):
    with pytest.raises(penstock.InvalidError, match=message):
        full_text(pack, pipeline)


@pytest.mark.parametrize("wrong", [3, None, b"image"])
def test_wrong_names(wrong):
    with pytest.raises(TypeError, match="source: field: expected"):
        ops.source(wrong)
    with pytest.raises(penstock.InvalidError, match="no field"):
        ops.source('a"b')
    if wrong is not None:
        with pytest.raises(TypeError, match="source: of: expected"):
            ops.source("image", of=wrong)


def test_clips_have_views_and_no_repeat(tmp_path):
    frames = [places(i)["image"] for i in range(20)]
    penstock.write(tmp_path / "p.pen", [{"video": frames}], {"video": "clip"})
    slow_fast = {"slow": "video: decode | clip 2 8 | center_crop 8",
                 "fast": "video: decode | clip 8 2 | center_crop 8"}
    with penstock.Loader(tmp_path / "p.pen", 1, pipeline=slow_fast, output="numpy") as loader:
        batch = next(iter(loader))
        assert batch.slow.shape == (1, 2, 8, 8, 3) and batch.fast.shape == (1, 8, 8, 8, 3)
    with pytest.raises(penstock.InvalidError, match=r"use 'clip n=4'"):
        full_text(tmp_path / "p.pen", "decode | clip 2 | center_crop 8 | repeat 4")


def test_fields_of_other_types_have_several_names(tmp_path):
    samples = ({"x": i, "caption": f"number {i}"} for i in range(4))
    penstock.write(tmp_path / "p.pen", samples, {"x": "i64", "caption": "text"})
    pipeline = {"a": "x: tensor", "x": "tensor", "b": "caption: text 64", "c": "caption: bytes 64"}
    with penstock.Loader(tmp_path / "p.pen", 4, pipeline=pipeline, output="numpy") as loader:
        batch = next(iter(loader))
        assert batch.a.tolist() == batch.x.tolist() == [0, 1, 2, 3]
        assert batch.b[3] == "number 3" and batch.c[3] == b"number 3"


# ---- what they must not depend on ----


def photographs():
    for i in range(N):
        image = pixels(i, 150 + i, 110 + i)
        yield {"image": encoded(image, "JPEG", quality=90), "mask": encoded(image.convert("L")),
               "label": i}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("root")
    (folder / "packs").mkdir()
    penstock.write(folder / "packs" / "p.pen", photographs(), SCHEMA, block_samples=4)
    return folder


def digest(pack, world=1, stop=None, pipeline=VIEWS, **settings):
    """Of an epoch, by any ranks; with `stop`, continued by others after so many batches."""
    sha, state = hashlib.sha256(), None
    settings = {"order": "random", "seed": SEED, "shuffle_buffer": 24, **settings}
    for ranks, most in ((world, stop), (3 - world, None)) if stop else ((world, None),):
        settings.update(pipeline=pipeline, world_size=ranks, output="numpy")
        loaders = [penstock.Loader(pack, 12 // ranks, rank=rank, **settings)
                   for rank in range(ranks)]
        for loader in loaders:
            if state:
                loader.load_state_dict(state)
        for parts in itertools.islice(zip(*loaders, strict=True), most):
            for fields in zip(*parts, strict=True):
                images = np.concatenate(fields)  # which rank has which depends on their number
                for data in sorted(image.tobytes() for image in images):
                    sha.update(data)
        state = loaders[0].state_dict()
        for loader in loaders:
            loader.close()
    return sha.hexdigest()


@pytest.mark.threads
@pytest.mark.parametrize("order", ["sequential", "random", "shuffle", "sticky"])
def test_threads_ranks_and_restarts(folder, order):
    path = folder / "packs" / "p.pen"
    expected = digest(path, threads=1, order=order)
    for threads, world, stop in ((2, 1, None), (8, 2, None), (2, 1, 1), (1, 2, 1)):
        found = digest(path, world, stop, threads=threads, order=order, memory="96MiB")
        assert found == expected, (threads, world, stop)


def test_from_a_store(folder, s3, no_other_settings):
    remote = penstock.open("s3://packs/p.pen", options(s3(directory=folder)))
    assert digest(remote) == digest(folder / "packs" / "p.pen")


def test_in_place(tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for i, sample in enumerate(photographs()):
            add_member(tar, f"{i:04}.jpg", sample["image"])
    good("index", tmp_path / "a.tar", "-o", tmp_path / "index.pen")
    good("copy", tmp_path / "index.pen", tmp_path / "pack.pen")
    pipeline = "; ".join(VIEWS.split("; ")[:4])
    assert digest(tmp_path / "index.pen", pipeline=pipeline) == digest(
        tmp_path / "pack.pen", pipeline=pipeline)


def test_memory_of_views(folder):
    """The plans of many views count, and the message has the number that is enough."""
    many = "; ".join(f"v{i} = image: decode | center_crop 8 | repeat 64" for i in range(4))
    settings = {"pipeline": many, "threads": 8, "output": "numpy"}
    with pytest.raises(penstock.LimitError) as caught:
        penstock.Loader(folder / "packs" / "p.pen", 4, memory="32MiB", **settings)
    least = re.search(r"at least (\d+ MiB)", str(caught.value))[1].replace(" ", "")
    with penstock.Loader(folder / "packs" / "p.pen", 4, memory=least, **settings) as loader:
        batch = next(iter(loader))
        assert (batch.v0[:, :1] == batch.v3).all()


# ---- advice ----

SIZE = "decode | center_crop 8"
FOLLOWED = [
    ("name the view that it follows", f"a = image: {SIZE}; mask: {SIZE}",
     f"a = image: {SIZE}; mask = mask of=a: {SIZE}"),
    ("give both the same", f"image: {SIZE} | repeat 2; mask: {SIZE}",
     f"image: {SIZE} | repeat 2; mask: {SIZE} | repeat 2"),
    ("use another name for the view", f"label = image: {SIZE}", f"a = image: {SIZE}"),
    ("use fewer views, or smaller numbers of repeat",
     "; ".join(f"v{i} = image: {SIZE} | repeat 64" for i in range(5)),
     "; ".join(f"v{i} = image: {SIZE} | repeat 32" for i in range(5))),
    ("name one of its images or views", f"a = image: {SIZE}; m = mask of=other: {SIZE}",
     f"a = image: {SIZE}; m = mask of=a: {SIZE}"),
    ("remove of=a", f"a = image: {SIZE}; b = image of=a: {SIZE}",
     f"a = image: {SIZE}; b = image: {SIZE}"),
    ("move it behind tensor", f"image: {SIZE} | repeat 2 | tensor f32",
     f"image: {SIZE} | tensor f32 | repeat 2"),
    ("use a dict", [ops.source("image"), SIZE], {"view": [ops.source("image"), SIZE]}),
]


@pytest.mark.parametrize(("advice", "wrong", "right"), FOLLOWED, ids=[row[0] for row in FOLLOWED])
def test_advice_can_be_followed(pack, advice, wrong, right):
    with pytest.raises(penstock.Error, match=re.escape(advice)):
        full_text(pack, wrong)
    full_text(pack, right)
