# SPDX-License-Identifier: Apache-2.0
"""Labels and classes: the same after extract and pack, and no numbers mixed with names."""

import io
import random
import shutil
import tarfile

import pytest
from cli_tools import good, image_bytes, make_folder, read_list, run, samples, write_list
from py_tools import need_penstock

NAMES = ["007", "7", "07", "1e3", "1000", "-1", "+1", "0", "1.5", "nan", "true", "cat", "Cat",
         "b, c", 'say "hi"', "'", ";", "a;b", " x", "x ", "é", "日本", "🦉", "label", "class",
         "path", "#1", "=1+1", "~", "a\\b", "10", "2", "9", "9223372036854775808"]


def labels(pack):
    """Of every key: number and class name."""
    return {key: (s["fields"]["label"]["value"], s["fields"]["label"].get("class"))
            for key, s in samples(pack).items()}


def round_trip(pack, folder, *more):
    good("extract", pack, "-o", folder / "out", *more)
    good("pack", folder / "out" / "samples.csv", "-o", folder / "again.pen")
    return folder / "again.pen"


def same(pack, again):
    assert labels(pack) == labels(again)
    for name in ("class_count", "classes"):
        assert (good("info", pack, "--json").json().get(name)
                == good("info", again, "--json").json().get(name))


def make_list(path, rows, names=("path", "label")):
    for row in rows:
        (path / row[0]).write_bytes(image_bytes(row[0]))
    write_list(path / "l.csv", list(names), rows)
    return path / "l.csv"


# ---- extract and pack again ----------------------------------------------------------------------


def test_numeric_class_folders_keep_their_numbers(tmp_path):
    make_folder(tmp_path / "photos", ("10", "2", "9"), 2)
    good("pack", tmp_path / "photos", "-o", tmp_path / "p.pen")
    again = round_trip(tmp_path / "p.pen", tmp_path)
    assert set(labels(again).values()) == {(0, "10"), (1, "2"), (2, "9")}
    same(tmp_path / "p.pen", again)


@pytest.mark.parametrize("seed", range(8))
def test_class_folders_of_any_name(tmp_path, seed):
    draw = random.Random(seed)
    make_folder(tmp_path / "photos", draw.sample(NAMES, draw.randint(1, 12)), 1)
    good("pack", tmp_path / "photos", "-o", tmp_path / "p.pen", "--seed", str(seed))
    same(tmp_path / "p.pen", round_trip(tmp_path / "p.pen", tmp_path))


@pytest.mark.parametrize("seed", range(8))
def test_lists_with_names(tmp_path, seed):
    draw = random.Random(seed)
    names = [n for n in NAMES if not n.lstrip("+-").isdigit() or len(n) > 18]
    rows = [[f"{i}.jpg", draw.choice(names)] for i in range(20)]
    good("pack", make_list(tmp_path, rows), "-o", tmp_path / "p.pen")
    same(tmp_path / "p.pen", round_trip(tmp_path / "p.pen", tmp_path))


@pytest.mark.parametrize("numbers", [[0, 1, 2], [10, 2, 9], [-1, 5, 5], [0, 0, 0],
                                     [2**63 - 1, -2**63, 7]])
def test_lists_with_numbers_have_no_names(tmp_path, numbers):
    rows = [[f"{i}.jpg", str(n)] for i, n in enumerate(numbers)]
    good("pack", make_list(tmp_path, rows), "-o", tmp_path / "p.pen")
    again = round_trip(tmp_path / "p.pen", tmp_path)
    same(tmp_path / "p.pen", again)
    assert {k: v[0] for k, v in labels(again).items()} == {r[0]: int(r[1]) for r in rows}
    assert not (tmp_path / "out" / "samples.classes.csv").exists()


def test_without_labels(tmp_path):
    good("pack", make_list(tmp_path, [["a.jpg"], ["b.jpg"]], ["path"]), "-o", tmp_path / "p.pen")
    again = round_trip(tmp_path / "p.pen", tmp_path)
    assert [f["name"] for f in good("info", again, "--json").json()["fields"]] == ["image"]


@pytest.mark.parametrize("seed", range(4))
def test_classes_in_any_order_and_without_samples(tmp_path, seed):
    penstock = need_penstock()
    draw = random.Random(seed)
    classes = draw.sample(NAMES, 9)
    with penstock.Writer(tmp_path / "p.pen", {"image": "image", "label": "i64"},
                         classes=classes) as writer:
        for i in range(10):
            writer.add(f"{i}.jpg", image=image_bytes(i),
                       label=draw.choice([0, 3, 7]))
    again = round_trip(tmp_path / "p.pen", tmp_path)
    same(tmp_path / "p.pen", again)
    assert penstock.open(again).classes == classes


