# SPDX-License-Identifier: Apache-2.0
"""penstock index over LeRobot datasets in an object store: the same pack as over a folder, each
object is read once, and objects that change are noticed."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import net_stage
import pytest
from bucket_tools import Bucket, filled, serve, tree
from cli_tools import ROOT, good
from packet_tools import PLUGIN, need_plugin
from py_tools import jpeg, need_penstock
from remote_tools import options

need_plugin()
os.environ.setdefault("PENSTOCK_VIDEO_LIBRARY", str(PLUGIN))
penstock = need_penstock()
np = pytest.importorskip("numpy")
pytest.importorskip("pyarrow")

from lerobot_tools import Dataset  # noqa: E402
from penstock import _core, lerobot  # noqa: E402

LENGTHS = (25, 14, 40, 9, 30)
TOP, WRIST = "observation.images.top", "observation.images.wrist"
CLIP = "decode | clip 2 3 at=-3 | center_crop 40 | tensor u8"
PIPELINE = {TOP: CLIP, WRIST: CLIP, "action": "ragged 4 at=0", "timestamp": "ragged 1 at=0",
            "episode_index": "tensor"}
FILE = f"videos/{TOP}/chunk-000/file-001.mp4"


@pytest.fixture(scope="module")
def server():
    with serve() as server:
        yield server


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return Dataset(tmp_path_factory.mktemp("lerobot") / "robot", LENGTHS)


@pytest.fixture(scope="module")
def local(dataset):
    path = dataset.root.parent / "robot.pen"
    lerobot.index(dataset.root, path, block_samples=2)
    return path


@pytest.fixture
def bucket(server, tmp_path, dataset):
    return filled(server, tmp_path / "home", dataset.root, "robot")


def index(bucket, out, **settings):
    return lerobot.index(bucket.at("robot"), out, storage_options=options(bucket.server),
                         **{"block_samples": 2, **settings})


def opened(bucket, path, root="robot"):
    return penstock.open(path, roots=[bucket.at(root)], storage_options=options(bucket.server))


def epoch(pack, **settings):
    """All batches of an epoch of frames."""
    with penstock.Loader(pack, 16, **{"order": "random", **settings}, seed=3, frames="length",
                         pipeline=PIPELINE, output="numpy", threads=2) as loader:
        return [[np.array(value) for value in batch] for batch in loader]


def same(ours, theirs):
    assert len(ours) == len(theirs) > 2
    for a, b in zip(ours, theirs):
        assert all(np.array_equal(x, y) for x, y in zip(a, b))


def command(bucket, *words):
    return subprocess.Popen([sys.executable, "-m", "penstock", *map(str, words)],
                            env={**os.environ, **bucket.env}, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def finished(process):
    out, err = process.communicate(timeout=90)
    return process.returncode, out, err


def answered(bucket, process, requests):
    """Waits until the server, which is silent after so many requests, has got another one."""
    deadline = time.monotonic() + 60
    while bucket.server.counts()["total"] <= requests:
        assert time.monotonic() < deadline and process.poll() is None, process.communicate()
        time.sleep(0.02)


# ---- the same samples --------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["random", "shuffle", "sequential"])
def test_an_epoch_equals_that_of_the_folder(bucket, local, tmp_path, order):
    seen = []
    done = index(bucket, tmp_path / "r.pen", progress=seen.append)
    assert done == (len(LENGTHS), sum(LENGTHS), (), len(LENGTHS)) == seen[-1]
    assert [p.episodes for p in seen] == [1, 2, 3, 4, 5]
    assert not (tmp_path / "r.pen" / ".work").exists()
    there, here = opened(bucket, tmp_path / "r.pen"), penstock.open(local)
    assert there.schema == here.schema
    assert [there.key(i) for i in range(5)] == [here.key(i) for i in range(5)]
    same(epoch(there, order=order), epoch(here, order=order))


def test_a_pack_in_the_bucket(bucket, local, tmp_path, monkeypatch):
    """The same; objects below the prefix that holds the pack need no root."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    out = bucket.at("robot.pen")
    index(bucket, out)
    index(bucket, bucket.at("second.pen"), work=tmp_path / "work")
    index(bucket, tmp_path / "r.pen")
    assert not list(tmp_path.rglob("video-*")) and not list(tmp_path.rglob(".work"))
    listed = bucket.client.list_objects_v2(Bucket=bucket.name, Prefix="robot.pen/")["Contents"]
    bodies = {o["Key"].split(".pen/")[1]: bucket.client.get_object(
        Bucket=bucket.name, Key=o["Key"])["Body"].read() for o in listed}
    assert bodies == tree(tmp_path / "r.pen")
    with penstock.open(out, storage_options=options(bucket.server)) as pack:
        same(epoch(pack), epoch(penstock.open(local)))
    assert bucket.good("verify", out).out.startswith("ok: ")


