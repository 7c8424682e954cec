# SPDX-License-Identifier: Apache-2.0
"""The layers of src/ as a picture: docs/pictures/layers.svg."""

from structure.layers import LAYERS, ON_TOP, SIMULATOR

PICTURE = "docs/pictures/layers.svg"
WIDTH, ROW, GAP, LEFT = 780, 48, 8, 34
LIBRARY, ABOVE = "#158078", "#57606a"
HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" height="{h}" \
role="img" font-family="sans-serif" font-size="13" fill="#6e7781">
<title>The layers of penstock: every file uses only what is below it</title>
"""


def box(x, y, width, name, color):
    return (f'<rect x="{x:g}" y="{y}" width="{width:g}" height="{ROW}" rx="4" fill="{color}"/>\n'
            f'<text x="{x + width / 2:g}" y="{y + 29}" text-anchor="middle" font-size="15" '
            f'fill="#fff">{name}</text>\n')


def row(number, y, names, color):
    """One layer: its number, and its folders side by side."""
    width = (WIDTH - LEFT - GAP * (len(names) - 1)) / len(names)
    boxes = [box(LEFT + i * (width + GAP), y, width, name, color) for i, name in enumerate(names)]
    return f'<text x="8" y="{y + 29}" font-size="15">{number}</text>\n' + "".join(boxes)


def svg():
    rows = [[f"src/{name}" for name, _, _ in layer] for layer in LAYERS] + [[*ON_TOP, SIMULATOR]]
    height = len(rows) * (ROW + GAP) + GAP
    parts = []
    for number, names in reversed(list(enumerate(rows, 1))):
        y = GAP + (len(rows) - number) * (ROW + GAP)
        parts.append(row(number, y, names, ABOVE if number == len(rows) else LIBRARY))
    return HEAD.format(w=WIDTH, h=height) + "".join(parts) + "</svg>\n"
