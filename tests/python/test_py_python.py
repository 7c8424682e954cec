# SPDX-License-Identifier: Apache-2.0
"""ops.python: functions of the user for samples and batches, in a Loader and in a Dataset."""

import asyncio
import contextlib
import importlib.util
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest
from py_tools import jpeg, need_penstock, png, write_pack

penstock = need_penstock()
np = pytest.importorskip("numpy")

from penstock import ops  # noqa: E402

with_torch = pytest.mark.skipif(
    not importlib.util.find_spec("torch") or "san.so" in os.environ.get("LD_PRELOAD", ""),
    reason="torch is not installed, or a sanitizer is loaded")

N, BATCH = 26, 4
RANDOM = "decode | random_resized_crop 16 | hflip"


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    return write_pack(penstock, tmp_path_factory.mktemp("packs") / "a.pen", N, jpeg)


def noise(sample, rng):
    """Depends on the image and on the generator."""
    image = sample["image"].astype(np.float32) + rng.normal(size=sample["image"].shape)
    return {"image": image, "label": sample["label"], "draw": rng.random()}


def load(pack, *functions, pipeline=RANDOM, batch=BATCH, **settings):
    settings = {"output": "numpy", "memory": "64MiB", "order": "random", "seed": 3, **settings}
    return penstock.Loader(pack, batch, pipeline=[pipeline, *functions], **settings)


def rows(batches):
    """All of it, as bytes."""
    return [tuple(np.asarray(value).tobytes() for value in batch) for batch in batches]


def test_a_function_that_changes_nothing(pack):
    with load(pack) as plain, load(pack, ops.python(lambda sample, rng: sample)) as other:
        for a, b in zip(plain, other, strict=True):
            assert a._fields == b._fields and a.image.dtype == b.image.dtype
            assert a.label.dtype == b.label.dtype
            assert rows([a]) == rows([b])
        assert plain.epoch == other.epoch == 1


@with_torch
def test_torch_tensors(pack):
    seen = []

    def function(sample, rng):
        seen.append(sample["image"].shape)
        return {"image": sample["image"].float(), "array": np.arange(2), "x": 0.5, "n": 3}

    with load(pack, ops.python(function), output="torch") as loader, load(
            pack, output="torch") as plain:
        batch, want = next(iter(loader)), next(iter(plain))
    assert set(seen) == {(3, 16, 16)} and (batch.image == want.image).all()
    assert [str(v.dtype) for v in batch] == [
        "torch.float32", "torch.int64", "torch.float64", "torch.int64"]
    assert batch.array.tolist() == [[0, 1]] * BATCH