def test_objects_are_read_once(bucket, dataset, tmp_path):
    index(bucket, tmp_path / "r.pen", block_samples=None)
    keys = bucket.server.counts()["keys"]
    files = {f"{bucket.name}/robot/{p.relative_to(dataset.root)}"
             for p in dataset.root.rglob("*") if p.is_file()}
    assert {key: dict(kinds) for key, kinds in keys.items() if key in files} == {
        key: {"GetObject": 1} for key in files}
    assert bucket.server.counts()["kinds"] == {"GetObject": len(files), "ListObjectsV2": 2}


def test_a_cache_has_all_objects_after_an_epoch(bucket, local, tmp_path):
    index(bucket, tmp_path / "r.pen")
    expected = epoch(penstock.open(local))
    for requests in (True, False):
        bucket.server.control(reset=True)
        with penstock.open(tmp_path / "r.pen", roots=[bucket.at("robot")],
                           cache=tmp_path / "cache",
                           storage_options=options(bucket.server)) as pack:
            same(epoch(pack), expected)
        assert (bucket.server.counts()["total"] > 0) == requests, bucket.server.counts()


def test_a_clip_is_one_request(bucket, tmp_path):
    index(bucket, tmp_path / "r.pen")
    pack = opened(bucket, tmp_path / "r.pen")
    bucket.server.control(reset=True)
    with penstock.Loader(pack, 1, pipeline={TOP: CLIP.replace(" at=-3", "")}, subset=[2],
                         output="numpy", order="sequential") as loader:
        assert next(iter(loader))[0].any()
    counts = bucket.server.counts()
    assert counts["keys"] == {f"{bucket.name}/robot/{FILE}": {"GetObject": 1}}


VALUES = ("action", "timestamp", "observation.state")


def values(bucket, names):
    """What the fields of the frames of episode 2 become, and the requests for that."""
    with penstock.open(bucket.at("r.pen"), storage_options=options(bucket.server)) as pack:
        bucket.server.control(reset=True)
        with penstock.Loader(pack, 8, pipeline=dict.fromkeys(names, "ragged 1 at=0"), subset=[2],
                             frames="length", output="numpy", order="sequential") as loader:
            rows = zip(*([np.array(value) for value in batch] for batch in loader))
            found = {name: np.concatenate(row) for name, row in zip(loader.fields, rows)}
    return found, bucket.server.counts()["total"]


def test_values_of_a_sample_are_one_request(bucket, tmp_path):
    index(bucket, bucket.at("r.pen"), work=tmp_path / "work")
    together, requests = values(bucket, VALUES)
    for name in VALUES:
        alone, as_many = values(bucket, (name,))
        assert np.array_equal(together[name], alone[name])
        assert requests == as_many


def test_a_damaged_value_is_named(bucket, tmp_path):
    index(bucket, bucket.at("r.pen"), work=tmp_path / "work")
    stored = penstock.open(bucket.at("r.pen"), storage_options=options(bucket.server))
    wrong = stored[2]["action"].tobytes()
    shard, = (o["Key"] for o in bucket.client.list_objects_v2(
        Bucket=bucket.name, Prefix="r.pen/")["Contents"] if o["Key"].endswith(".shard"))
    body = bucket.client.get_object(Bucket=bucket.name, Key=shard)["Body"].read()
    assert body.count(wrong) == 1
    bucket.client.put_object(Bucket=bucket.name, Key=shard,
                             Body=body.replace(wrong, bytes([wrong[0] ^ 1]) + wrong[1:]))
    assert values(bucket, VALUES[1:])
    with pytest.raises(penstock.CorruptError, match="action"):
        values(bucket, VALUES)


def test_failing_requests_change_nothing(bucket, tmp_path):
    index(bucket, tmp_path / "a.pen")
    bucket.server.control(chaos="error=0.1,throttle=0.05,cut=0.1,reset=0.05", seed=4)
    index(bucket, tmp_path / "b.pen")
    assert tree(tmp_path / "a.pen") == tree(tmp_path / "b.pen")


@pytest.mark.slow
def test_ceph(dataset, local, tmp_path):
    bucket = Bucket(net_stage.need_ceph(), tmp_path / "home")
    bucket.fill(dataset.root, "robot")
    for out in (tmp_path / "r.pen", bucket.at("robot.pen")):
        index(bucket, out)
        same(epoch(opened(bucket, out)), epoch(penstock.open(local)))


