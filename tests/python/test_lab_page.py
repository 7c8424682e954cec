# SPDX-License-Identifier: Apache-2.0
"""penstock-lab report: the page of made reports, of hostile ones and of damaged ones."""

import html.parser
import json
import re

import pytest
from penstock.lab import LabError, _cli, shapes
from penstock.lab.experiment import checked
from penstock.lab.pages import verdicts

pytest.importorskip("matplotlib")
HOSTILE = "</title><script>alert(1)</script><img src=x onerror=a> | ![p](http://x/) \x00 $x$"
VOID = {"meta", "br", "img", "hr"}


def head(**changed):
    return {"kind": "parameters", "format": 1, "question": "load", "name": "load-photos",
            "parameters": {"threads": [2]},
            "inputs": [{"path": "photos.pen", "id": "abc", "samples": 10, "bytes": 1000}],
            "machine": {"cpu": "A processor", "cores": 2, "memory_gb": 23.0, "kernel": "6.1",
                        "load_before": 0.1},
            "versions": {"penstock": "1.0", "commit": "abc1234"},
            "command": ["penstock-lab", "load", "a b.pen"], "date": "2026-11-18T00:00:00Z",
            **changed}


def turns(loader, rates, **fields):
    cell = {"loader": loader, "storage": "warm"}
    yield {"kind": "first", "cell": cell, "seconds": 2.0, "samples": 100}
    for number, rate in enumerate(rates):
        yield {"kind": "turn", "cell": cell, "round": number, "seconds": 100 / rate,
               "samples": 100, "cpu": 0.5, "idle": 0.25, "bottleneck": "decode", **fields}


def lines(**changed):
    return [head(**changed), *turns("penstock", [900, 910, 905]), *turns("other", [300, 310, 305]),
            {"kind": "absent", "cell": {"loader": "dali"}, "reason": "not installed"},
            {"kind": "end"}]


def write(folder, rows, name="run"):
    path = folder / name / "report.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def page_of(folder):
    """HTML and Markdown of a folder."""
    assert _cli.main(["report", str(folder)]) == 0
    return [(folder / f"page.{kind}").read_text(encoding="utf-8") for kind in ("html", "md")]


