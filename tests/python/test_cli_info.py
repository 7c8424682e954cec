# SPDX-License-Identifier: Apache-2.0
"""info and verify."""

import json
import os
import re
import tarfile

import pytest
from cli_tools import add_member, good, image_bytes, make_folder, run, samples, write_list
from plain_writer import Field, write_pack


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    root = tmp_path_factory.mktemp("info")
    make_folder(root / "photos", classes=("cat", 'd"o,g', "emu"))
    good("pack", root / "photos", "-o", root / "p.pen", "--block-samples", "5")
    return root / "p.pen"


def test_info_json_has_all(pack):
    info = good("info", pack, "--json").json()
    assert info["samples"] == 12
    assert (info["blocks"], info["samples_per_block"], info["shards"]) == (3, 5, 1)
    assert (info["class_count"], info["classes"]) == (3, ["cat", 'd"o,g', "emu"])
    assert {f["name"]: (f["type"], f["class"]) for f in info["fields"]} == {
        "image": ("image", False), "label": ("i64", True)}
    assert info["settings"]["mode"] == "keep"
    assert info["bytes"]["pack"] == sum(
        p.stat().st_size for p in pack.rglob("*") if p.is_file())
    assert len(info["id"]) == 32


def test_info_text_is_the_same_record(pack):
    info = good("info", pack, "--json").json()
    text = good("info", pack).out
    for value in (info["id"], "12", f"{info['bytes']['payload']:,}", 'cat, d"o,g, emu', "i64"):
        assert value in text
    assert max(map(len, text.splitlines()[:-1])) < 100
    assert not any(line != line.rstrip() for line in text.splitlines())


def test_samples_as_tsv_and_json_agree(pack):
    names, *rows = [line.split("\t") for line in good("info", pack, "--samples").out.splitlines()]
    listed = samples(pack)
    assert names == ["index", "key", "image.width", "image.height", "image.codec", "image.how",
                     "image.bytes", "label.value", "label.class"]
    assert len(rows) == len(listed) == 12
    for row in rows:
        fields = listed[row[1]]["fields"]
        image = fields["image"]
        assert row[2:7] == [str(image[k]) for k in ("width", "height", "codec", "how", "bytes")]
        assert row[7:] == [str(fields["label"]["value"]), fields["label"]["class"]]
        assert fields["label"]["class"] == row[1].split("/")[0]
        assert (image["width"], image["height"]) == (40, 30)


def test_keys_of_any_bytes_are_escaped(tmp_path):
    names = [b"a\tb\\n.jpg", b"caf\xc3\xa9.jpg", b"nl\n\x1b[31m.jpg"]
    for i, name in enumerate(names):
        (tmp_path / os.fsdecode(name)).write_bytes(image_bytes(i))
    write_list(tmp_path / "l.csv", ["path", "note"],
               [[os.fsdecode(n), 'x, "y"\n\x7f'] for n in names])
    good("pack", tmp_path / "l.csv", "-o", tmp_path / "p.pen", "--order", "source")
    lines = good("info", tmp_path / "p.pen", "--samples").out.splitlines()[1:]
    assert [line.split("\t")[1] for line in lines] == [
        "a\\x09b\\\\n.jpg", "café.jpg", "nl\\x0a\\x1b[31m.jpg"]
    listed = samples(tmp_path / "p.pen")
    assert set(listed) == {n.decode() for n in names}
    assert all(s["fields"]["note"]["text"] == 'x, "y"\n\x7f' for s in listed.values())


def test_keys_that_are_not_utf8_come_with_hex(tmp_path):
    (tmp_path / "src" / "c").mkdir(parents=True)
    (tmp_path / "src" / "c" / os.fsdecode(b"\xff\xc3\xa9.jpg")).write_bytes(image_bytes(1))
    good("pack", tmp_path / "src", "-o", tmp_path / "p.pen")
    out = good("info", tmp_path / "p.pen", "--samples", "--json").out
    sample = json.loads(out)
    assert bytes.fromhex(sample["key_hex"]) == b"c/\xff\xc3\xa9.jpg"
    assert sample["key"].encode("latin-1") == b"c/\xff\xc3\xa9.jpg"
    assert "\tc/\\xffé.jpg\t" in good("info", tmp_path / "p.pen", "--samples").out


def test_classes_that_are_not_utf8_can_be_told_apart(tmp_path):
    """One is the other in UTF-8: escaped they look the same, in hex they do not."""
    names = [b"a", "café".encode(), b"caf\xe9"]
    for i, name in enumerate(names):
        folder = tmp_path / "src" / os.fsdecode(name)
        folder.mkdir(parents=True)
        (folder / "1.jpg").write_bytes(image_bytes(i))
    good("pack", tmp_path / "src", "-o", tmp_path / "p.pen")
    record = good("info", tmp_path / "p.pen", "--json").json()
    assert [bytes.fromhex(c) for c in record["classes_hex"]] == sorted(names)
    assert record["classes"] == ["a", "café", "café"]
    (tmp_path / "src" / os.fsdecode(names[2]) / "1.jpg").unlink()
    (tmp_path / "src" / os.fsdecode(names[2])).rmdir()
    good("pack", tmp_path / "src", "-o", tmp_path / "q.pen")
    assert "classes_hex" not in good("info", tmp_path / "q.pen", "--json").json()


