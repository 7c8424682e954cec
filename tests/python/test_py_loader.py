# SPDX-License-Identifier: Apache-2.0
"""penstock.Loader with NumPy and DLPack: what it gives, where it stands, how it ends."""

import ctypes
import hashlib
import json
import os
import pickle
import re
import signal
import threading
import time
import types

import conftest
import pytest
from py_tools import encoded, in_child, need_penstock, pixels, png, run_python, write_pack

penstock = need_penstock()
numpy = pytest.importorskip("numpy")

from penstock import _dist, ops  # noqa: E402

pytestmark = pytest.mark.threads

N = 50
SMALL = [ops.decode(), ops.center_crop(16), ops.tensor("u8")]
SLOW = "decode | resize 1500,1500 lanczos | color_jitter 0.5 0.5 0.5 0.2 | tensor f32"


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    return write_pack(penstock, tmp_path_factory.mktemp("packs") / "a.pen", N)


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """A pack whose batch takes seconds to make, also with the smaller images for sanitizers."""
    path = tmp_path_factory.mktemp("packs") / "slow.pen"
    size = (1200, 800) if conftest.is_sanitized(conftest.BUILD) else (3000, 2000)
    image = encoded(pixels(1, 300, 200).resize(size), "PNG", compress_level=1)
    return write_pack(penstock, path, 32, lambda _: image, mode="keep")


@pytest.fixture
def make(pack):
    """Loaders that are closed after the test."""
    made = []

    def make(*args, **settings):
        settings = {"output": "numpy", "threads": 2, "memory": "256MiB", **settings}
        made.append(penstock.Loader(args[0] if args else pack, **{"batch_size": 8, **settings}))
        return made[-1]

    yield make
    for loader in made:
        loader.close()


def numbers(loader):
    """The numbers of the samples of a pass, without those that fill up."""
    return [
        int(n) for batch in loader for n, v in zip(batch.info.samples, batch.info.valid) if v
    ]


# ---- batches


def test_batches_hold_the_samples(make):
    loader = make(pipeline=SMALL, return_info=True)
    at = 0
    for image, label, info in loader:
        assert image.shape == (info.n_valid, 16, 16, 3) and image.dtype == numpy.uint8
        assert label.shape == (info.n_valid,) and label.dtype == numpy.int64
        for i in range(info.n_valid):
            whole = numpy.asarray(pixels(at + i))
            assert numpy.array_equal(image[i], whole[8:24, 12:28]), at + i
            assert label[i] == (at + i) % 3
        at += info.n_valid
    assert at == N and loader.samples == N


def test_items_have_the_fields_names(make):
    loader = make(pipeline={"label": "tensor i64", "image": SMALL}, return_info=True)
    batch = next(iter(loader))
    assert type(batch)._fields == ("label", "image", "info") and loader.fields == ("label", "image")
    assert batch.label.dtype == numpy.int64 and batch.image is batch[1]
    assert isinstance(batch.info, penstock.BatchInfo)


def test_numbers_alone(make):
    (label,) = next(iter(make(pipeline="label: tensor")))
    assert label.tolist() == [0, 1, 2, 0, 1, 2, 0, 1]


def test_last_batch_is_padded_or_dropped(make):
    """See test_py_last_batch.py."""
    whole = make(return_info=True, last_batch="pad")
    short = make(return_info=True, drop_last=True)
    assert (len(whole), len(short)) == (7, 6)
    last = list(whole)[-1].info
    assert last.valid.dtype == bool and last.valid.tolist() == [True] * 2 + [False] * 6
    assert last.n_valid == 2 and last.position == 48 and last.epoch == 0
    assert all(batch.info.valid.all() for batch in short)


def test_transform_gets_whole_batches(make):
    loader = make(pipeline=SMALL, transform=lambda batch: batch.image.mean())
    assert isinstance(next(iter(loader)), float)


