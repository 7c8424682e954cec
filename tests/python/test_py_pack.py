# SPDX-License-Identifier: Apache-2.0
"""penstock.open: what a pack gives, sample by sample."""

import os
import pickle
import threading

import pytest
from py_tools import CLASSES, in_child, jpeg, need_penstock, pixels, png, write_pack

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
    with penstock.Writer(tmp_path / "rich.pen", SCHEMA, mode="keep", index=False,
                         classes=CLASSES) as writer:
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


def test_a_clip_is_read_when_asked(rich):
    clip = rich[2]["clip"]
    assert isinstance(clip, penstock.Clip) and len(clip) == 3
    assert clip[0] == png(9) and clip[-1] == png(7) and list(clip) == [png(9), png(8), png(7)]
    assert list(clip[::2]) == [png(9), png(7)] and list(clip[::-1]) == [png(7), png(8), png(9)]
    assert list(clip[2:0:-1][1:]) == [png(8)] and list(clip[5:]) == [] and clip[1:] != clip[:2]
    assert clip == rich[2]["clip"] and clip != b"x" and clip[:1] == (png(9),)
    assert clip[1:].numbers == range(1, 3) and png(8) in clip
    assert repr(clip[1:]).startswith("<2 frames of 'clip', sample 2 of /")
    for number in (3, -4):
        with pytest.raises(IndexError, match="the clip has 3 frames"):
            clip[number]
    with pytest.raises(TypeError):
        clip["x"]


def test_pixels_of_a_clip(tmp_path):
    np = pytest.importorskip("numpy")
    frames = [png(i, 20 + i % 2, 12) for i in range(12)]
    times = [7 + i * 40_000_000 for i in range(12)]
    with penstock.Writer(tmp_path / "a.pen", {"video": "clip"}, mode="keep") as writer:
        writer.add(key="a", video=(frames, times))
    clip = penstock.open(tmp_path / "a.pen")[0]["video"]
    assert clip[3:9:2].timestamps == times[3:9:2]
    for part in (slice(1, 12, 2), slice(10, None, -2), slice(2, 3)):
        expected = np.stack([np.asarray(pixels(i, 20 + i % 2, 12)) for i in range(12)[part]])
        assert np.array_equal(clip[part].decode(), expected)
        assert np.array_equal(np.asarray(clip[part]), expected)
        assert np.asarray(clip[part], np.float32).dtype == np.float32
    gray = np.asarray(pixels(4, 20, 12).convert("L"))
    assert np.array_equal(clip[4:5].decode("gray")[0, :, :, 0], gray)
    with pytest.raises(penstock.InvalidError, match="frame 1 has 21 x 12 pixels.*one by one"):
        clip.decode()
    with pytest.raises(penstock.InvalidError, match="the clip has no frames"):
        clip[5:5].decode()
    with pytest.raises(penstock.InvalidError, match="one of rgb, gray"):
        clip.decode("yuv")


def test_image_without_pixels(rich):
    image = rich.image(1, "image")
    assert (image.width, image.height, image.codec, image.how) == (40, 32, "jpeg", "kept")
    assert image.bytes == len(jpeg(1)) and rich.extract(1, "image") == jpeg(1)
    assert rich.image(2, "clip", 1).codec == "png"


def test_info_has_figures(pack):
    info = pack.info
    assert (info["n_samples"], info["n_blocks"], info["block_samples"]) == (20, 3, 8)
    assert info["images"] == [("png", "kept", 20)] and info["settings"]["mode"] == "keep"
    assert info["id"] == pack.id and len(pack.id) == 32


def test_indices_count_from_the_end_too(pack):
    assert pack[-1].number == 19 and pack[-20].number == 0
    for number in (20, -21):
        with pytest.raises(IndexError, match="has 20 samples"):
            pack[number]
    assert [sample.number for sample in pack] == list(range(20))


@pytest.mark.parametrize("wrong", [slice(0, 3), "s3", 1.0, None])
def test_other_indices_are_refused(pack, wrong):
    with pytest.raises(TypeError, match=r"the number of a sample.*pack\.index\(key\)"):
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
        with pytest.raises(penstock.ClosedError, match="the pack was replaced"):
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
    with pytest.raises(ValueError, match="null bytes"):
        penstock.open("a\0b")
    with pytest.raises(TypeError):
        penstock.open(7)
