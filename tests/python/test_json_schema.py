# SPDX-License-Identifier: Apache-2.0
"""docs/reference/json.md describes what --json prints: every member of every output has a row with
its type, every row without "optional" is in every output, and every row is seen at least once."""

import io
import json
import re
import shutil
import tarfile

import net_stage
import pytest
from cli_tools import ROOT, good, image_bytes, make_folder, run
from py_tools import need_penstock
from top_tools import impostors

PAGE = (ROOT / "docs" / "reference" / "json.md").read_text()
COMMANDS = {command["name"]: command for command in
            json.loads(good("help", "--json").out)["commands"]}


def tables():
    """{heading: {path: (type, is_optional)}}"""
    found = {}
    for section in PAGE.split("\n## ")[1:]:
        heading, _, text = section.partition("\n")
        rows = re.findall(r"^\| `([^`]+)` \| ([a-z ]+)(, optional)? \|", text, re.M)
        for name in heading.split(", "):
            found[name] = {path: (kind, bool(optional)) for path, kind, optional in rows}
    return found


TABLES = tables()


def kind_of(value):
    if isinstance(value, list) and value and not isinstance(value[0], dict):
        return "list of " + kind_of(value[0])
    names = {bool: "boolean", int: "integer", float: "number", str: "text", dict: "object",
             list: "list", type(None): "number"}
    return names[type(value)]


def fits(value, kind):
    found = kind_of(value)
    return (found == kind or kind == "any" or (found, kind) == ("integer", "number")
            or (value == [] and kind.startswith("list"))
            or (found.startswith("list of ") and kind == "list of number" and
                all(fits(v, "number") for v in value)))


def check(table, value, at, seen):
    """Compares an object with the rows of its members."""
    prefix = at + "." if at else ""
    inside = {path for path in table if path.rpartition(".")[0] == at}
    wild, own = f"{at}.FIELD" in table, set()
    for name, member in value.items():
        path = f"{prefix}{'FIELD' if wild else name}"
        assert path in table, f"{prefix}{name} is not in docs/reference/json.md"
        kind = table[path][0]
        assert fits(member, kind), f"{path}: expected {kind}, found {member!r}"
        own.add(path)
        if isinstance(member, dict) and kind != "any":
            check(table, member, path, seen)
        elif isinstance(member, list) and kind == "list":
            for element in member:
                check(table, element, path + "[]", seen)
    absent = {path for path in inside if not table[path][1]} - own
    assert not absent, f"{at or 'the result'} lacks {sorted(absent)}"
    seen |= own


def check_section(heading, outputs, may_be_unseen=()):
    table, all_seen = TABLES[heading], set()
    for output in outputs:
        seen = set()
        check(table, output, "", seen)
        all_seen |= seen
        command = COMMANDS.get(heading.split()[-1])
        if "schema" in table and command:
            assert output["schema"] == command["schema"]
    assert set(table) - all_seen == set(may_be_unseen)


def failure(*args, **more):
    result = run(*args, "--json", **more)
    assert result.code == 1
    return result.json()


@pytest.fixture(scope="module")
def top(tmp_path_factory):
    top = tmp_path_factory.mktemp("json")
    make_folder(top / "images")
    good("pack", top / "images", "-o", top / "a.pen", "--block-samples", "2")
    return top


@pytest.fixture(scope="module")
def rich(tmp_path_factory):
    """A pack with every type of field, and a value that is missing."""
    penstock = need_penstock()
    path = tmp_path_factory.mktemp("rich") / "rich.pen"
    schema = {"image": "image", "clip": "clip", "label": "i64", "score": "f32", "box": "f32[4]",
              "note": "text?", "raw": "bytes", "boxes": "f32[*,4]"}
    with penstock.Writer(path, schema, classes={"label": ["cat", "dog"]}) as writer:
        for i in range(3):
            writer.add(key=str(i), image=image_bytes(i), clip=[image_bytes(i)] * 2, label=i % 2,
                       score=0.5, box=[0, 1, 2, 3], note=None if i else "x", raw=b"xy",
                       boxes=[[0, 0, 1, 1]] * i)
    return path


def damaged_copy(pack, to):
    shutil.copytree(pack, to)
    shard = next(to.glob("*.shard"), None) or next(p for p in to.rglob("*") if p.is_file()
                                                   and p.stat().st_size > 2000)
    data = bytearray(shard.read_bytes())
    data[600] ^= 1
    shard.write_bytes(data)
    return to


def test_every_command_has_a_section():
    assert {f"penstock {name}" for name in COMMANDS} <= set(TABLES)


def test_names_have_no_spaces():
    for table in TABLES.values():
        assert all(re.fullmatch(r"([a-z0-9_]+(\[\])?|FIELD)(\.([a-z0-9_]+(\[\])?|FIELD))*", path)
                   for path in table)


def test_errors(top):
    table = TABLES["Errors"]
    outputs = [failure("info", top / "none.pen"),
               failure("pack", top / "none", "-o", top / "none.pen")]
    seen = set()
    for output in outputs:
        check(table, output, "", seen)
    assert set(table) - seen <= {"error.sample"}


