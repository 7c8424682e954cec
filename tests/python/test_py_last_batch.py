# SPDX-License-Identifier: Apache-2.0
"""Loader(last_batch=...): what becomes of samples that do not fill the batches of all ranks."""

import importlib.util
import json
import pathlib
import re

import pytest
from example_tools import ROOT, need, torchrun
from py_tools import encoded, need_penstock, pixels
from remote_tools import options

penstock = need_penstock()
np = pytest.importorskip("numpy")

from penstock import ops  # noqa: E402

N, BATCH = 50, 8
MODES = ("short", "pad", "drop")
GAP = 40_000_000
SCRIPT = pathlib.Path(__file__).with_name("last_batch_script.py")


def clip(i):
    frames = [encoded(pixels(i * 9 + k, 8, 6)) for k in range(3 + i % 4)]
    return frames, [k * GAP for k in range(len(frames))]


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    path = tmp_path_factory.mktemp("root") / "packs" / "a.pen"
    path.parent.mkdir()
    schema = {"image": "image", "label": "i64", "text": "text?", "meta": "json", "blob": "bytes",
              "rows": "f32[*,2]", "video": "clip"}
    with penstock.Writer(path, schema, block_samples=8, classes=["a", "b", "c"]) as writer:
        for i in range(N):
            writer.add(
                key=f"s{i}", image=encoded(pixels(i, 20 + i % 5, 16 + i % 3)), label=i % 3,
                text=None if i % 7 == 6 else f"text {i}", meta={"i": i}, blob=bytes(range(i)),
                rows=np.full((i % 4, 2), i, np.float32), video=clip(i),
            )
    return penstock.open(path)


LABEL = {"label": "tensor"}
SMALL = {"image": "decode | center_crop 8 | tensor u8", "label": "tensor"}
EVERY_KIND = {
    "image": "decode | random_resized_crop 8 | normalize | tensor f32",
    "two": "image: decode | five_crop 4 | tensor u8",
    "list": "image: decode | resize min_side=12 max_side=24 | tensor u8",
    "label": "tensor", "text": "text", "meta": "json", "blob": "bytes", "id": "key",
    "rows": "ragged 4", "dense": "rows: ragged 4 pad=-1",
    "video": "decode | clip 2 | center_crop 4 | tensor u8",
}


def text_of(fields):
    return "; ".join(f"{name} = {ops}" if ": " in ops else f"{name}: {ops}"
                     for name, ops in fields.items())


def load(pack, batch_size=BATCH, pipeline=LABEL, **settings):
    settings = {"threads": 2, "memory": "64MiB", "output": "numpy", "return_info": True, "seed": 3,
                "rank": 0, "world_size": 1, **settings}
    pipeline = text_of(pipeline) if isinstance(pipeline, dict) else pipeline
    return penstock.Loader(pack, batch_size, pipeline=pipeline, **settings)


def plain(value):
    """A field as nested lists, of any output."""
    if isinstance(value, (list, penstock.BatchList, penstock.Ragged)):
        return [None if one is None else one if isinstance(one, (str, bytes, dict))
                else np.asarray(one).tolist() for one in value]
    return np.asarray(value).tolist()


def shape(value):
    return None if not hasattr(value, "shape") else tuple(value.shape)


def sizes(pack, world, **settings):
    """For each step the sizes of the batches of all ranks."""
    steps = []
    for rank in range(world):
        with load(pack, rank=rank, world_size=world, **settings) as loader:
            steps.append([len(batch.info.samples) for batch in loader])
            assert len(steps[-1]) == len(loader)
    assert len({len(one) for one in steps}) == 1
    return [list(step) for step in zip(*steps)]


def valid(pack, world, **settings):
    """The valid samples of all ranks, and how many are not valid."""
    found, padded = [], 0
    for rank in range(world):
        with load(pack, rank=rank, world_size=world, **settings) as loader:
            for batch in loader:
                assert batch.info.n_valid == batch.info.valid.sum()
                found += batch.info.samples[batch.info.valid].tolist()
                padded += len(batch.info.valid) - batch.info.n_valid
            stats = loader.stats()
            assert stats["padded_samples"] == stats["epoch"]["padded_samples"]
            padded -= stats["padded_samples"]
    return found, padded