@pytest.mark.parametrize("label", [-1, 2, 2**40])
def test_labels_without_a_class_keep_their_numbers(tmp_path, label):
    penstock = need_penstock()
    with penstock.Writer(tmp_path / "p.pen", {"image": "image", "label": "i64"},
                         classes=["a", "b"]) as writer:
        for i, value in enumerate((0, label, 1)):
            writer.add(f"{i}.jpg", image=image_bytes(i), label=value)
    result = good("extract", tmp_path / "p.pen", "-o", tmp_path / "out")
    assert "some labels are not the number of a class" in result.err
    assert not (tmp_path / "out" / "samples.classes.csv").exists()
    good("pack", tmp_path / "out" / "samples.csv", "-o", tmp_path / "again.pen")
    assert labels(tmp_path / "again.pen") == {
        "0.jpg": (0, None), "1.jpg": (label, None), "2.jpg": (1, None)}


def test_some_samples_keep_their_numbers(tmp_path):
    make_folder(tmp_path / "photos", ("a", "b", "c"), 1)
    good("pack", tmp_path / "photos", "-o", tmp_path / "p.pen")
    again = round_trip(tmp_path / "p.pen", tmp_path, "-k", "c/0.png")
    assert labels(again) == {"c/0.png": (2, "c")}
    assert good("info", again, "--json").json()["classes"] == ["a", "b", "c"]


def test_names_find_their_numbers_in_another_pack(tmp_path):
    make_folder(tmp_path / "one", ("b", "c"), 2)
    make_folder(tmp_path / "all", ("a", "b", "c"), 2)
    for name in ("one", "all"):
        good("pack", tmp_path / name, "-o", tmp_path / f"{name}.pen")
    good("extract", tmp_path / "one.pen", "-o", tmp_path / "out")
    listed = tmp_path / "out" / "samples.csv"
    good("pack", listed, "-o", tmp_path / "x.pen", "--classes-from", tmp_path / "all.pen")
    assert set(labels(tmp_path / "x.pen").values()) == {(1, "b"), (2, "c")}
    result = run("pack", tmp_path / "all", "-o", tmp_path / "y.pen", "--classes-from",
                 tmp_path / "one.pen")
    assert "class a of " in result.message()
    good("extract", tmp_path / "all.pen", "-o", tmp_path / "out2")
    result = run("pack", tmp_path / "out2" / "samples.csv", "-o", tmp_path / "y.pen",
                 "--classes-from", tmp_path / "one.pen")
    assert "class a of " in result.message()


def test_the_list_is_appended_by_names(tmp_path):
    make_folder(tmp_path / "one", ("b", "c"), 2)
    make_folder(tmp_path / "all", ("a", "b", "c"), 3)
    for name in ("one", "all"):
        good("pack", tmp_path / name, "-o", tmp_path / f"{name}.pen")
    want = labels(tmp_path / "all.pen")
    for file in (tmp_path / "one").rglob("*.*"):
        file.rename(file.with_name("new-" + file.name))
    good("pack", tmp_path / "one", "-o", tmp_path / "new.pen")
    good("extract", tmp_path / "new.pen", "-o", tmp_path / "out")
    good("pack", tmp_path / "out" / "samples.csv", "-o", tmp_path / "all.pen", "--append")
    found = labels(tmp_path / "all.pen")
    assert {k: v for k, v in found.items() if "new-" not in k} == want
    assert {v for k, v in found.items() if "new-" in k} == {(1, "b"), (2, "c")}


@pytest.mark.parametrize("append", [False, True])
def test_a_filtered_list_needs_its_file_of_classes(tmp_path, append):
    make_folder(tmp_path / "nc", ("10", "2", "9"), 2)
    good("pack", tmp_path / "nc", "-o", tmp_path / "nc.pen")
    out = tmp_path / "out"
    good("extract", tmp_path / "nc.pen", "-o", out)
    (out / "9").rename(out / "new")
    nine = [[r["path"].replace("9/", "new/"), r["label"]]
            for r in read_list(out / "samples.csv") if r["path"].startswith("9/")]
    write_list(out / "nine.csv", ["path", "label"], nine)
    pack = tmp_path / ("nc.pen" if append else "n2.pen")
    command = ("pack", out / "nine.csv", "-o", pack,
               *(("--append",) if append else ("--classes-from", tmp_path / "nc.pen")))
    result = run(*command)
    assert result.code == 1
    assert result.message() == (
        f"label 2 of {out}/{nine[0][0]}: ambiguous: it is both a class number and the name of "
        f"a class; the class named 2 has the number 1; write the name of each number into "
        f"{out}/nine.classes.csv (of a list that 'penstock extract' wrote, copy the file "
        "samples.classes.csv to that name)")
    shutil.copy(out / "samples.classes.csv", out / "nine.classes.csv")  # as the message says
    good(*command)
    assert {labels(pack)[key] for key, _ in nine} == {(2, "9")}


