# SPDX-License-Identifier: Apache-2.0
"""The bar chart of the README: it shows the recorded figures, and can be read on any page."""

import json
import pathlib
import re
import sys
from xml.etree import ElementTree

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import record_chart  # noqa: E402
from penstock.lab.loaders import chart  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"
RECORD = json.loads(record_chart.RECORD.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def image():
    return ElementTree.fromstring(record_chart.CHART.read_text(encoding="utf-8"))


def texts(image):
    return [element.text for element in image.iter(f"{SVG}text")]


def test_the_chart_is_drawn_from_todays_record():
    now = chart.svg(record_chart.chart_data(RECORD))
    assert record_chart.CHART.read_text(encoding="utf-8") == now, "run ./dev record"
    assert len(now) < 6000


def test_every_loader_of_the_record_has_its_figure(image):
    shown = texts(image)
    for name, rates, *_ in RECORD["table"][1:]:
        label = record_chart.EXPLAINED.sub("", name)
        assert shown.count(label) == 1
        assert shown[shown.index(label) + 1] == rates.split()[0]


def test_unit_machine_and_date_are_on_it(image):
    shown = " ".join(texts(image))
    for part in ("images per second", RECORD["machine"], RECORD["date"], RECORD["commit"]):
        assert part in shown


def test_bars_are_as_long_as_their_rates(image):
    widths = [float(bar.get("width")) for bar in image.iter(f"{SVG}rect")]
    rates = sorted((bar["rate"] for bar in record_chart.chart_data(RECORD)["bars"]), reverse=True)
    assert len(widths) == len(rates) > 5
    for width, rate in zip(widths, rates):
        assert width / widths[0] == pytest.approx(rate / rates[0], abs=0.001)


def test_everything_lies_inside_the_picture(image):
    """A character is about 0.62 times as wide as the font is high, also in bold."""
    for element in image.iter(f"{SVG}text"):
        length = len(element.text) * 0.62 * float(element.get("font-size", image.get("font-size")))
        x = float(element.get("x"))
        start = x - length if element.get("text-anchor") == "end" else x
        assert start >= 0 and start + length <= float(image.get("width")), element.text


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("page", ["#ffffff", "#0d1117"])
def test_colours_can_be_seen_on_light_and_dark_pages(page):
    for colour, least in ((chart.TEXT, 4.0), (chart.OURS, 3.0), (chart.THEIRS, 3.0)):
        light, dark = sorted((luminance(colour), luminance(page)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= least, (colour, page)


def test_rows_without_rates_and_special_characters():
    rows = [["loader", "images/s"], ["a <b> & c", "1,200 (1,000-1,300)"], ["x", "absent: no wheel"]]
    data = record_chart.chart_data({**RECORD, "table": rows})
    assert [bar["rate"] for bar in data["bars"]] == [1200]
    assert "a <b> & c" in texts(ElementTree.fromstring(chart.svg(data)))


def test_the_readme_shows_it():
    path = record_chart.CHART.relative_to(ROOT)
    assert re.search(rf"!\[[^\]]+\]\({path}\)", (ROOT / "README.md").read_text(encoding="utf-8"))
