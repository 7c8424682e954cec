# SPDX-License-Identifier: Apache-2.0
"""Packs in object stores: the same batches as from a disk, whatever the server does.

PENSTOCK_SCALE=full makes the counts those that are promised; see tests/long/long_remote.py."""

import concurrent.futures
import datetime
import json
import multiprocessing
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time

import net_stage
import pytest
from py_tools import in_child, need_penstock, run_python
from remote_tools import ADDRESS, FULL, MetadataServer, epoch_digest, make_pack, options

penstock = need_penstock()
pytest.importorskip("numpy")
pytestmark = pytest.mark.usefixtures("no_other_settings")

HERE = pathlib.Path(__file__).parent
N = 1000
HEAD = f"import sys; sys.path.insert(0, {str(HERE)!r}); import penstock, remote_tools, time\n"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A folder that is served: packs/train.pen."""
    folder = tmp_path_factory.mktemp("root")
    make_pack(penstock, folder / "packs" / "train.pen", N)
    return folder


@pytest.fixture(scope="module")
def disk(root):
    return root / "packs" / "train.pen"


@pytest.fixture(scope="module")
def digest(disk):
    return epoch_digest(penstock, disk)


@pytest.fixture
def server(s3, root):
    return s3(directory=root)


def shards(root):
    return len(list((root / "packs" / "train.pen").glob("??/*")))


def asked_once(server):
    """How many ranges of objects were read: each once, and nothing else was requested.

    On a busy machine some are requested twice: hedged requests, at most 5 in 100."""
    asked = [(entry["kind"], entry["what"], entry["range"]) for entry in server.log()]
    assert {kind for kind, *_ in asked} == {"GetObject"}
    assert len(asked) - len(set(asked)) <= len(asked) // 20
    return len(set(asked))


# ---- the same as from a disk


@pytest.mark.parametrize("order", ["sequential", "shuffle"])
def test_an_epoch_is_that_from_the_disk(server, disk, order):
    assert epoch_digest(penstock, ADDRESS, options(server), order=order) == epoch_digest(
        penstock, disk, order=order)
    pack = penstock.open(disk)
    # The manifest, a tail for each shard, and every block that is not in these, once. Shuffled, the
    # samples of the first steps are in nearly as many blocks, so parts of these are fetched first.
    parts = pack.info["n_blocks"] if order == "shuffle" else 0
    assert 2 < asked_once(server) <= 1 + pack.info["n_shards"] + pack.info["n_blocks"] + parts


def test_one_request_opens_a_shard_of_many_blocks(server, root):
    """The manifest tells how long its tail is: 32 bytes a block, statistics and the footer."""
    with penstock.Writer(root / "packs" / "many.pen", {"x": "i64"}, block_samples=1) as writer:
        for i in range(3000):
            writer.add(key=f"s{i}", x=i)
    pack = penstock.open("s3://packs/many.pen", options(server))
    assert pack.info["n_shards"] == 1 and pack[17]["x"] == 17
    # A request that is hedged is in the log twice.
    asked = [*dict.fromkeys(e["range"] for e in server.log() if ".shard" in e["what"])]
    assert asked[0] == f"bytes=-{3000 * 32 + 72 * 8 + 128}" and len(asked) == 2


@pytest.mark.slow
def test_an_epoch_from_ceph(disk, root, digest):
    store = net_stage.need_ceph()
    bucket = f"py-{time.time_ns()}"
    net_stage.fill_bucket(store.boto3(), bucket, root / "packs")
    assert epoch_digest(penstock, f"s3://{bucket}/train.pen", options(store)) == digest


def test_an_epoch_over_http(s3, root, digest):
    """From a server that knows nothing of S3."""
    server = s3(["packs,public"], directory=root)
    assert epoch_digest(penstock, f"{server.url}/packs/train.pen") == digest
    assert epoch_digest(penstock, ADDRESS, {"endpoint": server.url, "no_sign": True}) == digest


def test_values_are_those_of_the_disk(server, disk):
    near, far = penstock.open(disk), penstock.open(ADDRESS, options(server))
    assert far.id == near.id and len(far) == N and far.info == near.info
    for i in (0, 7, 8, 501, N - 1):
        assert dict(far[i]) == dict(near[i]) and far.key(i) == near.key(i)
        assert far.index(f"s{i}") == i and far.image(i, "image") == near.image(i, "image")
        assert far.extract(i, "image") == near.extract(i, "image")
    with pytest.raises(KeyError):
        far.index("nobody")


def test_chaos_changes_nothing(s3, tmp_path, root, digest):
    """FoundationDB's rates: of the requests 10 % fail, 5 % are throttled, 10 % are late, and 1 % of
    the answers have a bit flipped."""
    n = 50_000 if FULL else N
    if FULL:
        root = tmp_path
        make_pack(penstock, root / "packs" / "train.pen", n, shard_size="16MiB")
        digest = epoch_digest(penstock, root / "packs" / "train.pen")
    server = s3(directory=root)
    server.control(chaos=net_stage.FDB_RATES, seed=11)
    start = time.monotonic()
    found = epoch_digest(penstock, ADDRESS, options(server, outage=600), timeout=3600,
                         io_threads=32 if FULL else None)
    seconds = time.monotonic() - start
    counts = server.counts()
    print(f"{n} records, {counts['total']} requests, {dict(counts['faults'])}, {seconds:.1f} s")
    assert found == digest
    for kind in ("error", "throttle", "delay", "corrupt"):
        assert counts["faults"].get(kind, 0) >= (30 if FULL else 1), counts["faults"]


# ---- orders and memory


def orders(server, **settings):
    with penstock.Loader(ADDRESS, 16, output="numpy", storage_options=options(server),
                         **settings) as loader:
        return loader.state_dict()["order"]


def test_shuffle_is_one_order(server, disk):
    assert orders(server) == "sequential" and orders(server, shuffle=True) == "shuffle"
    assert orders(server, order="random") == "random"
    with penstock.Loader(disk, 16, shuffle=True, output="numpy") as loader:
        assert loader.state_dict()["order"] == "shuffle"


def test_random_order_is_right_too(server, disk):
    some = {"order": "random", "subset": range(100)}
    assert epoch_digest(penstock, ADDRESS, options(server), **some) == epoch_digest(
        penstock, disk, **some)


def test_memory_of_parts_and_of_blocks(root, server):
    """With too little memory for blocks, parts of them are fetched, and the counters say how much
    memory blocks take. The samples are the same."""
    big = root / "packs" / "big.pen"
    if not big.exists():
        with penstock.Writer(big, {"blob": "bytes", "x": "i64"}, block_samples=8) as writer:
            for i in range(480):
                writer.add(blob=bytes([i % 251]) * 2**16, x=i)
    settings = {"threads": 2, "output": "numpy", "order": "shuffle", "shuffle_buffer": 96}
    given = options(server)
    found, stats, memory = [], [], 2**24
    for _ in range(2):
        with penstock.Loader("s3://packs/big.pen", 8, memory=memory, storage_options=given,
                             **settings) as loader:
            found.append([x for batch in loader for x in batch.x.tolist()])
            stats.append(loader.stats())
        memory = stats[0]["memory_wanted_bytes"]
    assert stats[0]["fetch_unit"] in ("runs", "samples") and 2**24 < memory < 2**26
    assert (stats[1]["fetch_unit"], stats[1]["memory_wanted_bytes"]) == ("blocks", 0)
    with penstock.Loader(big, 8, **settings) as near:
        found.append([x for batch in near for x in batch.x.tolist()])
    assert sorted(found[0]) == list(range(480)) and found[0] == found[1] == found[2]


def test_blocks_are_given_up_by_age(root, server):
    """With room for a part of the blocks, an epoch in order asks for each of them once, and for
    neighbours together."""
    path = root / "packs" / "aged.pen"
    with penstock.Writer(path, {"blob": "bytes", "x": "i64"}, block_samples=8) as writer:
        for i in range(400):
            writer.add(blob=bytes([i % 251]) * 2**15, x=i)
    with penstock.Loader("s3://packs/aged.pen", 8, memory="13MiB", threads=1, io_threads=2,
                         output="numpy", storage_options=options(server)) as loader:
        assert [x for batch in loader for x in batch.x.tolist()] == list(range(400))
    assert 2 + 3 < asked_once(server) < 2 + 50 // 2
    for memory in ("16MiB", "24MiB", "48MiB"):
        settings = {"memory": memory, "threads": 1, "io_threads": 2, "order": "shuffle",
                    "output": "numpy"}
        with penstock.Loader(path, 8, **settings) as near, penstock.Loader(
                "s3://packs/aged.pen", 8, storage_options=options(server), **settings) as far:
            assert near.state_dict() == far.state_dict()


# ---- state


def numbers(loader):
    return [batch.info.samples.tolist() for batch in loader]


@pytest.mark.parametrize("first, second", [("far", "far"), ("far", "near"), ("near", "far")])
def test_a_state_goes_on_from_either(server, disk, first, second):
    def make(where):
        given = {"storage_options": options(server)} if where == "far" else {}
        return penstock.Loader(ADDRESS if given else disk, 16, order="shuffle", seed=5,
                               output="numpy", return_info=True, **given)

    with make(first) as loader:
        batches = iter(loader)
        for _ in range(20):
            next(batches)
        state = loader.state_dict()
        rest = numbers(batches)
    assert len(rest) == N // 16 + 1 - 20
    with make(second) as again:
        again.load_state_dict(state)
        assert numbers(again) == rest


# ---- credentials


class Issuer:
    """Gives keys that end after some requests."""

    def __init__(self, server, requests):
        self.server, self.requests, self.n = server, requests, 0

    def __call__(self):
        self.n += 1
        key = {"id": f"ID{self.n}", "secret": f"secret{self.n}", "token": f"token{self.n}"}
        self.server.control(key={**key, "requests": self.requests})
        end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
        return {"key_id": key["id"], "secret": key["secret"], "token": key["token"],
                "expires": end}


def test_keys_that_end_are_not_noticed(server, digest):
    issuer = Issuer(server, 50)
    given = {"endpoint": server.url, "region": server.region, "credentials": issuer}
    assert epoch_digest(penstock, ADDRESS, given, io_threads=8) == digest
    assert 3 <= issuer.n <= 6
    assert server.counts()["statuses"].get("400", 0) >= 2  # ExpiredToken


class Giver:
    """Credentials that the server calls expired from the first request on, except number `good`."""

    def __init__(self, server, name, good=None):
        self.server, self.name, self.good, self.n = server, name, good, 0

    def __call__(self):
        self.n += 1
        name = f"{self.name}{self.n if self.good is not None else 0}"
        self.server.control(key={"id": name, "secret": "s" + name, "token": "t" + name,
                                 "requests": None if self.n == self.good else 0})
        return name, "s" + name, "t" + name


def open_with(server, giver):
    server.control(reset=True)
    return penstock.open(ADDRESS, {"endpoint": server.url, "region": server.region,
                                   "credentials": giver})


def test_several_expired_credentials_in_a_row(server):
    """A source may return sets that expire before their first use; a later one works."""
    giver = Giver(server, "ROW", good=3)
    assert len(open_with(server, giver)) == N
    assert giver.n == 3 and server.counts()["statuses"]["400"] == 2


def test_credentials_that_never_work_end(server):
    giver = Giver(server, "BAD", good=0)
    with pytest.raises(penstock.AccessError, match="ExpiredToken, credentials from callback"):
        open_with(server, giver)
    assert giver.n == server.counts()["statuses"]["400"] == 7


def test_the_same_expired_credentials_end_at_once(server):
    """A source without newer credentials is not asked a third time."""
    giver = Giver(server, "SAME")
    with pytest.raises(penstock.AccessError, match="ExpiredToken, credentials from callback"):
        open_with(server, giver)
    assert giver.n == server.counts()["statuses"]["400"] == 2


def test_web_identity_that_ends_is_not_noticed(server, digest, tmp_path, monkeypatch):
    (tmp_path / "token").write_text("web-token")
    with MetadataServer(web_token="web-token") as sts:
        for n in range(1, 20):
            server.control(key={"id": f"ASIACANARY{n:04d}", "secret": f"canarySecret{n:04d}",
                                "token": f"canaryToken{n:04d}", "requests": 50})
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", sts.url)
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", server.url)
        monkeypatch.setenv("AWS_REGION", server.region)
        monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/train")
        monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(tmp_path / "token"))
        assert epoch_digest(penstock, ADDRESS, io_threads=8) == digest
        asked = sts.ask("GET", "/_log").count("AssumeRoleWithWebIdentity")
    assert 3 <= asked <= 6


@pytest.mark.parametrize("given", [
    ("stage-key", "stage-secret"),
    ("stage-key", "stage-secret", None),
    ("stage-key", "stage-secret", None, time.time() + 900),
    {"key_id": "stage-key", "secret": "stage-secret", "expires": None},
])
def test_what_a_callback_may_give(server, given):
    asked = {"endpoint": server.url, "region": server.region, "credentials": lambda: given}
    assert len(penstock.open(ADDRESS, asked)) == N


# ---- faults


def test_an_object_that_is_overwritten(s3, tmp_path):
    (tmp_path / "packs").mkdir()
    with penstock.Writer(tmp_path / "packs" / "train.pen", {"blob": "bytes", "x": "i64"},
                         block_samples=8) as writer:
        for i in range(400):  # more than there is room for ahead
            writer.add(blob=bytes([i % 251]) * 2**16, x=i)
    server = s3()
    client = server.boto3()
    net_stage.fill_bucket(client, "packs", tmp_path / "packs")
    loader = penstock.Loader(ADDRESS, 8, output="numpy", storage_options=options(server),
                             io_threads=1, threads=1, prefetch=1, memory="16MiB")
    batches = iter(loader)
    next(batches)
    for entry in client.list_objects_v2(Bucket="packs")["Contents"]:
        if not entry["Key"].endswith("manifest"):
            client.put_object(Bucket="packs", Key=entry["Key"], Body=bytes(entry["Size"]))
    with pytest.raises(penstock.ChangedError, match="train.pen"):
        for _ in batches:
            pass
    loader.close()


def test_every_part_is_of_the_version_that_was_opened(s3, root, digest):
    """The server refuses a range without If-Match, whatever its ETag would be."""
    server = s3(directory=root, need_if_match="yes")
    assert epoch_digest(penstock, ADDRESS, options(server)) == digest
    pack = penstock.open(ADDRESS, options(server))
    assert pack[N - 1]["label"] == N - 1
    assert sum(entry["range"] is not None for entry in server.log()) > shards(root)
    with pytest.raises(Exception, match="MissingIfMatch"):
        server.boto3(retries=1).get_object(
            Bucket="packs", Key="train.pen/manifest", Range="bytes=0-3")


@pytest.mark.parametrize("fault, kind", [
    ({"secret": "wrong"}, "AccessError"), ({"key_id": "nobody"}, "AccessError"),
])
def test_refused_keys(server, fault, kind):
    with pytest.raises(getattr(penstock, kind)):
        penstock.open(ADDRESS, options(server, **fault))


def test_nothing_there(server):
    with pytest.raises(FileNotFoundError, match="no pack is there"):
        penstock.open("s3://packs/other.pen", options(server))
    with pytest.raises(penstock.NotFoundError, match="NoSuchBucket"):
        penstock.open("s3://nobody/other.pen", options(server))


def test_an_outage_ends(server, digest):
    server.control(outage=0.7)
    assert epoch_digest(penstock, ADDRESS, options(server)) == digest


def test_an_outage_that_does_not_end(server):
    server.control(outage=True)
    with pytest.raises(penstock.Error, match="given up after"):
        penstock.open(ADDRESS, options(server, outage=1))


# ---- many processes


COUNT_CODE = HEAD + """
pack = penstock.open(remote_tools.ADDRESS)
assert pack[500]["label"] == 500
with penstock.Loader(pack, 16, shuffle=True, output="numpy", rank=int(sys.argv[1]),
                     world_size=int(sys.argv[2])) as loader:
    assert sum(len(b.label) for b in loader) > 0
