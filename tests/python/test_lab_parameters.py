# SPDX-License-Identifier: Apache-2.0
"""Parameters of experiments: flags, TOML, the first line of a report, and names."""

import argparse
import os

import pytest
import tomllib
from py_tools import need_penstock

need_penstock()
from lab_fake import Parameters  # noqa: E402
from penstock.lab import LabError  # noqa: E402
from penstock.lab.experiment import parameters  # noqa: E402


def parsed(*words, config=None):
    parser = argparse.ArgumentParser()
    parameters.add_arguments(parser, Parameters)
    options = parser.parse_args(words)
    options.config = config
    return parameters.from_options(Parameters, "fake", options)


def test_flags():
    assert parsed() == Parameters()
    assert parsed("a.pen", "s3://b/c.pen", "--threads", "1,4", "--scale", "2", "--verify",
                  "--quality", "50", "--storage", "memory", "--rounds", "3") == Parameters(
        packs=(os.path.abspath("a.pen"), "s3://b/c.pen"), threads=(1, 4), scale=2.0, verify=True,
        quality=50, storage="memory", rounds=3)


def test_toml_and_flags(tmp_path):
    file = tmp_path / "x.toml"
    file.write_text('question = "fake"\nthreads = [3]\nquality = 20\nscale = 2\n'
                    'loaders = "a"\n', encoding="utf-8")
    assert parsed("--quality", "30", config=file) == Parameters(
        threads=(3,), quality=30, scale=2.0, loaders=("a",))


def test_round_trips(tmp_path):
    chosen = parsed('/p/a "b"\\c\n.pen', "--threads", "1,4", "--scale", "0.1", "--verify")
    table = parameters.to_dict(chosen)
    assert parameters.from_dict(Parameters, table) == chosen
    text = parameters.to_toml("fake", chosen)
    values = tomllib.loads(text)
    assert values.pop("question") == "fake"
    assert values == table


@pytest.mark.parametrize("text,message", [
    ('question = "load"', "has the question 'load', expected 'fake'"),
    ("threads = [1, 'x']", "threads: expected int, found 'x'"),
    ("quality = true", "quality: expected int, found True"),
    ("quality = 1.5", "quality: expected int, found 1.5"),
    ("verify = 1", "verify: expected bool, found 1"),
    ("storage = 'tape'", "storage: expected one of disk, memory, found 'tape'"),
    ("size = 1", "unknown parameter 'size'; expected one of loaders, packs"),
    ("rounds = 0", "rounds: expected at least 1, found 0"),
    ("a = ", "is no TOML"),
])
def test_wrong_files(tmp_path, text, message):
    file = tmp_path / "x.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(LabError, match=message):
        parsed(config=file)
    with pytest.raises(LabError, match="No such file"):
        parsed(config=tmp_path / "y.toml")


@pytest.mark.parametrize("words,name", [
    ((), "fake"),
    (("data/photos.pen", "--quality", "50", "--threads", "2"), "fake-photos-q50-t2"),
    (("--threads", "1,2,4", "--rounds", "9", "--verify"), "fake-t1+2+4-verify_on-r9"),
    (("s3://bucket/train.pen", "--scale", "0.5"), "fake-train-scale_0.5"),
    (("a b/ö.pen",), "fake-_"),
])
def test_names_encode_what_differs_from_the_defaults(words, name):
    assert parameters.name("fake", parsed(*words)) == name


def test_long_names_stay_different():
    many = [parameters.name("fake", parsed("--threads", ",".join(map(str, range(n)))))
            for n in (90, 91)]
    assert all(len(name) == parameters.LONGEST_NAME for name in many) and many[0] != many[1]


@pytest.mark.parametrize(("words", "says"), [
    (("--scale", "nan"), "scale: expected a finite number"),
    (("--scale", "inf"), "scale: expected a finite number"),
    (("--threads", ""), "threads: expected at least one value"),
])
def test_values_that_cannot_be_measured_are_refused(words, says):
    with pytest.raises(LabError, match=says):
        parsed(*words)


def test_simulated_disks_have_different_names():
    names = {parameters.name("fake", Parameters(loaders=(f"disk={n}MB/s",))) for n in (20, 50)}
    assert names == {"fake-loaders_disk_20MB_s", "fake-loaders_disk_50MB_s"}
