# SPDX-License-Identifier: Apache-2.0
"""docs/how-to/s3.md: its code is run against a scripted server, its tables and policies are looked
at; and what a key may do that may not list the bucket."""

import json
import re

import net_stage
import pytest
from example_tools import ROOT, need, python
from py_tools import need_penstock, write_pack

penstock = need_penstock()
need("torch", "numpy", "boto3")

FOLDER = ROOT / "docs" / "how-to"
PAGE = (FOLDER / "s3.md").read_text()


@pytest.fixture
def server(monkeypatch):
    with net_stage.S3Server(["packs", "closed,no-list"]) as server:
        with monkeypatch.context() as m:
            for name in ("http_proxy", "https_proxy", "all_proxy", "ALL_PROXY", "HTTPS_PROXY"):
                m.delenv(name, raising=False)
            for name, value in server.env.items():
                m.setenv(name, value)
            yield server


def blocks(kind):
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.M | re.S)


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


def test_policies_are_policies():
    """Valid, and of the actions that the text speaks of."""
    found = [json.loads(block) for block in blocks("json")]
    actions = [s["Action"] for policy in found for s in policy.get("Statement", [])]
    assert actions == ["s3:GetObject", ["s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload"],
                       "s3:ListBucket"]
    assert found[-1]["Rules"][0]["AbortIncompleteMultipartUpload"]


def test_errors_are_those_of_the_package():
    names = set(re.findall(r"^\| `(\w+Error)` \|", PAGE, re.M))
    assert names and all(issubclass(getattr(penstock, name), penstock.Error) for name in names)


def test_links_exist():
    for target in re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", PAGE):
        assert (FOLDER / target).exists(), target
    heads = {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-")
             for h in re.findall(r"^## (.+)$", PAGE, re.M)}
    assert set(re.findall(r"\]\(#([\w-]+)\)", PAGE)) <= heads


def test_reading_needs_no_list(server, tmp_path):
    write_pack(penstock, tmp_path / "a.pen", 20)
    net_stage.fill_bucket(server.boto3(), "closed", tmp_path)
    with penstock.open("s3://closed/a.pen") as pack:
        assert pack[7]["label"] == 1


def test_a_403_may_be_a_404(server):
    with pytest.raises(penstock.AccessError, match="there is no such object, or reading it is not"):
        penstock.open("s3://closed/nothing.pen")
    with pytest.raises(penstock.NotFoundError):
        penstock.open("s3://packs/nothing.pen")
