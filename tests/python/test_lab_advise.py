# SPDX-License-Identifier: Apache-2.0
"""penstock-lab advise on made reports, whose answers can be computed by hand."""

import pytest
from py_tools import need_penstock

need_penstock()
from penstock.lab import LabError, _cli  # noqa: E402
from penstock.lab.advice import configurations, limits  # noqa: E402
from penstock.lab.advice.limits import Limit, Machine  # noqa: E402
from penstock.lab.experiment.report import Report  # noqa: E402

HEAD = {"question": "load", "name": "x", "parameters": {"batch": 64}, "inputs": [],
        "machine": {"cpu": "Test CPU", "cores": 2}, "versions": {}, "command": [], "date": ""}
IMAGES = 1000
# loader, format: images/s, CPU ms of an image, bytes of an image
CELLS = {
    ("penstock", "jpeg90"): (2000, 1.0, 50_000),
    ("penstock", "raw"): (4000, 0.5, 400_000),
    ("dataloader-pil", "jpeg90"): (500, 4.0, 50_000),
    ("synthetic", "raw"): (100_000, 0.01, 1),
}


def write(folder, cells=CELLS, wobble=0.01, rounds=3, threads=2, **head):
    with Report.create(folder, {**HEAD, **head}) as opened:
        for (loader, form), (rate, cpu_ms, size) in cells.items():
            cell = {"loader": loader, "format": form, "threads": threads}
            opened.append("prepared", cell=cell, stored_mb=size * IMAGES / 1e6)
            opened.append("first", cell=cell, seconds=9.0, samples=IMAGES, cpu=9.0)
            for number in range(rounds):
                seconds = IMAGES / rate * (1 + wobble * (number - 1))
                opened.append("turn", cell=cell, round=number, samples=IMAGES, seconds=seconds,
                              cpu=cpu_ms, bottleneck="CPU")
        opened.append("absent", cell={"loader": "ffcv", "format": "raw", "threads": 2}, reason="x")
    return folder


def advise(capsys, *words):
    code = _cli.main(["advise", *map(str, words)])
    told = capsys.readouterr()
    return code, told.out, told.err


def rows(out):
    return {row[0]: row[1:] for row in
            ([part.strip() for part in line.split("|")[1:-1]] for line in out.splitlines()
             if line.startswith("|"))}


def test_configurations_have_the_measured_figures(tmp_path):
    found = configurations.from_reports(configurations.find([write(tmp_path)]))
    assert [(one.cell["loader"], one.cell["format"]) for one in found] == list(CELLS)[:3]
    for one in found:
        rate, cpu_ms, size = CELLS[one.cell["loader"], one.cell["format"]]
        assert one.rate.mean == pytest.approx(rate, rel=1e-3)
        assert one.cpu_ms == pytest.approx(cpu_ms) and one.image_bytes == pytest.approx(size)
        assert one.cores_for(3000) == pytest.approx(3 * cpu_ms)
        assert one.megabytes_for(3000) == pytest.approx(3000 * size / 1e6)


def test_a_cell_of_two_runs_has_their_names(tmp_path):
    one, other = ("penstock", "raw"), ("penstock", "jpeg90")
    write(tmp_path / "a", {one: CELLS[one]}, name="a")
    write(tmp_path / "b", {one: CELLS[one], other: CELLS[other]}, name="b")
    found = configurations.from_reports(configurations.find([tmp_path]))
    raw = "loader=penstock format=raw threads=2"
    assert [made.name for made in found] == [f"{raw} (a)", f"{raw} (b)",
                                             raw.replace("raw", "jpeg90")]


def test_this_machine(tmp_path, capsys):
    code, out, _ = advise(capsys, write(tmp_path), "--rate", 3000)
    table = rows(out)
    assert code == 0 and "Test CPU, 2 cores" in out
    name = "loader=penstock format=raw threads=2"
    assert table[name][-1] == "yes" and table[name.replace("raw", "jpeg90")][-1] == "no"
    assert f"Cheapest, by cores and by bytes: {name} (1.5 cores busy, 400.0 kB/image, " in out
    assert "400.0 GB for 1,000,000 images)" in out
    assert "synthetic" not in out and "Extrapolated" not in out and "Measured: images/s" in out


def test_fewest_cores_and_fewest_bytes_may_differ(tmp_path, capsys):
    _, out, _ = advise(capsys, write(tmp_path), "--rate", 1500, "--samples", 2000)
    assert "Fewest cores: loader=penstock format=raw threads=2 (0.8 cores busy" in out
    assert "Fewest bytes: loader=penstock format=jpeg90 threads=2 (1.5 cores busy" in out
    assert "0.1 GB for 2,000 images" in out


def test_nothing_reaches_the_rate(tmp_path, capsys):
    _, out, _ = advise(capsys, write(tmp_path), "--rate", 8000)
    assert "No configuration reaches 8,000 images/s. The fastest one, " in out
    assert "has 50 % of it and is limited by: CPU" in out
    assert "takes 4.0 such cores and 3,200 MB/s (extrapolated)" in out


def test_rates_within_the_noise(tmp_path, capsys):
    _, out, _ = advise(capsys, write(tmp_path, wobble=0.1), "--rate", 4000)
    assert rows(out)["loader=penstock format=raw threads=2"][-1] == "within the noise"
    assert "No configuration reaches" in out