def test_memory_is_shared_and_writable(make):
    loader = make(pipeline=SMALL, output="dlpack")
    image, _ = next(iter(loader))
    a, b = numpy.asarray(image), numpy.from_dlpack(image)
    a[0, 0, 0, 0] = 77
    assert b[0, 0, 0, 0] == 77 and memoryview(image)[0, 0, 0, 0] == 77
    assert (image.shape, image.strides, image.dtype) == ((8, 16, 16, 3), (768, 48, 3, 1), "u8")


@pytest.mark.parametrize("dtype", ["u8", "f16", "f32"])
def test_types_of_images(make, dtype):
    image, _ = next(iter(make(pipeline=f"decode | center_crop 8 | tensor {dtype}")))
    assert image.dtype == {"u8": "u1", "f16": "f2", "f32": "f4"}[dtype]
    assert (image != 0).any()


def test_planes(make):
    image, _ = next(iter(make(pipeline="decode | center_crop 8,10 | tensor u8 nchw")))
    assert image.shape == (8, 3, 8, 10)


def test_bf16_is_dlpack_s_alone(make):
    bf16 = "decode | center_crop 8 | tensor bf16"
    with pytest.raises(penstock.InvalidError, match="image: NumPy has no bf16; use 'tensor f16'"):
        make(pipeline=bf16)
    image, _ = next(iter(make(pipeline=bf16, output="dlpack")))
    with pytest.raises(BufferError, match="no bf16: use output='torch' or 'dlpack'"):
        memoryview(image)
    assert image.dtype == "bf16" and image.nbytes == 8 * 8 * 8 * 3 * 2


def test_channels_first_is_a_view(make):
    image, label = next(iter(make(pipeline=SMALL, output="dlpack")))
    view = image.channels_first()
    assert view.shape == (8, 3, 16, 16) and view.strides == (768, 1, 48, 3)
    assert numpy.array_equal(numpy.asarray(view), numpy.asarray(image).transpose(0, 3, 1, 2))
    assert numpy.array_equal(numpy.from_dlpack(view), numpy.asarray(view))
    assert label.channels_first() is label
    with pytest.raises(BufferError, match="not contiguous"):
        hashlib.sha256(view)
    assert hashlib.sha256(image).digest() == hashlib.sha256(numpy.asarray(image)).digest()


# ---- leases


def leased(loader):
    return loader.stats()["slots_leased"]


def test_arrays_keep_the_batch(make):
    loader = make(pipeline=SMALL)
    batches = iter(loader)
    image, label = next(batches)
    part = image[0, :4]
    kept = part.copy()
    del image, label
    assert leased(loader) == 1
    assert sum(1 for _ in batches) == 6
    assert numpy.array_equal(part, kept)
    del part
    assert leased(loader) == 0


def test_batch_outlives_the_loader(make):
    loader = make(pipeline=SMALL)
    image, label = next(iter(loader))
    kept = image.copy()
    loader.close()
    del loader
    assert numpy.array_equal(image, kept) and label[1] == 1


def test_holding_all_batches_is_an_error_that_says_so(make):
    loader = make(pipeline=SMALL, batch_size=1, memory="24MiB", threads=1)
    held = []
    with pytest.raises(penstock.LimitError, match="held by the caller"):
        for _ in range(1000):
            held.extend(loader)
    assert len(held) > 2
    held.clear()
    assert sum(1 for _ in loader) > 0


def test_capsule_nobody_takes_gives_back(make):
    loader = make(pipeline=SMALL, output="dlpack")
    image, label = next(iter(loader))
    capsules = [image.__dlpack__(), label.__dlpack__(max_version=(1, 0))]
    assert "dltensor_versioned" in repr(capsules[1]) and '"dltensor"' in repr(capsules[0])
    del image, label
    assert leased(loader) == 1
    del capsules
    assert leased(loader) == 0


def test_taken_capsule_is_freed_without_the_gil(make):
    """As a framework does it, whose tensors die on threads of its own."""
    loader = make(output="dlpack", pipeline="label: tensor")
    (label,) = next(iter(loader))
    capsule = label.__dlpack__()
    del label
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    rename = ctypes.pythonapi.PyCapsule_SetName
    rename.argtypes = [ctypes.py_object, ctypes.c_char_p]
    used = ctypes.c_char_p(b"used_dltensor")
    at = pointer(capsule, b"dltensor")
    rename(capsule, used)
    del capsule
    assert leased(loader) == 1
    # DLTensor is 48 bytes, then come the context and the deleter.
    deleter = ctypes.cast(at + 56, ctypes.POINTER(ctypes.c_void_p))[0]
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleter)(at)
    assert leased(loader) == 0


