# SPDX-License-Identifier: Apache-2.0
"""Opens the finished pages in chromium, from the disk as a reader without a network would.

    browser.py HTML_FOLDER SCREENSHOT_FOLDER

Finds messages on the console, requests that leave the disk, pages that are wider than a phone, text
with too little contrast, and a search without results. `./dev site browser` runs this."""

import pathlib
import shutil
import sys

from playwright.sync_api import sync_playwright

SIZES = {"desktop": (1366, 900), "phone": (390, 844)}
SHOWN = ("index", "tutorials/first-pack", "reference/python-api", "reference/c-api/loader",
         "explanation/architecture")
THEMES = ("light", "dark")
TIMEOUT_MS = 30_000

TOO_WIDE = "() => document.documentElement.scrollWidth - window.innerWidth"
# Contrast of each text that is shown with the nearest background that is not transparent.
LOW_CONTRAST = """() => {
  const parse = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = c => { c /= 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
  const lum = c => 0.2126 * light(c[0]) + 0.7152 * light(c[1]) + 0.0722 * light(c[2]);
  const behind = node => {
    for (let at = node; at; at = at.parentElement) {
      const color = parse(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] > 0.9) return color;
    }
    return [255, 255, 255];
  };
  const found = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !node.checkVisibility({checkVisibilityCSS: true}) ||
        node.closest("svg") || node.closest("script, style, noscript, .visually-hidden"))
      continue;
    const style = getComputedStyle(node), front = parse(style.color), back = behind(node);
    const [low, high] = [lum(front), lum(back)].sort((a, b) => a - b);
    const ratio = (high + 0.05) / (low + 0.05);
    const large = parseFloat(style.fontSize) >= 24;
    if (ratio < (large ? 3 : 4.5))
      found.set(node.tagName + "." + node.className,
                ratio.toFixed(2) + " " + walker.currentNode.data.trim().slice(0, 40));
  }
  return [...found].map(([name, text]) => name + ": contrast " + text);
}"""


def watch(page, found, root):
    """Adds what goes wrong while pages load."""
    page.on("console", lambda message: found.append(f"{page.url}: console: {message.text}"))
    page.on("pageerror", lambda error: found.append(f"{page.url}: {error}"))
    page.on("requestfailed", lambda request: found.append(f"{page.url}: failed: {request.url}"))
    page.on("request", lambda request: request.url.startswith((root.as_uri(), "data:"))
            or found.append(f"{page.url}: requests {request.url}"))


def visit(page, path, found):
    page.goto(path.as_uri(), timeout=TIMEOUT_MS)
    wide = page.evaluate(TOO_WIDE)
    if wide > 0:
        found.append(f"{path}: {wide} pixels wider than {page.viewport_size['width']}")
    found += [f"{path}: {line}" for line in page.evaluate(LOW_CONTRAST)]


def search(page, root, found):
    page.goto((root / "search.html").as_uri() + "?q=shuffle", timeout=TIMEOUT_MS)
    page.wait_for_selector("#search-results li", timeout=TIMEOUT_MS)
    n_results = page.locator("#search-results li").count()
    if n_results < 5:
        found.append(f"search: expected at least 5 results for 'shuffle', found {n_results}")
    return n_results


def take(page, root, out, size, theme):
    for name in SHOWN:
        page.goto((root / f"{name}.html").as_uri(), timeout=TIMEOUT_MS)
        page.screenshot(path=out / f"{name.replace('/', '-')}-{size}-{theme}.png")


def main():
    root, out = (pathlib.Path(name).resolve() for name in sys.argv[1:])
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    found, paths = [], sorted(root.rglob("*.html"))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for size, (width, height) in SIZES.items():
            for theme in THEMES:
                page = browser.new_page(viewport={"width": width, "height": height},
                                        color_scheme=theme)
                watch(page, found, root)
                for path in paths:
                    visit(page, path, found)
                take(page, root, out, size, theme)
                n_results = search(page, root, found)
                page.screenshot(path=out / f"search-{size}-{theme}.png")
                page.close()
        browser.close()
    print(*found, sep="\n", end="\n" if found else "")
    print(f"{len(paths)} pages in {len(SIZES)} widths and {len(THEMES)} themes, "
          f"{n_results} results of a search, {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
