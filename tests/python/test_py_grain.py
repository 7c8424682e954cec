# SPDX-License-Identifier: Apache-2.0
"""A pack, or a Dataset, as a data source of Grain, also in worker processes. The parts with Grain
are skipped without it."""

import importlib.util
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from py_tools import need_penstock, png, write_pack

penstock = need_penstock()

from penstock.grain import PackSource  # noqa: E402

N = 26
with_grain = pytest.mark.skipif(
    not importlib.util.find_spec("grain") or "san.so" in os.environ.get("LD_PRELOAD", ""),
    reason="grain is not installed, or a sanitizer is loaded")


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    return write_pack(penstock, tmp_path_factory.mktemp("packs") / "a.pen", N)


def test_samples(pack):
    source = PackSource(pack)
    assert len(source) == N and source[np.int64(7)] == {"image": png(7), "label": 1}
    assert PackSource(pack.path, ["label"])[N - 1] == {"label": (N - 1) % 3}
    with pytest.raises(IndexError):
        source[N]


def test_every_type_can_be_pickled(tmp_path):
    schema = {"image": "image", "video": "clip", "blob": "bytes", "meta": "json", "text": "text?",
              "x": "f32[2]", "y": "f64"}
    sample = {"image": png(1), "video": [png(2), png(3)], "blob": b"b", "meta": {"a": [1]},
              "text": None, "x": [1, 2], "y": 0.5}
    penstock.write(tmp_path / "b.pen", [sample], schema)
    found = pickle.loads(pickle.dumps(PackSource(tmp_path / "b.pen")[0]))
    assert found.pop("x").tolist() == sample.pop("x") and found == sample


def test_a_source_is_pickled_as_its_path(pack):
    source = PackSource(pack, ["label"])
    again = pickle.loads(pickle.dumps(source))
    assert repr(again) == repr(source) and again[5] == source[5]
    assert len(pickle.dumps(source)) < 1000


@pytest.mark.parametrize(("fields", "error", "text"), [
    (["photo"], penstock.NotFoundError, "no field 'photo'; it has image, label"),
    ("label", TypeError, "expected a list of names"), ([3], TypeError, "expected a list"),
    (3, TypeError, "expected a list")])
def test_wrong_fields(pack, fields, error, text):
    with pytest.raises(error, match=text.replace("[", r"\[")):
        PackSource(pack, fields)


SCRIPT = """
import grain, numpy, penstock
from absl import app
from penstock.grain import PackSource

class Decode(grain.transforms.Map):
    def map(self, row):
        return {"image": penstock.decode(row["image"], size=16), "label": row["label"]}

def main(argv):  # grain reads flags of absl
    source = PackSource(argv[1])
    n = len(source)
    labels = [i % 3 for i in range(n)]

    dataset = (grain.MapDataset.source(source).shuffle(seed=1)
               .map(Decode()).batch(4, drop_remainder=False))
    plain = list(dataset)
    assert plain[0]["image"].shape == (4, 16, 16, 3)
    assert sorted(x for b in plain for x in b["label"].tolist()) == sorted(labels)

    spread = dataset.to_iter_dataset().mp_prefetch(grain.MultiprocessingOptions(num_workers=2))
    batches = iter(spread)
    first = [next(batches) for _ in range(3)]
    state = batches.get_state()
    rest = list(batches)
    for a, b in zip(plain, first + rest):
        assert numpy.array_equal(a["image"], b["image"])
    again = iter(spread)
    again.set_state(state)
    assert [b["label"].tolist() for b in again] == [b["label"].tolist() for b in rest]

    for workers in (0, 2):
        sampler = grain.samplers.IndexSampler(n, grain.sharding.NoSharding(), shuffle=True,
                                              num_epochs=1, seed=3)
        loader = grain.DataLoader(data_source=source, sampler=sampler, worker_count=workers,
                                  operations=[Decode()])
        rows = list(loader)
        assert sorted(int(row["label"]) for row in rows) == sorted(labels)
        assert rows[0]["image"].shape == (16, 16, 3)

    samples = penstock.Dataset(argv[1], "decode | random_resized_crop 16", seed=1, output="numpy",
                               as_dict=True)
    assert (grain.MapDataset.source(samples)[3]["image"] == samples[3]["image"]).all()
    epochs = (grain.MapDataset.range(n).shuffle(seed=1).repeat(2)
              .map_with_index(lambda at, i: samples[at // n, i]).batch(4))
    plain = list(epochs)
    spread = epochs.to_iter_dataset().mp_prefetch(grain.MultiprocessingOptions(num_workers=2))
    for a, b in zip(plain, spread, strict=True):
        assert numpy.array_equal(a["image"], b["image"])
    assert len({row.tobytes() for batch in plain for row in batch["image"]}) == 2 * n
    print("well")

if __name__ == "__main__":
    app.run(main)
"""


@with_grain
@pytest.mark.slow
def test_with_grain(pack, tmp_path):
    """MapDataset and DataLoader, in this process and in workers; a state is saved and restored."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, script, pack.path], capture_output=True, text=True,
                          timeout=300, check=False)
    assert done.returncode == 0 and "well" in done.stdout, done.stdout + done.stderr