def test_dlpack_refuses_what_it_cannot_do(make):
    (label,) = next(iter(make(output="dlpack", pipeline="label: tensor")))
    assert label.__dlpack_device__() == (1, 0)
    label.__dlpack__(dl_device=(1, 0), copy=False)
    for wrong in ({"stream": 1}, {"copy": True}, {"dl_device": (2, 0)}):
        with pytest.raises(BufferError):
            label.__dlpack__(**wrong)
    with pytest.raises(TypeError):
        label.__dlpack__(max_version=1)
    with pytest.raises(TypeError):
        type(label)()


# ---- passes and epochs


def test_every_pass_is_the_next_epoch(make):
    loader = make(shuffle=True, seed=3, return_info=True)
    first, second = numbers(loader), numbers(loader)
    assert sorted(first) == sorted(second) == list(range(N)) and first != second
    loader.set_epoch(0)
    assert loader.epoch == 0 and numbers(loader) == first
    loader.sampler.set_epoch(1)
    assert numbers(loader) == second and loader.epoch == 2


def test_seed_and_order(make):
    orders = {
        tuple(numbers(make(return_info=True, **how)))
        for how in (
            {}, {"order": "random"}, {"shuffle": True, "seed": 1}, {"order": "sticky"},
            {"order": "shuffle", "shuffle_buffer": 8}, {"order": "sequential", "shuffle": False},
        )
    }
    assert len(orders) == 5 and tuple(range(N)) in orders


def test_a_small_pack_is_shuffled_completely(make):
    """It is not larger than the shuffle buffer."""
    expected = numbers(make(return_info=True, order="random"))
    assert numbers(make(return_info=True, shuffle=True)) == expected
    assert numbers(make(return_info=True, shuffle=True, shuffle_buffer=N)) == expected
    for wrong in (0, -1, 2**62 + 1):
        with pytest.raises(penstock.InvalidError, match="shuffle_buffer: expected 1 to"):
            make(shuffle_buffer=wrong)


def test_break_ends_a_pass(make):
    loader = make(return_info=True)
    for _ in loader:
        break
    assert loader.epoch == 0
    assert numbers(loader) == list(range(N)) and loader.epoch == 2


def test_one_pass_at_a_time(make):
    loader = make(return_info=True)
    outer = iter(loader)
    next(outer)
    inner = iter(loader)
    with pytest.raises(penstock.Error, match="one pass at a time"):
        next(outer)
    assert next(inner).info.position == 0
    loader.set_epoch(3)
    with pytest.raises(penstock.Error, match="one pass at a time"):
        next(inner)


def test_end_of_a_pass_stays_the_end(make):
    batches = iter(make())
    assert len(list(batches)) == 7
    assert next(batches, None) is None and next(batches, None) is None


def test_subsets(make):
    for subset, expected in (
        (range(10, 20), list(range(10, 20))),
        (slice(None, 10, 3), [0, 3, 6, 9]),
        ([5, 3, 5], [5, 3, 5]),
        (numpy.array([7, 1]), [7, 1]),
        (slice(-2, None), [48, 49]),
    ):
        loader = make(subset=subset, batch_size=2, return_info=True)
        assert numbers(loader) == expected and loader.samples == len(expected)


LABELS = [i % 3 for i in range(50)]


@pytest.mark.parametrize("kind", ["list", "tuple", "numpy", "numpy objects"])
def test_a_subset_by_a_mask(make, kind):
    chosen = [label == 1 for label in LABELS]
    mask = {"list": chosen, "tuple": tuple(chosen), "numpy": numpy.array(chosen),
            "numpy objects": [numpy.bool_(one) for one in chosen]}[kind]
    loader = make(subset=mask, batch_size=1, return_info=True)
    assert numbers(loader) == list(range(1, 50, 3))