# ---- how many


@pytest.mark.parametrize("order", ["sequential", "random", "shuffle", "sticky"])
@pytest.mark.parametrize("world", [1, 2, 3, 7])
def test_short_has_every_sample_once(pack, order, world):
    settings = {"order": order, "last_batch": "short", "shuffle_buffer": 24}
    steps = sizes(pack, world, **settings)
    rest = N % (BATCH * world)
    assert steps[:-1] == [[BATCH] * world] * (len(steps) - 1)
    assert sum(steps[-1]) == rest and max(steps[-1]) - min(steps[-1]) <= 1
    found, unaccounted = valid(pack, world, **settings)
    assert sorted(found) == list(range(N)) and unaccounted == 0


@pytest.mark.parametrize("order", ["sequential", "random", "shuffle"])
def test_fewer_samples_than_ranks(pack, order):
    """All ranks make two steps; two samples are left for the second one of five ranks."""
    (full, last) = sizes(pack, 5, batch_size=4, subset=range(22), order=order, last_batch="short")
    assert full == [4] * 5 and sorted(last) == [0, 0, 0, 1, 1]
    (only,) = sizes(pack, 3, subset=[7], order=order, last_batch="short")
    assert sorted(only) == [0, 0, 1]


def test_padded_samples_are_counted_and_marked(pack):
    with load(pack, rank=0, world_size=3, last_batch="pad") as loader:
        batches = [batch.info for batch in loader]
        assert [len(info.samples) for info in batches] == [8, 8, 8]
        assert batches[-1].n_valid == 0 and not batches[-1].valid.any()
        assert [info.valid.all() for info in batches[:-1]] == [True, True]
        assert loader.stats()["samples"] == 16 and loader.stats()["padded_samples"] == 8
        assert "penstock_padded_samples_total{" in loader.metrics()
    with load(pack, last_batch="short") as loader:
        assert sum(len(batch.label) for batch in loader) == N
        assert loader.stats()["samples"] == N and loader.stats()["padded_samples"] == 0


@pytest.mark.parametrize("order, world, expected", [
    ("sequential", 1, "short"), ("random", 1, "short"), ("shuffle", 1, "short"),
    ("sequential", 2, "short"), ("random", 2, "pad"), ("shuffle", 2, "pad"), ("sticky", 3, "pad"),
])
def test_default(pack, order, world, expected):
    with load(pack, order=order, world_size=world) as loader:
        assert loader.last_batch == expected and loader.drop_last is False
    with load(pack, order=order, world_size=world, drop_last=False) as loader:
        assert loader.last_batch == expected


def test_drop_last_is_the_word_of_pytorch(pack):
    with load(pack, drop_last=True) as loader:
        assert (loader.last_batch, loader.drop_last, len(loader), loader.dropped) == (
            "drop", True, 6, 2)
    with load(pack, last_batch="drop") as loader:
        assert loader.drop_last and len(loader) == 6
    for drop_last in (True, False):
        with pytest.raises(penstock.InvalidError, match=(
                f"last_batch='short' and drop_last={drop_last}: expected one of them, found both; "
                "drop_last=True is last_batch='drop'")):
            load(pack, last_batch="short", drop_last=drop_last)
    with pytest.raises(penstock.InvalidError, match="last_batch: expected one of short, pad, drop, "
                                                    "found 'shor'; did you mean 'short'"):
        load(pack, last_batch="shor")
    with pytest.raises(TypeError, match="drop_last: expected True or False, found 3"):
        load(pack, drop_last=3)


def test_a_dataloader_over_the_dataset_has_as_many(pack):
    torch = pytest.importorskip("torch")
    dataset = penstock.Dataset(pack, pipeline=text_of(SMALL))
    theirs = [len(label) for _, label in torch.utils.data.DataLoader(dataset, 32)]
    with load(pack, 32, SMALL) as loader:
        assert [len(batch.label) for batch in loader] == theirs == [32, 18]