# ---- the command -------------------------------------------------------------------------------


def test_command(bucket, local, tmp_path):
    out = tmp_path / "r.pen"
    code, text, err = finished(command(
        bucket, "index", bucket.at("robot/"), "-o", out, "--block-samples", 2, "--json",
        "--endpoint", bucket.server.url))
    assert code == 0 and json.loads(text)["samples"] == len(LENGTHS), err
    assert err == f"try: penstock verify {out} --root {bucket.at('robot/')}\n"
    assert bucket.good(*err.split()[2:]).out.startswith("ok: ")
    same(epoch(opened(bucket, out)), epoch(penstock.open(local)))


def test_public_datasets(bucket, dataset, tmp_path):
    """No request is signed: the keys are wrong."""
    for path in dataset.root.rglob("*"):
        if path.is_file():
            bucket.client.put_object(Bucket="open", Body=path.read_bytes(),
                                     Key=f"robot/{path.relative_to(dataset.root)}")
    words = ("index", "s3://open/robot", "-o", tmp_path / "r.pen", "--endpoint", bucket.server.url)
    bucket.env["AWS_ACCESS_KEY_ID"] = "wrong"
    code, _, err = finished(command(bucket, *words))
    assert code == 1 and not (tmp_path / "r.pen").exists()
    code, text, err = finished(command(bucket, *words, "--no-sign", "--json"))
    assert code == 0 and json.loads(text)["samples"] == len(LENGTHS), err


def test_hidden_objects_are_no_metadata(bucket, local, tmp_path):
    bucket.put("robot/meta/episodes/chunk-000/._file-000.parquet", b"of another system")
    assert index(bucket, tmp_path / "r.pen").episodes == len(LENGTHS)


def test_other_prefixes_are_no_datasets(bucket, tmp_path):
    """The program in C indexes them."""
    bucket.put("photos/cat/a.jpg", jpeg(1))
    code, _, err = finished(command(bucket, "index", bucket.at("photos"), "-o", tmp_path / "p.pen"))
    assert code == 0 and "penstock verify" in err
    code, _, err = finished(command(bucket, "index", bucket.at("none"), "-o", tmp_path / "q.pen"))
    assert code == 1 and bucket.at("none") in err
    code, _, err = finished(command(bucket, "index", "-o"))
    assert code == 2
    code, _, err = finished(command(bucket, "index", "s3://b/\udcff", "-o", tmp_path / "q.pen"))
    assert code == 1 and "Traceback" not in err
    code, _, err = finished(command(bucket, "index", bucket.at("robot"), "-o", tmp_path / "q.pen",
                                    "--ca", tmp_path / "none.pem", "--endpoint",
                                    "https://127.0.0.1:1"))
    assert code == 1 and "none.pem" in err and "Traceback" not in err


def test_how_to_page(server, dataset, tmp_path, monkeypatch):
    """Its commands and its code that need a bucket."""
    bucket = filled(server, tmp_path / "home", dataset.root, "robot")
    bucket.name = "data"
    bucket.client.create_bucket(Bucket="data")
    bucket.fill(dataset.root, "robot")
    for name, value in bucket.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/how-to/lerobot.md").read_text()
    words = [line.split() for line in re.findall(r"^penstock ([^#\n]*s3://[^#\n]*)", page, re.M)]
    assert [word[0] for word in words] == ["index", "index", "verify"]
    for each in words:
        code, _, err = finished(command(bucket, *each))
        assert code == 0, err
    names = {"penstock": penstock, "pipeline": PIPELINE}
    for code in re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S):
        if "s3://" in code:
            exec(compile(code, "lerobot.md", "exec"), names)
    assert next(iter(names["loader"]))
    assert epoch(names["pack"])
    names["loader"].close()


BEFORE_VIDEOS = 6  # requests of the command: info.json twice, a list, tasks, episodes, numbers


def test_a_run_that_is_killed_can_be_repeated(bucket, local, tmp_path):
    out = tmp_path / "r.pen"
    words = ("index", bucket.at("robot"), "-o", out, "--block-samples", 2)
    bucket.server.control(mute=BEFORE_VIDEOS + 2, reset=True)
    process = command(bucket, *words)
    answered(bucket, process, BEFORE_VIDEOS + 2)
    assert list((out / ".work").glob("video-*"))
    process.kill()
    finished(process)
    bucket.server.control(mute=False)
    assert finished(command(bucket, *words))[0] == 0
    assert not (out / ".work").exists()
    same(epoch(opened(bucket, out)), epoch(penstock.open(local)))


