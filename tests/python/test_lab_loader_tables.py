# SPDX-License-Identifier: Apache-2.0
"""What penstock-lab load makes of its turns: ratios, winners, tables, and the files it reads."""

import pathlib
import sys

import pytest
from penstock import InvalidError
from penstock.lab.errors import LabError
from penstock.lab.experiment import parameters
from penstock.lab.loaders import chart, draws, environments, figures, report, scenario
from penstock.lab.loaders.question import Load, Parameters
from penstock.lab.loaders.sets import Set
from penstock.lab.loaders.worker.serve import once_only

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "long"))

import _draws  # noqa: E402


def test_a_ratio_is_that_of_the_medians_and_the_spread_that_of_rounds():
    result = figures.ratio([100, 400, 300], [100, 100, 50])
    assert result == {"ratio": 3.0, "low": 1.0, "high": 6.0, "rounds": 3}


@pytest.mark.parametrize("rates", [([], []), ([1.0], [1.0, 2.0])])
def test_rounds_come_in_pairs(rates):
    with pytest.raises(ValueError, match="as many rounds"):
        figures.ratio(*rates)


@pytest.mark.parametrize(("ours", "theirs", "word"), [
    ([300, 310, 305], [100, 100, 100], "faster"),
    ([100, 100, 100], [300, 310, 305], "slower"),
    ([110, 104, 107], [100, 100, 100], "faster"),
    ([110, 98, 105], [100, 100, 100], "no winner"),   # 0.12 in the rounds, 0.05 in the sides
    ([100, 100, 100], [100, 100, 100], "no winner"),
    ([200, 900, 300], [100, 100, 100], "no winner"),  # always faster, but by 2 or by 9?
])
def test_a_winner_needs_a_difference_larger_than_the_spread(ours, theirs, word):
    opposite = {"faster": "slower", "slower": "faster", "no winner": "no winner"}
    assert figures.verdict(figures.ratio(ours, theirs)) == word
    assert figures.verdict(figures.ratio(theirs, ours)) == opposite[word]


def test_an_aim_is_reached_by_the_ratio_and_without_doubt():
    clear, doubtful = (
        figures.ratio(ours, [100] * 3) for ours in ([300, 310, 305], [200, 900, 300]))
    assert figures.reached(clear, 3.0) and not figures.reached(clear, 3.1)
    assert not figures.reached(doubtful, 3.0)
    assert figures.reached(figures.ratio([101, 99, 100], [100, 100, 100]), 1.0)  # not slower


def test_cores_for_an_accelerator():
    # 90 % of 400 images in 0.224 s are 1607 a second
    assert figures.cores_for_accelerator(1607.14, 2) == pytest.approx(2.0, abs=1e-3)
    assert figures.cores_for_accelerator(3214.28, 2) == pytest.approx(1.0, abs=1e-3)


def test_a_turn_is_whole_passes():
    assert figures.passes_for(3.0, 2.0) == 1
    assert figures.passes_for(0.3, 2.0) == 7
    assert figures.passes_for(0.0, 1.0) == 1000


def test_every_sample_once():
    assert once_only([2, 0, 1], 3) == {"missing": 0, "again": 0, "strange": 0}
    assert once_only([0, 0, 2, 7], 4) == {"missing": 2, "again": 1, "strange": 1}
    good, bad = once_only([0, 1], 2), once_only([0, 0], 2)
    assert figures.exactly_once([good, good]) == "yes"
    assert figures.exactly_once([good, bad]) == "1 missing, 1 again"


# --- tables --------------------------------------------------------------------------------------


def line(kind, loader, **more):
    cell = {"loader": loader, "format": "asis", "side": 0, "storage": "warm", "threads": 2}
    return {"kind": kind, "cell": cell, **more}


def turn(loader, number, rate, **more):
    return line("turn", loader, **{
        "round": number, "seconds": 2.0, "samples": 2 * rate, "cpu": 4.0, "missing": 0, "again": 0,
        "strange": 0, "idle": 0.25, "waits": [0.001, 0.01, 0.02], "bottleneck": "decode", **more})