def test_table_of_the_page(pack):
    page = (ROOT / "docs" / "how-to" / "evaluate.md").read_text()
    rows = re.findall(r"^\| (\d) \| ([\d, ]+) \| (?:\d × (\d+) = )?120 \|$", page, re.M)
    assert [int(ranks) for ranks, *_ in rows] == [1, 2, 3]
    for ranks, batches, each in rows:
        found = sizes(pack, int(ranks), batch_size=32, subset=[i % N for i in range(120)])
        assert found == [[int(n)] * int(ranks) for n in batches.split(", ")]
        assert sum(map(sum, found)) == int(each or 120) * int(ranks) == 120


# ---- what is in them


OUTPUTS = [name for name in ("numpy", "dlpack", "torch", "jax")
           if name in ("numpy", "dlpack") or importlib.util.find_spec(name)]


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("world", [1, 7, 60])
def test_every_kind_of_field(pack, output, world):
    """A short batch has what the padded one begins with; a batch of no samples has the shapes."""
    batch_size = BATCH if world < 60 else 1
    for rank in {0, world // 2, world - 1}:
        settings = {"rank": rank, "world_size": world, "output": output, "order": "random",
                    "batch_size": batch_size, "pipeline": EVERY_KIND}
        with load(pack, last_batch="short", **settings) as short, \
                load(pack, last_batch="pad", **settings) as pad:
            for ours, theirs in zip(short, pad):
                n = theirs.info.n_valid
                assert shape(ours.info.samples) == shape(ours.info.valid) == (n,)
                assert plain(ours.info.samples) == plain(theirs.info.samples)[:n]
                for name in EVERY_KIND:
                    a, b = getattr(ours, name), getattr(theirs, name)
                    assert plain(a) == plain(b)[:n], name
                    if name != "rows":
                        assert shape(a) == (shape(b) and (n, *shape(b)[1:])), name
                if not n:
                    assert tuple(ours.rows.values.shape) == (0, 2) and len(ours.text) == 0
                    assert bytes(ours.text.validity) == b""
                    assert shape(ours.rows.pad()[0]) == (0, 0, 2)
                    assert ours.two.shape[1:] == theirs.two.shape[1:]
                ours = theirs = a = b = None  # else jax keeps every slot


@pytest.mark.parametrize("world", [1, 7, 60])
def test_images_that_are_padded_to_one_size(pack, world):
    pipeline = ("image: decode | resize min_side=100 max_side=30 | tensor u8 | pad_batch; "
                "label: tensor")
    for rank in (0, world - 1):
        with load(pack, 8 if world < 60 else 1, pipeline, rank=rank, world_size=world,
                  last_batch="short") as loader:
            for image, image_sizes, label, info in loader:
                n = len(info.samples)
                most = image_sizes.max(0).tolist() if n else [0, 0]
                assert image.shape == (n, *most, 3) and label.shape == (n,)
                for i, (height, width) in enumerate(image_sizes.tolist()):
                    assert image[i, :height, :width].any()
                    assert not image[i, height:].any() and not image[i, :, width:].any()


def test_transform_gets_short_batches(pack):
    found = set()
    for rank in range(60):
        with load(pack, 1, SMALL, rank=rank, world_size=60, last_batch="short",
                  transform=lambda batch: (batch.image.sum(), len(batch.label))) as loader:
            ((total, n),) = loader
            assert (total > 0) == (n > 0)
            found.add(n)
    assert found == {0, 1}


def double(sample, rng):
    return {"twice": sample["label"] * 2, "name": f"n{sample['label']}"}


def add_one(batch, rng):
    return {**batch, "plus": batch["twice"] + 1}


@pytest.mark.parametrize("output", ["numpy", "torch"])
def test_functions_and_batches_of_no_samples(pack, output):
    """Functions are not called for no samples; the fields are those of the batch before."""
    pytest.importorskip(output)
    pipeline = [LABEL, ops.python(double), ops.python(add_one, per="batch")]
    sums = 0
    for rank in range(5):
        with load(pack, 3, pipeline, subset=range(17), rank=rank, world_size=5, output=output,
                  last_batch="short") as loader:
            (first, last) = loader
            assert first._fields == last._fields == ("twice", "name", "plus", "info")
            n = len(last.info.samples)
            assert len(last.twice) == len(last.name) == len(last.plus) == n < 2
            assert last.twice.dtype == first.twice.dtype and plain(last.name) == last.name
            assert plain(last.plus) == [2 * (i % 3) + 1 for i in last.info.samples.tolist()]
            sums += n
            (again, _) = loader  # and the next epoch begins as it should
            assert again.twice.tolist() == first.twice.tolist()
    assert sums == 2
    with load(pack, 3, pipeline, subset=[0], rank=0, world_size=2, last_batch="short") as loader:
        (only,) = loader  # no batch was before
        assert only._fields == ("label", "info") and len(only.label) == 0


# ---- mixed


@pytest.mark.parametrize("order", ["sequential", "random"])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 6, 7, 13])
@pytest.mark.parametrize("per", ["batch", "sample"])
@pytest.mark.parametrize("last_batch", ["short", "pad"])
def test_pairs_of_the_last_batch(pack, order, n, per, last_batch):
    """Sample i is mixed with i + 2 of a batch of 4. Without a partner, it stays as it is."""
    whole = {}
    with load(pack, 1, SMALL | {"image": "decode | center_crop 8 | tensor f32"}) as loader:
        for batch in loader:
            whole[int(batch.info.samples[0])] = np.array(batch.image[0])
    pipeline = (f"image: decode | center_crop 8 | tensor f32 | mixup 1 per={per}; "
                "label: one_hot 3 | tensor f32")
    with load(pack, 4, pipeline, subset=range(n), order=order, last_batch=last_batch) as loader:
        for batch in loader:
            numbers = batch.info.samples[batch.info.valid].tolist()
            for i, number in enumerate(numbers):
                partner = dict(enumerate(numbers)).get((i + 2) % 4, number)
                if partner == number:
                    assert np.array_equal(batch.image[i], whole[number])
                    assert batch.label[i].tolist() == np.eye(3)[number % 3].tolist()
                    continue
                own, other = whole[number], whole[partner]
                share = ((batch.image[i] - other)[own != other]
                         / (own - other)[own != other]).mean()
                label = share * np.eye(3)[number % 3] + (1 - share) * np.eye(3)[partner % 3]
                assert 0 <= share <= 1 + 1e-3
                assert np.allclose(batch.label[i], label, atol=1e-2)


