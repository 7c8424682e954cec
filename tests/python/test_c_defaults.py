# SPDX-License-Identifier: Apache-2.0
"""The defaults of C and of Python are the same: what the package passes to the library when nothing
is set is what the init functions set."""

import re

import pytest
from c_tools import BUILD, ROOT, compile_c, members, need_tools, run, structs
from py_tools import need_penstock, write_pack

penstock = need_penstock()
need_tools("gcc")
from penstock import _core, _remote  # noqa: E402

# Members of the settings that the package passes to the library.
PASSED = {
    "loader": ("order", "last_batch", "seed", "rank", "world", "threads", "io_threads", "prefetch",
               "shuffle_buffer", "memory_bytes", "on_bad", "stall_ms", "max_bad", "n_subset",
               "first", "count", "keep_slots", "n_weights", "n_buckets", "tokens",
               "n_lengths", "n_frames"),
    "writer": ("mode", "quality", "max_side", "short_side", "raw_share", "check_decode",
               "sixteen_bit", "no_index", "progressive", "block_samples", "shard_bytes", "task",
               "n_tasks", "codec", "smart_threshold", "in_place"),
    "cache": ("bytes",),
    "decode": ("height", "width", "mode", "filter", "threads"),
    "remote": ("path_style", "no_sign", "requester_pays", "allow_http", "deadline_ms", "outage_ms",
               "in_flight", "node_ranks"),
}
# Other members: always set by the caller; or left at the default of C, since Python has no
# parameter for them.
CALLERS = {
    "loader": {"batch_size", "pipeline", "subset", "weights", "buckets", "lengths", "frames"},
    "writer": {"fields", "n_fields", "class_field", "classes", "n_classes", "remote", "work",
               "name"},
    "cache": {"directory"},
    "ingest": {"out", "remote", "work", "n_tasks", "progress", "ctx"},  # of finalise
    "file": {"roots", "n_roots", "moved_from", "moved_to", "n_moved", "remote"},
    "decode": {"progress", "ctx"},
    "remote": {*_remote._TEXTS, "credentials", "credentials_taken", "interrupted", "ctx", "hold",
               "release"},
    "preload": {"progress", "ctx"},
    "trace": {"rank", "world"},
    "mix": {"n_sources", "packs", "weights", "n_stages", "stop", "starts", "unit", "steps",
            "field"},
}
LEFT = {"loader": {"node_ranks", "bucket_of", "n_bucket_of"}, "writer": {"video_seconds"},
        "cache": {"wait_ms"},
        "remote": {"upload_parts"}, "preload": {"threads"},
        # finalise ignores all but wait_seconds, and Python waits by itself.
        "ingest": {"allow_outside", "append", "bad_report", "block_samples", "check_decode",
                   "classes_from", "fps", "fraction", "in_place", "kind", "max_bad", "max_side",
                   "mode", "n_sources", "no_index", "order", "progressive", "quality", "raw_share",
                   "root", "seed", "shard_bytes", "short_side", "sixteen_bit", "skip_bad",
                   "sources", "task", "threads", "video_seconds", "wait_seconds", "codec",
                   "smart_threshold", "video", "exclude", "n_exclude"}}
# Names that the module has for members.
OTHER_NAMES = {"memory": "memory_bytes", "subset": "n_subset", "weights": "n_weights",
               "buckets": "n_buckets", "lengths": "n_lengths", "frames": "n_frames"}


@pytest.fixture(scope="module")
def defaults(tmp_path_factory):
    """{struct: {member: default}} of C."""
    folder = tmp_path_factory.mktemp("defaults")
    begin = [f"    Pen{s.capitalize()}Settings {s};\n    pen_{s}_settings_init(&{s});"
             for s in PASSED]
    rows = [f'    printf("{s} {m} %.17g\\n", (double){s}.{m});'
            for s, names in PASSED.items() for m in names]
    (folder / "defaults.c").write_text(
        "#include <stdio.h>\n#include <penstock/penstock.h>\nint main(void)\n{\n"
        + "\n".join(begin + rows) + "\n    return 0;\n}\n")
    program = compile_c(folder / "defaults", folder / "defaults.c", "-I", ROOT / "include", "-L",
                        BUILD / "src", "-lpenstock")
    found = {}
    for line in run(program, env={"LD_LIBRARY_PATH": str(BUILD / "src")}).splitlines():
        struct, member, value = line.split()
        found.setdefault(struct, {})[member] = float(value)
    return found


class Passed(Exception):
    pass


def passed(monkeypatch, name, make):
    """What the package passes to the class `name` of the module: by place, and by name."""
    kept = []

    def keep(*values, **settings):
        kept.extend((values, settings))
        raise Passed

    monkeypatch.setattr(_core, name, keep)
    with pytest.raises(Passed):
        make()
    return kept


def numbers(settings, struct):
    """{member: number} of what is passed by name."""
    named = {OTHER_NAMES.get(name, name): value for name, value in settings.items()}
    return {name: float(named[name] or 0) for name in PASSED[struct]}


def test_loader(defaults, monkeypatch, tmp_path):
    write_pack(penstock, tmp_path / "a.pen", 8)
    with penstock.open(tmp_path / "a.pen") as pack:
        _, found = passed(monkeypatch, "Loader", lambda: penstock.Loader(pack, 4, output="dlpack"))
    assert numbers(found, "loader") == defaults["loader"]


def test_writer(defaults, monkeypatch, tmp_path):
    _, found = passed(monkeypatch, "Writer",
                      lambda: penstock.Writer(tmp_path / "b.pen", {"label": "i64"}))
    assert numbers(found, "writer") == defaults["writer"]


def test_cache(defaults, monkeypatch, tmp_path):
    found, _ = passed(monkeypatch, "Pack",
                      lambda: penstock.open(tmp_path / "c.pen", cache=tmp_path / "cache"))
    assert found[2:4] == (str(tmp_path / "cache"), defaults["cache"]["bytes"])


def test_decode(defaults, monkeypatch):
    """By place, after the files, boxes and results."""
    found, _ = passed(monkeypatch, "decode", lambda: penstock.decode_batch([b"x"], size=9))
    assert dict(zip(PASSED["decode"], found[3:8], strict=True)) == {
        **defaults["decode"], "height": 9, "width": 9}
    found, _ = passed(monkeypatch, "decode", lambda: penstock.decode_batch([b"x"]))
    assert found[3:7] == tuple(defaults["decode"][name] for name in PASSED["decode"][:4])


@pytest.mark.parametrize("given", [None, dict.fromkeys(penstock.StorageOptions.__annotations__)])
def test_remote(defaults, given):
    """A tuple: the texts, the function for credentials, then the numbers."""
    options, _ = _remote.check("s3://packs/a.pen", given)
    n = len(_remote._TEXTS) + 1
    assert options[:n] == (None,) * n
    assert dict(zip(PASSED["remote"], options[n:], strict=True)) == defaults["remote"]


def test_no_settings_are_left_out():
    """Of all structs that python/core fills, every member is passed, the caller's, or left."""
    core = "".join(path.read_text() for path in (ROOT / "python" / "core").glob("*.c"))
    used = set(re.findall(r"\bpen_(\w+)_settings_init\(", core))
    assert used == CALLERS.keys()
    for struct in used:
        declared = structs()[f"Pen{struct.capitalize()}Settings"]
        found = [name for line in declared for name in members(line)]
        known = [set(PASSED.get(struct, ())), CALLERS[struct], LEFT.get(struct, set())]
        assert set(found) == set.union(*known)
        assert sum(map(len, known)) == len(found)
