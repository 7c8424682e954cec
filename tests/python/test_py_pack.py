# SPDX-License-Identifier: Apache-2.0
"""penstock.open: what a pack gives, sample by sample."""

import os
import pickle
import threading

import pytest
from py_tools import CLASSES, in_child, jpeg, need_penstock, png, write_pack

penstock = need_penstock()

SCHEMA = {
    "image": "image", "clip": "clip", "raw": "bytes", "meta": "json", "note": "text",
    "label": "i64", "score": "f64", "box": "f32[2,2]", "seg": "mask",
}


@pytest.fixture
def pack(tmp_path):
    return write_pack(penstock, tmp_path / "a.pen", 20)


@pytest.fixture
def rich(tmp_path):
    with penstock.Writer(tmp_path / "rich.pen", SCHEMA, mode="keep", classes=CLASSES) as writer:
        for i in range(3):
            writer.add(
                key=f"k{i}", image=jpeg(i), clip=[png(9), png(8), png(7)][: i + 1],
                raw=bytes([i]) * i, meta={"i": [i, None, "é"]}, note=f"number {i} é",
                label=i - 1, score=i / 4, box=[[i, 1], [2, 3.5]],
                seg=None if i else png(4, 8, 8),
            )
    return penstock.open(tmp_path / "rich.pen")


def test_values_come_back_by_type(rich):
    sample = rich[2]
    assert sample["image"] == jpeg(2)
    assert sample["clip"] == [png(9), png(8), png(7)]
    assert (sample["raw"], sample["meta"]) == (b"\2\2", {"i": [2, None, "é"]})
    assert (sample["note"], sample["label"], sample["score"]) == ("number 2 é", 1, 0.5)
    assert sample["box"].tolist() == [[2, 1], [2, 3.5]] and sample["box"].format == "f"
    assert (rich[0]["seg"], sample["seg"], rich[0]["label"]) == (png(4, 8, 8), b"", -1)
    assert dict(sample).keys() == SCHEMA.keys() and sample.key == "k2" and sample.number == 2


def test_schema_says_what_writer_takes(rich):
    assert rich.schema == SCHEMA
    assert rich.classes == CLASSES and rich.class_field == "label"


def test_frames_of_a_clip(rich):
    assert rich.frames(2, "clip", slice(0, None, 2)) == [png(9), png(7)]
    assert rich.frames(2, "clip", slice(1, 1)) == []
    with pytest.raises(penstock.InvalidError, match="step of 1 or more, found -1"):
        rich.frames(2, "clip", slice(None, None, -1))


def test_image_without_pixels(rich):
    image = rich.image(1, "image")
    assert (image.width, image.height, image.codec, image.how) == (40, 32, "jpeg", "kept")
    assert image.bytes == len(jpeg(1)) and rich.extract(1, "image") == jpeg(1)
    assert rich.image(2, "clip", 1).codec == "png"


def test_info_has_figures(pack):
    info = pack.info
    assert (info["n_samples"], info["n_blocks"], info["block_samples"]) == (20, 3, 8)
    assert info["images"] == [("png", "kept", 20)] and info["settings"]["mode"] == "tile"
    assert info["id"] == pack.id and len(pack.id) == 32


def test_indices_count_from_the_end_too(pack):
    assert pack[-1].number == 19 and pack[-20].number == 0
    for number in (20, -21):
        with pytest.raises(IndexError, match="has 20 samples"):
            pack[number]
    assert [sample.number for sample in pack] == list(range(20))


@pytest.mark.parametrize("wrong", [slice(0, 3), "s3", 1.0, None])
def test_other_indices_are_refused(pack, wrong):
    with pytest.raises(TypeError, match=r"whole numbers.*pack\.index\(key\)"):
        pack[wrong]


def test_keys(pack):
    assert pack.key(7) == "s7" and pack.index("s7") == 7 and pack.index(b"s19") == 19
    with pytest.raises(KeyError):
        pack.index("s20")
    with pytest.raises(TypeError):
        pack.index(7)


def test_unknown_field_names_the_nearest(pack):
    with pytest.raises(penstock.NotFoundError, match="no field 'lable'; did you mean 'label'"):
        pack[0]["lable"]
    assert pack[0].get("lable") is None


def test_pickle_is_the_path(pack):
    data = pickle.dumps(pack)
    assert len(data) < 500
    again = pickle.loads(data)
    assert again.id == pack.id and again[3]["image"] == pack[3]["image"]


def test_relative_path_outlives_chdir(pack, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    relative = penstock.open("a.pen")
    data = pickle.dumps(relative)
    monkeypatch.chdir("/")
    assert pickle.loads(data).path == str(tmp_path / "a.pen")


def test_closed_pack_says_so(pack):
    with pack:
        assert len(pack[0]["image"]) > 0
    with pytest.raises(penstock.ClosedError, match="closed"):
        pack[0]["image"]
    pack.close()


def test_child_process_opens_again(pack):
    expected = [sample["image"] for sample in pack]

    def read():
        assert [sample["image"] for sample in pack] == expected
        pack.close()

    assert in_child(read) is None
    assert pack[5]["image"] == expected[5]


def test_child_process_notices_another_pack(pack, tmp_path):
    assert pack[5]["label"] == 2  # the shard is open now
    os.rename(tmp_path / "a.pen", tmp_path / "b.pen")
    write_pack(penstock, tmp_path / "a.pen", 3)

    def read():
        with pytest.raises(penstock.ClosedError, match="another pack"):
            pack[5]["label"]

    assert in_child(read) is None
    assert pack[5]["label"] == 2


@pytest.mark.threads
def test_threads_read_at_once_and_close(pack):
    expected = [sample["image"] for sample in pack]
    wrong = []

    def read():
        try:
            for i in range(2000):
                if pack[i % 20]["image"] != expected[i % 20]:
                    wrong.append(i)
        except penstock.ClosedError:
            pass

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    pack[3]["image"]
    pack.close()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    assert wrong == []


def test_damage_is_an_error_with_the_sample(pack, tmp_path):
    shard = next((tmp_path / "a.pen").glob("*/*.shard"))
    data = bytearray(shard.read_bytes())
    at = bytes(data).find(pack[4]["image"])
    data[at + 100] ^= 1
    shard.write_bytes(data)
    with pytest.raises(penstock.CorruptError) as caught:
        penstock.open(tmp_path / "a.pen")[4]["image"]
    assert caught.value.sample == 4 and caught.value.where == "pack/payload"


def test_no_pack(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.pen"):
        penstock.open(tmp_path / "none.pen")
    with pytest.raises(ValueError, match="zero bytes"):
        penstock.open("a\0b")
    with pytest.raises(TypeError):
        penstock.open(7)