@pytest.fixture
def lines():
    chosen = Parameters(sources=("photos",), loaders=("penstock", "ffcv", "dali"), rounds=3,
                        aims=("penstock/ffcv>=2", "penstock/ffcv>=5", "penstock/dali>=5.5"))
    out = [{"kind": "parameters", "format": 1, "question": "load", "name": "load-photos",
            "parameters": parameters.to_dict(chosen), "date": "2026-01-01T00:00:00Z",
            "machine": {"cpu": "Some CPU", "cores": 2, "memory_gb": 8.0, "kernel": "6.1"},
            "versions": {"commit": "abc"}}]
    for name, check in (("penstock", {"mean": 0.0, "max": 0}), ("ffcv", {"error": "none"})):
        out.append(line("prepared", name, title=name.upper(), notes=["a note"], check=check,
                        versions={name: "1.2"}, stored_mb=107.0))
        out.append(line("first", name, seconds=1.5, memory_mb=300, samples=1000))
    out.append(line("absent", "dali", reason="no wheel"))
    for number, rate in enumerate((3000, 3100, 3200)):
        out += [turn("penstock", number, rate, joules=60.0),
                turn("ffcv", number, 1000, again=number // 2, bottleneck_by="/proc",
                     bottleneck="CPU")]
    return out


def rows_of(text, first):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()
            if line.startswith(f"| {first} |")]


def test_the_tables_say_what_was_measured(lines):
    text = report.markdown(lines)
    ours, our_waits, our_details = rows_of(text, "PENSTOCK")
    theirs, their_waits, their_details = rows_of(text, "FFCV")
    assert ours[1:] == ["3,100 (3,000-3,200)", "-", "0.65", "300", "0.00 (0)"]
    assert our_waits[1:] == ["331.7", "1.0 / 10.0 / 20.0", "-", "9.7", "decode"]
    assert our_details[1:] == ["-", "107", "1.50", "yes", "1.0"]
    assert theirs[1:] == ["1,000 (1,000-1,000)", "3.10 (3.00-3.20)", "2.00", "300", "-"]
    assert their_waits[4:] == ["absent", "/proc: CPU"]
    assert their_details[1:5] == ["slower", "107", "1.50", "1 again"]
    assert rows_of(text, "dali")[0][1] == "absent: no wheel"
    reached = [row[-1] for row in rows_of(text, "penstock")]
    assert reached == ["reached", "NOT reached", "not measured"]


def test_idle_time_is_shown_with_a_consumer(lines):
    lines[0]["parameters"]["consumer"] = 50.0
    text = report.markdown(lines)
    assert rows_of(text, "PENSTOCK")[1][3] == "25.0" and "takes 50 ms for each batch" in text


def test_all_rows_of_a_table_are_as_long(lines):
    for block in report.markdown(lines).split("\n\n"):
        widths = {line.count("|") for line in block.splitlines() if line.startswith("|")}
        assert len(widths) <= 1


def test_two_rounds_are_too_few_for_a_winner():
    assert figures.verdict(figures.ratio([300, 300], [100, 100])) == "no winner"
    assert figures.verdict(figures.ratio([300] * 3, [100] * 3)) == "faster"


def test_every_setting_has_tables_of_its_own(lines):
    cold = [dict(x, cell={**x["cell"], "storage": "cold"}) for x in lines if "cell" in x]
    text = report.markdown([*lines, *cold])
    assert text.count("storage warm") == text.count("storage cold") == 1


def test_a_cold_storage_that_was_hardly_read_is_remarked(lines):
    for each in lines:
        if "cell" in each:
            each["cell"]["storage"] = "cold"
        if each["kind"] == "turn":
            each.update(passes=1, read_mb=107.0 if each["cell"]["loader"] == "ffcv" else 10.7)
    text = report.markdown(lines)
    assert rows_of(text, "PENSTOCK")[1][-1] == "decode; read 10 % of its data"
    assert rows_of(text, "FFCV")[1][-1] == "/proc: CPU"


def test_a_loader_that_fell_out_is_not_compared(lines):
    lines.append(line("absent", "ffcv", reason="its process was ended by SIGKILL"))
    (section,) = report.sections(lines)
    assert set(section.found) == {"penstock"} and set(section.absent) == {"dali", "ffcv"}
    assert report.comparison(section.found, "penstock", "ffcv") is None


