# SPDX-License-Identifier: Apache-2.0
"""Text, JSON, bytes and keys in batches, from Python."""

import copy
import gc
import json
import pickle
import tarfile

import pytest
from cli_tools import add_member, good, image_bytes
from py_tools import in_child, need_penstock, png

penstock = need_penstock()
np = pytest.importorskip("numpy")

from penstock import ops  # noqa: E402

N, BATCH = 22, 8
FIELDS = {"image": "decode | center_crop 8", "caption": "text", "meta": "json", "blob": "bytes",
          "id": "key"}


def caption(i):
    return None if i == 9 else "\u20ac caf\u00e9 " * (i % 4) + str(i) * (i != 6)


def meta(i):
    return [{"i": i, "tags": ["a", None]}, i, None, "text"][i % 4]


def blob(i):
    return bytes(range(i, i + i * 5 % 40))


SOURCES = {"caption": caption, "meta": meta, "blob": blob, "id": lambda i: f"s{i}"}


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    """The caption of number 9 is missing, and that of number 6 is empty in parts."""
    path = tmp_path_factory.mktemp("packs") / "a.pen"
    schema = {"image": "image", "label": "i64", "caption": "text?", "meta": "json",
              "blob": "bytes"}
    with penstock.Writer(path, schema, block_samples=5) as writer:
        for i in range(N):
            writer.add(key=f"s{i}", image=png(i), label=i, caption=caption(i), meta=meta(i),
                       blob=blob(i))
    return penstock.open(path)


def load(pack, pipeline=FIELDS, **settings):
    settings = {"threads": 2, "memory": "64MiB", "output": "numpy", **settings}
    return penstock.Loader(pack, BATCH, pipeline=pipeline, **settings)


def first(pack, **settings):
    with load(pack, **settings) as loader:
        return next(iter(loader))


@pytest.mark.parametrize("order", ["sequential", "random"])
def test_values(pack, order):
    with load(pack, order=order, return_info=True) as loader:
        assert loader.fields == tuple(FIELDS)
        for batch in loader:
            numbers = batch.info.samples.tolist()
            assert batch.image.shape == (len(numbers), 8, 8, 3)
            for name, source in SOURCES.items():
                values = getattr(batch, name)
                assert values == [source(i) for i in numbers]
                assert [source(i) for i in numbers] == values == values
                assert type(values[0]) is type(source(numbers[0]))


def test_it_behaves_as_a_list(pack):
    batch = first(pack)
    values, expected = batch.caption, [caption(i) for i in range(BATCH)]
    assert len(values) == BATCH and list(values) == values.tolist() == expected
    for at in (0, 3, -1, -BATCH, np.int64(2)):
        assert values[at] == expected[at]
    for part in (slice(2), slice(None, None, -1), slice(1, -1, 3), slice(50, 90)):
        assert values[part] == expected[part]
    assert list(reversed(values)) == expected[::-1]
    assert expected[2] in values and "other" not in values
    assert values != expected[:-1] and values != [*expected[:-1], "x"] and values != "text"
    assert not values == tuple(expected)
    for wrong in (BATCH, -BATCH - 1):
        with pytest.raises(IndexError, match=f"index {wrong}: the batch has 8 samples"):
            values[wrong]
    for wrong in ("0", 1.0, None):
        with pytest.raises(TypeError):
            values[wrong]
    with pytest.raises(TypeError):
        hash(values)


def test_memory_is_that_of_arrow(pack):
    values = first(pack, subset=range(5, 13)).caption
    offsets, data = np.asarray(values.offsets), np.asarray(values.data)
    assert offsets.dtype == np.int64 and len(offsets) == BATCH + 1 and offsets[0] == 0
    assert data.dtype == np.uint8 and len(data) == offsets[-1]
    assert data.tobytes() == "".join(caption(i) or "" for i in range(5, 13)).encode()
    assert np.shares_memory(data, np.asarray(values.data))
    assert bytes(values.validity) == bytes([0b11101111])
    assert values[4] is None and values[1] == "\u20ac caf\u00e9 " * 2