"""


def test_many_processes_start_at_once(server, root):
    """None lists, each asks for the manifest once and for the tail of a shard once."""
    n = 64 if FULL else 4
    env = server.environment()
    children = [
        subprocess.Popen([sys.executable, "-c", COUNT_CODE, str(i), str(n)], env=env,
                         stderr=subprocess.PIPE)
        for i in range(n)
    ]
    for child in children:
        _, text = child.communicate(timeout=600)
        assert child.returncode == 0, text.decode()
    counts = server.counts()
    assert set(counts["kinds"]) == {"GetObject"}
    tails = [e for e in server.log() if (e["range"] or "").startswith("bytes=-")]
    manifests = [e for e in tails if e["what"].endswith("manifest")]
    print(f"{n} processes: {len(manifests)} requests for the manifest, "
          f"{len(tails) - len(manifests)} for the tails of {shards(root)} shards")
    assert len(manifests) == n
    assert len(tails) - len(manifests) <= n * shards(root)


def read_some(pack):
    return [pack[i]["label"] for i in range(0, N, 100)]


def spawned(pack, queue):
    queue.put(read_some(pack))


def test_fork(server):
    pack = penstock.open(ADDRESS, options(server))
    expected = read_some(pack)
    assert in_child(lambda: expected == read_some(pack) or 1 / 0) is None
    assert in_child(pack.close) is None
    assert read_some(pack) == expected


def test_fork_in_the_middle_of_an_epoch(server):
    """The child's copy of a loader does no harm, and the parent's goes on."""
    with penstock.Loader(ADDRESS, 16, output="numpy", storage_options=options(server)) as loader:
        batches = iter(loader)
        next(batches)

        def child():
            with pytest.raises(penstock.ClosedError):
                next(batches)
            read_some(loader.dataset)

        assert in_child(child) is None
        assert sum(1 for _ in batches) == N // 16


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_a_pack_travels(server, monkeypatch, method):
    for name, value in server.env.items():
        monkeypatch.setenv(name, value)
    pack = penstock.open(ADDRESS, {"outage": 20})
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    child = context.Process(target=spawned, args=(pack, queue))
    child.start()
    assert queue.get(timeout=60) == read_some(pack)
    child.join(30)
    assert child.exitcode == 0
    assert pickle.loads(pickle.dumps(pack))[3]["label"] == 3


# ---- writing


@pytest.mark.parametrize("store", ["scripted", pytest.param("ceph", marks=pytest.mark.slow)])
def test_a_pack_is_written(s3, tmp_path, store, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    make_pack(penstock, tmp_path / "near.pen", 100)
    bucket = f"py-{time.time_ns()}"
    server = s3() if store == "scripted" else net_stage.need_ceph()
    client = server.boto3()
    client.create_bucket(Bucket=bucket)
    given = options(server)
    make_pack(penstock, f"s3://{bucket}/far.pen", 100, storage_options=given,
              work=tmp_path / "work")
    far = penstock.open(f"s3://{bucket}/far.pen", given)
    near = penstock.open(tmp_path / "near.pen")
    assert far.id == near.id
    assert [dict(far[i]) for i in range(100)] == [dict(near[i]) for i in range(100)]
    keys = [e["Key"] for e in client.list_objects_v2(Bucket=bucket)["Contents"]]
    with pytest.raises(FileExistsError):
        make_pack(penstock, f"s3://{bucket}/far.pen", 1, storage_options=given)
    with pytest.raises(ZeroDivisionError):
        with penstock.Writer(f"s3://{bucket}/none.pen", {"x": "i64"},
                             storage_options=given) as writer:
            writer.add(x=1 // 0)
    assert [e["Key"] for e in client.list_objects_v2(Bucket=bucket)["Contents"]] == keys
    assert "Uploads" not in client.list_multipart_uploads(Bucket=bucket)


# ---- Ctrl-C and the end


WAITS = {
    "open": "penstock.open(A, O)",
    "read": "p[500]['label']",
    "find": "p.index('s500')",
    "loader": "list(penstock.Loader(p, 16, output='numpy'))",  # it reads the sizes of all images
    "numbers": "list(penstock.Loader(p, 16, output='numpy', pipeline='label: tensor'))",
    "mixture": "list(penstock.Loader(penstock.mix([(p, 1), (p, 1)]), 16, output='numpy'))",
    "next": "[None for _ in batches]",
    "writer": "penstock.Writer('s3://packs/new.pen', {'x': 'i64'}, storage_options=O)",
    "finish": "w.add(x=1); w.finish()",
}
WAIT_CODE = HEAD + """
import json, os, signal, threading, urllib.request
A, O, url, what = remote_tools.ADDRESS, json.loads(sys.argv[1]), sys.argv[2], sys.argv[3]
os.environ["XDG_CACHE_HOME"] = sys.argv[4]
def mute(how):
    urllib.request.urlopen(url + "/_control", b'{"mute": %s}' % how).read()
