# SPDX-License-Identifier: Apache-2.0
"""Folders and prefixes as they are: files that are no images, patterns, folders without classes,
folders of tars, and what extract writes."""

import gzip
import tarfile

import pytest
from bucket_tools import filled, serve
from cli_tools import good, image_bytes, make_folder, run, samples
from py_tools import need_penstock

OTHERS = ("README.md", "Thumbs.db", ".DS_Store", "cat/notes.txt", "cat/.DS_Store",
          "cat/deep/list.csv")
COMMANDS = ("pack", "index")


def add(folder, *names, body=b"no image"):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(body)


@pytest.fixture
def photos(tmp_path):
    """8 images in the classes cat and dog, and what else lies in such folders."""
    make_folder(tmp_path / "photos")
    add(tmp_path / "photos", *OTHERS, ".git/config", "dog/.cache/x.jpg")
    return tmp_path / "photos"


@pytest.fixture(scope="module")
def server():
    with serve() as server:
        yield server


@pytest.mark.parametrize("command", [*COMMANDS, "plan"])
def test_files_that_are_no_images_are_ignored_and_counted(photos, tmp_path, command):
    done = good(command, photos, "-o", tmp_path / "p.pen", "--json")
    record = done.json()
    assert (record["samples"], record["files_ignored"]) == (8, len(OTHERS))
    assert record["first_classes"] == ["cat", "dog"]
    assert "6 files ignored: not images or videos by the name, hidden, or excluded\n" in done.err
    text = good(command, photos, "-o", tmp_path / "q.pen").out
    assert any(line.split() == ["files", "ignored", "6"] for line in text.splitlines())


def test_a_clean_folder_has_no_line_about_it(tmp_path):
    make_folder(tmp_path / "photos")
    done = good("pack", tmp_path / "photos", "-o", tmp_path / "p.pen")
    assert "ignored" not in done.out + done.err


@pytest.mark.parametrize("name", ["cat/broken.jpg", "cat/broken.gif", "cat/BROKEN.PNG"])
def test_an_image_by_its_name_remains_a_broken_image(photos, tmp_path, name):
    add(photos, name)
    result = run("pack", photos, "-o", tmp_path / "p.pen")
    assert result.code == 1 and name in result.message()
    record = good("pack", photos, "-o", tmp_path / "p.pen", "--on-bad", "skip", "--json").json()
    assert (record["broken_inputs_left_out"], record["files_ignored"]) == (1, 6)


@pytest.mark.parametrize(("patterns", "kept", "ignored"), [
    (("nothing",), 8, 6),
    (("*.png",), 6, 8),
    (("cat/*.jpg",), 5, 9),
    (("dog",), 4, 6),  # a folder: what is in it does not count
    (("deep",), 8, 5),
    (("cat/*", "1.*"), 3, 10),
])
@pytest.mark.parametrize("place", ["disk", "bucket"])
def test_exclude(photos, tmp_path, server, patterns, kept, ignored, place):
    words = [word for pattern in patterns for word in ("--exclude", pattern)]
    call, source = good, photos
    if place == "bucket":
        bucket = filled(server, tmp_path / "home", photos, "in")
        call, source = bucket.good, bucket.at("in")
    for command in COMMANDS:
        record = call(command, source, "-o", tmp_path / f"{command}.pen", *words, "--json").json()
        assert (record["samples"], record["files_ignored"]) == (kept, ignored)


@pytest.mark.parametrize(("words", "said"), [
    (("--exclude", "cat/"), "found a / at its start or its end"),
    (("--exclude", ""), "--exclude has an empty value"),
    (("--kind", "frames", "--exclude", "0.jpg"), "a single frame of a clip cannot be excluded"),
])
def test_patterns_that_cannot_be(photos, tmp_path, words, said):
    (photos / "cat" / "deep" / "list.csv").unlink()
    (photos / "cat" / "deep").rmdir()
    result = run("pack", photos, "-o", tmp_path / "p.pen", *words)
    assert result.code != 0 and said in result.message()


def test_exclude_needs_a_folder(photos, tmp_path):
    (tmp_path / "l.csv").write_text("path\nphotos/cat/0.jpg\n")
    result = run("pack", tmp_path / "l.csv", "-o", tmp_path / "p.pen", "--exclude", "x")
    assert result.code == 1
    assert "exclude: expected a folder or an s3:// prefix, found a list" in result.message()