@pytest.mark.parametrize("subset, message", [
    ([], "expected at least one sample, found none"),
    (range(3, 3), "expected at least one sample, found none"),
    (numpy.array([], dtype=int), "expected at least one sample, found none"),
    ([False] * 50, "expected at least one sample, found none"),
    ([50], "expected numbers from 0 to 49, found 50 at index 0"),
    ([3, -1], "found -1 at index 1; negative numbers do not count from the end: use 49"),
    (numpy.array([3, -51]), "found -51 at index 1$"),
    (range(45, 55), "expected numbers from 0 to 49, found 54"),
    (range(-2, 3), "found -2; negative numbers do not count from the end: use 48"),
    (range(0, 60, 2), "found 58"),
    ([2**70], "found 1180591620717411303424"),
    ([True] * 49, "expected a mask of 50 booleans, one for each sample of the pack, found 49"),
    (numpy.ones(51, dtype=bool), "expected a mask of 50 booleans.*found 51"),
    (numpy.arange(50) % 2, "found 50 numbers that are all 0 or 1.*pass a mask as booleans"),
    ([0, 1] * 25, "found 50 numbers that are all 0 or 1.*pass a mask as booleans"),
    ([True, 1, 0], "found booleans and numbers in one list"),
    (numpy.zeros((2, 2), dtype=int), "expected one dimension"),
    (numpy.array([1.0]), "found an array of float64"),
])
def test_subsets_that_are_refused(make, subset, message):
    with pytest.raises(penstock.InvalidError, match="^subset: .*" + message):
        make(subset=subset)


@pytest.mark.parametrize("subset", ["ab", b"ab", {1: 2}, {1}, 5, [1.5], [None], True, object()])
def test_subsets_of_other_types(make, subset):
    with pytest.raises(TypeError, match="^subset: expected sample numbers from 0 to 49"):
        make(subset=subset)


def test_a_loader_without_batches_gives_a_warning(make):
    with pytest.warns(UserWarning, match="no batches: it has 50 samples, and last_batch='drop' "
                                         "needs 2 x 26, one batch per rank; reduce batch_size"):
        assert len(make(batch_size=26, drop_last=True, rank=0, world_size=2)) == 0
    assert len(make(batch_size=25, drop_last=True, rank=0, world_size=2)) == 1
    assert len(make(batch_size=26, rank=0, world_size=2)) == 1


def test_a_folder_is_answered_with_how_to_pack_it(tmp_path):
    with pytest.raises(penstock.NotFoundError, match="not a pack.*penstock pack FOLDER -o NAME"):
        penstock.Loader(tmp_path, 4)


def test_pipelines_that_are_no_operations(make):
    with pytest.raises(TypeError, match="pipeline: label: expected a text or a list of "
                                        "penstock.ops, found None; to skip the field"):
        make(pipeline={"image": SMALL, "label": None})
    with pytest.raises(TypeError, match=r"pipeline: .*; call it: ops.decode\(\)$"):
        make(pipeline=[penstock.ops.decode])
    with pytest.raises(penstock.InvalidError, match="without parentheses: 'center_crop 16'"):
        make(pipeline="decode | center_crop(16) | tensor")


@pytest.mark.parametrize("last_batch", ["short", "pad", "drop"])
@pytest.mark.parametrize("world", [1, 3])
def test_length_of_the_sampler(make, last_batch, world):
    """What the rank with most samples has in an epoch, with those that pad the last batch."""
    loaders = [make(last_batch=last_batch, rank=rank, world_size=world, return_info=True)
               for rank in range(world)]
    given = max(sum(len(batch.info.samples) for batch in loader) for loader in loaders)
    assert {len(loader.sampler) for loader in loaders} == {given} == {
        {("short", 1): 50, ("pad", 1): 56, ("drop", 1): 48, ("short", 3): 17, ("pad", 3): 24,
         ("drop", 3): 16}[last_batch, world]}


# ---- state