def test_mixing_no_samples(pack):
    pipeline = ("image: decode | center_crop 8 | tensor f32 | mixup 1 p=0.5 | cutmix 1 p=0.5; "
                "label: one_hot 3 | tensor f32")
    for rank in range(3):
        with load(pack, 4, pipeline, subset=range(13), rank=rank, world_size=3,
                  last_batch="short") as loader:
            first, last = loader
            assert last.image.shape[1:] == (8, 8, 3) and last.label.shape == (len(last.image), 3)
            assert len(last.image) in (0, 1)


# ---- buckets, token budgets, mixtures, weights, frames


SIZES = [(8, 8), (6, 12)]
KINDS = {
    "buckets": {"buckets": SIZES, "pipeline": "image: decode | cover bucket | tensor u8"},
    "pairs": {"buckets": SIZES, "pipeline": "image: decode | cover bucket | tensor u8 | mixup 1; "
                                            "label: one_hot 3 | tensor f32"},
    "tokens": {"tokens": 24, "lengths": [5, 8], "batch_size": None, "subset": range(47),
               "pipeline": "image: decode | patches 4 | tensor u8"},
    "frames": {"frames": "video"},
    "weights": {"weights": [1.0] * N},
    "subset": {"subset": [3, 3, *range(20, 41)]},
}


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """Images of two aspect ratios: 29 and 21 of them."""
    path = tmp_path_factory.mktemp("packs") / "wide.pen"
    with penstock.Writer(path, {"image": "image", "label": "i64"}, block_samples=8) as writer:
        for i in range(N):
            size = (32, 16) if i % 12 in (1, 4, 6, 9, 11) else (24, 24)
            writer.add(key=f"s{i}", image=encoded(pixels(i, *size)), label=i % 3)
    return penstock.open(path)


