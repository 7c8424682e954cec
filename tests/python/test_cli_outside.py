# SPDX-License-Identifier: Apache-2.0
"""Lists that name files elsewhere, and links that lead nowhere."""

import json
import os

import pytest
from cli_tools import good, image_bytes, make_folder, run, samples, write_list


@pytest.fixture
def place(tmp_path):
    """list/l.csv beside list/in.jpg, and secret/s.jpg outside."""
    (tmp_path / "list").mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "list" / "in.jpg").write_bytes(image_bytes(1))
    (tmp_path / "secret" / "s.jpg").write_bytes(image_bytes(2))
    return tmp_path


def listed(place, *paths, name="path"):
    write_list(place / "list" / "l.csv", [name], [[p] for p in paths])
    return place / "list" / "l.csv"


def outside(place, how):
    """A path in the list that leads to secret/s.jpg."""
    if how == "absolute":
        return os.fspath(place / "secret" / "s.jpg")
    if how == "dots":
        return "../secret/s.jpg"
    if how == "inner dots":
        (place / "list" / "sub").mkdir()
        return "sub/../../secret/s.jpg"
    if how == "link":
        (place / "list" / "l.jpg").symlink_to(place / "secret" / "s.jpg")
        return "l.jpg"
    (place / "list" / "sub").symlink_to("../secret")
    return "sub/s.jpg"


WAYS = ["absolute", "dots", "inner dots", "link", "linked folder"]


@pytest.mark.parametrize("how", WAYS)
def test_what_lies_outside_is_refused(place, how):
    path = outside(place, how)
    result = run("pack", listed(place, "in.jpg", path), "-o", place / "p.pen")
    assert result.code == 1
    joined = path if how == "absolute" else f"{place}/list/{path}"
    assert result.message() == (
        f"{place}/list/l.csv: line 3: {joined}: expected a path below {place}/list, found one "
        f"that leads to {place}/secret/s.jpg; write paths relative to the folder of --root, or "
        "pass --allow-outside")
    assert not (place / "p.pen").exists()


@pytest.mark.parametrize("how", WAYS)
def test_it_is_one_bad_input(place, how):
    path = outside(place, how)
    record = good("pack", listed(place, "in.jpg", path), "-o", place / "p.pen", "--on-bad", "skip",
                  "--json").json()
    assert (record["samples"], record["broken_inputs_left_out"]) == (1, 1)
    why = json.loads((place / "p.pen-bad.jsonl").read_text())["why"]
    assert "expected a path below" in why
    assert set(samples(place / "p.pen")) == {"in.jpg"}


@pytest.mark.parametrize("how", WAYS)
def test_the_advice_works(place, how):
    path = outside(place, how)
    command = ("pack", listed(place, path), "-o")
    good(*command, place / "a.pen", "--allow-outside")
    assert set(samples(place / "a.pen")) == {path}
    good("plan", *command[1:], place / "t.pen", "--allow-outside")
    good(*command, place / "t.pen", "--allow-outside", "--task", "0/1")
    if how == "absolute":
        good(*command, place / "b.pen", "--root", place)


@pytest.mark.parametrize("how", ["absolute", "link", "linked folder", "dots"])
def test_what_leads_back_inside_is_packed(place, how):
    inner = place / "list" / "real"
    inner.mkdir()
    (inner / "x.jpg").write_bytes(image_bytes(3))
    if how == "link":
        (place / "list" / "l.jpg").symlink_to(inner / "x.jpg")
    if how == "linked folder":
        (place / "list" / "sub").symlink_to(inner)
    path = {"absolute": os.fspath(inner / "x.jpg"), "link": "l.jpg", "linked folder": "sub/x.jpg",
            "dots": "real/../real/x.jpg"}[how]
    good("pack", listed(place, path), "-o", place / "p.pen")
    # A root that is a link itself, and a list by a relative name.
    (place / "other").symlink_to(place / "list")
    good("pack", listed(place, path), "-o", place / "q.pen", "--root", place / "other")
    good("pack", "l.csv", "-o", place / "r.pen", cwd=place / "list")


def test_a_neighbour_whose_name_begins_alike_is_outside(place):
    (place / "list2").mkdir()
    (place / "list2" / "x.jpg").write_bytes(image_bytes(1))
    result = run("pack", listed(place, "../list2/x.jpg"), "-o", place / "p.pen")
    assert "expected a path below" in result.message()


def deep_link(place):
    """list/l1/l2/l3 leads to secret/s.jpg. Without links the path has over 6,000 bytes."""
    at = os.open(place / "list", os.O_DIRECTORY)
    for link in ("l1", "l2"):
        os.symlink("/".join(["d" * 200] * 15), link, dir_fd=at)
        for _ in range(15):
            os.mkdir("d" * 200, dir_fd=at)
            inner = os.open("d" * 200, os.O_DIRECTORY, dir_fd=at)
            os.close(at)
            at = inner
    os.symlink(place / "secret" / "s.jpg", "l3", dir_fd=at)
    os.close(at)
    return "l1/l2/l3"