def test_state_goes_on_in_the_middle(make):
    settings = {"shuffle": True, "seed": 5, "return_info": True, "pipeline": SMALL}
    whole = [(b.info.position, b.image.copy()) for b in make(**settings)]
    loader = make(**settings)
    assert len(list(zip(range(3), loader))) == 3
    state = json.loads(json.dumps(loader.state_dict()))
    assert all(type(value) in (int, str) for value in state.values())
    assert state["position"] == 24 and state["epoch"] == 0
    again = make(**settings)
    again.load_state_dict(state)
    again.set_epoch(again.epoch)
    rest = [(b.info.position, b.image.copy()) for b in again]
    assert len(rest) == 4 and len(again) == 7
    for (p, a), (q, b) in zip(rest, whole[3:]):
        assert p == q and numpy.array_equal(a, b)
    assert again.epoch == 1


def test_a_state_is_not_to_be_edited(make):
    """Values that define the order are in its hash."""
    loader = make(order="shuffle", shuffle_buffer=8)
    state = loader.state_dict()
    assert state["version"] == 2 and state["shuffle_buffer"] == 6 * state["block"]
    buffer = state["shuffle_buffer"]
    for name, value, expected in (
        ("version", 1, "expected 2; load it with the version of penstock that wrote it"),
        ("order", "block", "expected sequential, random, shuffle or sticky"),
        ("shuffle_buffer", buffer + 1, "expected 3 * 2^k blocks of samples, 6 or more"),
        ("shuffle_buffer", 2 * buffer, "expected the hash of the other values"),
        ("block", 0, "expected a number from 1 to"), ("seed", 1, "expected the hash of the other"),
        ("hash", "0" * 16, "expected the hash"), ("hash", "0", "expected 16 hexadecimal digits"),
    ):
        with pytest.raises(penstock.InvalidError, match=re.escape(expected)):
            loader.load_state_dict({**state, name: value}, strict=False)
    with pytest.raises(penstock.InvalidError, match='"lanes" is not a key of version 2'):
        loader.load_state_dict({**state, "lanes": 4})


def test_the_hash_of_the_order(make):
    """The same text in a state, in the counters and with every batch."""
    with make(return_info=True, shuffle=True) as loader:
        state = loader.state_dict()
        assert re.fullmatch("[0-9a-f]{16}", state["hash"])
        assert loader.stats()["order_hash"] == state["hash"]
        assert loader.stats()["epoch"]["order_hash"] == state["hash"]
        assert {batch.info.order_hash for batch in loader} == {state["hash"]}
        assert loader.stats()["fetch_unit"] is None  # of a local pack
        assert loader.stats()["memory_wanted_bytes"] == 0
    same = {"threads": 1, "memory": "64MiB", "batch_size": 3, "pipeline": SMALL}
    for settings, is_same in ((same, True), ({"rank": 1, "world_size": 2}, True),
                              ({"seed": 1}, False), ({"subset": range(40)}, False)):
        with make(shuffle=True, **settings) as loader:
            assert (loader.state_dict()["hash"] == state["hash"]) is is_same, settings


def test_state_of_another_pipeline_is_refused(make):
    state = make(pipeline=SMALL, seed=1).state_dict()
    other = make(pipeline="decode | center_crop 20 | tensor u8", seed=1)
    with pytest.raises(penstock.InvalidError, match="pipeline"):
        other.load_state_dict(state)
    other.load_state_dict(state, strict=False)
    for wrong in ({}, {**state, "epoch": "x y"}, {**state, "epoch": 1.5}, {**state, "odd": 1}):
        with pytest.raises(penstock.InvalidError):
            other.load_state_dict(wrong)


@pytest.mark.parametrize("name, most", [
    ("epoch", 2**63 - 1), ("position", N), ("samples", 2**63), ("seed", 2**64 - 1)])
@pytest.mark.parametrize("strict", [True, False])
def test_a_state_out_of_range_is_refused(make, name, most, strict):
    loader = make(order="shuffle")
    state = loader.state_dict()
    if name in ("epoch", "position"):  # the hash has the others
        loader.load_state_dict({**state, name: most}, strict=False)
    for value in (most + 1, -1, 2**70):
        with pytest.raises(penstock.InvalidError, match=f'state: {name} is "{value}"'):
            loader.load_state_dict({**state, name: value}, strict=strict)