def test_another_exclude_is_another_run(photos, tmp_path):
    pack = tmp_path / "p.pen"
    good("plan", photos, "-o", pack, "--exclude", "*.png")
    result = run("pack", photos, "-o", pack, "--task", "0/1")
    assert result.code == 1 and "other sources or settings" in result.message()
    good("pack", photos, "-o", pack, "--task", "0/1", "--exclude", "*.png")


def test_clips_ignore_what_is_no_frame(tmp_path):
    make_folder(tmp_path / "clips", ("wave/1", "wave/2"), 3)
    plain = good("pack", tmp_path / "clips", "--kind", "frames", "-o", tmp_path / "p.pen", "--json")
    add(tmp_path / "clips", "README.md", "wave/1/Thumbs.db", "wave/2/notes.txt")
    record = good("pack", tmp_path / "clips", "--kind", "frames", "-o", tmp_path / "q.pen",
                  "--json").json()
    assert record["files_ignored"] == 3
    assert record["id"] == plain.json()["id"]


def test_images_beside_videos_need_a_kind(photos, tmp_path):
    add(photos, "cat/film.mp4")
    result = run("pack", photos, "-o", tmp_path / "p.pen")
    assert result.code == 1 and "found both, such as cat/film.mp4; choose with --kind" in (
        result.message())
    record = good("pack", photos, "--kind", "images", "-o", tmp_path / "p.pen", "--json").json()
    assert (record["samples"], record["files_ignored"]) == (8, 7)


def test_a_folder_without_any_image(tmp_path):
    add(tmp_path / "in", "b.dat", "a.dat")
    result = run("pack", tmp_path / "in", "-o", tmp_path / "p.pen")
    assert result.code == 1
    assert "found only other names (2, such as a.dat)" in result.message()


def test_a_folder_without_classes(photos, tmp_path):
    penstock = need_penstock()
    pytest.importorskip("numpy")
    add(photos, "cat/README.md")
    (photos / "cat" / "deep" / "list.csv").unlink()
    good("pack", photos / "cat", "-o", tmp_path / "p.pen")
    with penstock.Loader(tmp_path / "p.pen", batch_size=2, output="numpy",
                         pipeline="decode | random_resized_crop 16 | tensor u8") as loader:
        assert [image.shape for (image,) in loader] == [(2, 16, 16, 3)] * 2


# ---- extract -------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [(), ("-s", "0")])
def test_a_folder_with_files_is_left_alone(photos, tmp_path, words):
    good("pack", photos, "-o", tmp_path / "p.pen")
    before = sorted(photos.rglob("*"))
    result = run("extract", tmp_path / "p.pen", "-o", photos, *words)
    assert result.code == 1
    assert "expected a new or an empty directory, found one with files, which was not changed" in (
        result.message())
    assert sorted(photos.rglob("*")) == before
    good("pack", photos, "-o", tmp_path / "again.pen")


@pytest.mark.parametrize("exists", [False, True])
def test_what_extract_writes_packs_again(photos, tmp_path, exists):
    """Keys, labels, bytes: the same id, from the folder; and the same samples from the list."""
    first = good("pack", photos, "-o", tmp_path / "p.pen", "--json").json()
    if exists:
        (tmp_path / "out").mkdir()
    good("extract", tmp_path / "p.pen", "-o", tmp_path / "out")
    again = good("pack", tmp_path / "out", "-o", tmp_path / "again.pen", "--json").json()
    assert again["id"] == first["id"] and again["files_ignored"] == 2
    good("pack", tmp_path / "out" / "samples.csv", "-o", tmp_path / "list.pen")
    old, new = samples(tmp_path / "p.pen"), samples(tmp_path / "list.pen")
    assert old.keys() == new.keys() == samples(tmp_path / "again.pen").keys()
    for key, sample in old.items():
        assert sample["fields"]["label"] == new[key]["fields"]["label"]
    good("extract", tmp_path / "list.pen", "-o", tmp_path / "out2")
    for key in old:
        assert (tmp_path / "out2" / key).read_bytes() == (photos / key).read_bytes()


# ---- tars ----------------------------------------------------------------------------------------


def make_tars(folder, names):
    for i, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "image.jpg").write_bytes(image_bytes(i))
        with tarfile.open(folder / name, "w") as tar:
            tar.add(folder / "image.jpg", f"{i:05d}.jpg")
        (folder / "image.jpg").unlink()


TARS = [*(f"web-{i:03d}.tar" for i in (9, 10, 11, 14)),
        *(f"more/{i}-of-3.tar" for i in (1, 2, 3))]
