# SPDX-License-Identifier: Apache-2.0
"""docs/how-to/s3.md and docs/reference/object-stores.md: their code runs against a scripted server,
as that of docs/how-to/size-a-node.md does. Their tables and policies are checked; and what works
without permission to list the bucket."""

import json
import re

import net_stage
import pytest
from example_tools import ROOT, need, python
from py_tools import need_penstock, write_pack

penstock = need_penstock()
need("torch", "numpy", "boto3")

PAGE = (ROOT / "docs" / "how-to" / "s3.md").read_text()
SIZING = (ROOT / "docs" / "how-to" / "size-a-node.md").read_text()
REFERENCE = (ROOT / "docs" / "reference" / "object-stores.md").read_text()


@pytest.fixture
def server(s3, no_other_settings, monkeypatch):
    server = s3(["packs", "closed,no-list"])
    for name, value in server.env.items():
        monkeypatch.setenv(name, value)
    return server


def blocks(kind, page=PAGE):
    return re.findall(rf"^```{kind}\n(.*?)^```$", page, re.M | re.S)


def test_first_lines_run(server, tmp_path):
    python(ROOT / "examples" / "make_photos.py", "photos", "64", cwd=tmp_path)
    environ = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    for line in blocks("sh")[0].splitlines():
        python("-m", *line.partition("#")[0].split(), cwd=tmp_path, **environ)
    (block,) = blocks("python")
    scope = {}
    exec(compile(block, "s3.md", "exec"), scope)
    scope["loader"].close()
    assert scope["image"].shape[1:] == (3, 224, 224)
    assert len([line for line in block.splitlines() if line.strip()]) == 5
    counts = server.counts()
    assert not [kind for kind in counts["kinds"] if kind.startswith("List")]
    (block,) = blocks("python", SIZING)
    exec(compile(block, "size-a-node.md", "exec"), scope)
    with scope["loader"] as loader:
        assert next(iter(loader)).image.shape == (16, 3, 224, 224)


def test_code_of_the_reference_runs(server, tmp_path, monkeypatch, capsys):
    write_pack(penstock, tmp_path / "photos.pen", 20)
    net_stage.fill_bucket(server.boto3(), "packs", tmp_path)
    (tmp_path / "config").write_text(
        "[default]\naws_access_key_id = stage-key\naws_secret_access_key = stage-secret\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    (block,) = blocks("python", REFERENCE)
    exec(compile(block, "object-stores.md", "exec"), {})
    assert int(capsys.readouterr().out) > 0


def test_policies_are_policies():
    """Valid JSON, with the actions that the text names."""
    found = [json.loads(block) for block in blocks("json")]
    actions = [s["Action"] for policy in found for s in policy.get("Statement", [])]
    assert actions == ["s3:GetObject", ["s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload"],
                       "s3:ListBucket"]
    assert found[-1]["Rules"][0]["AbortIncompleteMultipartUpload"]


def test_errors_are_those_of_the_package():
    names = set(re.findall(r"^\| `(\w+Error)`[ ,]", PAGE + REFERENCE, re.M))
    assert len(names) > 5
    assert all(issubclass(getattr(penstock, name), penstock.Error) for name in names)


def column(head, number):
    """The names in backquotes in one column of the table with this first line."""
    table = REFERENCE[REFERENCE.index(head) :].split("\n\n")[0]
    cells = [line.split("|")[number] for line in table.splitlines()[2:]]
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def test_settings_are_those_of_the_package():
    options = set(penstock.StorageOptions.__annotations__)
    credentials = {"key_id", "secret", "token", "credentials"}
    assert column("| setting | command line |", 3) == options - credentials


def test_statistics_are_those_of_the_package(tmp_path):
    write_pack(penstock, tmp_path / "a.pen", 20)
    with penstock.open(tmp_path / "a.pen") as pack:
        assert column("| counter | meaning |", 1) == set(pack.remote_stats())


def test_reading_needs_no_list(server, tmp_path):
    write_pack(penstock, tmp_path / "a.pen", 20)
    net_stage.fill_bucket(server.boto3(), "closed", tmp_path)
    with penstock.open("s3://closed/a.pen") as pack:
        assert pack[7]["label"] == 1


def test_a_403_may_be_a_404(server):
    with pytest.raises(penstock.AccessError, match="the object does not exist or reading "):
        penstock.open("s3://closed/nothing.pen")
    with pytest.raises(penstock.NotFoundError):
        penstock.open("s3://packs/nothing.pen")