# ---- ranks


def test_ranks_share_the_order(make):
    whole = numbers(make(shuffle=True, batch_size=8, return_info=True))
    parts = [
        make(shuffle=True, batch_size=4, return_info=True, rank=rank, world_size=2)
        for rank in range(2)
    ]
    assert len(parts[0]) == len(parts[1]) == 7
    assert sorted(numbers(parts[0]) + numbers(parts[1])) == sorted(whole)


def test_rank_of_the_environment(make, monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_NUM_TASKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(_dist.sys.modules, "torch", None)
    assert _dist.place(None, None) == (0, 1)
    monkeypatch.setenv("SLURM_PROCID", "2")
    monkeypatch.setenv("SLURM_NTASKS", "8")
    assert _dist.place(None, None) == (2, 8)
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "4")
    assert _dist.place(None, None) == (2, 4)
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "3")
    assert _dist.place(None, None) == (1, 3)
    assert (make().rank, make().world_size) == (1, 3)
    assert _dist.place(0, 2) == (0, 2)
    monkeypatch.setenv("RANK", "one")
    with pytest.raises(penstock.InvalidError, match="a number in variable RANK, found 'one'"):
        make()


def test_rank_of_torch_distributed(monkeypatch):
    dist = types.SimpleNamespace(
        is_available=lambda: True, is_initialized=lambda: True, get_rank=lambda: 5,
        get_world_size=lambda: 6,
    )
    monkeypatch.setitem(_dist.sys.modules, "torch", types.SimpleNamespace(distributed=dist))
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "3")
    assert _dist.place(None, None) == (5, 6)


@pytest.mark.parametrize("rank, world", [(2, 2), (-1, 2), (0, 0), (0, None), (None, 2), ("0", 1)])
def test_wrong_ranks(make, rank, world):
    with pytest.raises((penstock.InvalidError, TypeError)):
        make(rank=rank, world_size=world)


# ---- arguments


@pytest.mark.parametrize(
    "name, message",
    [
        ("num_workers", "threads="), ("collate_fn", "transform="), ("sampler", "order="),
        ("batch_sampler", "batch_size="), ("worker_init_fn", "seed="), ("generator", "seed="),
        ("prefetch_factor", "prefetch="), ("persistent_workers", "threads live"),
        ("multiprocessing_context", "no worker processes"), ("shufle", "did you mean 'shuffle'"),
        ("nonsense", "Loader has no argument 'nonsense'$"),
    ],
)
def test_arguments_of_dataloader_name_their_replacement(pack, name, message):
    with pytest.raises(TypeError, match=message):
        penstock.Loader(pack, 8, **{name: 1})


@pytest.mark.parametrize(
    "settings",
    [
        {"batch_size": 0}, {"threads": 0}, {"memory": "1 mile"}, {"output": "tensorflow"},
        {"order": "blok"}, {"order": "random", "shuffle": False}, {"on_bad": "skip"},
        {"timeout": 0}, {"seed": -1}, {"pin_memory": True}, {"pipeline": "decode | tensr u8"},
        {"pipeline": {"imag": "decode | tensor u8"}}, {"memory": 1000, "pipeline": SMALL},
    ],
    ids=str,
)
def test_wrong_settings(make, settings):
    with pytest.raises((penstock.InvalidError, penstock.LimitError, penstock.NotFoundError)) as e:
        make(**settings)
    assert "\n" not in str(e.value)


@pytest.mark.parametrize("timeout", [0, 0.0001, 4_000_001, -1])
def test_wrong_timeouts(make, timeout):
    with pytest.raises(penstock.InvalidError, match=f"timeout: expected .*, found {timeout}"):
        make(timeout=timeout)


def test_path_instead_of_a_pack(pack, make):
    loader = make(pack.path)
    assert loader.dataset.id == pack.id and len(loader) == 7