WORDS = "'{0}/more/{{1..3}}-of-3.tar' '{0}/web-{{009..011}}.tar' '{0}/web-014.tar'"


def advised(result, out):
    """The command that the message has, as words, without the program's name."""
    text = result.message()
    command = text.partition("; name them: penstock ")[2]
    assert command.endswith(f" -o {out}"), text
    return [word.strip("'") for word in command.split()]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("end", ["", "/"])
def test_a_folder_of_tars_is_answered_with_the_command(tmp_path, command, end):
    make_tars(tmp_path / "in", TARS)
    add(tmp_path / "in", "README.md")
    result = run(command, f"in{end}", "-o", "p.pen", cwd=tmp_path)
    assert result.code == 1
    assert result.message() == (
        f"in{end}: expected images, found tar files; name them: penstock {command} "
        f"{WORDS.format('in')} -o p.pen")
    good(*advised(result, "p.pen"), cwd=tmp_path)
    assert len(samples(tmp_path / "p.pen")) == len(TARS)


@pytest.mark.parametrize("command", COMMANDS)
def test_compressed_tars_are_packed_in_their_order(tmp_path, command):
    make_tars(tmp_path / "in", TARS)
    for tar in sorted((tmp_path / "in").rglob("*.tar"))[:3]:
        tar.with_name(tar.name + ".gz").write_bytes(gzip.compress(tar.read_bytes()))
        tar.unlink()
    result = run(command, "in", "-o", "p.pen", cwd=tmp_path)
    words = advised(result, "p.pen")
    assert words[:3] == ["pack", "--order", "source"]
    good(*words, cwd=tmp_path)
    assert len(samples(tmp_path / "p.pen")) == len(TARS)


def test_many_tars_are_cut(tmp_path):
    make_tars(tmp_path / "in", [f"{chr(97 + i % 26)}{i}x.tar" for i in range(0, 200, 7)])
    message = run("pack", tmp_path / "in", "-o", "p.pen", cwd=tmp_path).message()
    assert message.endswith(".tar' ... -o p.pen")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_prefix_of_tars_is_answered_with_the_command(server, tmp_path, command):
    make_tars(tmp_path / "in", TARS)
    bucket = filled(server, tmp_path / "home", tmp_path / "in", "in")
    result = bucket.run(command, bucket.at("in"), "-o", "p.pen", cwd=tmp_path)
    assert result.code == 1
    assert WORDS.format(bucket.at("in")) in result.message()
    bucket.good(*advised(result, "p.pen"), cwd=tmp_path)


@pytest.mark.parametrize("command", COMMANDS)
def test_an_address_that_is_not_there_says_which_part(server, tmp_path, command):
    make_tars(tmp_path / "in", TARS)
    bucket = filled(server, tmp_path / "home", tmp_path / "in", "in")

    def said(source):
        result = bucket.run(command, source, "-o", "p.pen", cwd=tmp_path)
        assert result.code == 1
        return result.message()

    assert "NoSuchBucket" in said("s3://bucket-of-nobody/web-*.tar")
    assert "NoSuchBucket" in said("s3://bucket-of-nobody/web-000.tar")
    assert said(bucket.at("no/web-*.tar")).startswith(
        f"{bucket.at('no/web-*.tar')}: no such object: nothing lies below the prefix "
        f"{bucket.at('no/')}; check its spelling")
    for name in ("web-*.tarx.tar", "web-000.tar"):
        assert said(bucket.at(f"in/{name}")).startswith(
            f"{bucket.at(f'in/{name}')}: no such object: of the 7 objects below "
            f"{bucket.at('in/')}, none has this name")
    result = bucket.run(command, bucket.at("in/web-*.tar"), "-o", "p.pen", cwd=tmp_path)
    assert "* is not expanded in an address; name them: penstock " in result.message()
    bucket.good(*advised(result, "p.pen"), cwd=tmp_path)
    assert bucket.run(command, bucket.at("in/web-{009..012}.tar"), "-o", "q.pen",
                      cwd=tmp_path).message().startswith(f"{bucket.at('in/web-012.tar')}: no such")


def test_a_pattern_that_no_shell_expanded(tmp_path):
    result = run("pack", "web-*.tar", "-o", "p.pen", cwd=tmp_path)
    assert result.code == 1
    assert "web-*.tar: no such file; * is expanded by a shell" in result.message()
