# SPDX-License-Identifier: Apache-2.0
"""Checks of the finished pages: links, anchors, texts for pictures, nothing loaded from elsewhere.

There is no network here, so addresses of other sites are checked for their form alone."""

import html.parser
import re
import urllib.parse

LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src",
          "audio": "src", "object": "data", "embed": "src"}
LOADING_LINKS = {"stylesheet", "icon", "preload", "prefetch", "preconnect", "dns-prefetch",
                 "modulepreload", "manifest"}
CSS_ADDRESS = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")
HOST = re.compile(r"(localhost|[a-z0-9-]+(\.[a-z0-9-]+)+)(:\d+)?", re.I)


class Page(html.parser.HTMLParser):
    """What the checks need of a page."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.loaded, self.found = set(), [], [], []
        self.language = self.has_viewport = False
        self.headings = 0
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.ids.update(values[name] for name in ("id", "name") if values.get(name))
        self.headings += tag == "h1"
        if tag == "html":
            self.language = bool(values.get("lang"))
        if tag == "meta" and values.get("name") == "viewport":
            self.has_viewport = True
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        if values.get(LOADED.get(tag, "")):
            self.loaded.append(values[LOADED[tag]])
        if tag == "link" and LOADING_LINKS & set((values.get("rel") or "").split()):
            self.loaded.append(values.get("href") or "")
        self.check_text(tag, values)

    def check_text(self, tag, values):
        hidden = values.get("aria-hidden") == "true"
        if tag == "img" and not hidden and not (values.get("alt") or "").strip():
            self.found.append(f"<img src={values.get('src')}> has no text (alt)")
        if tag == "svg" and values.get("role") == "img" and not values.get("aria-label"):
            self.found.append("<svg role=img> has no text (aria-label)")


def is_external(address):
    return re.match(r"([a-z][a-z0-9+.-]*:)?//", address, re.I) is not None


def form_finding(address):
    """What is wrong with the address of another site, or None."""
    try:
        parts = urllib.parse.urlsplit(address)
    except ValueError as error:
        return f"{address}: {error}"
    if parts.scheme not in ("http", "https"):
        return f"{address}: expected http or https"
    if not HOST.fullmatch(parts.netloc) or re.search(r"\s", address):
        return f"{address}: not an address"
    return None


def link_finding(root, name, address, pages):
    """What is wrong with a link of the page `name`, or None."""
    if address.startswith(("mailto:", "data:")):
        return None
    if is_external(address) or re.match(r"[a-z][a-z0-9+.-]*:", address, re.I):
        return form_finding(address)
    path, _, anchor = urllib.parse.unquote(address).partition("#")
    target = (root / name).parent / path.split("?")[0] if path else root / name
    if not target.resolve().is_file():
        return f"{address}: no such file"
    other = pages.get(str(target.resolve().relative_to(root)))
    if anchor and other is not None and anchor not in other.ids:
        return f"{address}: no such anchor"
    return None


def page_findings(root, name, page, pages):
    yield from page.found
    if not page.language:
        yield "expected <html lang=...>"
    if not page.has_viewport:
        yield "expected <meta name=viewport>, for phones"
    if page.headings != 1 and name != "search.html":  # whose heading a script writes
        yield f"expected one <h1>, found {page.headings}"
    for address in page.loaded:
        if is_external(address):
            yield f"loads {address}"
        elif (finding := link_finding(root, name, address, {})) is not None:
            yield finding
    for address in page.links:
        if (finding := link_finding(root, name, address, pages)) is not None:
            yield finding


def style_findings(root):
    for path in sorted(root.rglob("*.css")):
        for match in CSS_ADDRESS.finditer(path.read_text(encoding="utf-8")):
            address = match[1] or match[2]
            if is_external(address):
                yield f"{path.relative_to(root)}: loads {address}"


def read(root):
    """{name: Page} of all pages."""
    return {str(path.relative_to(root)): Page(path.read_text(encoding="utf-8"))
            for path in sorted(root.rglob("*.html"))}


def findings(root):
    root = root.resolve()
    pages = read(root)
    if not pages:
        yield f"{root}: expected pages, found none"
    for name, page in pages.items():
        for finding in dict.fromkeys(page_findings(root, name, page, pages)):
            yield f"{name}: {finding}"
    yield from style_findings(root)