def test_what_it_says_of_itself(make):
    loader = make(pipeline=SMALL)
    assert "center_crop size=16,16" in loader.pipeline and "7 batches" in repr(loader)
    for _ in loader:
        pass
    stats = loader.stats()
    assert (stats["batches"], stats["samples"], stats["threads"]) == (7, N, 2)
    loader.close()
    assert "closed" in repr(loader)
    for use in (lambda: next(iter(loader)), lambda: len(loader), loader.stats, loader.state_dict):
        with pytest.raises(penstock.ClosedError):
            use()


def test_pickling(make):
    loader = make(pipeline=SMALL)
    with pytest.raises(TypeError, match="create one in each process"):
        pickle.dumps(loader)
    batch = next(iter(loader))
    image, label = pickle.loads(pickle.dumps(batch))
    assert numpy.array_equal(image, batch.image) and numpy.array_equal(label, batch.label)


# ---- bad samples


@pytest.fixture
def damaged(tmp_path):
    path = tmp_path / "bad.pen"
    pack = write_pack(penstock, path, N)
    data = pack[11]["image"]
    pack.close()
    shard = next(path.glob("*/*.shard"))
    content = bytearray(shard.read_bytes())
    content[bytes(content).find(data) + 50] ^= 1
    shard.write_bytes(content)
    return path


def test_a_field_cannot_hide_the_info(tmp_path):
    penstock.write(tmp_path / "i.pen", [{"info": i} for i in range(4)], {"info": "i64"})
    settings = {"output": "numpy", "memory": "32MiB"}
    with penstock.Loader(tmp_path / "i.pen", 2, **settings) as loader:
        assert next(iter(loader)).info.tolist() == [0, 1]
    with pytest.raises(penstock.InvalidError, match="return_info: a field has the name 'info'"):
        penstock.Loader(tmp_path / "i.pen", 2, return_info=True, **settings)
    for pipeline in ({"details": [penstock.ops.source("info"), penstock.ops.tensor()]},
                     "details = info: tensor"):
        with penstock.Loader(tmp_path / "i.pen", 2, pipeline=pipeline, return_info=True,
                             **settings) as loader:
            batch = next(iter(loader))
            assert batch.details.tolist() == batch.info.samples.tolist() == [0, 1]
    function = penstock.ops.python(lambda sample, rng: {"info": 1})
    with penstock.Loader(tmp_path / "i.pen", 2, pipeline=["details = info: tensor", function],
                         return_info=True, **settings) as loader:
        with pytest.raises(penstock.InvalidError, match="return_info: a field has the name 'info'"):
            next(iter(loader))


def test_repr_of_what_could_not_be_opened(pack, tmp_path):
    """As debuggers and pytest show it."""
    kinds = {"Pack": (penstock.Pack, (tmp_path / "no.pen",), {}),
             "Loader": (penstock.Loader, (tmp_path / "no.pen", 2), {}),
             "Loader of": (penstock.Loader, (pack, 2), {"threads": -1})}
    for name, (kind, args, settings) in kinds.items():
        made = kind.__new__(kind)
        with pytest.raises(penstock.Error):
            made.__init__(*args, **settings)
        assert repr(made).startswith(f"<penstock.{name.partition(' ')[0]}")
        assert repr(made).endswith(": could not be opened>")


def test_bad_sample_raises_with_its_number(make, damaged):
    loader = make(damaged, pipeline=SMALL, return_info=True)
    batches = iter(loader)
    next(batches)
    with pytest.raises(penstock.CorruptError) as caught:
        next(batches)
    assert caught.value.sample == 11
    assert next(batches).info.position == 16


def test_bad_sample_is_substituted(make, damaged):
    loader = make(damaged, pipeline=SMALL, on_bad="substitute", return_info=True)
    counts = [batch.info.substituted for batch in loader]
    assert counts == [0, 1, 0, 0, 0, 0, 0]
    (bad,) = loader.bad_samples()
    assert (bad.sample, bad.epoch) == (11, 0) and bad.instead != 11 and bad.message
    with pytest.raises(penstock.CorruptError, match="max_bad"):
        list(make(damaged, pipeline=SMALL, on_bad="substitute", max_bad=0))


