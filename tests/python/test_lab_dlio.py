# SPDX-License-Identifier: Apache-2.0
"""The data loader for DLIO, with a stand-in for DLIO: its base class and its settings."""

import enum
import importlib
import io
import sys
import types

import pytest
from penstock.lab import LabError

pillow = pytest.importorskip("PIL.Image")
PHOTOS, BATCH = 12, 4


class DatasetType(enum.Enum):
    TRAIN, VALID = "train", "valid"


class Shuffle(enum.Enum):
    OFF, SEED, RANDOM = "off", "seed", "random"


class BaseDataLoader:
    """As in dlio_benchmark 2.0.0."""

    args: types.SimpleNamespace

    def __init__(self, format_type, dataset_type, epoch_number, data_loader_type):
        self._args = self.args
        self.dataset_type, self.epoch_number = dataset_type, epoch_number
        self.num_samples, self.batch_size = self._args.total, BATCH


@pytest.fixture
def dlio(monkeypatch):
    """penstock.lab.dlio, and the settings of DLIO."""
    args = types.SimpleNamespace(my_rank=0, comm_size=1, sample_shuffle=Shuffle.SEED, seed=7,
                                 read_threads=2, prefetch_size=2, total=PHOTOS)
    kinds = types.SimpleNamespace(PYTORCH="pytorch")
    modules = {
        "dlio_benchmark": {}, "dlio_benchmark.common": {}, "dlio_benchmark.data_loader": {},
        "dlio_benchmark.common.enumerations": {
            "DataLoaderType": kinds, "DatasetType": DatasetType, "Shuffle": Shuffle},
        "dlio_benchmark.data_loader.base_data_loader": {"BaseDataLoader": BaseDataLoader},
    }
    for name, content in modules.items():
        module = types.ModuleType(name)
        module.__dict__.update(content)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "penstock.lab.dlio", raising=False)
    monkeypatch.setattr(BaseDataLoader, "args", args, raising=False)
    monkeypatch.setenv("PENSTOCK_DLIO_PIPELINE", "decode | center_crop 16 | tensor u8")
    return importlib.import_module("penstock.lab.dlio"), args


@pytest.fixture
def pack(tmp_path, monkeypatch):
    import penstock

    path = tmp_path / "photos.pen"
    with penstock.Writer(path, {"image": "image", "label": "i64"}) as writer:
        for n in range(PHOTOS):
            data = io.BytesIO()
            pillow.new("RGB", (24, 20), (n, n, n)).save(data, "JPEG")
            writer.add(image=data.getvalue(), label=n)
    monkeypatch.setenv("PENSTOCK_DLIO_PACK", str(path))
    return path


def made(module, kind=DatasetType.TRAIN):
    return module.PenstockDataLoader("jpeg", kind, 0)


def labels(loader):
    import numpy

    return [numpy.from_dlpack(batch[1]).tolist() for batch in loader.next()]


def test_epochs(dlio, pack):
    loader = made(dlio[0])
    epochs = []
    for _ in range(2):  # as DLIO does
        loader.read()
        epochs.append(labels(loader))
        loader.finalize()
    for epoch in epochs:
        assert sorted(sum(epoch, [])) == list(range(PHOTOS))
        assert [len(batch) for batch in epoch] == [BATCH] * 3
    assert epochs[0] != epochs[1]


def test_ranks_share_the_samples(dlio, pack):
    module, args = dlio
    seen = []
    args.comm_size = 2
    for args.my_rank in range(2):
        seen += sum(labels(made(module)), [])
    assert len(seen) == len(set(seen)) == 8


def test_an_epoch_that_ends_early(dlio, pack):
    loader = made(dlio[0])
    next(loader.next())
    loader.read()
    assert len(labels(loader)) == 3
    loader.finalize()
    loader.finalize()


def test_order_without_shuffling(dlio, pack):
    dlio[1].sample_shuffle = Shuffle.OFF
    assert sum(labels(made(dlio[0])), []) == list(range(PHOTOS))


def test_no_pack(dlio, monkeypatch):
    monkeypatch.delenv("PENSTOCK_DLIO_PACK", raising=False)
    with pytest.raises(LabError, match=r"set \$PENSTOCK_DLIO_PACK"):
        made(dlio[0]).read()
    with pytest.raises(LabError, match=r"set \$PENSTOCK_DLIO_EVAL_PACK"):
        made(dlio[0], DatasetType.VALID).read()


def test_a_pack_with_too_few_samples(dlio, pack):
    dlio[1].total = 100
    with pytest.raises(LabError, match="12 samples, and the workload reads 100"):
        made(dlio[0]).read()
