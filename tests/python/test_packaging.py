# SPDX-License-Identifier: Apache-2.0
"""packaging/ and .github/workflows agree with the rest of the tree. `./dev deb` builds the
packages."""

import re
import sys

import conftest

ROOT = conftest.ROOT
sys.path.insert(0, str(ROOT / "tools" / "wheel"))

import sources  # noqa: E402
import updates  # noqa: E402


def found(pattern, *path):
    return re.findall(pattern, ROOT.joinpath(*path).read_text(), re.M)


def test_one_version():
    (version,) = found(r"^  version: '(.*)',$", "meson.build")
    assert found(r'^#define PEN_VERSION "(.*)"', "include", "penstock", "version.h") == [version]
    assert found(r"^penstock \((.*)-\d+\) ", "packaging", "debian", "changelog")[0] == version
    assert found(r'^  version: "(.*)"$', "packaging", "conda", "recipe.yaml") == [version]


def test_dependencies_of_the_library():
    """Whoever installs libpenstock-dev gets what penstock.pc requires."""
    control = (ROOT / "packaging" / "debian" / "control").read_text()
    source, _, development, *_ = control.split("\n\n")
    libraries = set(re.findall(r"\blib\w+(?:-\w+)?-dev\b", source))
    assert len(libraries) == 8
    assert libraries == set(re.findall(r"^ (lib\S+-dev),$", development, re.M))


def test_workflows_use_verbs_of_dev():
    """A verb that is removed from ./dev is removed from the workflows, too."""
    usage = found(r"^  (\w+)[ \[]", "dev")
    for path in sorted((ROOT / ".github" / "workflows").glob("*.yml")):
        text = path.read_text()
        verbs = re.findall(r"\./dev (\w+)", text)
        verbs += [verb for line in re.findall(r"^ +verb: \[(.*)\]$", text, re.M)
                  for verb in line.split(", ")]
        assert set(verbs) <= set(usage), path.name


def test_a_library_that_debian_has_removed_needs_an_update(monkeypatch, capsys):
    def gone(library):
        raise sources.Unavailable(library.dsc)

    libraries = sources.libraries()
    monkeypatch.setattr(sources, "fetch", gone)
    monkeypatch.setattr(updates, "packages", lambda suite, wanted: [
        (package, "1.0-1", f"{package}.dsc", "ab") for package in wanted])
    assert updates.main() == 1
    printed = capsys.readouterr().out
    assert all(f'dsc = "{library.package}.dsc"' in printed for library in libraries)
