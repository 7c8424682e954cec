#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many tests there are, for the table in docs/explanation/testing.md.

    counts.py write     write docs/records/counts.json and the table
    counts.py check     end with 1 if the record or the table is not what the tree gives
    counts.py self-test

Counts that every commit changes are rounded down, so that the table seldom changes.
"""

import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
RECORD = ROOT / "docs" / "records" / "counts.json"
PAGE = ROOT / "docs" / "explanation" / "testing.md"
BLOCK = re.compile(r"(<!-- counts: written by tools/counts.py -->\n).*?(<!-- end counts -->)", re.S)
CODE = (".c", ".h", ".py")
PYTHON_TEST = re.compile(r"^def test_", re.M)
UNIT_TEST = re.compile(r"^TEST\(", re.M)
DAMAGE_RULE = re.compile(r": Rule\($", re.M)


def files(pattern, *folders):
    return [path for folder in folders for path in sorted((ROOT / folder).glob(pattern))
            if "__pycache__" not in path.parts]


def total(pattern, paths):
    """Matches in all files."""
    return sum(len(pattern.findall(path.read_text(encoding="utf-8"))) for path in paths)


def lines(*folders):
    paths = [path for path in files("**/*", *folders) if path.suffix in CODE]
    return sum(path.read_text(encoding="utf-8").count("\n") for path in paths)


def at_least(n, step):
    return f"at least {n // step * step:,}"


def not_under_msan():
    """Targets, as `dev` names them."""
    names = re.search(r"^NOT_MSAN='\^fuzz_\((.*)\)\$'$", (ROOT / "dev").read_text(), re.M)
    return names.group(1).split("|")


def counted():
    fuzz = len(files("fuzz_*.c", "tests/fuzz"))
    return [
        ["what", "where", "count"],
        ["Python test functions; one may have many cases", "`tests/python`, `tests/cli`",
         at_least(total(PYTHON_TEST, files("test_*.py", "tests/python", "tests/cli")), 100)],
        ["C unit tests", "`tests/unit`",
         at_least(total(UNIT_TEST, files("*.c", "tests/unit")), 100)],
        ["long programs", "`tests/long`", str(len(files("long_*.*", "tests/long")))],
        ["fuzz targets", "`tests/fuzz`", str(fuzz)],
        ["of them under MSan", "`NOT_MSAN` in `dev`", str(fuzz - len(not_under_msan()))],
        ["valid golden packs", "`tests/golden/valid`",
         str(len(files("*.pen", "tests/golden/valid")))],
        ["rules that damage them", "`tests/python/damage.py`",
         str(total(DAMAGE_RULE, files("damage.py", "tests/python")))],
        ["lines of tests, C and Python", "`tests`", at_least(lines("tests"), 10000)],
        ["lines of product, C and Python", "`src`, `video`, `include`, `cli`, `python`",
         at_least(lines("src", "video", "include", "cli", "python"), 10000)],
    ]


def with_table(page, rows):
    text = "".join("| " + " | ".join(row) + " |\n" for row in rows)
    head, _, body = text.partition("\n")
    return BLOCK.sub(lambda m: f"{m.group(1)}{head}\n|---|---|---:|\n{body}{m.group(2)}", page)


def record_of(rows):
    return json.dumps({"name": "counts", "table": rows}, indent=1, ensure_ascii=False) + "\n"


def check(record, page, rows):
    """What differs from the tree."""
    found = [] if record == record_of(rows) else [RECORD]
    if not BLOCK.search(page) or with_table(page, rows) != page:
        found.append(PAGE)
    return found


def self_test():
    rows = [["what", "where", "count"], ["tests", "`tests`", at_least(1234, 100)]]
    page = "a\n<!-- counts: written by tools/counts.py -->\nold\n<!-- end counts -->\nb\n"
    written = with_table(page, rows)
    cases = (
        ("| tests | `tests` | at least 1,200 |\n<!-- end counts -->" in written, True),
        (check(record_of(rows), written, rows), []),
        (check(record_of(rows), page, rows), [PAGE]),
        (check(record_of(rows), "no table\n", rows), [PAGE]),
        (check("", written, rows), [RECORD]),
        (all(row[2] not in ("0", "at least 0") for row in counted()), True),
    )
    failed = [f"case {i}: {found!r}" for i, (found, wanted) in enumerate(cases) if found != wanted]
    for line in failed:
        print(line)
    print(f"{len(cases) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


def main():
    verb, rows = sys.argv[1:], counted()
    page = PAGE.read_text(encoding="utf-8")
    if verb == ["self-test"]:
        return self_test()
    if verb == ["write"]:
        RECORD.write_text(record_of(rows), encoding="utf-8")
        PAGE.write_text(with_table(page, rows), encoding="utf-8")
        return 0
    if verb != ["check"]:
        print(__doc__, file=sys.stderr)
        return 2
    record = RECORD.read_text(encoding="utf-8") if RECORD.exists() else ""
    found = check(record, page, rows)
    for path in found:
        print(f"{path.relative_to(ROOT)}: differs from the tree; run tools/counts.py write")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
