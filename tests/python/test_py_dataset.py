# SPDX-License-Identifier: Apache-2.0
"""penstock.Dataset: the samples of a Loader by number, in threads and worker processes."""

import importlib.util
import os
import pickle
import shutil
import threading

import pytest
from py_tools import in_child, jpeg, need_penstock, png, write_pack

penstock = need_penstock()
np = pytest.importorskip("numpy")

with_torch = pytest.mark.skipif(
    not importlib.util.find_spec("torch") or "san.so" in os.environ.get("LD_PRELOAD", ""),
    reason="torch is not installed, or a sanitizer is loaded")

N = 26
RANDOM = ("decode | random_resized_crop 16 | hflip | color_jitter brightness=0.4 hue=0.1 "
          "| random_erasing")


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    return write_pack(penstock, tmp_path_factory.mktemp("packs") / "a.pen", N, jpeg)


def numpy_dataset(pack, pipeline=RANDOM, **settings):
    return penstock.Dataset(pack, pipeline, output="numpy", **{"seed": 7, **settings})


def loaded(pack, epoch, pipeline=RANDOM, seed=7):
    """The samples of a loader by number: (image bytes, label)."""
    with penstock.Loader(pack, 5, order="random", seed=seed, pipeline=pipeline, output="numpy",
                         return_info=True, memory="64MiB") as loader:
        loader.set_epoch(epoch)
        return {int(number): (image.tobytes(), int(label))
                for images, labels, info in loader
                for image, label, number in zip(images, labels, info.samples)}


def same(dataset, want, numbers=()):
    numbers = numbers or range(N)
    return [(dataset[i].image.tobytes(), int(dataset[i].label)) for i in numbers] == [
        want[i] for i in numbers]


def test_samples_are_those_of_the_loader(pack):
    dataset = numpy_dataset(pack)
    assert len(dataset) == N and dataset.epoch == 0 and dataset.fields == ("image", "label")
    first = loaded(pack, 0)
    assert same(dataset, first)
    dataset.set_epoch(3)
    third = loaded(pack, 3)
    assert first != third and dataset.epoch == 3 and same(dataset, third)
    assert dataset[0, 5].image.tobytes() == first[5][0]
    assert not same(numpy_dataset(pack, seed=8), first)
    assert same(numpy_dataset(pack.path), first)


@with_torch
def test_torch_samples(pack):
    import torch

    dataset = penstock.Dataset(pack, RANDOM, seed=7)
    image, label = dataset[4]
    assert image.shape == (3, 16, 16) and image.dtype == torch.uint8
    assert label.shape == () and label.dtype == torch.int64 and label.item() == 1
    assert image.permute(1, 2, 0).numpy().tobytes() == loaded(pack, 0)[4][0]


def test_a_sample_has_its_own_memory(pack):
    dataset = numpy_dataset(pack, "decode | center_crop 16", memory="32MiB")
    kept = [dataset[i % N].image for i in range(200)]
    want = [dataset[i].image.tobytes() for i in range(N)]
    del dataset
    kept[0][:] = 0
    assert all(kept[i].tobytes() == want[i % N] for i in range(1, 200))


def test_text_json_bytes_and_keys(tmp_path):
    schema = {"image": "image", "caption": "text?", "meta": "json", "blob": "bytes", "x": "f32[2]"}
    with penstock.Writer(tmp_path / "t.pen", schema) as writer:
        for i in range(3):
            writer.add(key=f"k{i}", image=png(i), caption=None if i == 2 else f"caf\u00e9 {i}",
                       meta={"i": [i]}, blob=bytes([i] * i), x=[i, 2])
    fields = {"caption": "text", "meta": "json", "blob": "bytes", "id": "key", "x": "tensor"}
    dataset = numpy_dataset(tmp_path / "t.pen", fields, as_dict=True)
    sample = dataset[1]
    assert sample.pop("x").tolist() == [1, 2]
    assert sample == {"caption": "caf\u00e9 1", "meta": {"i": [1]}, "blob": b"\1", "id": "k1"}
    assert dataset[2]["caption"] is None and list(dataset[0]) == list(fields)


def test_ragged_fields_and_views(tmp_path):
    with penstock.Writer(tmp_path / "r.pen", {"image": "image", "spots": "f32[*,2]"}) as writer:
        for i in range(4):
            writer.add(image=png(i), spots=np.full((i, 2), i, "f4"))
    a, b = ["image: decode | random_resized_crop 8", "image: decode | random_crop 8 | repeat 3"]
    for pipeline in (f"a = {a}; b = {b}; spots: ragged 8", "spots: ragged 8 pad=-1"):
        dataset = numpy_dataset(tmp_path / "r.pen", pipeline)
        function = penstock.ops.python(lambda sample, rng: sample)
        for text in (pipeline, [pipeline, function]):
            with penstock.Loader(tmp_path / "r.pen", 4, pipeline=text, seed=7, output="numpy",
                                 memory="64MiB") as loader:
                batch = next(iter(loader))
            assert dataset.fields == batch._fields
            for i in range(4):
                for field, value in zip(batch, dataset[i], strict=True):
                    assert np.array_equal(field[i], value)
    assert dataset[3].spots.shape == (8, 2) and dataset[3].spots[3:].max() == -1