class Reader(html.parser.HTMLParser):
    """Tags of a page, and whether they close in order."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.ids = [], [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.ids += [value for name, value in attributes if name == "id"]
        assert not any(name.startswith("on") for name, _ in attributes)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_has_all_figures(tmp_path):
    write(tmp_path, lines())
    page, text = page_of(tmp_path)
    for part in ("905", "95 % interval", "A processor", "abc1234", "2026-11-18", "not installed",
                 "penstock is the fastest: 2.97 times", "decode", "photos.pen"):
        assert part in page and part in text, part
    assert "penstock-lab load &#x27;a b.pen&#x27;" in page
    assert f"penstock-lab rerun {tmp_path}/run" in text
    assert "simulated" not in text
    picture = re.search(r"\((page-plots/plot-1.svg)\)", text).group(1)
    assert (tmp_path / picture).read_text(encoding="utf-8").startswith("<?xml")


def test_the_page_is_one_file_without_scripts(tmp_path):
    write(tmp_path, lines(), "a")
    write(tmp_path, lines(), "b")
    page, _ = page_of(tmp_path)
    found = Reader(page)
    assert not {"script", "link", "img", "iframe", "object"} & set(found.tags)
    assert found.tags.count("svg") == 2 and len(found.ids) == len(set(found.ids))
    assert "prefers-color-scheme: dark" in page
    assert not re.search(r'(?:src|href)="(?!#)', page)


def test_hostile_texts_stay_text(tmp_path):
    rows = lines(name=HOSTILE, command=[HOSTILE], date=HOSTILE, machine={"cpu": HOSTILE},
                 versions={"penstock": HOSTILE, "commit": HOSTILE}, question=HOSTILE,
                 inputs=[{"path": HOSTILE}])
    rows[1:1] = turns(HOSTILE, [1, 2, 3])
    rows += [{"kind": "result", "cell": {HOSTILE: HOSTILE}, HOSTILE: HOSTILE},
             {"kind": "absent", "cell": {HOSTILE: HOSTILE}, "reason": HOSTILE}]
    write(tmp_path, rows)
    page, text = page_of(tmp_path)
    assert not {"script", "img"} & set(Reader(page).tags)
    for line in text.splitlines():
        outside = re.sub(r"(`+).*?\1", "", line)  # code is shown as it is
        assert not re.search(r"(?<!\\)<(script|img)", outside), line
        assert not re.search(r"(?<!\\)!\[p", outside), line


def test_simulated_is_beside_every_shaped_figure(tmp_path):
    rows = [head(), *turns("a", [100, 101]), *turns("b", [100, 102]), {"kind": "end"}]
    for row in rows[1:-1]:
        row["cell"]["storage"] = "disk:19MB/s"
    write(tmp_path, rows)
    _, text = page_of(tmp_path)
    table = [line for line in text.splitlines() if line.startswith(("| a", "| b"))]
    assert len(table) >= 4 and all("(simulated)" in line for line in table)
    assert "No winner" in text


def test_the_state_of_the_page_cache_is_not_simulated(tmp_path):
    rows = [head(), *turns("a", [100, 101]), *turns("b", [100, 102]), {"kind": "end"}]
    for row in rows[1:-1]:
        row["cell"]["storage"] = "warm"
    check = shapes.Check("warm", "files in the page cache", 100, 100, "%", "mincore").record()
    rows[1:1] = [{"kind": "shape", "cell": rows[1]["cell"], **check}]
    write(tmp_path, rows)
    _, text = page_of(tmp_path)
    assert "simulated)" not in text and "are simulated" not in text


def test_verdicts():
    def said(*rates):
        return verdicts.verdict([verdicts.Arm(name, list(r)) for name, r in zip("ab", rates)])

    assert said([10, 11, 10], [1, 1.1, 1]).startswith("a is the fastest")
    assert said([10, 20, 30], [11, 19, 31]).startswith("No winner")
    assert said([10], [1]).startswith("No verdict")
    assert said([10, 10]) == "" == said([10, 10], [0, 0])


@pytest.mark.parametrize("damage, line", [
    (lambda rows: rows[2].update(seconds="abc"), 3),
    (lambda rows: rows[2].update(seconds=float("nan")), 3),
    (lambda rows: rows[2].update(samples=-1), 3),
    (lambda rows: rows[2].update(samples=10**300), 3),
    (lambda rows: rows[3].update(round=1.5), 4),
    (lambda rows: rows[3].pop("samples"), 4),
    (lambda rows: rows[3].update(cell=[1]), 4),
    (lambda rows: rows[3].update(cell={"a": {"b": 1}}), 4),
    (lambda rows: rows[0].pop("machine"), 1),
    (lambda rows: rows[0].update(command="penstock-lab"), 1),
    (lambda rows: rows[0].update(machine={"load_before": "x"}), 1),
    (lambda rows: rows[-2].pop("reason"), 10),
])
def test_damaged_reports_name_file_and_line(tmp_path, damage, line, capsys):
    rows = lines()
    damage(rows)
    path = write(tmp_path, rows)
    assert _cli.main(["report", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert str(path) in said and f"line {line}: " in said


@pytest.mark.parametrize("text", ["{", "[1]", "nonsense", "[" * 100000, '{"kind": 1'])
def test_lines_that_are_no_json_name_file_and_line(tmp_path, text, capsys):
    path = write(tmp_path, lines())
    rows = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([*rows[:3], text, *rows[3:], ""]), encoding="utf-8")
    assert _cli.main(["report", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert str(path) in said and "line 4 " in said


def test_folders_without_reports(tmp_path, capsys):
    assert _cli.main(["report", str(tmp_path / "none")]) == 1
    assert _cli.main(["report", str(tmp_path)]) == 1
    write(tmp_path, lines())
    assert _cli.main(["report", str(tmp_path), "-o", str(tmp_path / "page.pdf")]) == 1
    said = capsys.readouterr().err
    assert "expected a folder" in said and "no report.jsonl" in said and ".html" in said


def test_reports_that_are_too_large(tmp_path, monkeypatch):
    path = write(tmp_path, lines())
    monkeypatch.setattr(checked, "LARGEST_REPORT", 100)
    with pytest.raises(LabError, match="expected at most 100"):
        checked.read(path)


def test_a_run_that_is_not_complete_says_so(tmp_path):
    write(tmp_path, lines()[:-1])
    assert "not complete" in page_of(tmp_path)[1]
