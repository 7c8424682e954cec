# SPDX-License-Identifier: Apache-2.0
"""Small changes of one line of C or Python that a test should notice."""

import io
import re
import tokenize

C_NOT_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)

# clang-format puts spaces around every binary operator, so none of these meets a pointer or "->".
C_SWAPS = {
    "relation": {
        " < ": " <= ",
        " <= ": " < ",
        " > ": " >= ",
        " >= ": " > ",
        " == ": " != ",
        " != ": " == ",
    },
    "arithmetic": {
        " + ": " - ",
        " - ": " + ",
        " * ": " / ",
        " / ": " * ",
        " % ": " / ",
        " += ": " -= ",
        " -= ": " += ",
        " << ": " >> ",
        " >> ": " << ",
        " & ": " | ",
        " | ": " & ",
        " |= ": " &= ",
    },
    "logic": {" && ": " || ", " || ": " && "},
    "literal": {"true": "false", "false": "true"},
    "status": {
        "PEN_E_INVALID": "PEN_E_CORRUPT",
        "PEN_E_CORRUPT": "PEN_E_INVALID",
        "PEN_E_IO": "PEN_E_INVALID",
        "PEN_E_NOT_FOUND": "PEN_E_IO",
        "PEN_END": "PEN_OK",
    },
}
PYTHON_SWAPS = {
    "relation": C_SWAPS["relation"]
    | {
        " is None": " is not None",
        " is not None": " is None",
        " in ": " not in ",
        " not in ": " in ",
    },
    "arithmetic": {
        " + ": " - ",
        " - ": " + ",
        " * ": " // ",
        " // ": " * ",
        " % ": " // ",
        " += ": " -= ",
    },
    "logic": {" and ": " or ", " or ": " and "},
    "literal": {"True": "False", "False": "True"},
}
NUMBER = re.compile(r"(?<![\w.])(\d+)(?=(?:u|U|l|L|ll|ul|ull|LL|UL|ULL)?\b)(?![\w]*[.x])")
C_CONDITION = re.compile(r"^(\s*(?:\} else )?(?:if|while) \()(.*)(\)(?: \{)?)$")
PYTHON_CONDITION = re.compile(r"^(\s*(?:if|elif|while) )(.*)(:)$")
C_DECLARATION = re.compile(
    r"^\s*(?:(?:const|static|struct|unsigned|volatile)\s+)*[A-Za-z_]\w*(?:\s+|\s*\*+\s*)"
    r"(?:const\s+)?\*?[A-Za-z_]\w*\s*(?:=|;|\[|,)"
)
C_STATEMENT = re.compile(
    r"^\s*(?!return\b|case\b|default\b|else\b|do\b|typedef\b)[A-Za-z_*(+-].*;$"
)
# What is never released shows only under the leak sanitizer: ./dev asan runs all unit tests.
RELEASE = re.compile(r"^\s*(?:\(void\))?(?:pthread_\w+_destroy|pen__free|\w+_(?:free|fini|wipe))\(")
PYTHON_STATEMENT = re.compile(
    r"^(\s+)(?!return\b|pass\b|import\b|from\b|def\b|class\b|raise\b|\"\"\"|global\b)"
    r"[A-Za-z_].*[\w)\]]$"
)


def blank(match):
    return re.sub(r"[^\n]", "\x00", match.group())


def code_lines_c(text):
    """The lines with comments, strings and preprocessor lines made unusable, all columns kept."""
    lines = C_NOT_CODE.sub(blank, text).split("\n")
    inside = False
    for i, line in enumerate(lines):
        if inside or line.lstrip().startswith("#"):
            inside = line.endswith("\\")
            lines[i] = "\x00" * len(line)
    return lines


def code_lines_python(text):
    lines = [list(line) for line in text.split("\n")]
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in (tokenize.STRING, tokenize.COMMENT):
            continue
        (row, column), (end_row, end_column) = token.start, token.end
        for at in range(row, end_row + 1):
            first = column if at == row else 0
            last = end_column if at == end_row else len(lines[at - 1])
            lines[at - 1][first:last] = "\x00" * (last - first)
    return ["".join(line) for line in lines]


def swaps(code, real, table):
    for kind, pairs in table.items():
        for old, new in pairs.items():
            edge = r"\b" if old[0].isalpha() else ""
            for m in re.finditer(edge + re.escape(old) + edge, code):
                yield kind, real[: m.start()] + new + real[m.end() :]


def constants(code, real):
    for m in NUMBER.finditer(code):
        value = int(m.group(1))
        yield "constant", real[: m.start()] + str(value + 1) + real[m.end(1) :]
        if value:
            yield "constant", real[: m.start()] + str(value - 1) + real[m.end(1) :]


def starts_statement(before):
    """Whether a line after this one starts a statement: not one that continues the line."""
    before = before.replace("\x00", " ").rstrip()
    return before == "" or before.endswith((";", "{", "}", ":", ")")) or before.endswith("else")


def opens_more(code):
    return code.count("(") != code.count(")")


def mutants_c(code, real, before):
    """(operator, new line) for one line; `code` and `before` have comments and strings blanked."""
    yield from swaps(code, real, C_SWAPS)
    yield from constants(code, real)
    condition = C_CONDITION.match(code)
    if condition and not opens_more(condition.group(2)):
        a, b = condition.span(2)
        yield "negate", f"{real[:a]}!({real[a:b]}){real[b:]}"
        yield "skip branch", f"{real[:a]}0 && ({real[a:b]}){real[b:]}"
    if not starts_statement(before) or opens_more(code):
        return
    indent = re.match(r"\s*", real).group()
    if re.match(r"\s*return r;$", code):
        yield "return", f"{indent}return 0;"
    elif (
        re.match(r"\s*return [^;]+;$", code) and before.rstrip().endswith(")") and "if (" in before
    ):
        yield "skip check", f"{indent};"
    elif re.match(r"\s*(goto \w+|break|continue);$", code):
        yield "remove jump", f"{indent};"
    elif RELEASE.match(code):
        return
    elif C_STATEMENT.match(code) and not C_DECLARATION.match(code):
        yield "remove statement", f"{indent};"


def mutants_python(code, real, before):
    yield from swaps(code, real, PYTHON_SWAPS)
    yield from constants(code, real)
    condition = PYTHON_CONDITION.match(code)
    if condition and not opens_more(code):
        a, b = condition.span(2)
        yield "negate", f"{real[:a]}not ({real[a:b]}){real[b:]}"
        yield "skip branch", f"{real[:a]}False and ({real[a:b]}){real[b:]}"
    if opens_more(code) or before.replace("\x00", " ").rstrip().endswith(
        ("(", ",", "[", "{", "\\")
    ):
        return
    statement = PYTHON_STATEMENT.match(code)
    if statement:
        yield "remove statement", f"{statement.group(1)}pass"
    m = re.match(r"(\s+)return (?!None).+$", code)
    if m:
        yield "return", f"{m.group(1)}return None"


def mutants_of(path, text):
    """{line number: [(operator, new line)]} of one file; line numbers start at 1."""
    python = path.endswith(".py")
    code = code_lines_python(text) if python else code_lines_c(text)
    real = text.split("\n")
    make = mutants_python if python else mutants_c
    found = {}
    before = ""
    for i, line in enumerate(code):
        if line.strip("\x00 "):
            options = [m for m in make(line, real[i], before) if m[1] != real[i]]
            if options:
                found[i + 1] = options
            before = line
    return found
