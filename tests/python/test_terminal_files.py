# SPDX-License-Identifier: Apache-2.0
"""`penstock help --json`, and the man pages and completions that tools/terminal makes from it."""

import json
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import time

import pytest
from cli_tools import PENSTOCK, ROOT, good

TOOLS = ROOT / "tools" / "terminal"
TABLE = json.loads(good("help", "--json").out)
COMMANDS = {command["name"]: command for command in TABLE["commands"]}
PAGES = ["penstock.1", *(f"penstock-{name}.1" for name in COMMANDS)]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A directory with all generated files."""
    top = tmp_path_factory.mktemp("terminal")
    table = top / "options.json"
    table.write_text(json.dumps(TABLE))
    make("man.py", table, *(top / page for page in PAGES))
    make("completions.py", table, top / "penstock.bash", top / "_penstock", top / "penstock.fish")
    return top


def make(script, *args):
    return subprocess.run([sys.executable, TOOLS / script, *args], timeout=60, check=True)


def program(name):
    path = shutil.which(name)
    return path or pytest.skip(f"{name} is not installed")


def names_in_help(text):
    return set(re.findall(r"^ +(?:-\w, )?--([a-z0-9-]+)", text, re.M))


# ---- the table ---------------------------------------------------------------------------------

@pytest.mark.parametrize("name", COMMANDS)
def test_table_has_the_options_of_the_help(name):
    text = good("help", name).out
    options = COMMANDS[name]["options"]
    remote = {o["name"] for o in options if o["group"].startswith("Remote packs")}
    assert {o["name"] for o in options} - remote == names_in_help(text.split("\nRemote packs")[0])
    assert all(f"--{option}" in text for option in remote)
    assert remote <= names_in_help(good("help", "s3").out)
    assert text.startswith(f"penstock {name} - {COMMANDS[name]['summary']}\n")


def test_table_lists_the_commands_of_the_help():
    text = good("--help").out
    assert list(COMMANDS) == re.findall(r"^  ([a-z]+) +", text.split("Examples:")[0], re.M)


def test_table_describes_an_option_completely():
    mode = next(o for o in COMMANDS["pack"]["options"] if o["name"] == "mode")
    assert mode["kind"] == "choice"
    assert mode["argument"] == "M"
    assert mode["choices"] == ["keep", "encode", "raw", "mix", "smart"]
    assert mode["default"] == "keep"
    assert mode["group"] == "Common options"
    out = COMMANDS["pack"]["options"][0]
    assert (out["name"], out["letter"], out["required"]) == ("out", "o", True)
    assert COMMANDS["finalise"]["alias"] == "finalize"


# ---- man pages ---------------------------------------------------------------------------------

def shown(page):
    done = subprocess.run([program("groff"), "-man", "-ww", "-Tascii", "-P-cbou", page],
                          capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("page", PAGES)
def test_man_page_formats_without_warnings(made, page):
    text = shown(made / page)
    name = page[:-2]
    assert re.search(rf"^NAME\n +{name} - \w", text, re.M)
    for part in ("SYNOPSIS", "DESCRIPTION", "EXAMPLES", "SEE ALSO"):
        assert re.search(f"^{part}$", text, re.M), part


@pytest.mark.parametrize("name", COMMANDS)
def test_man_page_has_every_option(made, name):
    text = shown(made / f"penstock-{name}.1")
    for option in COMMANDS[name]["options"]:
        letter = f"-{option['letter']}, " if "letter" in option else ""
        argument = f" {option['argument']}" if "argument" in option else ""
        assert re.search(rf"^ +{re.escape(letter)}--{option['name']}{re.escape(argument)}(?=\s)",
                         text, re.M), option["name"]


def test_man_page_breaks_no_names(made):
    assert "AWS_ENDPOINT_URL" in shown(made / "penstock-copy.1")


def test_man_page_shows_special_characters_as_they_are(made):
    text = re.sub(r"\s+", " ", shown(made / "penstock-info.1"))
    assert r"written as \xNN" in text
    assert "penstock pack 'web-{000..017}.tar' -o s3://bucket/web.pen --order source" in (
        re.sub(r"\s+", " ", shown(made / "penstock-pack.1")))


@pytest.mark.parametrize("page", PAGES)
def test_man_page_has_no_errors_for_mandoc(made, page):
    done = subprocess.run([program("mandoc"), "-Tlint", "-Werror", made / page],
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout


def test_pages_and_commands_must_agree(made):
    done = subprocess.run([sys.executable, TOOLS / "man.py", made / "options.json",
                           made / "penstock.1"], capture_output=True, text=True, timeout=60,
                          check=False)
    assert done.returncode != 0
    assert "penstock-pack.1" in done.stderr


# ---- bash --------------------------------------------------------------------------------------

def bash(made, *words):
    """What bash offers for the last of these words."""
    script = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _penstock; '
              'printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run([program("bash"), "-c", script, "bash", made / "penstock.bash",
                           "penstock", *words], capture_output=True, text=True, timeout=60,
                          check=True)
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_offers_commands(made):
    assert bash(made, "") == [*COMMANDS, "help", "--help", "--version"]
    assert bash(made, "p") == ["pack", "plan"]
    assert bash(made, "help", "s") == ["s3"]


@pytest.mark.parametrize("name", [*COMMANDS, "finalize"])
def test_bash_offers_options(made, name):
    own = COMMANDS["finalise" if name == "finalize" else name]["options"]
    assert set(bash(made, name, "--")) == {f"--{option['name']}" for option in own}


@pytest.mark.parametrize("words, expected", [
    (("pack", "--mode", ""), ["keep", "encode", "raw", "mix", "smart"]),
    (("pack", "--mode", "k"), ["keep"]),
    (("pack", "src", "--mode", "=", "e"), ["encode"]),
    (("pack", "src", "--mode", "="), ["keep", "encode", "raw", "mix", "smart"]),
    (("plan", "--on-bad", "s"), ["stop", "skip"]),
    (("pack", "--mode", "keep", "--ord"), ["--order"]),
    (("pack", "--seed", ""), []),
    (("info", "--decode"), []),
    (("info", ""), []),  # files, by bash's own default
    (("info", "--", "--j"), []),
])
def test_bash_offers_values(made, words, expected):
    assert bash(made, *words) == expected


def read_until(terminal, mark):
    output, deadline = "", time.monotonic() + 30
    while mark not in output:
        left = deadline - time.monotonic()
        assert left > 0 and select.select([terminal], [], [], left)[0], output
        output += os.read(terminal, 4096).decode()
    return output


def type_into(shell, setup, directory, keys):
    """What a function `penstock` gets when these keys are typed into an interactive shell."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(directory)
        os.execve(shell[0], shell, {"PATH": os.environ["PATH"], "HOME": str(directory), "PS1": "",
                                    "TERM": "dumb", "INPUTRC": "/dev/null"})
    # What is echoed differs from what is printed by its quotes.
    report = "penstock() { printf '<%s>' \"$@\"; echo '<'end'>'; }; echo '<'ready'>'"
    try:
        os.write(terminal, f"{setup}; {report}\r".encode())
        read_until(terminal, "<ready>")
        os.write(terminal, f"penstock {keys}\r".encode())
        printed = read_until(terminal, "<end>")
    finally:
        os.close(terminal)
        os.waitpid(child, 0)
    line = next(line for line in printed.splitlines() if "<end>" in line)
    return re.findall(r"<([^<>]*)>", line)[:-1]


