# SPDX-License-Identifier: Apache-2.0
"""Plots of the lab: valid SVG with its text as text, the same bytes each time, hostile names."""

import xml.etree.ElementTree

import pytest
from penstock.lab import LabError, plots

pytest.importorskip("matplotlib")
TEXT = "{http://www.w3.org/2000/svg}text"
HOSTILE = "<script>alert(1)</script> & \x00 $a_b$ %s \u202e"


def series(name="a", **more):
    return plots.Series(name, [1, 2, 4], [10.0, 20.0, 30.0], **more)


def all_plots(name, x="threads", y="images/s"):
    """One plot of each kind, with this text wherever a text goes."""
    both = [series(name), series("b", low=[9, 19, 29], high=[11, 21, 31])]
    return [
        plots.bars(name, y, [plots.Bar(name, 3.0, 2.5, 3.5, name), plots.Bar("b", 1.0, group="g")],
                   note=name),
        plots.lines(name, x, y, both, note=name, scales=("log", "linear")),
        plots.scatter(name, x, y, [series(name, names=[name] * 3)], scales=("linear", "log")),
        plots.histogram(name, x, {name: [1, 2, 2], "b": [3.0]}, note=name, bins=3),
        plots.timeline(name, [plots.Lane(name, [plots.Span(name, 0.0, 1.0)])], note=name),
    ]


def texts(svg):
    """All texts of an SVG; raises when it is not well-formed."""
    return [node.text for node in xml.etree.ElementTree.fromstring(svg).iter(TEXT)]


def test_labels_and_units_are_text():
    for plot, axis in zip(all_plots("Rate"), ("images/s", "threads", "threads", "threads", "time")):
        found = texts(plot.svg())
        assert "Rate" in found
        assert any(axis in text for text in found), found


def test_the_same_figures_give_the_same_bytes():
    for first, second in zip(all_plots("Rate"), all_plots("Rate")):
        assert first.svg() == second.svg() == first.svg()
        assert "<dc:date>" not in first.svg()


def test_hostile_names_stay_text():
    for plot in all_plots(HOSTILE):
        svg = plot.svg()
        assert "<script" not in svg
        assert any("<script>alert(1)</script> & ? $a_b$" in text for text in texts(svg))


def test_simulated_is_beside_the_figure():
    svg = plots.bars("t", "s", [plots.Bar("a", 2.0, simulated=True), plots.Bar("b", 3.0)]).svg()
    assert "2 (simulated)" in texts(svg) and "3" in texts(svg)


def test_names_that_are_too_long_are_cut():
    svg = plots.bars("t", "s", [plots.Bar("n" * 500, 2.0)]).svg()
    assert "n" * 47 + "\u2026" in texts(svg)


@pytest.mark.parametrize("x, tick, other", [
    ([5.39, 8.5, 17.5, 54.8], "17.5", "20"),
    ([5.39, 8.5, 8.56, 54.8], "20", "8.56"),  # names of 8.5 and 8.56 would overlap
])
def test_names_of_ticks_do_not_overlap(x, tick, other):
    one = plots.Series("a", x, [1.0] * len(x))
    svg = plots.scatter("t", "x", "y", [one], scales=("log", "linear")).svg()
    assert tick in texts(svg) and other not in texts(svg)


def test_colors_are_not_the_only_difference():
    svg = plots.bars("t", "s", [plots.Bar("a", 1.0, group=str(i)) for i in range(7)]).svg()
    assert svg.count("<pattern") == 6  # the first one has no hatch


@pytest.mark.parametrize("draw", [
    lambda: plots.bars("t", "s", []),
    lambda: plots.bars("t", "s", [plots.Bar("a", float("nan"))]),
    lambda: plots.bars("t", "s", [plots.Bar("a", "1")]),
    lambda: plots.lines("t", "x", "y", []),
    lambda: plots.lines("t", "x", "y", [plots.Series("a", [1], [1, 2])]),
    lambda: plots.lines("t", "x", "y", [series()], scales=("cubic", "linear")),
    lambda: plots.scatter("t", "x", "y", [plots.Series("a", [1], [float("inf")])]),
    lambda: plots.histogram("t", "x", {"a": []}),
    lambda: plots.histogram("t", "x", {"a": [1.0]}, bins=0),
    lambda: plots.timeline("t", [plots.Lane("a", [])]),
    lambda: plots.timeline("t", [plots.Lane("a", [plots.Span("k", 0.0, -1.0)])]),
    lambda: plots.bars("t", "s", [plots.Bar("a", 1.0)]).save("plot.gif"),
])
def test_what_cannot_be_drawn_is_an_error(draw):
    with pytest.raises(LabError, match="expected"):
        draw()


def test_png_and_svg_files(tmp_path):
    plot = all_plots("Rate")[0]
    plot.save(tmp_path / "a.svg")
    plot.save(tmp_path / "a.png")
    assert (tmp_path / "a.svg").read_text(encoding="utf-8") == plot.svg()
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"