def test_pack_and_finalise(top, tmp_path):
    shutil.copytree(top / "images", tmp_path / "in")
    (tmp_path / "in" / "cat" / "broken.jpg").write_bytes(b"no image")
    runs = [good("pack", tmp_path / "in", "-o", tmp_path / "b.pen", "--on-bad", "skip",
                 "--json").json()]
    (tmp_path / "in" / "cat" / "broken.jpg").unlink()
    (tmp_path / "in" / "cat" / "new.jpg").write_bytes(image_bytes(99))
    runs.append(good("pack", tmp_path / "in", "-o", tmp_path / "b.pen", "--append",
                     "--json").json())
    with tarfile.open(tmp_path / "in.tar", "w") as tar:
        for name, data in (("0.jpg", image_bytes(0)), ("0.txt", b"x"), ("1.jpg", image_bytes(1))):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    runs.append(good("pack", tmp_path / "in.tar", "-o", tmp_path / "tar.pen", "--json").json())
    runs.append(good("pack", tmp_path / "in", "-o", tmp_path / "k.pen", "--mode", "keep",
                     "--json").json())
    runs.append(good("index", tmp_path / "in", "-o", tmp_path / "i.pen", "--json").json())
    good("plan", tmp_path / "in", "-o", tmp_path / "t.pen")
    runs.append(good("pack", tmp_path / "in", "-o", tmp_path / "t.pen", "--task", "0/1",
                     "--json").json())
    runs.append(good("finalise", tmp_path / "t.pen", "--json").json())
    check_section("penstock pack", runs)
    assert TABLES["penstock finalise"] == TABLES["penstock pack"] == TABLES["penstock index"]


def test_plan(top, tmp_path):
    check_section("penstock plan", [good("plan", top / "images", "-o", tmp_path / "p.pen",
                                         "--json").json()])


def test_info(top, rich, tmp_path):
    good("index", top / "images", "-o", tmp_path / "i.pen")
    packs = (top / "a.pen", rich, tmp_path / "i.pen")
    check_section("penstock info", [good("info", pack, "--json").json() for pack in packs])


def test_samples(rich):
    lines = good("info", rich, "--samples", "--json").out.splitlines()
    check_section("penstock info --samples", map(json.loads, lines))


def test_analyse(top, tmp_path):
    bad = damaged_copy(top / "a.pen", tmp_path / "bad.pen")
    runs = [good("info", top / "a.pen", "--analyse", "--json").json(),
            failure("info", bad, "--analyse")]
    assert runs[1]["problems"] > 0
    check_section("penstock info --analyse", runs, {"found[].errno"})


def test_verify(top, tmp_path):
    bad = damaged_copy(top / "a.pen", tmp_path / "bad.pen")
    runs = [good("verify", top / "a.pen", "--json").json(), failure("verify", bad)]
    assert runs[1]["problems"] > 0
    check_section("penstock verify", runs, {"found[].errno", "modified_files"})


def test_extract(top, tmp_path):
    check_section("penstock extract", [good("extract", top / "a.pen", "-o", tmp_path / "x",
                                            "--json").json()])


def test_copy(top, tmp_path):
    check_section("penstock copy", [good("copy", top / "a.pen", tmp_path / "c.pen",
                                         "--json").json()])


def test_ops():
    check_section("penstock ops", [good("ops", "--json").json(),
                                   good("ops", "decode | tensor", "--json").json()])


def depends_on_the_machine(heading, outputs):
    """Members of a diagnosis that are not in these."""
    alone = "reading_alone_samples_per_second"
    advised = any(one["advice"] for one in outputs)
    missing = {name for name in ("read_cold", "read_half_threads")
               if not any(name in one.get(alone, ()) for one in outputs)}
    return {path for path in TABLES[heading]
            if (path == "second" and not any("second" in one for one in outputs))
            or (path.startswith("advice[]") and not advised)
            or path in {f"{alone}.{name}" for name in missing}}


def test_doctor_gc_and_cache(top, tmp_path):
    """With a remote pack, which has further members."""
    doctor = ("doctor", "--seconds", "1", "--batch", "2", "--threads", "1", "--json")
    with net_stage.S3Server() as server:
        server.boto3(retries=3).create_bucket(Bucket="json")
        env = server.environment(HOME=str(tmp_path))
        good("copy", top / "a.pen", "s3://json/a.pen", env=env)
        found = [good(*doctor, top / "a.pen", "--consumer", "1", "--trace",
                      tmp_path / "run.json").json(),
                 good(*doctor, "s3://json/a.pen", "--cache", tmp_path / "cache", env=env).json()]
        gc = [good("gc", top / "a.pen", "--json").json(),
              good("gc", "s3://json/a.pen", "--json", env=env).json()]
    check_section("penstock doctor", found, depends_on_the_machine("penstock doctor", found))
    check_section("penstock gc", gc)
    check_section("penstock cache", [good("cache", tmp_path / "cache", "--json").json(),
                                     good("cache", tmp_path / "cache", "--clear", "--json").json()])




def test_top_of_loaders():
    with impostors({"lines": {"cache_hits": 1}}) as running:
        output = good("top", "--json").json()
        output["loaders"] = [row for row in output["loaders"] if row["process"] == running.pid]
        check_section("penstock top", [output])


def test_version_and_help():
    check_section("penstock --version", [good("--version", "--json").json()])
    check_section("penstock help", [good("help", "--json").json()])