def test_numbers_that_can_only_be_names_are_names(tmp_path):
    make_folder(tmp_path / "nc", ("10", "2", "9"), 1)
    good("pack", tmp_path / "nc", "-o", tmp_path / "nc.pen")
    command = ("-o", tmp_path / "p.pen", "--classes-from", tmp_path / "nc.pen")
    good("pack", make_list(tmp_path, [["a.jpg", "9"], ["b.jpg", "2"]]), *command)
    assert labels(tmp_path / "p.pen") == {"a.jpg": (2, "9"), "b.jpg": (1, "2")}


def test_a_number_beyond_the_classes_is_the_one_that_is_named(tmp_path):
    make_folder(tmp_path / "photos", ("a", "b"), 1)
    good("pack", tmp_path / "photos", "-o", tmp_path / "c.pen")
    listed = make_list(tmp_path, [["a.jpg", "0"], ["b.jpg", "1"], ["c.jpg", "2"], ["d.jpg", "1"]])
    result = run("pack", listed, "-o", tmp_path / "p.pen", "--classes-from", tmp_path / "c.pen")
    assert result.message().startswith(f"class 2 of {tmp_path}/c.jpg: expected one of the 2 ")


def test_a_tar_cannot_tell_numbers_from_names(tmp_path):
    make_folder(tmp_path / "nc", ("10", "2", "9"), 1)
    good("pack", tmp_path / "nc", "-o", tmp_path / "nc.pen")
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for name, data in (("x.jpg", image_bytes(1)), ("x.cls", b"2")):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    result = run("pack", tmp_path / "a.tar", "-o", tmp_path / "nc.pen", "--append")
    assert result.code == 1
    assert "pass a list with a file LIST.classes.csv next to it instead" in result.message()


# ---- the file of classes -------------------------------------------------------------------------


def test_a_list_of_ones_own_may_name_its_numbers(tmp_path):
    listed = make_list(tmp_path, [["a.jpg", "1"], ["b.jpg", "0"]])
    (tmp_path / "l.classes.csv").write_text("label,class\n0,7\n1,cat\n2,dog\n")
    record = good("pack", listed, "-o", tmp_path / "p.pen", "--json").json()
    assert (record["class_count"], record["first_classes"]) == (3, ["7", "cat", "dog"])
    assert labels(tmp_path / "p.pen") == {"a.jpg": (1, "cat"), "b.jpg": (0, "7")}


@pytest.mark.parametrize(("text", "said"), [
    ("", "l.classes.csv: expected the header label,class, found an empty file"),
    ("a,b\n", 'l.classes.csv: line 1: expected the header label,class, found "a"; fix or remove'),
    ("label,class,x\n", 'found "label" and a number of columns other than 2'),
    ("label,class\n1,a\n", 'line 2: expected the number 0 and its class, found "1"'),
    ("label,class\n0,a\n0,b\n", 'line 3: expected the number 1 and its class, found "0"'),
    ("label,class\n0,a\n1,\n", 'line 3: expected a name after the number, found "1"; fix or'),
    ("label,class\n0,a\n1,b\n2,a\n", 'line 4: expected a name that differs from those before it, '
     'found "a", which is also class 0; fix or remove this file'),
    ("label,class\n0\n", 'line 2: expected the number 0 and its class, found "0" and a'),
])
def test_a_file_of_classes_that_is_none(tmp_path, text, said):
    listed = make_list(tmp_path, [["a.jpg", "1"], ["b.jpg", "0"]])
    (tmp_path / "l.classes.csv").write_text(text)
    result = run("pack", listed, "-o", tmp_path / "p.pen")
    assert result.code == 1
    assert said in result.message()
    (tmp_path / "l.classes.csv").unlink()  # as the message says
    good("pack", listed, "-o", tmp_path / "p.pen")


def test_with_a_file_of_classes_labels_are_numbers(tmp_path):
    listed = make_list(tmp_path, [["a.jpg", "cat"], ["b.jpg", "cat"]])
    (tmp_path / "l.classes.csv").write_text("label,class\n0,cat\n")
    result = run("pack", listed, "-o", tmp_path / "p.pen")
    assert result.message() == (
        f"{tmp_path}/a.jpg: expected an integer as label because {tmp_path}/l.classes.csv names "
        'the classes, found "cat"; write the number of the class, or remove that file')