def test_arrow_does_not_copy(pack):
    pa = pytest.importorskip("pyarrow")
    batch = first(pack, subset=range(5, 13))
    numbers = range(5, 13)
    array = pa.array(batch.caption)
    assert array.type == pa.large_string() and array.null_count == 1
    assert array.to_pylist() == [caption(i) for i in numbers]
    assert array.buffers()[2].address == np.asarray(batch.caption.data).ctypes.data
    assert pa.array(batch.blob).to_pylist() == [blob(i) for i in numbers]
    assert pa.array(batch.meta).to_pylist() == [
        json.dumps(meta(i), separators=(",", ":")) for i in numbers]
    assert pa.array(batch.id, type=pa.string()).to_pylist() == [f"s{i}" for i in numbers]


def test_repr_is_short(pack):
    batch = first(pack)
    assert repr(batch.id) == "<penstock.BatchList of 8 key: ['s0', 's1', 's2', ...]>"
    assert repr(batch.blob[:1]) == "[b'']"
    assert "{" in repr(batch.meta) and len(repr(batch.caption)) < 400


def test_copies_are_lists(pack):
    """They go to other processes, and hold no batch."""
    batch = first(pack)
    for made in (pickle.loads(pickle.dumps(batch.caption)), copy.deepcopy(batch.caption)):
        assert type(made) is list and made == batch.caption


def test_a_list_holds_its_batch(pack):
    """As tensors do; the loader may be closed before."""
    with load(pack, {"caption": "text"}, memory="16MiB") as loader:
        held = [batch.caption for batch in loader]
    gc.collect()
    assert [value for values in held for value in values][:N] == [caption(i) for i in range(N)]
    views = [values.data for values in held]
    del held
    assert bytes(views[0]).decode() == "".join(caption(i) for i in range(BATCH))


def test_a_list_in_a_forked_child(pack):
    values = first(pack).caption

    def child():
        assert values == [caption(i) for i in range(BATCH)]

    assert in_child(child) is None


def test_named_fields_only(pack):
    """A pipeline for the image has no lists, as before; one field has no label."""
    with load(pack, "decode | center_crop 8") as loader:
        assert loader.fields == ("image", "label")
    with load(pack, "caption: text") as loader:
        (values,) = next(iter(loader))
        assert loader.fields == ("caption",) and values[1] == caption(1)
    with load(pack, {"caption": ops.text(max_bytes=100), "meta": [ops.text()], "k": ops.key(9)}) \
            as loader:
        assert loader.pipeline == ("caption: text max_bytes=100; meta: text max_bytes=65536; "
                                   "k: key max_bytes=9")
        assert next(iter(loader)).meta[1] == "1"


def test_every_output_has_the_same_lists(pack):
    pytest.importorskip("torch")
    expected = first(pack).caption.tolist()
    for output in ("torch", "dlpack"):
        batch = first(pack, output=output)
        assert isinstance(batch.caption, penstock.BatchList) and batch.caption == expected
    seen = []
    first(pack, transform=lambda batch: seen.append(batch.caption[:2]))
    assert seen == [expected[:2]]


def test_frameworks_leave_lists_alone(pack):
    """What moves batches to a device returns the list as it is: not taken apart, value by value."""
    torch = pytest.importorskip("torch")
    from torch.utils.data._utils.pin_memory import pin_memory

    batch = first(pack, output="torch")
    assert pin_memory(batch.caption, "cpu") is batch.caption
    tree = torch.utils._pytree.tree_map(lambda x: x, tuple(batch))
    assert tree[1] is batch.caption


@pytest.mark.slow  # the imports take most of the time
def test_lightning_accelerate_and_jax(pack):
    pytest.importorskip("lightning")
    pytest.importorskip("accelerate")
    pytest.importorskip("jax")
    from accelerate.utils import send_to_device
    from lightning.fabric.utilities.apply_func import move_data_to_device

    batch = first(pack, output="torch")
    for move in (move_data_to_device, send_to_device):
        moved = move(batch, "cpu")
        assert type(moved).__name__ == "Batch" and moved.caption is batch.caption
        assert moved.image.shape == batch.image.shape
    batch = first(pack, output="jax")
    assert batch.image.shape == (BATCH, 8, 8, 3) and batch.caption == first(pack).caption


# ---- limits and hostile values