def test_what_is_too_long_to_resolve_is_refused(place):
    path = deep_link(place)
    assert (place / "list" / path).read_bytes() == (place / "secret" / "s.jpg").read_bytes()
    command = ("pack", listed(place, "in.jpg", path), "-o", place / "p.pen", "--json")
    result = run(*command)
    assert result.code == 1
    assert result.message() == (
        f"{place}/list/l.csv: line 3: {place}/list/{path}: expected a path of at most 4095 "
        "bytes, with names of at most 255, after resolving symbolic links; found a longer one")
    record = good(*command, "--on-bad", "skip").json()
    assert (record["samples"], record["broken_inputs_left_out"]) == (1, 1)
    assert set(samples(place / "p.pen")) == {"in.jpg"}


def test_a_name_that_is_too_long_is_one_bad_input(place):
    command = ("pack", listed(place, "in.jpg", "x" * 300), "-o", place / "p.pen", "--json")
    assert "l.csv: line 3" in run(*command).message()
    record = good(*command, "--on-bad", "skip").json()
    assert (record["samples"], record["broken_inputs_left_out"]) == (1, 1)


@pytest.mark.parametrize("more", [(), ("--on-bad", "skip"), ("--allow-outside",)])
def test_a_root_that_is_no_folder(place, more):
    command = ("pack", listed(place, "in.jpg", outside(place, "absolute")), "-o", place / "p.pen",
               *more, "--root")
    for root, said in (("none", "no such folder"), ("list/in.jpg/x", "no such folder"),
                       ("list/in.jpg", "expected a folder, found a file")):
        result = run(*command, place / root)
        assert result.code == 1
        assert result.message() == (
            f"--root {place}/{root}: {said}; pass the folder that the paths in the list are "
            "relative to")
        assert not (place / "p.pen").exists()
    good("pack", listed(place, "in.jpg"), "-o", place / "p.pen", *more, "--root", place / "list")


def test_a_root_that_is_gone_when_the_files_are_read(place):
    (place / "root").symlink_to("list")
    command = (listed(place, os.fspath(place / "list" / "in.jpg")), "-o", place / "p.pen",
               "--root", place / "root")
    good("plan", *command)
    (place / "root").unlink()
    result = run("pack", *command, "--task", "0/1", "--on-bad", "skip")
    assert result.code == 1
    said = result.message()
    assert f"{place}/root: no such folder; the paths of the list are relative to it" in said
    (place / "root").symlink_to("list")
    good("pack", *command, "--task", "0/1", "--on-bad", "skip")


@pytest.mark.parametrize(("more", "said"), [
    ((), "a path below list"), (("--root", "secret"), "a path below secret"),
    (("--root", "secret", "--allow-outside"), "an absolute path, or one relative to secret")])
def test_a_missing_file_is_told_with_the_root_in_force(place, more, said):
    listed(place, "none.jpg")
    result = run("pack", "list/l.csv", "-o", "p.pen", *more, cwd=place)
    assert result.message() == (
        f'list/l.csv: line 2, column 1: no such file: expected {said}, found "none.jpg"')
    assert "below the working directory" in run("pack", "l.csv", "-o", place / "p.pen",
                                                cwd=place / "list").message()


def test_masks_too(place):
    (place / "secret" / "m.png").write_bytes(image_bytes(1, "PNG", mode="L"))
    write_list(place / "list" / "l.csv", ["path", "mask"], [["in.jpg", "../secret/m.png"]])
    result = run("pack", place / "list" / "l.csv", "-o", place / "p.pen")
    assert "l.csv: line 2: " in result.message()
    assert "expected a path below" in result.message()


def make_clip(folder):
    folder.mkdir(parents=True)
    for i in range(2):
        (folder / f"{i}.jpg").write_bytes(image_bytes(i))


def test_frames_too(place):
    make_clip(place / "secret" / "clip")
    make_clip(place / "list" / "good")
    result = run("pack", listed(place, "good", "../secret/clip", name="id"), "-o", place / "p.pen")
    assert "l.csv: line 3: " in result.message()
    # A frame that is a link out of a folder inside.
    (place / "list" / "good" / "2.jpg").symlink_to(place / "secret" / "s.jpg")
    command = ("pack", listed(place, "good", name="id"), "-o", place / "p.pen")
    assert f"found one that leads to {place}/secret/s.jpg" in run(*command).message()
    good(*command, "--allow-outside")


@pytest.mark.parametrize("skip", [False, True])
def test_a_link_to_nothing_in_a_folder(tmp_path, skip):
    make_folder(tmp_path / "photos")
    (tmp_path / "photos" / "cat" / "gone.jpg").symlink_to("nowhere.jpg")
    command = ("pack", "photos", "-o", "p.pen", "--json")
    if not skip:
        result = run(*command, cwd=tmp_path)
        assert result.code == 1
        assert result.message() == (
            "photos/cat/gone.jpg: expected a file, found a symbolic link to nothing; remove it, or "
            "skip broken inputs with --on-bad skip")
        (tmp_path / "photos" / "cat" / "gone.jpg").unlink()
        good(*command, cwd=tmp_path)
        return
    record = good(*command, "--on-bad", "skip", cwd=tmp_path).json()
    assert (record["samples"], record["broken_inputs_left_out"]) == (8, 1)
    assert json.loads((tmp_path / "p.pen-bad.jsonl").read_text())["key"] == "cat/gone.jpg"