@pytest.mark.parametrize("bad", ["3", "-1", str(2**40)])
@pytest.mark.parametrize("other", [False, True])
def test_labels_are_numbers_of_the_file_of_classes(tmp_path, bad, other):
    rows = [["a.jpg", "1"], ["b.jpg", bad], ["c.jpg", "2"]]
    listed = make_list(tmp_path, rows)
    (tmp_path / "l.classes.csv").write_text("label,class\n0,x\n1,y\n2,z\n")
    command = ["pack", listed, "-o", tmp_path / "p.pen"]
    if other:
        make_folder(tmp_path / "photos", ("x", "y", "z", bad), 1)
        good("pack", tmp_path / "photos", "-o", tmp_path / "c.pen")
        command += ["--classes-from", tmp_path / "c.pen"]
    result = run(*command)
    assert result.code == 1
    assert result.message() == (
        f"{listed}: line 3: expected a label from 0 to 2 because {tmp_path}/l.classes.csv names 3 "
        f"classes, found {bad}; fix the label or add the class to that file")
    rows[1][1] = "0"
    make_list(tmp_path, rows)
    good(*command)


def test_all_lists_have_the_same_classes(tmp_path):
    make_list(tmp_path, [["a.jpg", "1"]])
    (tmp_path / "b.jpg").write_bytes(image_bytes(1))
    write_list(tmp_path / "m.csv", ["path", "label"], [["b.jpg", "0"]])
    (tmp_path / "l.classes.csv").write_text("label,class\n0,x\n1,y\n")
    both = ("pack", tmp_path / "l.csv", tmp_path / "m.csv", "-o", tmp_path / "p.pen")
    assert "expected the same classes for every list" in run(*both).message()
    (tmp_path / "m.classes.csv").write_text("label,class\n0,x\n1,z\n")
    assert "expected the same classes for every list" in run(*both).message()
    (tmp_path / "m.classes.csv").write_text("label,class\n0,x\n1,y\n")
    good(*both)
    assert labels(tmp_path / "p.pen") == {"a.jpg": (1, "y"), "b.jpg": (0, "x")}


# ---- numbers mixed with names --------------------------------------------------------------------


def test_one_name_among_numbers_is_an_error(tmp_path):
    rows = [["a.jpg", "2"], ["b.jpg", "10"], ["c.jpg", "l0"], ["d.jpg", "x"]]
    listed = make_list(tmp_path, rows)
    result = run("pack", listed, "-o", tmp_path / "p.pen")
    assert result.code == 1
    assert result.message() == (
        f'{listed}: line 4: expected a label that is an integer, as "2" before it, found "l0"; '
        "write all labels as integers, or all as names (integers get names from a file "
        "LIST.classes.csv: see 'penstock help pack')")
    rows[2][1], rows[3][1] = "10", "7"
    make_list(tmp_path, rows)
    good("pack", listed, "-o", tmp_path / "p.pen")
    assert {k: v[0] for k, v in labels(tmp_path / "p.pen").items()} == {
        r[0]: int(r[1]) for r in rows}


def test_one_number_among_names_in_a_second_list(tmp_path):
    make_list(tmp_path, [["a.jpg", "cat"]])
    (tmp_path / "b.jpg").write_bytes(image_bytes(1))
    write_list(tmp_path / "m.csv", ["path", "label"], [["b.jpg", "3"]])
    result = run("pack", "l.csv", "m.csv", "-o", "p.pen", cwd=tmp_path)
    assert result.message().startswith(
        'm.csv: line 2: expected a label that is a name, as "cat" before it, found "3"; ')


def test_tars_mix_no_labels(tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for key, label in (("x", b"3"), ("y", b"cat")):
            for name, data in ((f"{key}.jpg", image_bytes(key)), (f"{key}.cls", label)):
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    result = run("pack", "a.tar", "-o", "p.pen", cwd=tmp_path)
    assert result.message() == (
        'a.tar: y: expected a label that is an integer, as "3" before it, found "cat"; write all '
        "labels as integers, or all as names")


def test_other_classes_decide_on_mixed_labels(tmp_path):
    make_folder(tmp_path / "photos", ("7", "cat"), 1)
    good("pack", tmp_path / "photos", "-o", tmp_path / "c.pen")
    listed = make_list(tmp_path, [["a.jpg", "cat"], ["b.jpg", "7"]])
    good("pack", listed, "-o", tmp_path / "p.pen", "--classes-from", tmp_path / "c.pen")
    assert labels(tmp_path / "p.pen") == {"a.jpg": (1, "cat"), "b.jpg": (0, "7")}


def test_names_are_read_with_any_editor(tmp_path):
    make_folder(tmp_path / "photos", ('a "b", c', "ü"), 1)
    good("pack", tmp_path / "photos", "-o", tmp_path / "p.pen")
    good("extract", tmp_path / "p.pen", "-o", tmp_path / "out")
    assert read_list(tmp_path / "out" / "samples.classes.csv") == [
        {"label": "0", "class": 'a "b", c'}, {"label": "1", "class": "ü"}]
