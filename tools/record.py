#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Figures that commands have measured, kept in docs/records, and the tables that docs show of them.

    record.py take NAME <TABLE              keep a Markdown table as the record NAME
    record.py soak TALLY OUTPUT             keep the counts of ./dev soak
    record.py fuzz OUTPUT                   keep how long each fuzz target ran, and add it up
    record.py docs                          write the tables into the docs
    record.py check [--summary]             list what is stale or has no record; ends with 0
    record.py self-test

docs/records/NAME.json has the table, the command, the commit, the date and the machine, and, of a
measurement (figures.py), the load before and after it. In the docs a table is between
`<!-- record NAME -->` and `<!-- end record -->`; `docs` writes what is between them, with †
behind the load average if it was over BUSY. While there is no such record, the text in the
block stays as it is. tools/records.toml has all records. One is stale when what it measures has
changed since its commit.
"""

import argparse
import dataclasses
import datetime
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys

import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "records"
CHANGES = " and changes"  # of a commit
BUSY = 0.3  # load average before a run; over it, the figures have a mark
DOCS = ("README.md", "SECURITY.md", "docs")
BLOCK = re.compile(r"(<!-- record ([\w-]+) -->\n)(.*?)(<!-- end record -->)", re.S)
NUMBER = re.compile(r"\d{2,}|\d\.\d")
TABLE_END = re.compile(r"^\|[-:| ]+\|$")
CELL_END = re.compile(r"(?<!\\)\|")
SHOWN = re.compile(r"^    (long_\w+|fuzz_\w+)(?:\.py)?: (.*)$")
FUZZED = re.compile(r"Done (\d+) runs in (\d+) second")  # libFuzzer's last line


@dataclasses.dataclass
class Run:
    """A section of records.toml."""

    name: str
    command: str
    paths: list
    minutes: float | None = None
    report: str | None = None
    tables: dict = dataclasses.field(default_factory=dict)
    page: str | None = None
    picture: str | None = None
    alt: str | None = None
    hide: list = dataclasses.field(default_factory=list)

    def __post_init__(self):
        self.tables = self.tables or {self.name: 1}


def runs_of(text):
    return [Run(name, **fields) for name, fields in tomllib.loads(text).items()]


RUNS = runs_of((ROOT / "tools" / "records.toml").read_text(encoding="utf-8"))
RECORDS = {name: run for run in RUNS for name in run.tables}


def git(*arguments):
    done = subprocess.run(["git", "-C", ROOT, *arguments], check=False, capture_output=True,
                          text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def machine():
    model = "unknown processor"
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return f"{model}, {len(os.sched_getaffinity(0))} cores"


def all_rows(text):
    """Cells of each Markdown table in a text: lists of rows."""
    found, lines = [], text.splitlines()
    for head, line in enumerate(lines[1:]):
        if not (TABLE_END.match(line) and lines[head].startswith("|")):
            continue
        body = itertools.takewhile(lambda row: row.startswith("|"), lines[head + 2 :])
        found.append([[cell.strip() for cell in CELL_END.split(row.strip()[1:-1])]
                      for row in (lines[head], *body)])
    return found


def rows_of(text, number=1):
    """Cells of a Markdown table in a text; none if it has fewer tables."""
    return next(iter(all_rows(text)[number - 1 :]), [])


def markdown(rows):
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + "|".join("---" if i == 0 else "---:" for i in range(len(rows[0]))) + "|")
    return "\n".join(lines) + "\n"


def path_of(name):
    return FOLDER / f"{name}.json"


def commit():
    """The commit, and whether something but the docs differs from it."""
    status = git("status", "--porcelain", "--untracked-files=no", ".", *(f":!{d}" for d in DOCS))
    return (git("rev-parse", "--short", "HEAD") or "unknown") + (CHANGES if status else "")


def write(name, rows, folder=FOLDER, **more):
    """Keeps a table: rows of texts, the first of which has the names of the columns. MORE is kept
    beside it: load and load_after (load averages), others (cores that other programs used before
    and after), stolen (cores that the host of a virtual machine took), seconds (of the run)."""
    if name not in RECORDS:
        sys.exit(f"record.py: no record is called '{name}'; expected {', '.join(RECORDS)}")
    if len(rows) < 2:
        sys.exit(f"record.py: {name}: expected a table with at least one row, found none")
    record = {"name": name, "command": RECORDS[name].command, "commit": commit(),
              "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
              "machine": machine(), **more, "table": rows}
    path = folder / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"record: {path.relative_to(ROOT)}")


def read(name):
    try:
        return json.loads(path_of(name).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


def load_text(record):
    if record.get("load") is None:
        return ""
    load = f"load average {record['load']}" + (f" († over {BUSY})" if record["load"] > BUSY else "")
    if "load_after" not in record:
        return f", {load} before the run"
    stolen = f"; the host took {record['stolen']} cores" if record.get("stolen") else ""
    return (f",\n{load} before the run and {record['load_after']} after it, "
            "other programs used {} and {} cores".format(*record["others"]) + stolen)


def without(rows, hidden):
    """The columns with other names."""
    kept = [i for i, name in enumerate(rows[0]) if name not in hidden]
    return [[row[i] for i in kept] for row in rows]


def block_of(record):
    run = RECORDS.get(record["name"])
    rows = without(record["table"], run.hide if run else ())
    picture = (f"![{run.alt}](../records/{record['name']}.svg)\n\n" if run and run.picture else "")
    return (f"`{record['command']}` at {record['commit']}, {record['date']},\n"
            f"{record['machine']}{load_text(record)}:\n\n{picture}{markdown(rows)}")


def doc_files():
    for top in DOCS:
        path = ROOT / top
        yield from sorted(path.rglob("*.md")) if path.is_dir() else [path]


def with_records(text, find=read):
    """A page with the tables of its records; a record that does not exist leaves it as it is."""
    def filled(match):
        record = find(match.group(2))
        return match.group(1) + (block_of(record) if record else match.group(3)) + match.group(4)
    return BLOCK.sub(filled, text)


def do_docs(_):
    for path in doc_files():
        before = path.read_text(encoding="utf-8")
        after = with_records(before)
        if after != before:
            path.write_text(after, encoding="utf-8")
            print(f"record: {path.relative_to(ROOT)} written")
    return 0


def way_of(run):
    """How its records are made."""
    return f"./dev figures {run.name}" if run.minutes else run.command


def staleness(record):
    """Why a record no longer describes the code; None when it does."""
    return changes_since(record["commit"].split()[0], RECORDS[record["name"]].paths)


def changes_since(commit, paths):
    """Why what was measured at a commit is not the code of today; None when it is."""
    if git("merge-base", "--is-ancestor", commit, "HEAD") is None:
        return f"its commit {commit} is not in the history"
    later = git("rev-list", "--count", f"{commit}..HEAD", "--", *paths) or "0"
    if later != "0":
        return f"{later} commits have changed {', '.join(paths)} since {commit}"
    return None


def tables_without_record(text):
    """(line number, first row) of tables with figures outside the marked blocks."""
    blank = BLOCK.sub(lambda m: "\n" * m.group().count("\n"), text).splitlines()
    found, start = [], None
    for number, line in enumerate([*blank, ""], 1):
        if line.startswith("|"):
            start = start or number
        elif start:
            body = blank[start + 1 : number - 1]
            cells = [cell for row in body for cell in row.strip("|").split("|")[1:]]
            if cells and sum(bool(NUMBER.search(cell)) for cell in cells) * 2 >= len(cells):
                found.append((start, blank[start - 1]))
            start = None
    return found


def problems():
    for name in RECORDS:
        record = read(name)
        why = staleness(record) if record else "it has not been measured yet"
        if why:
            yield f"{name}: {why}; run {way_of(RECORDS[name])}"
    for path in doc_files():
        text, where = path.read_text(encoding="utf-8"), path.relative_to(ROOT)
        if with_records(text) != text:
            yield f"{where}: a table differs from its record; run ./dev record"
        for name in sorted({m.group(2) for m in BLOCK.finditer(text)} - set(RECORDS)):
            yield f"{where}: no record is called '{name}'"
        if "adr" not in where.parts:
            for number, head in tables_without_record(text):
                yield f"{where}:{number}: figures that no record holds: {head[:70]}"


def do_check(args):
    found = list(problems())
    for line in () if args.summary else found:
        print(f"record: {line}")
    free = sum("figures that no record holds" in line for line in found)
    print(f"records: {len(found) - free} stale, missing or not in the docs; {free} tables of "
          f"figures without one{'; ./dev records lists them' if args.summary and found else ''}")
    return 0


def do_take(args):
    write(args.name, rows_of(sys.stdin.read()))
    return 0


def soak_tables(tally, output):
    """Tables of the steps and of what the long tests report, from the lines of both files."""
    steps = [["step", "passed", "failed", "skipped", "seconds"]]
    steps += [[label.strip(), *counts] for *counts, label in (x.split(None, 4) for x in tally)]
    shown = [m.groups() for m in map(SHOWN.match, output) if m]
    counts = [["program", "it reports"]]
    counts += [[program, text.strip().replace("|", "/")] for program, text in shown]
    return steps, counts


def fuzz_table(output, before):
    """Targets, their seconds and executions in this run, and their hours with those of `before`.

    Of ./dev soak only the step `fuzz` counts, not the same targets under the memory sanitizer."""
    rows = {row[0]: [row[0], "0", "0", row[3]] for row in before["table"][1:]} if before else {}
    step = None
    for line in output:
        if line.startswith("== "):
            step = line[3:]
        shown = SHOWN.match(line)
        done = FUZZED.search(shown.group(2)) if shown and step == "fuzz" else None
        if done:
            name, runs, seconds = shown.group(1), int(done.group(1)), int(done.group(2))
            hours = float(rows[name][3]) if name in rows else 0
            rows[name] = [name, f"{seconds:,}", f"{runs:,}", f"{hours + seconds / 3600:.3f}"]
    head = ["fuzz target", "seconds of this run", "executions", "hours of all recorded runs"]
    return [head, *sorted(rows.values())]


def do_fuzz(args):
    output = pathlib.Path(args.output).read_text(encoding="utf-8", errors="replace").splitlines()
    write("fuzz-hours", fuzz_table(output, read("fuzz-hours")))
    return 0


def do_soak(args):
    tally, output = (pathlib.Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
                     for path in (args.tally, args.output))
    steps, counts = soak_tables(tally, output)
    write("soak-steps", steps)
    write("soak-counts", counts)
    return do_fuzz(args)


def self_test(_):
    table = "text\n| a | b |\n|---|---:|\n| x | 1.5 |\n| y | 12 |\n\nmore\n"
    record = {"name": "n", "command": "c", "commit": "1", "date": "d", "machine": "m",
              "load": None, "table": rows_of(table)}
    page = "a\n<!-- record n -->\nold\n<!-- end record -->\nb\n"
    filled = with_records(page, lambda _: record)
    cases = (
        (rows_of(table), [["a", "b"], ["x", "1.5"], ["y", "12"]]),
        (markdown(rows_of(table)), "| a | b |\n|---|---:|\n| x | 1.5 |\n| y | 12 |\n"),
        (filled.count("| y | 12 |"), 1),
        (without(rows_of(table), ["b"]), [["a"], ["x"], ["y"]]),
        ("old" in filled, False),
        (filled.startswith("a\n<!-- record n -->\n`c` at 1, d,\nm:\n\n|"), True),
        (rows_of("| no | head |\n\n" + table, 2), []),
        (rows_of(table + table.replace("a", "a \\| c"), 2)[0], ["a \\| c", "b"]),
        (load_text({"load": 0.1, "load_after": 1.9, "others": [0.02, 0.01]}),
         ",\nload average 0.1 before the run and 1.9 after it, "
         "other programs used 0.02 and 0.01 cores"),
        (load_text({"load": 0.31, "load_after": 1, "others": [0, 0]}).split(" before")[0],
         ",\nload average 0.31 († over 0.3)"),
        (load_text({"load": 5}), ", load average 5 († over 0.3) before the run"),
        (load_text({"load": 0, "load_after": 1, "others": [0, 0], "stolen": 0.3}).split("; ")[1],
         "the host took 0.3 cores"),
        (with_records(filled, lambda _: record), filled),
        ("](../records/idle-time.svg)\n\n|" in block_of({**record, "name": "idle-time"}), True),
        ("](" in block_of({**record, "name": "pack-speed"}), False),
        (with_records(page, lambda _: None), page),
        (tables_without_record(table), [(2, "| a | b |")]),
        (tables_without_record(filled), []),
        (tables_without_record("| a | b |\n|---|---|\n| x | word |\n"), []),
        (staleness({"name": "pack-speed", "commit": "0000000"}) is None, False),
        (soak_tables(["5 0 1 2.5 unit tests"], ["== long", "    long_x.py: bits: 12 | 3", "    x"]),
         ([["step", "passed", "failed", "skipped", "seconds"],
           ["unit tests", "5", "0", "1", "2.5"]],
          [["program", "it reports"], ["long_x", "bits: 12 / 3"]])),
        (fuzz_table(["    fuzz_x: Done 5 runs in 7 second(s)", "== fuzz", "    fuzz_b: 9 s",
                     "    fuzz_b: Done 1234 runs in 1800 second(s)",
                     "    fuzz_a: Done 7 runs in 36 second(s)", "== msan",
                     "    fuzz_b: Done 8 runs in 60 second(s)"],
                    {"table": [["head"], ["fuzz_b", "1", "2", "2.000"],
                               ["fuzz_c", "1", "2", "3.000"]]})[1:],
         [["fuzz_a", "36", "7", "0.010"], ["fuzz_b", "1,800", "1,234", "2.500"],
          ["fuzz_c", "0", "0", "3.000"]]),
    )
    failed = 0
    for number, (found, expected) in enumerate(cases):
        if found != expected:
            failed += 1
            print(f"case {number}: expected {expected!r}, found {found!r}")
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("take").add_argument("name")
    soak = verbs.add_parser("soak")
    soak.add_argument("tally")
    soak.add_argument("output")
    verbs.add_parser("fuzz").add_argument("output")
    verbs.add_parser("check").add_argument("--summary", action="store_true", help="one line")
    for name in ("docs", "self-test"):
        verbs.add_parser(name)
    args = parser.parse_args()
    return {"take": do_take, "soak": do_soak, "fuzz": do_fuzz, "docs": do_docs, "check": do_check,
            "self-test": self_test}[args.verb](args)


if __name__ == "__main__":
    sys.exit(main())