@pytest.mark.parametrize(("link", "target"), [
    ("cat/self", "self"), ("cat/aa", "nowhere"), ("latest", "nodir"), ("latest", "latest"),
    ("b/sub", "nowhere"), ("cat/x", "0.jpg/y")])
def test_links_to_nothing_decide_no_class(tmp_path, link, target):
    make_folder(tmp_path / "d")
    good("pack", "d", "-o", "want.pen", cwd=tmp_path)
    (tmp_path / "d" / link).parent.mkdir(exist_ok=True)
    (tmp_path / "d" / link).symlink_to(target)
    command = ("d", "-o", "p.pen")
    result = run("pack", *command, cwd=tmp_path)
    assert result.code == 1
    kind = "itself" if os.path.basename(link) == target else "nothing"
    assert result.message() == (
        f"d/{link}: expected a file, found a symbolic link to {kind}; remove it, or skip "
        "broken inputs with --on-bad skip")
    # A link that is mended before its task runs does not get into another class.
    good("plan", *command, "--on-bad", "skip", cwd=tmp_path)
    (tmp_path / "d" / link).unlink()
    (tmp_path / "d" / link).symlink_to(tmp_path / "d" / "dog" / "0.jpg")
    result = run("pack", *command, "--on-bad", "skip", "--task", "0/1", cwd=tmp_path)
    assert f"d/{link}: changed since the plan was made" in result.message()
    # One that stays as it is.
    (tmp_path / "d" / link).unlink()
    (tmp_path / "d" / link).symlink_to(target)
    record = good("pack", "d", "-o", "q.pen", "--on-bad", "skip", "--json", cwd=tmp_path).json()
    assert (record["samples"], record["broken_inputs_left_out"]) == (8, 1)
    assert record["first_classes"] == ["cat", "dog"]
    assert json.loads((tmp_path / "q.pen-bad.jsonl").read_text())["key"] == link
    found, want = ({key: s["fields"] for key, s in samples(tmp_path / name).items()}
                   for name in ("q.pen", "want.pen"))
    assert found == want


@pytest.mark.parametrize("link", ["sub/x", "x"])
def test_links_to_nothing_beside_files_without_classes(tmp_path, link):
    (tmp_path / "d" / "sub").mkdir(parents=True)
    (tmp_path / "d" / "a.jpg").write_bytes(image_bytes(1))
    (tmp_path / "d" / link).symlink_to("nowhere")
    record = good("pack", "d", "-o", "p.pen", "--on-bad", "skip", "--json", cwd=tmp_path).json()
    assert (record["samples"], record["broken_inputs_left_out"], record["class_count"]) == (1, 1, 0)


def test_a_link_that_leads_back_up_is_no_link_to_nothing(tmp_path):
    make_folder(tmp_path / "d")
    (tmp_path / "d" / "cat" / "up").symlink_to(".")
    result = run("pack", "d", "-o", "p.pen", "--on-bad", "skip", cwd=tmp_path)
    assert result.code == 1
    assert "check for a symbolic link to a parent folder" in result.message()


def test_a_link_to_nothing_beside_clips(tmp_path):
    make_clip(tmp_path / "d" / "one")
    (tmp_path / "d" / "latest").symlink_to("nowhere")
    record = good("pack", "--kind", "frames", "d", "-o", "p.pen", "--on-bad", "skip", "--json",
                  cwd=tmp_path).json()
    assert (record["samples"], record["broken_inputs_left_out"]) == (1, 1)


@pytest.mark.parametrize("target", ["nowhere.jpg", "loop.jpg"])
@pytest.mark.parametrize("allowed", [False, True])
def test_a_link_to_nothing_in_a_list(place, target, allowed):
    (place / "list" / "loop.jpg").symlink_to(target)
    more = ["--allow-outside"] if allowed and target != "loop.jpg" else []
    command = ("pack", listed(place, "in.jpg", "loop.jpg"), "-o", place / "p.pen", "--json", *more)
    result = run(*command)
    assert result.code == 1
    assert "line 3, column 1: no such file" in result.message()
    record = good(*command, "--on-bad", "skip").json()
    assert (record["samples"], record["broken_inputs_left_out"]) == (1, 1)


def test_a_link_to_nothing_among_frames(place):
    make_clip(place / "list" / "a" / "one")
    make_clip(place / "list" / "a" / "two")
    (place / "list" / "a" / "two" / "9.jpg").symlink_to("nowhere")
    for source in (("--kind", "frames", place / "list" / "a"),
                   (listed(place, "a/one", "a/two", name="id"),)):
        record = good("pack", *source, "-o", place / f"{len(source)}.pen", "--on-bad", "skip",
                      "--json").json()
        assert (record["samples"], record["broken_inputs_left_out"]) == (1, 1)