def test_bars_are_those_of_the_table(lines):
    bars = chart.of_section(report.sections(lines)[0])["bars"]
    assert [(bar["title"], bar["ours"], bar["rate"]) for bar in bars] == [
        ("PENSTOCK", True, 3100.0), ("FFCV", False, 1000.0)]


# --- files and parameters ------------------------------------------------------------------------


def test_all_scenarios_can_be_asked(tmp_path):
    for name in scenario.names():
        values = parameters.read_toml(scenario.path_of(name))
        assert values.pop("question") == "load"
        chosen = parameters.from_dict(Parameters, {**values, "sources": [str(tmp_path)]})
        (group,) = Load(chosen, tmp_path).groups()
        assert [cell["loader"] for cell in group] == list(chosen.loaders)
        assert not chosen.base or chosen.base in chosen.loaders


@pytest.mark.parametrize(("wrong", "says"), [
    ({"sources": ()}, "expected a folder of images or a pack, found none"),
    ({"loaders": ("nobody",)}, "no loader 'nobody'; expected one of penstock, "),
    ({"formats": ("jpeg0",)}, "expected asis, progressive, raw or jpeg1 to jpeg100"),
    ({"formats": ("gif",)}, "found 'gif'"),
    ({"storage": ("tape",)}, "storage 'tape': expected one of local"),
    ({"threads": (0,)}, "threads: expected at least 1, found 0"),
    ({"consumer": -1.0}, "expected no negative number"),
    ({"aims": ("penstock>2",)}, "aims: expected LOADER/LOADER>=RATIO"),
])
def test_wrong_parameters_are_answered(wrong, says, tmp_path):
    with pytest.raises((LabError, InvalidError), match=says.replace("(", "\\(")):
        Load(Parameters(**{"sources": ("photos",), **wrong}), tmp_path)


def test_files_that_are_kept_have_no_other_side(tmp_path):
    chosen = Parameters(sources=("photos",), formats=("asis", "jpeg90"), sides=(0, 512),
                        loaders=("penstock",))
    cells = [(cell["format"], cell["side"]) for (cell,) in Load(chosen, tmp_path).groups()]
    assert cells == [("asis", 0), ("jpeg90", 0), ("jpeg90", 512)]
    with pytest.raises(LabError, match="asis and progressive keep the files"):
        Load(Parameters(sources=("photos",), sides=(512,)), tmp_path).groups()


def test_loaders_have_modules_and_environments():
    for spec in scenario.loaders().values():
        assert (environments.WORKER / "sides" / f"{spec['module']}.py").exists()
        assert spec["environment"] is None or spec["environment"] in environments.specs()


def test_the_boxes_of_the_check_are_those_that_penstock_draws():
    for sample, (width, height) in enumerate([(500, 375), (20, 900), (900, 20), (64, 64)] * 20):
        draw = _draws.Draw(7, 3, sample, "random_resized_crop")
        expected = list(_draws.random_resized_crop(draw, width, height))
        assert draws.box_of(7, 3, sample, width, height) == expected


def test_text_of_a_reason_cannot_break_a_table(lines):
    section = report.sections(lines)[0]
    section.absent["a"] = "x | y\n| z <b>"
    last = report.speed_table(section).splitlines()[-1]
    assert last == "| a | absent: x \\| y \\| z &lt;b> |  |  |  |  |"


def test_headings_name_the_threads_and_counts_are_singular(lines):
    section = report.sections(lines)[0]
    assert report.setting_text(section).endswith("thread" if section.setting["threads"] == 1
                                                 else "threads")
    assert report.count_text(1, "image") == "1 image" and report.count_text(0, "x") == "0 xs"
    assert report.spread({"ratio": 0.0002, "low": 0.0001, "high": 0.0003}).startswith("0.00020 (")


@pytest.mark.parametrize("name", ["a\nb.jpg", "a\u2028b.jpg", "a\udce9.jpg"])
def test_names_that_lists_cannot_hold_are_refused(name, tmp_path):
    (tmp_path / name).touch()
    with pytest.raises(LabError, match="cannot load .*Rename it"):
        Set.of_source(str(tmp_path), tmp_path / "work", 0)
