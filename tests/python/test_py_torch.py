# SPDX-License-Identifier: Apache-2.0
"""penstock.Loader with PyTorch: shapes, strides, types, pinning. Skipped without torch."""

import warnings

import pytest
from py_tools import need_penstock, pixels, run_python, write_pack

penstock = need_penstock()
torch = pytest.importorskip("torch")

from penstock import ops  # noqa: E402
from penstock import torch as penstock_torch  # noqa: E402

SMALL = [ops.decode(), ops.center_crop(16), ops.tensor("u8")]


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    return write_pack(penstock, tmp_path_factory.mktemp("packs") / "a.pen", 20)


def load(pack, **settings):
    return penstock.Loader(pack, 4, **{"pipeline": SMALL, "threads": 2, **settings})


def test_images_are_nchw_with_channels_last(pack):
    with load(pack) as loader:
        image, label = next(iter(loader))
    assert image.shape == (4, 3, 16, 16) and image.stride() == (768, 1, 48, 3)
    assert image.is_contiguous(memory_format=torch.channels_last)
    whole = torch.tensor(list(pixels(2).tobytes()), dtype=torch.uint8).reshape(32, 40, 3)
    assert torch.equal(image[2], whole[8:24, 12:28].permute(2, 0, 1))
    assert label.dtype == torch.int64 and label.tolist() == [0, 1, 2, 0]


@pytest.mark.parametrize("dtype", ["u8", "f16", "bf16", "f32"])
@pytest.mark.parametrize("layout", ["nhwc", "nchw"])
def test_types_and_layouts(pack, dtype, layout):
    names = {"u8": "uint8", "f16": "float16", "bf16": "bfloat16", "f32": "float32"}
    with load(pack, pipeline=f"decode | center_crop 8 | tensor {dtype} {layout}") as loader:
        image = next(iter(loader)).image
    assert image.shape == (4, 3, 8, 8) and image.dtype == getattr(torch, names[dtype])
    assert image.is_contiguous() == (layout == "nchw")
    with load(pack, pipeline="decode | center_crop 8 | tensor u8") as loader:
        bytes_ = next(iter(loader)).image
    scale = 1 if dtype == "u8" else 255
    assert torch.allclose(image.float() * scale, bytes_.float(), atol=1.0, rtol=0)


def test_info_is_of_tensors(pack):
    with load(pack, return_info=True, subset=[3, 9, 4], last_batch="pad") as loader:
        info = next(iter(loader)).info
    assert info.samples.tolist()[:3] == [3, 9, 4] and info.samples.dtype == torch.int64
    assert info.valid.tolist() == [True, True, True, False] and info.valid.dtype == torch.bool


def test_a_subset_by_a_tensor(pack):
    for subset in (torch.arange(20) % 5 == 2, torch.tensor([2, 7, 12, 17])):
        with load(pack, return_info=True, subset=subset) as loader:
            assert next(iter(loader)).info.samples.tolist() == [2, 7, 12, 17]
    with pytest.raises(penstock.InvalidError, match="subset: expected a mask of 20 booleans"):
        load(pack, subset=torch.ones(19, dtype=torch.bool))


def test_tensors_keep_the_batch(pack):
    loader = load(pack)
    batches = iter(loader)
    image, label = next(batches)
    part, kept = image[1], image[1].clone()
    del image, label
    assert sum(1 for _ in batches) == 4
    assert torch.equal(part, kept)
    assert loader.stats()["slots_leased"] == 1
    del part
    assert loader.stats()["slots_leased"] == 0
    image = next(iter(loader)).image
    loader.close()
    assert image.sum() > 0


def test_pinning_without_cuda_warns_and_goes_on(pack):
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    with pytest.warns(UserWarning, match="no CUDA device") as caught:
        loader = load(pack, pin_memory=True)
    assert caught[0].filename == __file__
    assert next(iter(loader)).image.shape[0] == 4
    loader.close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(pack).close()


class FakeEvent:
    done = False

    def query(self):
        return self.done

    def synchronize(self):
        self.done = True


class FakeCuda:
    """Records what is locked; its events pass when they are told to."""

    def __init__(self, loader):
        self.loader, self.locked, self.events = loader, {}, []

    def register(self, address, size):
        assert address not in self.locked and address % 4096 == 0 and size > 0
        self.locked[address] = size

    def unregister(self, address):
        self.loader.stats()  # would raise if the memory were gone already
        del self.locked[address]

    def record(self):
        self.events.append(FakeEvent())
        return self.events[-1]

    def holds(self, tensor):
        at = tensor.data_ptr()
        return any(start <= at < start + size for start, size in self.locked.items())


def pinned_by(cuda_type, loader):
    cuda = cuda_type(loader)
    limit = loader.stats()["slots_limit"]
    loader._output._pinner = penstock_torch.Pinner(cuda, limit)
    return cuda


def test_pinned_slots_wait_for_their_copies(pack):
    loader = load(pack)
    cuda = pinned_by(FakeCuda, loader)
    batches = iter(loader)
    assert all(cuda.holds(next(batches).image) for _ in range(3))
    # Two copies are not over, and the last batch was not followed by another yet.
    assert loader.stats()["slots_leased"] == 3 and len(cuda.events) == 2
    cuda.events[0].done = cuda.events[1].done = True
    assert cuda.holds(next(batches).image)
    assert loader.stats()["slots_leased"] == 2
    loader.close()
    assert cuda.locked == {} and all(event.done for event in cuda.events)


def test_a_late_device_is_waited_for(pack):
    """Two slots fit in memory, and no copy ends by itself."""
    loader = load(pack, pipeline="decode | resize 512,512 | tensor f32", memory="36MiB")
    assert loader.stats()["slots_limit"] == 2
    cuda = pinned_by(FakeCuda, loader)
    assert sum(1 for _ in loader) == 5
    assert [event.done for event in cuda.events] == [True] * 4 + [False]
    loader.close()


def test_slots_are_locked_once(pack):
    loader = load(pack)
    cuda = pinned_by(FakeCuda, loader)
    for _ in range(6):
        for batch in loader:
            assert cuda.holds(batch.image) and cuda.holds(batch.label)
            for event in cuda.events:
                event.done = True
    assert len(cuda.locked) <= loader.stats()["slots"]
    loader.close()


def test_torch_is_asked_for_by_name_when_missing(pack):
    code = (
        "import sys, penstock\nsys.modules['torch'] = None\n"
        "try: penstock.Loader(sys.argv[1], 4)\n"
        "except ModuleNotFoundError as error: print(error)\n"
    )
    done = run_python(code, pack.path)
    assert "output='torch' needs PyTorch: pip install torch" in done.stdout, done.stderr


def test_training_step(pack):
    """A model in channels-last takes the batch as it lies."""
    model = torch.nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
    with load(pack, pipeline="decode | center_crop 16 | normalize | tensor f32") as loader:
        for image, _ in loader:
            out = model(image)
            out.mean().backward()
    assert out.shape == (4, 4, 14, 14) and model.weight.grad.abs().sum() > 0