def all_samples(pack, world, kind, mode, order, state=None, steps=None):
    """Samples of all ranks, step by step: (valid ones sorted, sizes); and the state."""
    ranks, states = [], []
    settings = {"order": order, "world_size": world, "last_batch": mode, "shuffle_buffer": 24,
                **KINDS[kind]}
    for rank in range(world):
        with load(pack, rank=rank, **settings) as loader:
            if state is not None:
                loader.load_state_dict(state)
            found = []
            for batch in loader:
                info = batch.info
                assert all(len(value) == len(info.samples) for value in batch[:-1])
                found.append((info.samples[info.valid].tolist(), len(info.samples)))
                if steps == len(found):
                    break
            states.append(loader.state_dict())
            ranks.append(found)
    assert all(one == states[0] for one in states)
    assert len({len(one) for one in ranks}) == 1
    return [(sorted(sum((valid for valid, _ in step), [])), [n for _, n in step])
            for step in zip(*ranks)], states[0]


@pytest.mark.filterwarnings("ignore:penstock. an epoch has no batches")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", ["sequential", "random", "shuffle"])
@pytest.mark.parametrize("world", [1, 2, 5])
def test_modes_agree_on_the_order(pack, wide, kind, order, world):
    """A step has the same samples in all modes, and the order has the same hash."""
    pack = wide if kind in ("buckets", "pairs") else pack
    (short, a), (pad, b), (drop, c) = (
        all_samples(pack, world, kind, mode, order) for mode in MODES)
    assert a["hash"] == b["hash"] == c["hash"]
    assert [valid for valid, _ in short] == [valid for valid, _ in pad]
    assert all(step in pad for step in drop) and len(drop) < len(pad)
    for valid, ns in short:
        assert sum(ns) == len(valid) and max(ns) - min(ns) <= 1
    for _, ns in pad:
        assert len(set(ns)) == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", MODES)
def test_resumes(pack, wide, kind, mode):
    """In the middle, and before the last step, which is short."""
    pack = wide if kind in ("buckets", "pairs") else pack
    whole, end = all_samples(pack, 2, kind, mode, "shuffle")
    for steps in (1, len(whole) - 1):
        if steps < 1:
            continue
        first, state = all_samples(pack, 2, kind, mode, "shuffle", steps=steps)
        rest, after = all_samples(pack, 2, kind, mode, "shuffle", state=state)
        assert first + rest == whole and after == end


@pytest.mark.parametrize("mode", MODES)
def test_mixture(pack, wide, mode):
    mix = penstock.mix([(pack, 2), (wide, 1)])
    found = []
    for rank in range(2):
        with load(mix, 8, "label: tensor", order="shuffle", rank=rank, world_size=2,
                  last_batch=mode) as loader:
            found.append([(len(batch.info.samples), batch.info.n_valid) for batch in loader])
            samples = loader.samples
    *full, last = zip(*found)
    assert samples % 16 and all(step == ((8, 8), (8, 8)) for step in full)
    rest = samples % 16
    if mode == "drop":
        assert last == ((8, 8), (8, 8)) and len(full) + 1 == samples // 16
    else:
        assert sum(valid for _, valid in last) == rest
        assert sum(n for n, _ in last) == (rest if mode == "short" else 16)


# ---- from a store


@pytest.mark.parametrize("world", [1, 3, 7])
def test_from_a_store(pack, world, s3):
    """Batches of no samples wait for no request."""
    far = penstock.open("s3://packs/a.pen",
                        options(s3(directory=pathlib.Path(pack.path).parents[1])))
    for order in ("sequential", "shuffle"):
        settings = {"order": order, "last_batch": "short", "subset": range(N - 1),
                    "shuffle_buffer": 24}
        assert sizes(far, world, **settings) == sizes(pack, world, **settings)


# ---- real processes


@pytest.mark.parametrize("ranks", [2, 3])
def test_real_ranks(pack, ranks, tmp_path):
    """Batches of no samples, in DistributedDataParallel and all_gather."""
    need("torch")
    torchrun(ranks, SCRIPT, pack.path, tmp_path / "out", cwd=tmp_path, seconds=500)
    found = [json.loads((tmp_path / f"out.{rank}").read_text()) for rank in range(ranks)]
    for one in found:
        assert one["gathered"] == [list(range(ranks * 4)), list(range(ranks * 4, ranks * 4 + 1))]
        assert sorted(one["sizes"][-1]) == [0] * (ranks - 1) + [1]
        assert one["weights"] == found[0]["weights"]
        assert one["weights"] == pytest.approx(one["alone"], rel=1e-4)