p = penstock.open(A, O)
if "batches" in what:  # enough answers for the first batch, too few for an epoch
    mute(b"30")
    batches = iter(penstock.Loader(p, 16, output="numpy", io_threads=1, prefetch=1))
    next(batches)
w = None
if "w.finish()" in what:
    w = penstock.Writer("s3://packs/w.pen", {"x": "i64"}, storage_options=O)
mute(b"true")
sent = []
def interrupt():
    time.sleep(0.6)
    sent.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
try:
    WHAT
except KeyboardInterrupt:
    heard = time.monotonic()
else:
    sys.exit("not interrupted")
if w:
    w.close()
print("heard", heard - sent[0], "closed", time.monotonic() - heard)
end = time.monotonic()
"""


@pytest.fixture
def memory():
    """A directory that a busy disk does not delay."""
    shm = "/dev/shm"
    with tempfile.TemporaryDirectory(dir=shm if os.access(shm, os.W_OK) else None) as folder:
        yield folder


@pytest.mark.parametrize("what", WAITS)
def test_ctrl_c_ends_every_wait(server, memory, what):
    """It is noticed four times a second. Without that, a wait ends after 5 s or more. Three
    attempts, as the machine may be busy."""
    code = WAIT_CODE.replace("WHAT", WAITS[what])
    for _ in range(3):
        server.control(mute=False)
        done = run_python(code, json.dumps(options(server)), server.url, WAITS[what], memory,
                          env=server.environment())
        assert done.returncode == 0 and done.stderr == "", done.stderr
        heard, closed = map(float, done.stdout.split()[1::2])
        if heard < 3 and closed < 5:
            break
    else:
        pytest.fail(done.stdout)


EXITS = {
    "nothing under way": "",
    "a loader waits": "start(lambda: list(penstock.Loader(p, 16, output='numpy')))",
    "a read waits": "start(lambda: p[500]['label'])",
    "an opening waits": "start(lambda: penstock.open(A, O))",
    "a callback hangs": "start(lambda: penstock.open(A, C))",
    "numbers wait": "start(lambda: list(penstock.Loader(p, 16, pipeline='label: tensor')))",
    "a global loader": "batches = iter(penstock.Loader(p, 16, pipeline='label: tensor'))",
    "a global writer": "w.add(x=1)",
}
EXIT_CODE = HEAD + """
import json, os, threading, urllib.request
A, O, url, what = remote_tools.ADDRESS, json.loads(sys.argv[1]), sys.argv[2], sys.argv[3]
hanging = threading.Event()
def hang():
    hanging.set()
    time.sleep(3600)