def test_bash_completes_what_is_typed(made, tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "out.pen").mkdir()
    keys = "pac\tph\t --mod\tra\t --on-bad=sk\t -o ou\t"
    shell = [program("bash"), "--norc", "--noprofile", "-i"]
    assert type_into(shell, f"source {made}/penstock.bash", tmp_path, keys) == [
        "pack", "photos/", "--mode", "raw", "--on-bad=skip", "-o", "out.pen/"]


# ---- zsh, fish, installation -------------------------------------------------------------------

def test_zsh_can_parse_its_file(made):
    subprocess.run([program("zsh"), "-n", made / "_penstock"], timeout=60, check=True)


@pytest.mark.parametrize("keys, expected", [
    ("pac\tph\t --mod\tra\t --on-bad=sk\t -o ou\t",
     ["pack", "photos", "--mode=raw", "--on-bad=skip", "-o", "out.pen"]),
    ("help ver\t", ["help", "verify"]),
])
def test_zsh_completes_what_is_typed(made, tmp_path, keys, expected):
    (tmp_path / "photos").mkdir()
    (tmp_path / "out.pen").mkdir()
    setup = f"fpath=({made} $fpath); autoload -U compinit; compinit -u -D"
    assert type_into([program("zsh"), "-f", "-i"], setup, tmp_path, keys) == expected


def test_fish_completes(made):
    fish = program("fish")
    for typed, expected in (("penstock pa", "pack"), ("penstock pack --mode k", "keep"),
                            ("penstock info --samp", "--samples")):
        script = f"source {made}/penstock.fish; complete -C '{typed}'"
        done = subprocess.run([fish, "--no-config", "-c", script], capture_output=True, text=True,
                              timeout=60, check=True)
        assert [line.split("\t")[0] for line in done.stdout.splitlines()] == [expected]


def test_meson_installs_all_files():
    build = pathlib.Path(os.environ.get("PENSTOCK_BUILD", pathlib.Path(PENSTOCK).parent))
    listed = build / "meson-info" / "intro-installed.json"
    made_by_build = build / "tools" / "terminal"
    if not (made_by_build / "options.json").exists():
        pytest.skip("a build for another machine or with a sanitizer has no man pages")
    installed = {file: target.split("/share/")[-1]
                 for file, target in json.loads(listed.read_text()).items()}
    expected = {f"man/man1/{page}": page for page in PAGES}
    expected["bash-completion/completions/penstock"] = "penstock"
    expected["zsh/site-functions/_penstock"] = "_penstock"
    expected["fish/vendor_completions.d/penstock.fish"] = "penstock.fish"
    for target, file in expected.items():
        assert installed[str(made_by_build.resolve() / file)] == target
        assert (made_by_build / file).stat().st_size > 0