def test_gc_removes_what_a_killed_run_has_left(bucket, tmp_path):
    out = tmp_path / "r.pen"
    bucket.server.control(mute=BEFORE_VIDEOS + 1, reset=True)
    process = command(bucket, "index", bucket.at("robot"), "-o", out, "--block-samples", 2)
    answered(bucket, process, BEFORE_VIDEOS + 1)
    process.kill()
    finished(process)
    assert (out / ".work" / "video-0").exists()
    bucket.server.control(mute=False)
    good("gc", out)
    assert not (out / ".work").exists()


def test_ctrl_c_ends_a_wait_for_a_video(bucket, tmp_path):
    bucket.put(f"robot/videos/{TOP}/chunk-000/file-000.mp4", bytes(9 << 20))
    bucket.server.control(mute=BEFORE_VIDEOS + 1, reset=True)
    process = command(bucket, "index", bucket.at("robot"), "-o", tmp_path / "r.pen",
                      "--block-samples", 2)
    answered(bucket, process, BEFORE_VIDEOS + 1)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    code, _, err = finished(process)
    bucket.server.control(mute=False)
    assert code == 130 and "interrupted; run the command again" in err
    assert time.monotonic() - began < 20
    assert not tree(tmp_path / "r.pen")


# ---- what is wrong -----------------------------------------------------------------------------


def test_a_video_that_is_replaced_while_it_is_read(bucket, tmp_path):
    """After the first response, which has the ETag, the object becomes another one."""
    key = f"robot/videos/{TOP}/chunk-000/file-000.mp4"
    bucket.put(key, bytes(9 << 20))
    bucket.server.control(mute=BEFORE_VIDEOS + 1, reset=True)
    process = command(bucket, "index", bucket.at("robot"), "-o", tmp_path / "r.pen",
                      "--block-samples", 2)
    answered(bucket, process, BEFORE_VIDEOS + 1)
    process.send_signal(signal.SIGSTOP)  # it repeats its requests when the object is another
    bucket.server.control(mute=False)
    bucket.put(key, bytes(9 << 20)[:-1] + b"x")
    process.send_signal(signal.SIGCONT)
    code, _, err = finished(process)
    assert code == 1
    assert f"{bucket.at(key)}: changed while it was read; run the same command again" in err


def test_objects_that_change_later(bucket, dataset, tmp_path):
    index(bucket, tmp_path / "r.pen")
    data = (dataset.root / FILE).read_bytes()

    def load(sample):
        pack = opened(bucket, tmp_path / "r.pen")
        with penstock.Loader(pack, 1, pipeline={TOP: "decode | clip 9 1 0 | center_crop 40 | "
                                                "tensor u8"}, subset=[sample], output="numpy",
                             order="sequential") as loader:
            return next(iter(loader))[0].copy()

    before = load(2)
    for body in (data[:-1], bytes(len(data)), None):
        if body is None:
            bucket.client.delete_object(Bucket=bucket.name, Key=f"robot/{FILE}")
        else:
            bucket.put(f"robot/{FILE}", body)
        with pytest.raises(penstock.CorruptError, match=f"robot/{FILE}"):
            load(2)
        assert load(0).any()
    bucket.put(f"robot/{FILE}", data)
    assert np.array_equal(load(2), before)


def test_a_pack_names_no_place_by_itself(bucket, tmp_path):
    index(bucket, tmp_path / "r.pen")
    bucket.server.control(reset=True)
    for roots in ([], [bucket.at("other")]):
        pack = penstock.open(tmp_path / "r.pen", roots=roots)
        with penstock.Loader(pack, 1, pipeline={TOP: CLIP.replace(" at=-3", "")}) as loader, \
                pytest.raises(penstock.InvalidError, match="robot/videos"):
            next(iter(loader))
    assert bucket.server.counts()["total"] == 0