def requests():
    return len(json.load(urllib.request.urlopen(url + "/_log")))
def start(call):
    before = requests()
    threading.Thread(target=call, daemon=True).start()
    until = time.monotonic() + 20
    while requests() == before and not hanging.is_set() and time.monotonic() < until:
        time.sleep(0.05)
C = {"endpoint": O["endpoint"], "region": O["region"], "credentials": hang}
p = penstock.open(A, O)
os.environ["XDG_CACHE_HOME"] = sys.argv[4]
if "w." in what:
    w = penstock.Writer("s3://packs/w.pen", {"x": "i64"}, storage_options=O)
urllib.request.urlopen(url + "/_control", b'{"mute": true}').read()
exec(what)
time.sleep(0.4)
print("ends", flush=True)
"""


@pytest.mark.parametrize("what", EXITS)
def test_the_end_with_a_mute_server(server, tmp_path, what):
    """About a second on an idle machine. A wait for the server or the callback takes minutes."""
    child = subprocess.Popen(
        [sys.executable, "-c", EXIT_CODE, json.dumps(options(server)), server.url, EXITS[what],
         tmp_path], env=server.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True)
    try:
        assert child.stdout.readline() == "ends\n", child.stderr.read()
        _, text = child.communicate(timeout=60)
    finally:
        child.kill()
    assert (child.returncode, text) == (0, "")


def test_a_second_thread_runs_while_one_waits(server):
    """And what it waits for is not asked for twice."""
    pack = penstock.open(ADDRESS, options(server))
    server.control(mute=True)
    results = []
    readers = [threading.Thread(target=lambda: results.append(pack[500]["label"]))
               for _ in range(2)]
    for reader in readers:
        reader.start()
    time.sleep(0.5)
    server.control(mute=False)
    for reader in readers:
        reader.join(60)
    assert results == [500, 500]


def test_signal_handlers_run_while_it_waits(server):
    """A handler that raises nothing does not end the wait."""
    pack = penstock.open(ADDRESS, options(server))
    server.control(mute=True)
    seen = []

    def handler(*_):
        seen.append(time.monotonic())
        server.control(mute=False)

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        assert pack[500]["label"] == 500
    finally:
        signal.signal(signal.SIGALRM, before)
    assert len(seen) == 1


# ---- figures


def test_requests_are_counted(server, disk):
    assert set(penstock.open(disk).remote_stats().values()) == {0}
    pack = penstock.open(ADDRESS, options(server))
    assert pack.remote_stats()["requests"] == 1
    server.control(chaos="throttle=0.1", seed=5, reset=True)
    before = pack.remote_stats()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:  # back-offs overlap
        assert list(pool.map(lambda i: pack[i]["label"], range(0, N, 8))) == list(range(0, N, 8))
    told, counts = pack.remote_stats(), server.counts()
    assert told["requests"] - before["requests"] == counts["total"]
    assert told["throttles"] == told["retries"] == counts["statuses"]["503"] > 0
    assert told["bytes"] > counts["bytes_out"] // 2
    assert (told["in_flight"], told["limit"], told["failures"]) == (0, 24, 0)
    pack.close()
    with pytest.raises(penstock.ClosedError):
        pack.remote_stats()


# ---- processes of one node


NODE_CODE = f'''
import concurrent.futures, json, sys
import penstock
pack = penstock.open({ADDRESS!r}, json.loads(sys.argv[1]))
print("open", flush=True)
sys.stdin.readline()
with concurrent.futures.ThreadPoolExecutor(24) as pool:
    list(pool.map(lambda i: pack[i]["label"], range(0, 320, 8)))
'''


def read_with(server, n, environment, given):
    """The most requests at once that the server sees of `n` processes."""
    environment = net_stage.clean_environment(**environment)
    children = [
        subprocess.Popen([sys.executable, "-c", NODE_CODE, json.dumps(options(server, **given))],
                         env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(n)
    ]
    for child in children:
        assert child.stdout.readline() == "open\n"
    server.control(chaos="delay=1.0,delay_ms=200", reset=True)
    for child in children:
        child.stdin.write("go\n")
        child.stdin.close()
    assert [child.wait(60) for child in children] == [0] * n
    for child in children:
        child.stdout.close()
    return server.counts()["most_at_once"]


@pytest.mark.parametrize("n, environment, given, most", [
    (8, {"LOCAL_WORLD_SIZE": "8"}, {"in_flight": 32}, 32),
    (2, {"LOCAL_WORLD_SIZE": "8"}, {"in_flight": 24, "node_ranks": 2}, 24),
])
def test_ranks_of_a_node_share_requests(server, n, environment, given, most):
    assert most // 2 < read_with(server, n, environment, given) <= most


def test_a_process_alone_has_them_all(server):
    # Slurm's numbers are those of its tasks; and the number at once grows beyond what it is first.
    assert read_with(server, 1, {"SLURM_NTASKS_PER_NODE": "8"}, {"in_flight": 22}) > 16


@pytest.mark.parametrize("name, text", [
    ("LOCAL_WORLD_SIZE", "many"), ("LOCAL_WORLD_SIZE", "0"), ("SLURM_STEP_TASKS_PER_NODE", "5000")])
def test_a_number_of_ranks_that_is_none(monkeypatch, name, text):
    monkeypatch.setenv("SLURM_PROCID", "0")
    monkeypatch.setenv(name, text)
    with pytest.raises(penstock.InvalidError, match=f"{name}: expected 1 to 4096 .* found {text}"):
        penstock.open(ADDRESS)


# ---- arguments


@pytest.mark.parametrize("given, match", [
    ({"endpoint_url": "x"}, "did you mean 'endpoint'"),
    ({"regoin": "x"}, "did you mean 'region'"),
    ({"key_id": "a"}, "key_id and secret together"),
    ({"token": "a"}, "found only token"),
    ({"key_id": "a", "secret": "b", "credentials": lambda: None}, "mutually exclusive"),
    ({"deadline": 0}, "0.001 to 4000000 seconds"),
    ({"in_flight": 10**6}, "in_flight"),
    ({"node_ranks": 10**6}, "node_ranks"),
    ({"endpoint": "ftp://x"}, "endpoint"),
])
def test_wrong_options(given, match):
    with pytest.raises(penstock.InvalidError, match=match):
        penstock.open(ADDRESS, given)


@pytest.mark.parametrize("given", [{"region": 3}, {"no_sign": "yes"}, {"credentials": "x"}, "x"])
def test_options_of_a_wrong_type(given):
    with pytest.raises(TypeError):
        penstock.open(ADDRESS, given)


def test_options_are_for_addresses(disk, server):
    with pytest.raises(penstock.InvalidError, match="found a path"):
        penstock.open(disk, {"region": "x"})
    pack = penstock.open(ADDRESS, options(server))
    with pytest.raises(penstock.InvalidError, match="already open"):
        penstock.Loader(pack, 8, storage_options={"region": "x"})


def test_the_page_about_it(server, root, tmp_path, monkeypatch):
    """docs/reference/python.md: its code, and its table of options."""
    import re

    page = (HERE.parents[1] / "docs" / "reference" / "python.md").read_text()
    (code,) = re.findall(r"^```python s3\n(.*?)^```$", page, re.M | re.S)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "config").write_text(
        "[default]\naws_access_key_id = stage-key\naws_secret_access_key = stage-secret\n")
    make_pack(penstock, root / "packs" / "photos.pen", 64)
    for name, value in server.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    scope = {"penstock": penstock}
    exec(compile(code, "docs/reference/python.md", "exec"), scope)
    scope["loader"].close()
    assert penstock.open("s3://packs/numbers.pen")[3]["x"] == 3
    table = page[page.index("| option | meaning |") :].split("\n\n")[0]
    rows = [line.split("|")[1] for line in table.splitlines()[2:]]
    names = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(names) == sorted(penstock.StorageOptions.__annotations__)