# ---- waiting and ending


def test_signal_ends_a_wait(make, slow):
    loader = make(slow, batch_size=32, pipeline=SLOW, memory="2GiB")

    class Rang(Exception):
        pass

    def ring(*_):
        raise Rang

    old = signal.signal(signal.SIGALRM, ring)
    try:
        with pytest.raises(Rang):
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            next(iter(loader))
        assert loader.stats()["batches"] == 0  # not after the wait
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def test_timeout_is_an_error(make, slow):
    loader = make(slow, batch_size=32, pipeline=SLOW, memory="2GiB", timeout=0.25)
    start = time.monotonic()
    with pytest.raises(TimeoutError, match="no batch for"):
        next(iter(loader))
    assert time.monotonic() - start > 0.2
    assert loader.stats()["batches"] == 0


def test_other_thread_closes_a_waiting_loader(make, slow):
    loader = make(slow, batch_size=32, pipeline=SLOW, memory="2GiB")
    closer = threading.Timer(0.3, loader.close)
    closer.start()
    with pytest.raises(penstock.ClosedError):
        next(iter(loader))
    closer.join(20)
    assert not closer.is_alive()


def test_threads_share_a_pass(make):
    batches = iter(make(return_info=True))
    found, errors = [], []

    def take():
        try:
            for batch in batches:
                found.extend(batch.info.samples[batch.info.valid].tolist())
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not errors and sorted(found) == list(range(N))


@pytest.mark.skipif("thread" in conftest.sanitizer(conftest.BUILD),
                    reason="the thread sanitizer knows no threads after a fork")
def test_child_process(make):
    loader = make(pipeline=SMALL)
    batches = iter(loader)
    image, label = next(batches)
    kept = image.copy()

    def use():
        nonlocal image, label
        assert numpy.array_equal(image, kept)
        for call in (lambda: next(batches), loader.stats, lambda: len(loader)):
            with pytest.raises(penstock.ClosedError, match="parent process"):
                call()
        del image, label
        with penstock.Loader(loader.dataset, 8, pipeline=SMALL, output="numpy") as own:
            assert numpy.array_equal(next(iter(own)).image, kept)
        loader.close()

    assert in_child(use) is None
    assert len(list(batches)) == 6


EXITS = {
    "normal": "pass",
    "in a cycle": "box = [it]; box.append(box)",
    "exception": "raise SystemExit(3)",
    "daemon thread": "import threading as t; t.Thread(target=list, args=[it], daemon=True).start()",
    "kept batch": "batch = next(it)",
}


@pytest.mark.parametrize("how", EXITS)
def test_exit_is_quick_and_quiet(pack, how):
    code = (
        "import sys, penstock\n"
        "loader = penstock.Loader(sys.argv[1], 4, output='numpy', threads=2,\n"
        "    pipeline='decode | center_crop 16 | tensor u8')\n"
        "it = iter(loader); next(it)\n" + EXITS[how]
    )
    start = time.monotonic()
    done = run_python(code, pack.path)
    assert done.returncode == (3 if how == "exception" else 0), done.stderr
    assert done.stderr == "" and time.monotonic() - start < 30  # what waits takes a minute or more


def test_opened_and_dropped_again_and_again(pack):
    def threads():
        return len(os.listdir("/proc/self/task"))

    before = threads()
    for i in range(60):
        loader = penstock.Loader(pack, 8, output="numpy", threads=2, pipeline=SMALL)
        batches = iter(loader)
        next(batches)
        if i % 2:
            loader.close()
        del loader, batches
    assert threads() <= before


def test_images_of_other_sizes(make, tmp_path):
    path = tmp_path / "sizes.pen"
    write_pack(penstock, path, 9, lambda i: png(i, 20 + 7 * i, 60 - 5 * i))
    loader = make(path, batch_size=9, pipeline="decode | random_resized_crop 24 | tensor u8")
    image, _ = next(iter(loader))
    assert image.shape == (9, 24, 24, 3)
