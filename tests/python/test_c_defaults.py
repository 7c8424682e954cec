# SPDX-License-Identifier: Apache-2.0
"""The defaults of C and of Python are the same: what the package passes to the library when nothing
is set is what the init functions set."""

import pytest
from c_tools import BUILD, ROOT, compile_c, need_tools, run
from py_tools import need_penstock, write_pack

penstock = need_penstock()
need_tools("gcc")
from penstock import _core  # noqa: E402

LOADER = ("order", "drop_last", "seed", "rank", "world", "threads", "io_threads", "prefetch",
          "lanes", "window", "memory_bytes", "on_bad", "stall_ms", "max_bad", "n_subset", "first",
          "count", "keep_slots")
WRITER = ("mode", "quality", "max_side", "short_side", "raw_share", "check_decode", "sixteen_bit",
          "block_samples", "shard_bytes")
# Names that the module has for members.
OTHER_NAMES = {"memory": "memory_bytes", "subset": "n_subset"}


@pytest.fixture(scope="module")
def defaults(tmp_path_factory):
    """{struct: {member: default}} of C."""
    folder = tmp_path_factory.mktemp("defaults")
    rows = [f'    printf("{s} {m} %.17g\\n", (double){s}.{m});'
            for s, names in (("loader", LOADER), ("writer", WRITER)) for m in names]
    (folder / "defaults.c").write_text(
        "#include <stdio.h>\n#include <penstock/penstock.h>\nint main(void)\n{\n"
        "    PenLoaderSettings loader;\n    PenWriterSettings writer;\n"
        "    pen_loader_settings_init(&loader);\n    pen_writer_settings_init(&writer);\n"
        + "\n".join(rows) + "\n    return 0;\n}\n")
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
    """{member: number} of what the package passes to the class `name` of the module."""
    kept = {}

    def keep(**settings):
        kept.update(settings)
        raise Passed

    monkeypatch.setattr(_core, name, keep)
    with pytest.raises(Passed):
        make()
    return {OTHER_NAMES.get(k, k): float(v or 0) for k, v in kept.items()
            if v is None or isinstance(v, (int, float))}


def test_loader(defaults, monkeypatch, tmp_path):
    write_pack(penstock, tmp_path / "a.pen", 8)
    with penstock.open(tmp_path / "a.pen") as pack:
        found = passed(monkeypatch, "Loader", lambda: penstock.Loader(pack, 4, output="dlpack"))
    found = {k: v for k, v in found.items() if k not in ("batch_size", "pipeline")}
    assert found == defaults["loader"]


def test_writer(defaults, monkeypatch, tmp_path):
    found = passed(monkeypatch, "Writer",
                   lambda: penstock.Writer(tmp_path / "b.pen", {"label": "i64"}))
    found = {k: v for k, v in found.items() if k in WRITER}
    assert found == defaults["writer"]
