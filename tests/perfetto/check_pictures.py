# SPDX-License-Identifier: Apache-2.0
"""Opens pictures of traces in chromium: no two texts overlap, none is cut off, and PNG and SVG are
alike.

    check_pictures.py FOLDER

FOLDER has NAME.svg and NAME.png of some traces; NAME.html becomes a page with NAME.svg, and
NAME.screen.png what a browser shows of it.
"""

import pathlib
import shutil
import sys

from playwright.sync_api import sync_playwright

# Of each text of the picture: itself, and its place on the screen.
TEXTS = """() => Array.from(document.querySelectorAll('svg text')).map(e => {
  const r = e.getBoundingClientRect(), p = e.ownerSVGElement.getBoundingClientRect();
  return {text: e.textContent, left: r.left, right: r.right, top: r.top, bottom: r.bottom,
          inside: r.left >= p.left && r.right <= p.right && r.bottom <= p.bottom};
})"""
# The part of the pixels that differ by more than a quarter of full scale: letters of other fonts.
DIFFERENCE = """async names => {
  const read = async name => {
    const image = new Image();
    image.src = name;
    await image.decode();
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [1180, 1180 * image.height / image.width | 0];
    const context = canvas.getContext('2d');
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    return context.getImageData(0, 0, canvas.width, canvas.height);
  };
  const [a, b] = [await read(names[0]), await read(names[1])];
  if (Math.abs(a.height - b.height) > 1) return 1;
  let n = 0;
  for (let i = 0; i < Math.min(a.data.length, b.data.length); i += 4)
    n += Math.max(...[0, 1, 2].map(k => Math.abs(a.data[i + k] - b.data[i + k]))) > 64;
  return n / (a.width * a.height);
}"""
MOST_DIFFERENT = 0.03


def overlapping(texts):
    for i, a in enumerate(texts):
        for b in texts[i + 1 :]:
            if (a["left"] < b["right"] and b["left"] < a["right"]
                    and a["top"] + 2 < b["bottom"] and b["top"] + 2 < a["bottom"]):
                yield a["text"], b["text"]


def check(browser, picture):
    """What is wrong with the pictures of a trace."""
    name = picture.stem
    page_file = picture.with_suffix(".html")
    page_file.write_text(picture.read_text(encoding="utf-8"), encoding="utf-8")
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(page_file.resolve().as_uri())
    texts = page.evaluate(TEXTS)
    page.screenshot(path=picture.with_suffix(".screen.png"), full_page=True)
    yield from (f"{name}: texts overlap: {pair}" for pair in overlapping(texts))
    yield from (f"{name}: cut off: {t['text']!r}" for t in texts if not t["inside"])
    if len(texts) < 10:
        yield f"{name}: expected texts, found {len(texts)}"
    different = page.evaluate(DIFFERENCE, [f"{name}.png", f"{name}.svg"])
    print(f"{name}: {len(texts)} texts; PNG and SVG differ in {different:.1%} of the pixels")
    if different > MOST_DIFFERENT:
        yield f"{name}: PNG and SVG differ"
    page.close()


def main():
    pictures = sorted(pathlib.Path(sys.argv[1]).glob("*.svg"))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox", "--allow-file-access-from-files"])
        wrong = [line for picture in pictures for line in check(browser, picture)]
        browser.close()
    print("\n".join(wrong) or f"the pictures of {len(pictures)} traces are legible")
    return 1 if wrong or not pictures else 0


if __name__ == "__main__":
    sys.exit(main())
