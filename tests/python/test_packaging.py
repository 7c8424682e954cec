# SPDX-License-Identifier: Apache-2.0
"""packaging/ and .github/workflows agree with the rest of the tree. `./dev deb` builds the
packages."""

import re

import conftest

ROOT = conftest.ROOT


def found(pattern, *path):
    return re.findall(pattern, ROOT.joinpath(*path).read_text(), re.M)


def test_one_version():
    (version,) = found(r"^  version: '(.*)',$", "meson.build")
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
