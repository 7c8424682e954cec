# SPDX-License-Identifier: Apache-2.0
"""The contrast of the theme's colors, light and dark: WCAG 2 level AA asks for 4.5 to 1.

Colors are variables of the style sheets. Those of code are rules for each kind of token."""

import re

LEAST = 4.5
RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
VARIABLE = re.compile(r"(--[\w-]+)\s*:\s*([^;]+)")
USE = re.compile(r"var\(\s*(--[\w-]+)\s*(?:,\s*([^()]*))?\)")
THEMES = ("light", "dark")
# Text and what is behind it.
PAIRS = (
    ("--color-foreground-primary", "--color-background-primary"),
    ("--color-foreground-secondary", "--color-background-primary"),
    ("--color-foreground-muted", "--color-background-primary"),
    ("--color-brand-content", "--color-background-primary"),
    ("--color-brand-primary", "--color-background-primary"),
    ("--color-link", "--color-background-primary"),
    ("--color-link--visited", "--color-background-primary"),
    ("--color-code-foreground", "--color-code-background"),
    ("--color-highlighted-text", "--color-highlighted-background"),
    ("--color-foreground-primary", "--color-inline-code-background"),
    ("--color-link", "--color-inline-code-background"),
    ("--color-sidebar-link-text", "--color-sidebar-background"),
    ("--color-sidebar-link-text--top-level", "--color-sidebar-background"),
    ("--color-sidebar-caption-text", "--color-sidebar-background"),
    ("--color-sidebar-brand-text", "--color-sidebar-background"),
    ("--color-sidebar-search-text", "--color-sidebar-search-background"),
    ("--color-toc-item-text", "--color-toc-background"),
    ("--color-toc-item-text--active", "--color-toc-background"),
    ("--color-toc-title-text", "--color-toc-background"),
    ("--color-header-text", "--color-header-background"),
    ("--color-api-name", "--color-background-primary"),
    ("--color-api-pre-name", "--color-background-primary"),
    ("--color-api-paren", "--color-background-primary"),
    ("--color-api-keyword", "--color-background-primary"),
    ("--color-api-added", "--color-background-primary"),
)


def channels(text):
    """Red, green and blue from 0 to 1 of "#abc", "#aabbcc" or "#aabbccff"; None for others."""
    text = {"white": "#fff", "black": "#000"}.get(text, text)
    match = re.fullmatch(r"#([0-9a-f]{3,8})", text.strip().lower())
    if not match:
        return None
    digits = match[1]
    if len(digits) in (3, 4):
        digits = "".join(digit * 2 for digit in digits)
    return [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]


def luminance(color):
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def ratio(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def themes_of(selector):
    """The themes that a rule is for."""
    if "data-theme" not in selector:
        return THEMES
    if "not([data-theme=light])" in selector.replace('"', ""):
        return ("dark",)
    return tuple(theme for theme in THEMES if re.search(rf'data-theme="?{theme}', selector))


def variables(texts):
    """{theme: {variable: value}} of style sheets; a later one wins."""
    found = {theme: {} for theme in THEMES}
    for text in texts:
        for selector, body in RULE.findall(text):
            for theme in themes_of(selector):
                found[theme].update((name, value.strip()) for name, value in VARIABLE.findall(body))
    return found


def value(name, known, depth=0):
    """The value of a variable, with the variables that it uses filled in."""
    text = known.get(name, "")
    while depth < 10 and (match := USE.search(text)):
        inner = value(match[1], known, depth + 1) or (match[2] or "").strip()
        text = text[: match.start()] + inner + text[match.end() :]
        depth += 1
    return text.strip()


def pair_findings(theme, known):
    for front, back in PAIRS:
        colors = [channels(value(name, known)) for name in (front, back)]
        if None in colors:
            values = [value(name, known) for name in (front, back)]
            yield f"{theme}: {front} on {back}: expected two colors, found {values}"
        elif ratio(*colors) < LEAST:
            yield f"{theme}: {front} on {back}: contrast {ratio(*colors):.2f}, at least {LEAST}"


def code_findings(text):
    """Of the rules for tokens of code."""
    behind, fronts = {}, []
    for selector, body in RULE.findall(re.sub(r"/\*.*?\*/", "", text, flags=re.S)):
        theme = "dark" if re.search(r"data-theme=\"?(dark|light\"?\])", selector) else "light"
        selector = selector.strip()
        back = re.search(r"background(?:-color)?:\s*(#\w+)", body)
        front = re.search(r"(?<!-)color:\s*(#\w+)", body)
        if back and selector.endswith(".highlight"):
            behind[theme] = channels(back[1])
        if front:
            fronts.append((theme, selector, channels(front[1]), back and channels(back[1])))
    for theme, selector, front, back in fronts:
        if selector.endswith((".linenos", ".special")):
            continue  # line numbers are not shown
        contrast = ratio(front, back or behind[theme])
        if contrast < LEAST:
            yield f"{theme}: code: {selector}: contrast {contrast:.2f}, at least {LEAST}"


def findings(root):
    """All findings for the site in the folder `root`."""
    sheets = [root / "_static" / "styles" / "furo.css", root / "_static" / "site.css"]
    page = (root / "index.html").read_text(encoding="utf-8")
    texts = [sheet.read_text(encoding="utf-8") for sheet in sheets]
    texts += re.findall(r"<style>(.*?)</style>", page, re.S)
    for theme, known in variables(texts).items():
        yield from pair_findings(theme, known)
    yield from code_findings((root / "_static" / "pygments.css").read_text(encoding="utf-8"))