@pytest.mark.parametrize("verb", ["info", "verify"])
def test_no_pack_is_one_line_and_exit_1(verb, tmp_path):
    for path in (tmp_path / "none.pen", tmp_path):
        result = run(verb, path, "--json")
        assert result.code == 1
        assert str(path) in result.message()
        assert result.json()["error"]["message"] == result.message()


def test_verify_of_a_good_pack(pack):
    assert good("verify", pack).out.startswith("ok: 12 samples in 3 blocks, ")
    assert good("verify", pack).err == ""
    record = good("verify", pack, "--decode", "--threads", "2", "--json").json()
    assert (record["ok"], record["problems"], record["found"]) == (True, 0, [])
    assert (record["samples"], record["images"]) == (12, 12)
    assert record["bytes"] == good("info", pack, "--json").json()["bytes"]["pack"]


def damage(pack, fraction):
    shard = next(pack.rglob("*.shard"))
    data = bytearray(shard.read_bytes())
    data[int(len(data) * fraction)] ^= 0x10
    shard.write_bytes(data)


def test_verify_names_every_problem(tmp_path):
    make_folder(tmp_path / "photos")
    pack = tmp_path / "p.pen"
    good("pack", tmp_path / "photos", "-o", pack, "--mode", "keep")
    damage(pack, 0.5)
    result = run("verify", pack, "--json")
    record = result.json()
    assert result.code == 1
    assert (record["ok"], record["problems"]) == (False, 1)
    assert record["found"][0]["message"] in result.message()
    text = run("verify", pack)
    assert text.code == 1
    assert text.out.startswith("1 problem: ")
    assert text.message() == result.message()


def test_a_damaged_index_leaves_the_other_blocks_listed(tmp_path):
    make_folder(tmp_path / "photos")
    pack = tmp_path / "p.pen"
    good("pack", tmp_path / "photos", "-o", pack, "--block-samples", "2")
    shard = next(pack.rglob("*.shard"))
    data = bytearray(shard.read_bytes())
    data[64 + 70] ^= 1  # in the index of the first block
    shard.write_bytes(data)
    result = run("info", pack, "--samples", "--json")
    assert result.code == 1
    assert [json.loads(x)["index"] for x in result.out.splitlines()] == [2, 3, 4, 5, 6, 7]
    assert result.err.splitlines()[-1].startswith("penstock: 2 samples could not be listed")
    assert run("info", pack, "--samples").out.startswith("index\tkey\t")
    assert good("info", pack).err == ""


@pytest.mark.parametrize("settings, parsed", [
    (b'{"a": [1, -2.5e3, null, true, "x\\u00e9\\n"]}', {"a": [1, -2500.0, None, True, "xé\n"]}),
    (b"[" * 40 + b"]" * 40, ...),
    (b"", None), (b"{", None), (b'{"a": 01}', None), (b'{"a": 1,}', None), (b"{} {}", None),
    (b'{"a": "\x01"}', None), (b'{"a": "\xff"}', None), (b"[" * 65 + b"]" * 65, None),
    (b'"\\x"', None), (b"nul", None), (b"1.", None), (b"-", None), (b'{"a" 1}', None),
])
def test_settings_that_are_not_json_do_not_break_json(tmp_path, settings, parsed):
    def edit(part, data, shard, block):
        if part == "SETT":
            data[:] = settings

    write_pack(tmp_path / "p.pen", [Field("n", "i64")], [(b"k", {"n": 1})], block_samples=1,
               settings={}, edit=edit)
    result = run("info", tmp_path / "p.pen", "--json")
    if result.code == 1:  # the library may refuse such a pack
        assert parsed is None
        return
    found = result.json()["settings"]
    if parsed is None:
        assert isinstance(found, str)
    else:
        assert found == (json.loads(settings) if parsed is ... else parsed)


def test_names_of_any_bytes_in_a_record(tmp_path):
    write_pack(tmp_path / "p.pen", [Field('f"\\\n', "i64")], [(b"k", {'f"\\\n': 1})],
               block_samples=1, classes={0: [b"a\x1b[31m", b'"\\']})
    info = good("info", tmp_path / "p.pen", "--json").json()
    assert info["fields"][0]["name"] == 'f"\\\n'
    assert info["classes"] == ["a\x1b[31m", '"\\']
    assert "\x1b" not in good("info", tmp_path / "p.pen").out
    assert 'f"\\\n' in samples(tmp_path / "p.pen")["k"]["fields"]
    assert len(good("info", tmp_path / "p.pen", "--samples").out.splitlines()) == 2


def file_bytes(top):
    return sum(p.stat().st_size for p in top.rglob("*") if p.is_file())