def test_one_turn_has_no_interval(tmp_path, capsys):
    _, out, _ = advise(capsys, write(tmp_path, rounds=1), "--rate", 3000)
    assert rows(out)["loader=penstock format=raw threads=2"][-1] == "yes, by one turn"


@pytest.mark.parametrize("part,flag", [("disk", "--disk"), ("network", "--bandwidth")])
def test_a_described_machine_is_limited_by_its_storage(tmp_path, capsys, part, flag):
    _, out, _ = advise(capsys, write(tmp_path), "--rate", 3000, "--cores", 16, flag, 200)
    out = out[out.index(f"## Extrapolated: 16 cores, a {part} of 200 MB/s"):]
    table = rows(out)
    raw = table["loader=penstock format=raw"]
    assert raw == ["1.5", "1,200", f"{part}: 500/s, 83 % too slow", "no"]
    jpeg = table["loader=penstock format=jpeg90"]
    assert jpeg == ["3.0", "150", f"{part}: 4,000/s, 1.33 times the rate", "yes"]
    assert "Cheapest, by cores and by bytes: loader=penstock format=jpeg90" in out
    assert "assume that its cores are\nas fast as those measured" in out


def test_a_described_machine_is_limited_by_its_cores(tmp_path, capsys):
    _, out, _ = advise(capsys, write(tmp_path), "--rate", 3000, "--cores", 2, "--disk", 200,
                       "--where", "format=jpeg90")
    assert "The closest one, loader=penstock format=jpeg90, is limited by the cores: " \
        "2,000/s, 33 % too slow. It takes 3.0 cores and 150 MB/s." in out


def test_measured_scaling_is_named(tmp_path, capsys):
    write(tmp_path / "2")
    one_thread = {key: (rate / 1.6, cpu, size) for key, (rate, cpu, size) in CELLS.items()}
    write(tmp_path / "1", one_thread, threads=1)
    _, out, _ = advise(capsys, tmp_path, "--rate", 3000, "--cores", 16)
    assert "- loader=penstock format=raw: 1.60 times the rate with 2 threads instead of 1" in out
    _, out, _ = advise(capsys, tmp_path / "2", "--rate", 3000, "--cores", 16)
    assert "Measured scaling" not in out


def test_costs_within_two_percent_are_equal(tmp_path, capsys):
    cells = {("penstock", "a"): (2000, 1.0, 50_500), ("dataloader-pil", "a"): (2000, 4.0, 50_000)}
    _, out, _ = advise(capsys, write(tmp_path, cells), "--rate", 1000)
    assert "Cheapest, by cores and by bytes: loader=penstock" in out


def test_disturbed_reports_are_named(tmp_path, capsys):
    write(tmp_path, machine={"cpu": "Test CPU", "cores": 2, "load_before": 8.0})
    _, _, err = advise(capsys, tmp_path, "--rate", 1000)
    assert "warning: x: the load average was 8.00 before the run" in err


def test_limits_are_in_order():
    one = configurations.Configuration({}, {}, None, 1.0, 1e5, "")
    machine = Machine(cores=4, disk=100, bandwidth=50)
    assert limits.limits(one, machine) == [
        Limit("network", 500), Limit("disk", 1000), Limit("cores", 4000)]
    assert limits.limits(one, Machine()) == []


@pytest.mark.parametrize("words,message", [
    (("--where", "format"), "expected AXIS=VALUE, found 'format'"),
    (("--where", "format=webp"), "the reports have the axes loader, format, threads"),
])
def test_wrong_conditions(tmp_path, capsys, words, message):
    code, _, err = advise(capsys, write(tmp_path), "--rate", 1, *words)
    assert code == 1 and message in err


@pytest.mark.parametrize("words,message", [
    (("--rate", "0"), "invalid positive number value: '0'"),
    (("--rate", "1", "--cores", "1.5"), "invalid positive integer value: '1.5'"),
    ((), "required: --rate"),
])
def test_wrong_use(tmp_path, capsys, words, message):
    with pytest.raises(SystemExit) as ended:
        advise(capsys, tmp_path, *words)
    assert ended.value.code == 2 and message in capsys.readouterr().err


def test_reports_of_other_questions_and_machines(tmp_path, capsys):
    write(tmp_path / "a" / "load" / "x")
    write(tmp_path / "a" / "train" / "y", question="train")
    assert len(configurations.find([tmp_path / "a"])) == 1
    with pytest.raises(LabError, match="has no report of 'penstock-lab load'"):
        configurations.find([tmp_path / "a" / "train"])
    write(tmp_path / "b", machine={"cpu": "Other CPU", "cores": 64})
    code, _, err = advise(capsys, tmp_path / "a", tmp_path / "b", "--rate", 1)
    assert code == 1 and "of several machines: Test CPU, 2 cores; Other CPU, 64 cores" in err


def test_a_line_of_a_wrong_form_is_named(tmp_path):
    write(tmp_path / "a")
    path = next(tmp_path.rglob("report.jsonl"))
    with open(path, "a", encoding="utf-8") as file:
        file.write('{"kind": "turn", "cell": 3, "round": 0, "seconds": 1, "samples": 1}\n')
    with pytest.raises(LabError, match="'cell': expected an object"):
        configurations.find([str(tmp_path)])