def test_indexes(pack):
    dataset = numpy_dataset(pack)
    assert dataset[-1].label == (N - 1) % 3 and dataset[np.int64(4)].label == 1
    assert [s.label for s in dataset.__getitems__([3, [1, 4], (2, 5)])] == [0, 1, 2]
    assert len(list(dataset)) == N
    for wrong in (N, -N - 1, (0, N)):
        with pytest.raises(IndexError, match=f"no sample -?{N}|has {N} samples"):
            dataset[wrong]
    for wrong in ("a", 1.5, None, True, slice(2), (0, 1, 2)):
        with pytest.raises(TypeError, match="index: expected"):
            dataset[wrong]
    for wrong in (-1, 2**63):
        with pytest.raises(penstock.InvalidError, match="epoch: expected 0 to"):
            dataset[wrong, 0]
        with pytest.raises(penstock.InvalidError, match="epoch: expected 0 to"):
            dataset.set_epoch(wrong)


def test_wrong_settings(pack):
    with pytest.raises(penstock.InvalidError, match="output: expected one of torch, numpy"):
        penstock.Dataset(pack, output="jax")
    with pytest.raises(penstock.InvalidError, match="NumPy has no bf16"):
        numpy_dataset(pack, "decode | center_crop 8 | tensor bf16")
    with pytest.raises(penstock.InvalidError, match="no field 'photo'"):
        numpy_dataset(pack, {"photo": "decode"})


def test_an_error_names_the_sample(pack, tmp_path):
    path = shutil.copytree(pack.path, tmp_path / "b.pen")
    (shard,) = path.rglob("*.shard")
    data, stored = bytearray(shard.read_bytes()), pack[5]["image"]
    data[data.find(stored) + len(stored) // 2] ^= 255
    shard.write_bytes(data)
    dataset = numpy_dataset(path, "decode | center_crop 32,40")
    with pytest.raises(penstock.CorruptError, match="sample 5 's5'") as error:
        dataset[5]
    assert error.value.sample == 5
    assert dataset[4].label == 1


def test_pickling_keeps_settings_and_the_epoch(pack):
    dataset = numpy_dataset(pack, as_dict=True)
    dataset.set_epoch(2)
    data = pickle.dumps(dataset)
    again = pickle.loads(data)
    assert len(data) < 2000 and again.epoch == 2 and repr(again) == repr(dataset)
    assert again[3]["image"].tobytes() == dataset[3]["image"].tobytes() == loaded(pack, 2)[3][0]
    sample = pickle.loads(pickle.dumps(numpy_dataset(pack)[3]))
    assert sample.image.shape == (16, 16, 3) and sample.label == 0


def test_credentials_are_not_pickled(monkeypatch):
    class Open:  # a pack that was opened with credentials
        path, _has_secrets = "s3://b/a.pen", True

    with pytest.raises(TypeError, match="opened with credentials and cannot be pickled"):
        penstock.Pack.__reduce__(Open())


def test_threads(pack):
    dataset, want, wrong = numpy_dataset(pack), loaded(pack, 0), []

    def run(first):
        for i in range(N):
            number = (first * 5 + i) % N
            if not same(dataset, want, [number]):
                wrong.append(number)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_forked_child_while_threads_load(pack):
    dataset, want, stop = numpy_dataset(pack), loaded(pack, 0), threading.Event()

    def run():
        while not stop.is_set():
            dataset[3]

    def check():
        assert same(dataset, want, range(0, N, 3))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            assert in_child(check) is None
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_a_child_sees_the_epoch_that_its_parent_sets(pack):
    dataset = numpy_dataset(pack)
    go, done = os.pipe(), os.pipe()
    if os.fork() == 0:
        os.read(go[0], 1)
        os.write(done[1], bytes([dataset.epoch]))
        os._exit(0)
    dataset.set_epoch(9)
    os.write(go[1], b"x")
    assert os.read(done[0], 1) == b"\x09"
    os.wait()


@with_torch
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_persistent_workers_follow_set_epoch(pack, method):
    import torch

    dataset = penstock.Dataset(pack, RANDOM + " | tensor u8 nchw", seed=7)
    loader = torch.utils.data.DataLoader(
        dataset, batch_size=4, num_workers=1, persistent_workers=True,
        multiprocessing_context=method)
    for epoch in (0, 1, 4):
        dataset.set_epoch(epoch)
        batches = list(loader)
        assert batches[0].image.shape == (4, 3, 16, 16)
        want = loaded(pack, epoch, RANDOM + " | tensor u8 nchw")
        images = torch.cat([batch.image for batch in batches])
        labels = torch.cat([batch.label for batch in batches])
        assert [(image.numpy().tobytes(), int(label)) for image, label in zip(images, labels)] == [
            want[i] for i in range(N)]


@with_torch
def test_a_sampler_can_name_the_epoch(pack):
    import torch

    dataset = numpy_dataset(pack, as_dict=True)
    loader = torch.utils.data.DataLoader(
        dataset, sampler=[(epoch, i) for epoch in (0, 1) for i in range(N)], batch_size=N)
    for epoch, batch in enumerate(loader):
        want = loaded(pack, epoch)
        assert [image.numpy().tobytes() for image in batch["image"]] == [
            want[i][0] for i in range(N)]


@with_torch
@pytest.mark.skipif(not importlib.util.find_spec("accelerate"), reason="without accelerate")
def test_accelerate_sets_the_epoch(pack):
    import accelerate
    import torch

    dataset = penstock.Dataset(pack, RANDOM, seed=7, as_dict=True)
    loader = accelerate.Accelerator(cpu=True).prepare(
        torch.utils.data.DataLoader(dataset, batch_size=N))
    loader.set_epoch(2)
    (batch,) = loader
    assert dataset.epoch == 2
    assert batch["image"][3].permute(1, 2, 0).numpy().tobytes() == loaded(pack, 2)[3][0]