def test_the_same_for_threads_ranks_and_the_dataset(pack):
    with load(pack, ops.python(noise, threads=1)) as loader:
        want, second = rows(loader), rows(loader)
    assert want != second
    for threads in (2, 5):
        with load(pack, ops.python(noise, threads=threads), threads=threads) as loader:
            assert rows(loader) == want and rows(loader) == second
    halves = [load(pack, ops.python(noise), batch=BATCH // 2, rank=rank, world_size=2)
              for rank in (0, 1)]
    together = []
    for step in zip(*halves):  # they take samples in turn
        together.append(tuple(np.stack(pair, 1).tobytes() for pair in zip(*step)))
    assert together[:-1] == want[:-1]
    with load(pack, ops.python(noise), return_info=True) as loader:
        batch = next(iter(loader))
    dataset = penstock.Dataset(pack, [RANDOM, ops.python(noise)], seed=3, output="numpy")
    for i, number in enumerate(batch.info.samples.tolist()):
        assert dataset[number].draw == batch.draw[i]
        assert dataset[number].image.tobytes() == batch.image[i].tobytes()


def test_version_seed_and_place_change_the_draws(pack):
    def draw(*functions, **settings):
        with load(pack, *functions, **settings) as loader:
            return next(iter(loader)).draw.tolist()

    def again(sample, rng):
        return {"draw": rng.random()}

    found = [draw(ops.python(noise)), draw(ops.python(noise, version=2)),
             draw(ops.python(noise), seed=4),
             draw(ops.python(noise), ops.python(again)), draw(ops.python(again))]
    assert len({tuple(draws) for draws in found}) == 5


def test_repeated_samples_have_their_own_draws(pack):
    numbers = [3, 5, 3, 3]
    with load(pack, ops.python(noise), subset=numbers, order="sequential") as loader:
        (batch,) = loader
    assert len(set(batch.draw.tolist())) == 4
    weights = [1] * (N - 1) + [N]
    with load(pack, ops.python(noise), weights=weights, return_info=True) as loader:
        draws = [(n, draw) for b in loader
                 for n, draw, valid in zip(b.info.samples, b.draw, b.info.valid) if valid]
    assert len(draws) == len(set(draws)) == N and sum(n == N - 1 for n, _ in draws) > 5
    dataset = penstock.Dataset(pack, [RANDOM, ops.python(noise)], seed=3, output="numpy")
    assert dataset[3].draw == batch.draw[0] and dataset[5].draw == batch.draw[1]


def test_every_place_resumes(pack):
    with load(pack, ops.python(noise)) as loader:
        want, second = rows(loader), rows(loader)
    for cut in range(len(want) + 1):
        loader = load(pack, ops.python(noise))
        batches = iter(loader)
        assert rows([next(batches) for _ in range(cut)]) == want[:cut]
        state = loader.state_dict()
        assert state["position"] == min(cut * BATCH, N) and state["epoch"] == 0
        assert loader.epoch == (cut == len(want))
        with load(pack, ops.python(noise)) as plain:
            plain.load_state_dict(state)
            assert rows(plain) == want[cut:] and rows(plain) == second
        assert rows(batches) == want[cut:]
        assert loader.state_dict()["epoch"] == loader.epoch == 1
        loader.load_state_dict(state)
        assert rows(loader) == want[cut:] and rows(loader) == second
        loader.close()


def test_a_loop_that_ends_early(pack):
    with load(pack, ops.python(noise)) as loader:
        first, second = rows(loader), rows(loader)
        loader.set_epoch(0)
        for batch in loader:
            assert rows([batch]) == first[:1]
            break
        old = iter(loader)
        assert loader.state_dict()["epoch"] == 1 and loader.state_dict()["position"] == 0
        assert rows(loader)[:1] != first[:1]
        loader.set_epoch(1)
        assert rows(loader) == second
        with pytest.raises(penstock.Error, match="this iterator has ended"):
            next(old)


def test_states_of_other_functions_are_refused(pack):
    saved = {}
    for name, functions in {"none": (), "one": [ops.python(noise)],
                            "two": [ops.python(noise, version=2)],
                            "batch": [ops.python(noise), ops.python(noise, per="batch")]}.items():
        with load(pack, *functions) as loader:
            saved[name] = functions, loader.state_dict()
    assert saved["one"][1]["python"] == "1" and saved["batch"][1]["python"] == "1,batch:1"
    assert "python" not in saved["none"][1]
    for name, (functions, _) in saved.items():
        for other, (_, state) in saved.items():
            with load(pack, *functions) as loader:
                if name == other:
                    loader.load_state_dict(state)
                    continue
                with pytest.raises(penstock.InvalidError, match=r"ops.python: expected version"):
                    loader.load_state_dict(state)
                loader.load_state_dict(state, strict=False)


def test_shapes_that_differ_are_lists(pack):
    def function(sample, rng):
        n = int(sample["label"])
        return {"ragged": np.zeros(n), "text": "x" * n, "none": None, "mixed": 1 if n else 1.0,
                "flag": n == 1, "huge": 2**70, "array": np.ones((2, 3), np.float16)}

    with load(pack, ops.python(function), order="sequential") as loader:
        batch = next(iter(loader))
    assert [len(value) for value in batch.ragged] == [0, 1, 2, 0]
    assert batch.text == ["", "x", "xx", ""] and batch.none == [None] * 4
    assert batch.mixed == [1.0, 1, 1, 1.0] and batch.huge == [2**70] * 4
    assert batch.flag.dtype == bool and batch.flag.tolist() == [False, True, False, False]
    assert batch.array.shape == (4, 2, 3) and batch.array.dtype == np.float16


def test_text_and_keys(tmp_path):
    schema = {"image": "image", "caption": "text?"}
    with penstock.Writer(tmp_path / "t.pen", schema) as writer:
        for i in range(6):
            writer.add(key=f"k{i}", image=png(i), caption=f"c{i}" if i else None)
    fields = {"image": "decode | center_crop 8", "caption": "text", "id": "key"}

    def function(sample, rng):
        return {"both": (sample["caption"] or "") + sample["id"], "mean": sample["image"].mean()}

    for pipeline in ([fields, ops.python(function)],
                     ["image: decode | center_crop 8; caption: text; id: key",
                      ops.python(function)]):
        with penstock.Loader(tmp_path / "t.pen", 3, pipeline=pipeline, output="numpy",
                             memory="64MiB") as loader:
            assert [text for batch in loader for text in batch.both] == [
                "k0", *(f"c{i}k{i}" for i in range(1, 6))]


def test_functions_of_batches(pack):
    seen = []

    def function(batch, rng):
        seen.append((rng.random(), batch["image"].shape))
        return {**batch, "label": batch["label"] * 10}

    with load(pack, ops.python(function, per="batch")) as loader, load(pack) as plain:
        for got, want in zip(loader, plain, strict=True):
            assert (got.label == want.label * 10).all() and (got.image == want.image).all()
    draws = dict(seen)
    assert len(draws) == len(seen) == -(-N // BATCH)
    assert sorted(shape[0] for shape in draws.values()) == [N % BATCH] + [BATCH] * (N // BATCH)
    with load(pack, ops.python(noise), ops.python(function, per="batch")) as loader:
        assert next(iter(loader)).image.dtype == np.float64
    assert seen[-1][0] in [rng for rng, _ in seen]


def test_errors_name_the_sample(pack):
    def function(sample, rng):
        if sample["label"] == 2:
            raise KeyError("mine")
        return sample

    def batch_function(batch, rng):
        raise ValueError("all wrong")

    with load(pack, ops.python(function, threads=3), order="sequential") as loader:
        batches = iter(loader)
        with pytest.raises(penstock.Error, match=(
                r"sample 2 's2': ops.python\(function\): KeyError: 'mine'")) as error:
            next(batches)
        assert error.value.sample == 2 and isinstance(error.value.__cause__, KeyError)
        with pytest.raises(penstock.Error, match="sample 5 's5'"):
            next(batches)
    with load(pack, ops.python(batch_function, per="batch"), order="sequential") as loader:
        batches = iter(loader)
        with pytest.raises(penstock.Error, match="batch at position 0: .*ValueError: all wrong"):
            next(batches)
        with pytest.raises(penstock.Error, match="batch at position 4"):
            next(batches)
    dataset = penstock.Dataset(pack, [RANDOM, ops.python(function)], output="numpy")
    with pytest.raises(penstock.Error, match="sample 8 's8': ops.python"):
        dataset[8]


@pytest.mark.parametrize("per", ["sample", "batch"])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_exceptions_that_are_no_exception(pack, kind, per):
    """The caller gets them as they are. They end no thread: all other batches follow."""
    def function(values, rng):
        if 2 in np.atleast_1d(values["label"]):
            raise kind("mine")
        return values

    labels = {"pipeline": {"label": "tensor"}, "order": "sequential", "subset": range(3, 25)}
    with load(pack, ops.python(function, per=per, threads=1), batch=2, **labels) as loader:
        batches = iter(loader)
        assert next(batches).label.tolist() == [0, 1]
        start = time.monotonic()
        with pytest.raises(kind, match="mine") as caught:
            next(batches)
        assert time.monotonic() - start < 30  # what waits takes 300 s
        where = "sample 5 's5'" if per == "sample" else "batch at position 2"
        assert caught.value.__notes__ == [f"raised by ops.python(function), {where}"]
        assert loader.state_dict()["position"] == 4
        good = 0
        for _ in range(2, 11):
            with contextlib.suppress(kind):
                good += len(next(batches).label)
        assert good == 2 * 3 and next(batches, None) is None
    dataset = penstock.Dataset(pack, [{"label": "tensor"}, ops.python(function)], output="numpy")
    with pytest.raises(kind, match="mine"):
        dataset[5]


@pytest.mark.parametrize("result", [None, 3, [1], {1: 2}])
def test_what_is_not_a_dict_is_refused(pack, result):
    with load(pack, ops.python(lambda sample, rng: result), order="sequential") as loader, \
            pytest.raises(penstock.Error, match="sample 0 's0': .*expected a dict of field name"):
        next(iter(loader))


def test_fields_must_be_the_same(pack):
    def function(sample, rng):
        return {"a": 1, "b": 2} if sample["label"] == 1 else {"a": 1}

    with load(pack, ops.python(function), order="sequential") as loader, \
            pytest.raises(penstock.Error, match=r"sample 1 's1': .*expected the fields \['a'\]"):
        next(iter(loader))


def test_a_bad_sample_comes_in_its_turn(pack, tmp_path):
    path = shutil.copytree(pack.path, tmp_path / "b.pen")
    (shard,) = path.rglob("*.shard")
    data, stored = bytearray(shard.read_bytes()), pack[9]["image"]
    data[data.find(stored) + len(stored) // 2] ^= 255
    shard.write_bytes(data)
    whole = "decode | center_crop 32,40"
    with load(path, ops.python(noise), pipeline=whole, order="sequential") as loader:
        batches, good = iter(loader), 0
        for i in range(-(-N // BATCH)):
            if i == 2:
                with pytest.raises(penstock.CorruptError, match="sample 9 's9'"):
                    next(batches)
                assert loader.state_dict()["position"] == 12
            else:
                good += len(next(batches).label)
        assert good == N - BATCH and next(batches, None) is None


def test_the_look_ahead_is_bounded(pack):
    calls = []

    def function(sample, rng):
        calls.append(1)
        return sample

    with load(pack, ops.python(function, threads=2), batch=1) as loader:
        batches = iter(loader)
        next(batches)
        time.sleep(0.2)
        assert 1 <= len(calls) <= 6
        assert len(list(batches)) == N - 1 and len(calls) == N
    small = load(pack, ops.python(function), batch=N, memory="13MiB",
                 pipeline="decode | resize 64,64 | tensor f32")
    with small:
        assert sum(1 for _ in range(3) for _ in small) == 3


def test_functions_run_at_the_same_time(pack):
    barrier = threading.Barrier(3, timeout=20)

    def function(sample, rng):
        barrier.wait()
        return {"label": sample["label"]}

    with load(pack, ops.python(function, threads=3), batch=6, subset=range(24)) as loader:
        assert sum(len(batch.label) for batch in loader) == 24


def test_closing_while_a_function_runs(pack):
    begun, go = threading.Event(), threading.Event()

    def function(sample, rng):
        begun.set()
        go.wait(20)
        return sample

    loader = load(pack, ops.python(function))
    found = []

    def run():
        try:
            next(iter(loader))
        except penstock.ClosedError as error:
            found.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    assert begun.wait(20)
    loader.close()
    thread.join(20)
    go.set()
    assert found == ["the loader is closed"]


def test_a_function_that_takes_too_long(pack):
    """The error names the sample, and the batch comes when it is done."""
    go = threading.Event()

    def function(sample, rng):
        if sample["id"] == "s5":
            go.wait(20)
        return sample

    settings = {"pipeline": {"label": "tensor", "id": "key"}, "order": "sequential"}
    with load(pack, ops.python(function, threads=2), **settings) as plain:
        go.set()
        expected = rows(plain)
    go.clear()
    with load(pack, ops.python(function, threads=2), **settings, timeout=0.3) as loader:
        batches = iter(loader)
        got = rows([next(batches)])
        state = loader.state_dict()
        for _ in range(2):
            with pytest.raises(penstock.TimeoutError) as caught:
                next(batches)
            assert str(caught.value) == (
                "no batch for 0.3 s: sample 5 's5': ops.python(function) has not returned; correct "
                "the function, or pass a larger timeout=")
            assert loader.state_dict() == state
        go.set()
        deadline = time.monotonic() + 20
        while len(got) == 1 and time.monotonic() < deadline:
            with contextlib.suppress(penstock.TimeoutError):
                got += rows([next(batches)])
        assert got + rows(batches) == expected
    waits = ops.python(lambda batch, rng: time.sleep(0.5) or batch, per="batch")
    with load(pack, waits, timeout=0.1) as loader:
        with pytest.raises(penstock.TimeoutError, match="ops.python, for the batch, has not"):
            next(iter(loader))


NEVER = """
import sys, time, threading
import penstock
from penstock import ops

def function(sample, rng):
    print("begun", flush=True)
    while True:
        time.sleep(0.01)

loader = penstock.Loader(sys.argv[1], 4, output="numpy", pipeline=[
    "decode | center_crop 8", ops.python(function, threads=2)])
if sys.argv[2] == "close":
    threading.Timer(1, loader.close).start()
next(iter(loader))
"""


@pytest.mark.parametrize("how", ["close", "interrupt"])
def test_a_function_that_never_returns(pack, how):
    """The process ends a few seconds after close() or Ctrl-C."""
    with subprocess.Popen([sys.executable, "-c", NEVER, pack.path, how], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline().startswith("begun")  # both threads write
        began = time.monotonic()
        if how == "interrupt":
            process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
        assert time.monotonic() - began < 30
    assert ("ClosedError: the loader is closed" if how == "close" else "KeyboardInterrupt") in told
    assert process.returncode == (1 if how == "close" else -signal.SIGINT)


def test_settings_that_do_not_fit(pack):
    function = ops.python(noise)
    wrong = {
        "must follow all other": [ops.decode(), function, ops.hflip()],
        "must precede per='batch'": [RANDOM, ops.python(noise, per="batch"), function],
        "gets all fields": {"image": [ops.decode(), function]},
    }
    for text, pipeline in wrong.items():
        with pytest.raises(penstock.InvalidError, match=text):
            penstock.Loader(pack, 2, pipeline=pipeline, output="numpy")
    for settings, text in (({"output": "dlpack"}, "output: expected 'torch' or 'numpy'"),
                           ({"output": "jax"}, "output: expected"),
                           ({"pin_memory": True, "output": "torch"}, "pin_memory: expected False")):
        with pytest.raises(penstock.InvalidError, match=text):
            load(pack, function, **settings)
    with pytest.raises(penstock.InvalidError, match="a dataset has no batches"):
        penstock.Dataset(pack, [RANDOM, ops.python(noise, per="batch")], output="numpy")
    for given, text in (({"fn": 3}, "fn: expected a function"), ({"version": -1}, "version"),
                        ({"version": "1"}, "version: expected an integer"),
                        ({"per": "epoch"}, "per: expected one of sample, batch"),
                        ({"threads": 0}, "threads: expected 1 to 256")):
        with pytest.raises((TypeError, ValueError), match=text):
            ops.python(**{"fn": noise, **given})


def test_only_functions_and_numbers(pack):
    def function(sample, rng):
        return {"label": sample["label"] + 1}

    with penstock.Loader(pack, N, pipeline=[ops.python(function)], output="numpy",
                         memory="64MiB") as loader:
        assert next(iter(loader)).label.tolist() == [i % 3 + 1 for i in range(N)]


def test_operations_and_datasets_with_functions_can_be_pickled(pack):
    op = ops.python(noise, version=4, threads=2)
    again = pickle.loads(pickle.dumps(op))
    assert again == op != ops.python(noise) and hash(again) == hash(op)
    assert str(op) == "python version=4 per=sample"
    dataset = penstock.Dataset(pack, [ops.decode(), ops.center_crop(8), op], output="numpy")
    copy = pickle.loads(pickle.dumps(dataset))
    assert copy[3].draw == dataset[3].draw and repr(copy) == repr(dataset)
    assert "python 4" in repr(dataset)