def test_a_long_text_is_a_limit_error(tmp_path):
    rows = [{"key": f"s{i}", "text": "x" * (10_000_000 if i == 2 else 5)} for i in range(4)]
    penstock.write(tmp_path / "a.pen", rows, {"text": "text"})
    with penstock.Loader(tmp_path / "a.pen", 2, pipeline="text: text", output="numpy") as loader:
        batches = iter(loader)
        assert next(batches).text == ["xxxxx"] * 2
        with pytest.raises(penstock.LimitError, match="sample 2 's2': field 'text': expected at "
                           r"most 65536 bytes \(max_bytes\), found 10000000; increase") as caught:
            next(batches)
        assert caught.value.sample == 2
    with penstock.Loader(tmp_path / "a.pen", 2, pipeline="text: text 10000000", memory="128MiB",
                         output="numpy") as loader:
        assert [len(value) for batch in loader for value in batch.text] == [5, 5, 10_000_000, 5]
        assert loader.stats()["memory_peak_bytes"] < 128 << 20
    with pytest.raises(penstock.LimitError, match="memory: expected at least"):
        penstock.Loader(tmp_path / "a.pen", 2, pipeline="text: text 10000000", memory="32MiB")


@pytest.mark.parametrize("wrong", [b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"12345678\xe2\x82",
                                   b"\xf4\x90\x80\x80"])
def test_what_is_not_utf8(tmp_path, wrong):
    rows = [{"key": f"s{i}", "note": b"fine" if i != 3 else wrong} for i in range(8)]
    penstock.write(tmp_path / "a.pen", rows, {"note": "bytes"})
    for kind in ("text", "json"):
        with pytest.raises(penstock.DecodeError, match="sample 3 's3': field 'note': expected "
                           "UTF-8"):
            first(tmp_path / "a.pen", pipeline={"note": kind})
    assert first(tmp_path / "a.pen", pipeline={"note": "bytes"}).note[3] == wrong
    with load(tmp_path / "a.pen", {"note": "text"}, on_bad="substitute") as loader:
        assert next(iter(loader)).note == ["fine"] * 8
        assert [bad.sample for bad in loader.bad_samples()] == [3]


@pytest.mark.parametrize("wrong", ["", "{", "[1, 2", "nope", "[" * 100_000])
def test_what_is_not_json(tmp_path, wrong):
    """It is found when the value is parsed, and the other values can be used."""
    rows = [{"note": "[1]" if i != 5 else wrong} for i in range(8)]
    penstock.write(tmp_path / "a.pen", rows, {"note": "text"})
    values = first(tmp_path / "a.pen", pipeline={"note": "json 100000"}, subset=[4, 5, 6]).note
    assert values[0] == [1] and values[2] == [1] and repr(values)
    with pytest.raises(penstock.DecodeError, match="sample 5: expected JSON") as caught:
        values[1]
    assert caught.value.sample == 5


def test_a_key_that_is_not_utf8(tmp_path):
    pa = pytest.importorskip("pyarrow")
    with penstock.Writer(tmp_path / "a.pen", {"x": "i64"}) as writer:
        writer.add(key="caf\udce9", x=1)
    pack = penstock.open(tmp_path / "a.pen")
    keys = first(pack, pipeline={"key": "key"}).key
    assert keys[0] == pack.key(0) == "caf\udce9" and bytes(keys.data[:4]) == b"caf\xe9"
    with pytest.raises(penstock.InvalidError, match="key: expected UTF-8"):
        pa.array(keys)


def test_captions_of_tars_in_place(tmp_path):
    """As CLIP has them: an image, a text and a JSON in a tar that stays where it is."""
    with tarfile.open(tmp_path / "web.tar", "w") as tar:
        for i in range(9):
            for suffix, data in (("jpg", image_bytes(i, "JPEG")), ("txt", f"photo {i}".encode()),
                                 ("json", b'{"width": %d}' % i)):
                if (suffix, i) != ("txt", 4):
                    add_member(tar, f"{i:04}.{suffix}", data)
    good("index", tmp_path / "web.tar", "-o", tmp_path / "a.pen", "--block-samples", "4")
    good("pack", tmp_path / "web.tar", "-o", tmp_path / "b.pen", "--block-samples", "4")
    pipeline = {"image": "decode | center_crop 16", "text": "text", "json": "json", "key": "key"}
    for name in ("a.pen", "b.pen"):
        for preload in (False, True):
            with penstock.Loader(tmp_path / name, 9, pipeline=pipeline, output="numpy",
                                 preload=preload) as loader:
                _, text, meta, key = next(iter(loader))
            assert sorted(key) == [f"{i:04}" for i in range(9)]  # packing shuffles
            numbers = [int(value) for value in key]
            assert text == [f"photo {i}" if i != 4 else None for i in numbers]
            assert meta == [{"width": i} for i in numbers]
