# SPDX-License-Identifier: Apache-2.0
"""extract: the files it writes, and the names it refuses."""

import io
import os

import pytest
from cli_tools import good, image_bytes, make_folder, picture, read_list, run, samples, write_list
from PIL import Image
from plain_writer import NO_IMAGE, Field, image, write_pack

LISTS = ("samples.csv", "samples.classes.csv")


def tree(root):
    return {os.fspath(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def pixels(data):
    return Image.open(io.BytesIO(data)).convert("RGB").tobytes()


@pytest.fixture
def photos(tmp_path):
    make_folder(tmp_path / "photos")
    good("pack", tmp_path / "photos", "-o", tmp_path / "p.pen")
    return tmp_path


def test_all_samples_come_back_with_their_pixels(photos):
    record = good("extract", photos / "p.pen", "-o", photos / "out", "--json").json()
    source, files = tree(photos / "photos"), tree(photos / "out")
    assert (record["samples"], record["failed"], record["files"]) == (8, 0, 8)
    assert set(files) == {*source, *LISTS}
    for name, data in source.items():
        assert pixels(files[name]) == pixels(data)
    assert record["bytes"] == sum(len(d) for n, d in files.items() if n not in LISTS)


def test_kept_files_come_back_byte_for_byte(photos):
    good("pack", photos / "photos", "-o", photos / "k.pen", "--mode", "keep")
    good("extract", photos / "k.pen", "-o", photos / "out")
    files = tree(photos / "out")
    for name in LISTS:
        del files[name]
    assert files == tree(photos / "photos")


def test_the_list_can_be_packed_again(photos):
    good("extract", photos / "p.pen", "-o", photos / "out")
    good("pack", photos / "out" / "samples.csv", "-o", photos / "again.pen")
    old, new = samples(photos / "p.pen"), samples(photos / "again.pen")
    assert {k: s["fields"]["label"] for k, s in old.items()} == {
        k: s["fields"]["label"] for k, s in new.items()}


def test_some_samples_each_once(photos):
    by_key = samples(photos / "p.pen")
    key = "dog/1.jpg"
    wanted = {k for k, s in by_key.items() if s["index"] in (0, 3, 4, 5)} | {key}
    record = good("extract", photos / "p.pen", "-s", "3-5", "-s0", "--sample=4", "-k", key,
                  "-k", key, "-o", photos / "out", "--json").json()
    assert record["samples"] == len(wanted)
    assert set(tree(photos / "out")) == {*wanted, *LISTS}
    assert {r["path"] for r in read_list(photos / "out" / "samples.csv")} == wanted


def test_unknown_number_or_key_writes_nothing(photos):
    for option, value, said in (("-s", "8", "has 8 samples"), ("-s", "7-8", "has 8 samples"),
                                ("-k", "no", "no sample has this key")):
        result = run("extract", photos / "p.pen", "-s", "0", option, value, "-o", photos / "out")
        assert result.code == 1
        assert said in result.message()
        assert not (photos / "out").exists()


def test_nothing_is_overwritten(photos):
    (photos / "out" / "cat").mkdir(parents=True)
    (photos / "out" / "cat" / "1.jpg").write_bytes(b"mine")
    result = run("extract", photos / "p.pen", "-o", photos / "out")
    assert result.code == 1
    assert "cat/1.jpg exists already" in result.err
    assert (photos / "out" / "cat" / "1.jpg").read_bytes() == b"mine"
    assert len(tree(photos / "out")) == 8 + 2  # all others, and the lists
    assert "cat/1.jpg" not in [r["path"] for r in read_list(photos / "out" / "samples.csv")]
    before = tree(photos / "out")
    again = run("extract", photos / "p.pen", "-o", photos / "out")
    assert again.code == 1
    assert "samples.csv exists already" in again.message()
    assert tree(photos / "out") == before


def test_links_are_not_followed(photos):
    outside = photos / "outside"
    outside.mkdir()
    (photos / "out").mkdir()
    (photos / "out" / "cat").symlink_to(outside)
    (photos / "out" / "dog").mkdir()
    (photos / "out" / "dog" / "0.jpg").symlink_to(outside / "through.jpg")
    result = run("extract", photos / "p.pen", "-o", photos / "out", "--json")
    assert result.code == 1
    assert result.json()["failed"] == 5
    assert "symbolic link" in result.err
    assert list(outside.iterdir()) == []
    assert set(tree(photos / "out")) == {"dog/1.jpg", "dog/2.jpg", "dog/3.png", *LISTS}


def test_a_list_that_is_a_link_is_left_alone(photos):
    (photos / "out").mkdir()
    (photos / "out" / "samples.csv").symlink_to(photos / "elsewhere")
    assert run("extract", photos / "p.pen", "-o", photos / "out").code == 1
    assert not (photos / "elsewhere").exists()


HOSTILE = ["../up.jpg", "in/../../up2.jpg", "./dot.jpg", "in//empty.jpg", "new\nline.jpg",
           "esc\x1b[31m.jpg", "del\x7f.jpg"]


def test_hostile_keys_are_refused_and_the_rest_written(tmp_path):
    work = tmp_path / "a" / "b"
    (work / "in").mkdir(parents=True)
    absolute = str(work / "abs.jpg")
    keys = [*HOSTILE, absolute, "good.jpg", "in/good.jpg"]
    for i, key in enumerate(keys):
        (work / key).write_bytes(image_bytes(i))
    write_list(work / "l.csv", ["path"], [[k] for k in keys])
    good("pack", work / "l.csv", "-o", work / "p.pen", "--order", "source",
         "--allow-outside")
    before = tree(tmp_path)
    target = work / "out" / "deep"
    target.parent.mkdir()
    result = run("extract", work / "p.pen", "-o", target, "--json")
    assert result.code == 1
    assert result.json()["failed"] == len(HOSTILE) + 1
    assert set(tree(target)) == {"good.jpg", "in/good.jpg", "samples.csv"}
    after = tree(tmp_path)
    assert {n for n in after if n not in before} == {
        f"a/b/out/deep/{n}" for n in ("good.jpg", "in/good.jpg", "samples.csv")}
    lines = result.err.splitlines()
    for i in range(len(HOSTILE) + 1):
        assert lines[i].startswith(f"penstock: sample {i}: its key is not a safe file name: ")
    assert "key: ../up.jpg" in lines[0]
    assert "it begins with /" in lines[len(HOSTILE)]
    assert "\\x1b[31m" in lines[5] and "\x1b" not in result.err
    assert lines[-1] == f"penstock: {len(HOSTILE) + 1} samples could not be extracted"


def test_two_keys_with_one_name(tmp_path):
    for key in ("a", "a.jpg"):
        (tmp_path / key).write_bytes(image_bytes(key))
    write_list(tmp_path / "l.csv", ["path"], [["a"], ["a.jpg"]])
    good("pack", tmp_path / "l.csv", "-o", tmp_path / "p.pen", "--order", "source")
    result = run("extract", tmp_path / "p.pen", "-o", tmp_path / "out")
    assert result.code == 1
    assert "sample 1:" in result.err and "a.jpg exists already" in result.err
    assert pixels(tree(tmp_path / "out")["a.jpg"]) == pixels(image_bytes("a"))


def test_suffix_follows_the_bytes(tmp_path):
    kinds = {"a.jpeg": "JPEG", "b.JPG": "JPEG", "c.png": "JPEG", "d": "PNG", "e.jpg": "WEBP"}
    for i, (key, kind) in enumerate(kinds.items()):
        (tmp_path / key).write_bytes(image_bytes(i, kind))
    write_list(tmp_path / "l.csv", ["path"], [[k] for k in kinds])
    good("pack", tmp_path / "l.csv", "-o", tmp_path / "p.pen")
    good("extract", tmp_path / "p.pen", "-o", tmp_path / "out")
    assert set(tree(tmp_path / "out")) == {
        "a.jpeg", "b.JPG", "c.png.jpg", "d.png", "e.jpg.webp", "samples.csv"}


def test_too_long_a_name_is_refused(tmp_path):
    key = "x" * 253  # with .jpg behind it one part is longer than a file system takes
    (tmp_path / key).write_bytes(image_bytes(1))
    write_list(tmp_path / "l.csv", ["path"], [[key]])
    good("pack", tmp_path / "l.csv", "-o", tmp_path / "p.pen")
    result = run("extract", tmp_path / "p.pen", "-o", tmp_path / "out")
    assert result.code == 1
    assert "257 bytes" in result.err


def test_fields_go_to_files_and_to_the_list(tmp_path):
    (tmp_path / "m.png").write_bytes(image_bytes(9, "PNG", mode="L"))
    notes = ["plain", 'quoted "a", b\nnew line', "", " spaces "]
    rows = []
    for i, note in enumerate(notes):
        (tmp_path / f"{i}.jpg").write_bytes(image_bytes(i))
        rows.append([f"{i}.jpg", "ab"[i % 2], "m.png" if i < 2 else "", note, str(i - 2),
                     repr(i / 3)])
    names = ["path", "label", "mask", "note", "count", "score"]
    write_list(tmp_path / "l.csv", names, rows)
    good("pack", tmp_path / "l.csv", "-o", tmp_path / "p.pen", "--order", "source")
    good("extract", tmp_path / "p.pen", "-o", tmp_path / "out")
    listed = read_list(tmp_path / "out" / "samples.csv")
    for row, found in zip(rows, listed):
        want = dict(zip(names, row))
        want["mask"] = f"{row[0]}.mask.png" if row[2] else ""
        want["label"] = str("ab".index(row[1]))
        assert {n: found[n] for n in ("path", "label", "mask", "note", "count")} == {
            n: want[n] for n in ("path", "label", "mask", "note", "count")}
        assert float(found["score"]) == float(want["score"])
        assert samples(tmp_path / "p.pen")[row[0]]["fields"]["score"]["value"] == float(row[5])
    files = tree(tmp_path / "out")
    assert set(files) == {*(f"{i}.jpg" for i in range(4)), "0.jpg.mask.png", "1.jpg.mask.png",
                          *LISTS}
    assert files["samples.classes.csv"] == b"label,class\n0,a\n1,b\n"
    assert files["0.jpg.mask.png"] == (tmp_path / "m.png").read_bytes()
    good("pack", tmp_path / "out" / "samples.csv", "-o", tmp_path / "again.pen")
    old, new = samples(tmp_path / "p.pen"), samples(tmp_path / "again.pen")
    for key in old:
        for field in ("label", "note", "count", "score", "mask"):
            assert old[key]["fields"][field] == new[key]["fields"][field]


def test_raw_pixels_become_png(tmp_path):
    make_folder(tmp_path / "photos", each=2)
    good("pack", tmp_path / "photos", "-o", tmp_path / "p.pen", "--mode", "raw")
    good("extract", tmp_path / "p.pen", "-o", tmp_path / "out")
    files = tree(tmp_path / "out")
    source = tree(tmp_path / "photos")
    assert pixels(files["cat/0.jpg.png"]) == pixels(source["cat/0.jpg"])
    assert pixels(files["cat/1.png"]) == pixels(source["cat/1.png"]) == picture(1).tobytes()


def test_a_damaged_sample_leaves_the_others(tmp_path):
    make_folder(tmp_path / "photos", each=20)
    pack = tmp_path / "p.pen"
    good("pack", tmp_path / "photos", "-o", pack, "--mode", "keep")
    shard = next(pack.rglob("*.shard"))
    data = bytearray(shard.read_bytes())
    wanted = (tmp_path / "photos" / "cat" / "7.jpg").read_bytes()
    at = data.index(wanted)
    data[at + len(wanted) // 2] ^= 1
    shard.write_bytes(data)
    result = run("extract", pack, "-o", tmp_path / "out", "--json")
    assert result.code == 1
    assert (result.json()["samples"], result.json()["failed"]) == (39, 1)
    files = tree(tmp_path / "out")
    assert "cat/7.jpg" not in files
    assert len(files) == 39 + 2


def stored(seed, kind="JPEG"):
    """A picture as the plain writer takes it."""
    return image(image_bytes(seed, kind), 40, 30, codec=kind.lower())


def test_keys_that_no_list_can_hold(tmp_path):
    keys = [b"nul\0.jpg", b"\xff\xfe/ok.jpg", b"/", b"..", b"a/", b"x" * 4096]
    write_pack(tmp_path / "p.pen", [Field("image", "image")],
               [(k, {"image": stored(i)}) for i, k in enumerate(keys)], block_samples=2)
    result = run("extract", tmp_path / "p.pen", "-o", tmp_path / "out", "--json")
    assert result.code == 1
    assert (result.json()["samples"], result.json()["failed"]) == (1, 5)
    assert set(os.listdir(os.fsencode(tmp_path / "out"))) == {b"\xff\xfe", b"samples.csv"}
    assert set(os.listdir(tmp_path)) == {"p.pen", "out"}
    assert [r["path"] for r in read_list(tmp_path / "out" / "samples.csv")] == [
        os.fsdecode(b"\xff\xfe/ok.jpg")]
    assert "byte 0x00" in result.err
    listed = samples(tmp_path / "p.pen")
    assert set(listed) == {k.decode("latin-1") for k in keys}


def test_hostile_field_names_stay_below_the_directory(tmp_path):
    fields = [Field("image", "image"), Field("/../../../up", "bytes")]
    write_pack(tmp_path / "p.pen", fields,
               [(b"a.jpg", {"image": stored(1), "/../../../up": b"evil"})], block_samples=1)
    (tmp_path / "x" / "y").mkdir(parents=True)
    result = run("extract", tmp_path / "p.pen", "-o", tmp_path / "x" / "y" / "out")
    assert result.code == 1
    assert "not a safe file name" in result.err
    assert not [n for n in tree(tmp_path) if "up" in n]


def test_every_type_of_field_has_its_place(tmp_path):
    fields = [Field("clip", "clip"), Field("photo", "image"), Field("label", "i64"),
              Field("blob", "bytes"), Field("info", "json"), Field("text", "text"),
              Field("box", "f32", (2,)), Field("weight", "f32"), Field("more", "clip")]
    nothing, rows = {**NO_IMAGE, "orientation": 0}, []
    for i in range(3):
        rows.append((b"s/%d" % i, {
            "clip": [stored(10 * i + k, "PNG") for k in range(i)], "label": (0, 1, 1)[i],
            "photo": stored(i) if i else nothing, "blob": bytes([0, 255, i]), "info": b"{}",
            "text": (b"short", b"not utf-8 \xff", b"x" * 70000)[i],
            "box": [0.1, -1e30], "weight": 1 / 3, "more": [stored(5)]}))
    write_pack(tmp_path / "p.pen", fields, rows, block_samples=3,
               classes={2: [b"caf\xc3\xa9", b"b, c"]})
    good("extract", tmp_path / "p.pen", "-o", tmp_path / "out")
    files = tree(tmp_path / "out")
    files.pop("samples.csv")
    classes = files.pop("samples.classes.csv")
    assert set(files) == {
        "s/1/00001.png", "s/2/00001.png", "s/2/00002.png", "s/1.photo.jpg", "s/2.photo.jpg",
        *(f"s/{i}.blob.bin" for i in range(3)), *(f"s/{i}.info.json" for i in range(3)),
        "s/1.text.txt", "s/2.text.txt", *(f"s/{i}.more/00001.jpg" for i in range(3))}
    assert files["s/2/00002.png"] == image_bytes(21, "PNG")
    assert files["s/1.text.txt"] == b"not utf-8 \xff"
    assert files["s/2.blob.bin"] == b"\0\xff\2"
    listed = read_list(tmp_path / "out" / "samples.csv")
    assert list(listed[0]) == ["path", "photo", "label", "text", "box", "weight", "more"]
    assert [r["label"] for r in listed] == ["0", "1", "1"]
    assert [r["text"] for r in listed] == ["short", "", ""]
    assert [(r["box"], r["weight"]) for r in listed] == [("0.1 -1e+30", "0.33333334")] * 3
    assert classes.decode() == 'label,class\n0,café\n1,"b, c"\n'
    fields = samples(tmp_path / "p.pen")["s/2"]["fields"]
    assert fields["box"]["values"] == [0.1, -1e30]
    assert fields["clip"]["frames"] == 2
    assert fields["label"] == {"value": 1, "class": "b, c"}