def check_totals(pack, sources, images, **more):
    """What info prints, against what lies on the disk."""
    record = good("info", pack, "--json").json()
    sizes = record["bytes"]
    assert record["samples"] == len(sources)
    assert sizes["source"] == sum(p.stat().st_size for p in sources)
    assert {(i["codec"], i["how"]): i["images"] for i in record["images"]} == images
    assert sizes["pack"] == sum(sizes[k] for k in ("payload", "index", "metadata", "tables"))
    assert sizes["pack"] == file_bytes(pack)
    assert record["pack_to_source"] == pytest.approx(sizes["pack"] / sizes["source"], rel=1e-4)
    assert record["shards"] == len([p for p in pack.rglob("*") if p.is_file()]) - 1
    for name, value in more.items():
        assert record[name] == value


def test_totals_after_an_append(tmp_path):
    folder, pack = make_folder(tmp_path / "in"), tmp_path / "p.pen"
    good("pack", folder, "-o", pack, "--block-samples", "5")
    check_totals(pack, [*folder.rglob("*.*")], {("jpeg", "kept"): 6, ("png", "kept"): 2}, blocks=2)
    for i in range(4):
        (folder / "cat" / f"new{i}.jpg").write_bytes(image_bytes(70 + i))
    good("pack", folder, "-o", pack, "--block-samples", "5", "--append")
    check_totals(pack, [*folder.rglob("*.*")], {("jpeg", "kept"): 10, ("png", "kept"): 2},
                 blocks=3, broken_inputs_left_out=0)


def test_totals_after_finalise_with_broken_files(tmp_path):
    folder, pack = make_folder(tmp_path / "in"), tmp_path / "p.pen"
    sources = [*folder.rglob("*.*")]
    for i in range(3):
        (folder / "cat" / f"bad{i}.jpg").write_bytes(image_bytes(1)[:200 + i])
    for i in range(2):
        good("pack", folder, "-o", pack, "--on-bad", "skip", "--task", f"{i}/2")
    good("finalise", pack)
    check_totals(pack, sources, {("jpeg", "kept"): 6, ("png", "kept"): 2},
                 broken_inputs_left_out=3)


def test_sizes_are_printed_in_binary_units(tmp_path):
    pack = tmp_path / "p.pen"
    data = image_bytes(3, "PNG", width=700, height=700)
    (tmp_path / "in" / "one").mkdir(parents=True)
    (tmp_path / "in" / "one" / "a.png").write_bytes(data)
    good("pack", tmp_path / "in", "-o", pack, "--mode", "raw")
    sizes = good("info", pack, "--json").json()["bytes"]
    text = good("info", pack).out
    shown = dict(re.findall(r"(?m)^  (\w+) +([\d,]+(?: +[\d.]+ \w+)?)$", text))
    assert sizes["payload"] > 1 << 20 and sizes["metadata"] < 1000
    assert shown["payload"].split(maxsplit=1) == [
        f"{sizes['payload']:,}", f"{sizes['payload'] / (1 << 20):.1f} MiB"]
    assert shown["metadata"] == str(sizes["metadata"])
    assert shown["tables"].endswith(f"{sizes['tables'] / 1024:.1f} KiB")


def test_hex_is_of_lists_of_texts_alone(tmp_path):
    """The problems that verify finds are objects; their texts have fields of their own."""
    pack = tmp_path / os.fsdecode(b"q\xff.pen")
    (tmp_path / "src" / "c").mkdir(parents=True)
    (tmp_path / "src" / "c" / "1.jpg").write_bytes(image_bytes(1))
    good("pack", tmp_path / "src", "-o", pack)
    shard = next(pack.glob("??/*.shard"))
    damaged = bytearray(shard.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    shard.write_bytes(damaged)
    done = run("verify", pack, "--json")
    assert done.code != 0 and done.json()["found"] and "found_hex" not in done.json()


def test_info_tells_the_order_of_the_samples(tmp_path):
    """Samples of tars that are indexed keep their order; those of a folder do not."""
    make_folder(tmp_path / "photos")
    with tarfile.open(tmp_path / "web.tar", "w") as tar:
        for i in range(9):
            add_member(tar, f"{9 - i}.jpg", image_bytes(i))
    good("index", tmp_path / "web.tar", "-o", tmp_path / "tar.pen")
    good("index", tmp_path / "photos", "-o", tmp_path / "folder.pen")
    good("pack", tmp_path / "web.tar", "-o", tmp_path / "packed.pen")
    for name, order, in_place in (("tar", "source", True), ("folder", "shuffled", True),
                                  ("packed", "shuffled", None)):
        info = good("info", tmp_path / f"{name}.pen", "--json").json()
        assert (info["settings"]["order"], info.get("in_place")) == (order, in_place)
    by_number = sorted(samples(tmp_path / "tar.pen").values(), key=lambda s: s["index"])
    assert [s["key"] for s in by_number] == [str(9 - i) for i in range(9)]