WRONG = {
    "missing object": (FILE, None, "NotFoundError", f"robot/{FILE}: no such file; the dataset is"),
    "no video": (FILE, b"no video", "Error", f"^key 'episode_000002', field '{TOP}': s3://.*"
                 f"robot/{FILE}: "),
    "damaged video": (FILE, "half", "DecodeError", f": s3://bucket-.*/robot/{FILE}: "),
    "empty video": (FILE, b"", "Error", f": s3://bucket-.*/robot/{FILE}: "),
    "no info": ("meta/info.json", None, "NotFoundError", "expected a LeRobot dataset, version 3"),
    "large info": ("meta/info.json", bytes((64 << 20) + 1), "LimitError",
                   "robot/meta/info.json: expected at most 67108864 bytes, found 67108865"),
    "damaged numbers": ("data/chunk-000/file-001.parquet", b"PAR1", "InvalidError",
                        r"s3://.*file-001\.parquet: cannot read"),
    "no numbers": ("data/chunk-000/file-001.parquet", None, "NotFoundError",
                   r"s3://.*robot/data/chunk-000/file-001\.parquet"),
    "no tasks": ("meta/tasks.parquet", None, "NotFoundError", "the dataset is incomplete"),
    "no episodes": ("meta/episodes/chunk-000/file-000.parquet", None, "NotFoundError",
                    "the dataset is incomplete"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_objects(bucket, dataset, tmp_path, case):
    name, body, kind, message = WRONG[case]
    if body is None:
        bucket.client.delete_object(Bucket=bucket.name, Key=f"robot/{name}")
    else:
        data = (dataset.root / name).read_bytes()
        bucket.put(f"robot/{name}", data[:len(data) // 2] if body == "half" else body)
    with pytest.raises(getattr(penstock, kind), match=message) as error:
        index(bucket, tmp_path / "r.pen", block_samples=None)
    assert str(tmp_path) not in str(error.value) and bucket.server.secret not in str(error.value)
    assert not tree(tmp_path / "r.pen")


def test_wrong_places(bucket, tmp_path):
    store = options(bucket.server)
    for place, kind, message in (
            (bucket.at("rob"), "NotFoundError", "rob/meta/info.json.*version 3"),
            ("s3://no-such-bucket/robot", "Error", "s3://no-such-bucket/robot"),
            (f"{bucket.server.url}/open/robot", "UnsupportedError", "an s3:// URL")):
        with pytest.raises(getattr(penstock, kind), match=message):
            lerobot.index(place, tmp_path / "r.pen", storage_options=store)
    with pytest.raises(penstock.AccessError):
        lerobot.index(bucket.at("robot"), tmp_path / "r.pen",
                      storage_options={**store, "secret": "wrong"})
    assert not tree(tmp_path / "r.pen")


# ---- the writer, and reading objects -----------------------------------------------------------


def test_clips_of_objects_in_any_order(bucket, dataset, tmp_path):
    times = [round(i * 1e9 / 30) for i in range(9)]
    names = [f"videos/{camera}/chunk-000/file-00{i}.mp4" for i in (0, 1) for camera in (TOP, WRIST)]
    order = [0, 1, 0, 3, 3, 2]
    packs = []
    for at in (bucket.at("robot/{}").format, f"{dataset.root}/{{}}".format):
        out = tmp_path / f"{len(packs)}.pen"
        with penstock.Writer(out, {"video": "clip"}, in_place=True,
                             storage_options=options(bucket.server)) as writer:
            for i in order:
                writer.add(video=(at(names[i]), times))
            assert len(list((out / ".work").glob("video-*"))) == (not packs)
        packs.append(out)
    clips = [next(iter(penstock.Loader(pack, 6, order="sequential", output="numpy", pipeline={
        "video": "decode | clip 9 1 0 | center_crop 40 | tensor u8"})))[0].copy()
        for pack in (opened(bucket, packs[0]), penstock.open(packs[1], roots=[dataset.root]))]
    assert np.array_equal(*clips) and clips[0].any()


def test_web_servers_list_nothing(bucket):
    store, _ = penstock._remote.check("s3://a/b", options(bucket.server))
    with pytest.raises(penstock.UnsupportedError, match="expected an s3:// URL"):
        _core.remote_list(f"{bucket.server.url}/{bucket.name}", store)


def test_objects_are_read_by_several_requests(bucket):
    store, _ = penstock._remote.check("s3://a/b", options(bucket.server))
    body = np.random.default_rng(1).bytes((13 << 20) + 5)
    for n in (0, 1, 4 << 20, (4 << 20) + 1, len(body)):
        bucket.put("large", body[:n])
        assert _core.remote_read(bucket.at(""), "large", n, store) == body[:n]
    bucket.server.control(chaos="error=0.2,cut=0.2", seed=1)
    assert _core.remote_read(bucket.at(""), "large", len(body), store) == body
    with pytest.raises(penstock.LimitError, match="large: expected at most 9 bytes, found"):
        _core.remote_read(bucket.at(""), "large", 9, store)
    bucket.server.control(chaos="")
    assert _core.remote_list(bucket.at("none"), store) == []
    names = [name for name, _ in _core.remote_list(bucket.at("robot/meta"), store)]
    assert names == ["episodes/chunk-000/file-000.parquet", "info.json", "tasks.parquet"]
