# SPDX-License-Identifier: Apache-2.0
"""The command penstock-lab: usage, runs that are killed and continue, rerun, compare."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest
import tomllib
from example_tools import ROOT
from py_tools import need_penstock, write_pack

penstock = need_penstock()
from penstock.lab import _cli  # noqa: E402
from penstock.lab.experiment import command, parameters, report  # noqa: E402
from penstock.lab.verbs import loaders, run  # noqa: E402

FAKE = [sys.executable, str(pathlib.Path(__file__).with_name("lab_fake.py"))]


def start(*words, cwd, **env):
    return subprocess.Popen([*FAKE, *map(str, words)], cwd=cwd, env={**os.environ, **env},
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def lab(*words, cwd, **env):
    """(exit code, standard output, standard error)"""
    process = start(*words, cwd=cwd, **env)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def table(out):
    return [line for line in out.splitlines() if line.startswith("|")]


def wait_for_lines(path, n):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if path.exists() and path.read_bytes().count(b"\n") >= n:
            return
        time.sleep(0.01)
    raise AssertionError(f"{path} has no {n} lines")


def test_usage(capsys):
    assert _cli.main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(f"\n  {verb}" in out for verb in _cli.VERBS)
    assert _cli.main([]) == 2
    assert _cli.main(["fly"]) == 2
    assert "unknown verb 'fly'; expected one of run" in capsys.readouterr().err


@pytest.mark.parametrize("verb", list(_cli.VERBS))
def test_each_verb_explains_itself(verb, capsys):
    with pytest.raises(SystemExit) as ended:
        _cli.main([verb, "--help"])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert out.startswith(f"usage: penstock-lab {verb}") and len(out.splitlines()) > 6
    with pytest.raises(SystemExit) as ended:
        _cli.main([verb, "--no-such-flag"])
    assert ended.value.code == 2


def test_help_imports_no_heavy_module():
    code = ("import sys; from penstock.lab import _cli; _cli.main(['--help']); "
            "print([x for x in ('numpy', 'torch', 'matplotlib', 'PIL') if x in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_module_runs():
    done = subprocess.run([sys.executable, "-m", "penstock.lab", "rerun", "nowhere"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("penstock-lab: cannot read report 'nowhere'")


def test_a_file_and_flags_give_the_same_run(tmp_path):
    flags = ("--threads", "1", "--rounds", "2")
    code, config, _ = lab("fake", *flags, "--write-config", cwd=tmp_path)
    assert code == 0 and "threads = [1]" in config
    (tmp_path / "x.toml").write_text(config, encoding="utf-8")
    code, by_flags, _ = lab("fake", *flags, "--out", "flags", cwd=tmp_path)
    assert code == 0
    for words in (("run", "x.toml"), ("fake", "--config", "x.toml")):
        code, by_file, _ = lab(*words, "--out", words[0], cwd=tmp_path)
        assert code == 0 and table(by_file) == table(by_flags)
        assert (tmp_path / words[0] / "fake" / "fake-t1-r2" / "report.jsonl").is_file()
    (tmp_path / "y.toml").write_text("threads = [1]", encoding="utf-8")
    code, _, err = lab("run", "y.toml", cwd=tmp_path)
    assert code == 1 and 'Add a line such as question = "load"' in err
    (tmp_path / "y.toml").write_text('question = "run"', encoding="utf-8")
    code, _, err = lab("run", "y.toml", cwd=tmp_path)
    assert code == 1 and "unknown question 'run'" in err


def test_a_killed_run_continues(tmp_path):
    _, expected, _ = lab("fake", "--rounds", "3", "--out", "whole", cwd=tmp_path)
    path = tmp_path / "lab" / "fake" / "fake-r3" / "report.jsonl"
    for lines in (2, 6, 11):
        process = start("fake", "--rounds", "3", cwd=tmp_path, LAB_FAKE_SLEEP="0.05")
        wait_for_lines(path, lines)
        process.kill()
        process.communicate()
    code, out, err = lab("resume", path.parent, cwd=tmp_path)
    assert code == 0 and table(out) == table(expected)
    assert "continuing" in err
    code, out, err = lab("fake", "--rounds", "3", cwd=tmp_path)
    assert code == 0 and table(out) == table(expected) and "is complete already" in err
    shutil.rmtree(path.parent)  # as the message advises
    assert lab("fake", "--rounds", "3", cwd=tmp_path)[0] == 0
    kinds = [line["kind"] for line in report.read(path)]
    assert kinds.count("end") == 1 and kinds[-1] == "end"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_says_how_to_continue(tmp_path, number):
    process = start("fake", cwd=tmp_path, LAB_FAKE_SLEEP="0.05")
    wait_for_lines(tmp_path / "lab" / "fake" / "fake" / "report.jsonl", 5)
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130 and "Traceback" not in err
    assert "of 28 turns are in lab/fake/fake/report.jsonl" in err
    assert "Continue with: penstock-lab resume lab/fake/fake" in err


def test_other_parameters_are_refused(tmp_path):
    assert lab("fake", "--rounds", "1", "--name", "x", cwd=tmp_path)[0] == 0
    code, _, err = lab("fake", "--rounds", "1", "--name", "x", "--quality", "50", cwd=tmp_path)
    assert code == 1 and "quality: 90 in the report, now 50" in err
    assert "Choose another --out or --name, or remove that folder" in err
    words = ("fake", "--rounds", "1", "--quality", "50", "--name")
    assert lab(*words, "y", cwd=tmp_path)[0] == 0
    shutil.rmtree(tmp_path / "lab" / "fake" / "x")
    assert lab(*words, "x", cwd=tmp_path)[0] == 0


def test_rerun_from_the_first_line_alone(tmp_path):
    write_pack(penstock, tmp_path / "a.pen", 9)
    code, expected, _ = lab("fake", "a.pen", "--rounds", "2", "--scale", "0.3", cwd=tmp_path)
    assert code == 0
    folder = tmp_path / "lab" / "fake" / "fake-a-scale_0.3-r2"
    other = tmp_path / "elsewhere"
    other.mkdir()
    head = (folder / "report.jsonl").read_text(encoding="utf-8").splitlines()[0]
    (other / "first.jsonl").write_text(head + "\n", encoding="utf-8")
    code, out, _ = lab("rerun", "first.jsonl", "--out", "again", cwd=other)
    again = report.read(other / "again" / "fake" / folder.name)[0]
    assert code == 0 and table(out) == table(expected)
    old = json.loads(head)
    for member in ("question", "name", "parameters", "inputs"):
        assert again[member] == old[member]
    assert old["inputs"][0]["samples"] == 9 and len(old["inputs"][0]["id"]) == 32
    assert lab("rerun", folder, cwd=tmp_path)[0] == 0
    hostile = old | {"parameters": []}
    (other / "first.jsonl").write_text(json.dumps(hostile) + "\n")
    for verb in ("rerun", "resume"):
        code, _, err = lab(verb, "first.jsonl", cwd=other)
        assert code == 1 and "line 1: 'parameters': expected an object" in err
    assert report.changes(old, report.read(f"{folder}-2")[0]) == []


def test_the_reference_lists_every_kind_and_member(tmp_path):
    assert lab("fake", "--rounds", "1", "--loaders", "a,missing", cwd=tmp_path)[0] == 0
    page = (ROOT / "docs" / "reference" / "lab-reports.md").read_text(encoding="utf-8")
    lines = report.read(next(tmp_path.rglob("report.jsonl")))
    names = {line["kind"] for line in lines} | {name for line in lines for name in line}
    names |= {*lines[0]["machine"], *lines[0]["versions"], "path", "id"}
    assert [name for name in sorted(names) if f"`{name}`" not in page] == ["kind"]


def test_compare(tmp_path):
    for scale in ("1", "1.05", "1.0001"):
        assert lab("fake", "--rounds", "5", "--scale", scale, "--name", scale, cwd=tmp_path)[0] == 0
    place = tmp_path / "lab" / "fake"
    code, out, err = lab("compare", place / "1", place / "1.05", cwd=tmp_path)
    rows = [[part.strip() for part in line.split("|")[1:-1]] for line in table(out)]
    assert code == 0 and len(rows) == 2 + 4
    assert rows[0][3:] == ["B / A", "95 % interval", "difference"]
    assert all(row[3].startswith("1.05") and row[5] == "larger than the noise" for row in rows[2:])
    assert "the runs differ in scale: 1.0 in A, 1.05 in B" in err
    code, out, _ = lab("compare", place / "1", place / "1.0001", cwd=tmp_path)
    assert code == 0 and out.count("within the noise") == 4
    code, out, _ = lab("compare", place / "1", place / "1.05", "--metric", "cpu", cwd=tmp_path)
    assert code == 0 and "A cpu" in out and out.count("within the noise") == 4
    words = ("compare", place / "1", place / "1.05", "--metric", "cpu_per_1000")
    code, out, _ = lab(*words, cwd=tmp_path)
    assert code == 0 and out.count("larger than the noise") == 4 and " 0.952" in out
    head, _, rest = (place / "1" / "report.jsonl").read_text(encoding="utf-8").partition("\n")
    busy = json.loads(head)
    busy["machine"]["load_before"] = 7.5
    (tmp_path / "busy.jsonl").write_text(json.dumps(busy) + "\n" + rest, encoding="utf-8")
    code, _, err = lab("compare", place / "1", "busy.jsonl", cwd=tmp_path)
    assert code == 0 and "warning: B: the load average was 7.50 before the run" in err
    code, _, err = lab("compare", place / "1", place / "1.05", "--metric", "top1", cwd=tmp_path)
    assert code == 1 and "share no cell with turns that have top1; A has rate, cpu_per_1000" in err


def test_the_example_of_run_is_an_experiment():
    text = "\n".join(line for line in run.HELP.splitlines() if line.startswith("    "))
    values = tomllib.loads(text.replace("    ", ""))
    parameters.from_dict(command.module(values.pop("question")).Parameters, values)


def test_a_cell_without_cpu_time_does_not_hide_the_others(tmp_path):
    for name in ("a", "b"):
        assert lab("fake", "--name", name, "--rounds", 2, cwd=tmp_path)[0] == 0
        path = tmp_path / "lab" / "fake" / name / "report.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            if line["kind"] == "turn" and line["cell"]["loader"] == "a":
                line["cpu"] = 0.0
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    code, out, _ = lab("compare", "lab/fake/a", "lab/fake/b", "--metric", "cpu_per_1000",
                       cwd=tmp_path)
    assert code == 0 and out.count("unknown: not all values are positive") == 2
    assert out.count("the noise") == 2


def test_errors_of_the_system_and_missing_packages_are_one_line(monkeypatch, capsys):
    def fails(error):
        def run(_):
            raise error
        monkeypatch.setattr(loaders, "run", run)
        assert _cli.main(["loaders"]) == 1
        return capsys.readouterr().err

    text = fails(OSError(28, "No space left on device", "/x/y"))
    assert text == "penstock-lab: '/x/y': No space left on device\n"
    text = fails(ModuleNotFoundError("No module named 'PIL'", name="PIL"))
    assert "needs the Python package PIL" in text and "pip install matplotlib numpy pillow" in text


def test_an_interrupt_while_a_verb_is_imported_has_no_traceback(monkeypatch, capsys):
    def stop(verb):
        raise KeyboardInterrupt

    monkeypatch.setattr(_cli, "module", stop)
    assert _cli.main(["load", "x"]) == 130
    assert capsys.readouterr().err == "penstock-lab: interrupted\n"


def test_names_that_no_terminal_can_show_are_printed(tmp_path):
    bad = os.fsdecode(b"caf\xe9")
    code, out, err = lab("fake", "--rounds", 1, "--name", bad, cwd=tmp_path)
    assert code == 0 and "report: lab/fake/caf\\udce9/report.jsonl" in out, err


def test_compare_names_the_damaged_line_of_a_report(tmp_path):
    assert lab("fake", "--name", "a", "--rounds", 1, cwd=tmp_path)[0] == 0
    path = tmp_path / "lab" / "fake" / "a" / "report.jsonl"
    with open(path, "a") as file:
        file.write('{"kind": "turn", "cell": {"loader": "a"}, "round": "x"}\n')
    code, _, err = lab("compare", "lab/fake/a", "lab/fake/a", cwd=tmp_path)
    assert code == 1 and "line" in err and "Traceback" not in err and "needs 'seconds'" in err
