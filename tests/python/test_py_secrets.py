# SPDX-License-Identifier: Apache-2.0
"""Keys are nowhere to be seen: canaries are given in every way, all that can be looked at is
looked at, and searched for them."""

import copy
import gc
import http.server
import pathlib
import pickle
import threading
import traceback
import weakref

import net_stage
import pytest
from py_tools import need_penstock, run_python
from remote_tools import ADDRESS, make_pack

penstock = need_penstock()
pytest.importorskip("numpy")
pytestmark = pytest.mark.usefixtures("no_other_settings")

KEY, SECRET, TOKEN = "CANARYID7421", "canarySecret7421", "canaryToken7421"
PROXY = "http://someone:canaryProxy7421@127.0.0.1:9"
CANARIES = (SECRET, TOKEN, "canaryProxy7421", "canaryWrong7421")


@pytest.fixture(scope="module")
def server(s3, tmp_path_factory):
    folder = tmp_path_factory.mktemp("root")
    make_pack(penstock, folder / "packs" / "train.pen", 64)
    return s3(keys=[f"{KEY}:{SECRET}:{TOKEN}"], directory=folder)


def by_keys(server, **more):
    return {"endpoint": server.url, "region": server.region, "key_id": KEY, "secret": SECRET,
            "token": TOKEN, **more}


def by_callback(server, **more):
    def credentials():
        return {"key_id": KEY, "secret": SECRET, "token": TOKEN}

    return {"endpoint": server.url, "region": server.region, "credentials": credentials, **more}


def looked_at(thing):
    """All that a user, a log or a debugger shows of it."""
    found = [repr(thing), str(thing)]
    if hasattr(thing, "__dict__"):
        found += [repr(vars(thing)), str(vars(thing))]
        found += [repr(value) for value in vars(thing).values()]
    for name in dir(thing):
        try:
            found.append(repr(getattr(thing, name)))
        except Exception as error:
            found.append(told(error))
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        try:
            found.append(repr(pickle.dumps(thing, protocol)))
        except Exception as error:
            found.append(told(error))
    return found


def told(error):
    """An exception in full, with what it stems from, but without lines of source code."""
    told = [str(error), repr(error), repr(getattr(error, "__dict__", "")), repr(error.args)]
    told += traceback.format_exception_only(error)
    if error.__cause__ is not None:
        told.append(told_cause(error.__cause__))
    return "\n".join(told)


def told_cause(error):
    return f"{error!r} {error}"


def clean(texts):
    found = [(canary, text) for text in texts for canary in CANARIES if canary in text]
    assert not found, found[0]
    return len(texts)


@pytest.mark.parametrize("way", [by_keys, by_callback])
def test_objects_show_nothing(server, way):
    pack = penstock.open(ADDRESS, way(server))
    loader = penstock.Loader(pack, 16, output="numpy", return_info=True)
    other = penstock.Loader(ADDRESS, 16, output="numpy", storage_options=way(server))
    batch = next(iter(loader))
    seen = []
    for thing in (pack, loader, other, other.dataset, pack[3], batch, loader.state_dict(),
                  loader.stats(), pack._core, loader._core, pack.info):
        seen += looked_at(thing)
    assert clean(seen) > 100
    loader.close()
    other.close()
    pack.close()
    clean(looked_at(pack))


@pytest.mark.parametrize("way", [by_keys, by_callback])
def test_writers_show_nothing(server, way, tmp_path):
    address = f"s3://packs/{way.__name__}.pen"
    with penstock.Writer(address, {"x": "i64"}, storage_options=way(server),
                         work=tmp_path) as writer:
        clean(looked_at(writer) + looked_at(writer._core))
        writer.add(x=1)
        kept = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
        clean([repr(data) for data in kept])
    clean(looked_at(writer))


@pytest.mark.parametrize("way", [by_keys, by_callback])
def test_packs_with_keys_are_not_pickled(server, way):
    pack = penstock.open(ADDRESS, way(server))
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match=r"be pickled; use a profile .* AWS_ environment"):
            copied(pack)


def test_what_is_no_secret_is_pickled(server, monkeypatch):
    for name, value in server.env.items():
        monkeypatch.setenv(name, value)
    pack = penstock.open(ADDRESS, {"region": server.region, "deadline": 7})
    data = pickle.dumps(pack)
    clean([repr(data)] + looked_at(pack))
    again = pickle.loads(data)
    assert again._options == {"region": server.region, "deadline": 7} and again.id == pack.id


def test_passwords_of_proxies(server):
    with pytest.raises(penstock.Error) as raised:
        penstock.open(ADDRESS, by_keys(server, proxy=PROXY, outage=1))
    clean([told(raised.value)])
    with pytest.raises(penstock.InvalidError) as raised:
        penstock.open(ADDRESS, by_keys(server, endpoint="http://a:canaryWrong7421@127.0.0.1"))
    clean([told(raised.value)])


@pytest.mark.parametrize("address", [
    "s3://CANARYID7421:canaryWrong7421@packs/train.pen",
    "https://someone:canaryWrong7421@127.0.0.1/train.pen",
    "https://127.0.0.1/train.pen?X-Amz-Signature=canaryWrong7421",
])
def test_addresses_with_secrets(address):
    with pytest.raises(penstock.InvalidError) as raised:
        penstock.open(address)
    clean([told(raised.value)])


FAULTS = [
    {"secret": "canaryWrong7421"}, {"token": "canaryWrong7421"}, {"key_id": "CANARYID0000"},
    {"region": "mars-1"}, {"deadline": 0}, {"token": 7421}, {"secret": ("canarySecret7421",)},
    {"secret": "canarySecret7421\0"}, {"nonsense": "canarySecret7421"}, {"no_sign": True},
    {"ca_file": "/nowhere"},
]


@pytest.mark.parametrize("fault", FAULTS, ids=range(len(FAULTS)))
def test_errors_tell_nothing(server, fault):
    try:
        penstock.open(ADDRESS, by_keys(server, **fault))
    except Exception as error:
        clean([told(error)])


class EchoHandler(http.server.BaseHTTPRequestHandler):
    """Sends back one part of what it was sent, wherever a message may show it."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        authorization = self.headers["Authorization"]
        what = {"signature": authorization.rpartition("=")[2],
                "token": self.headers["X-Amz-Security-Token"]}[self.server.word]
        self.server.sent.append(what)
        code = what if self.server.place == "code" else "Strange"
        body = f"<Error><Code>{code}</Code><Message>{what}</Message></Error>".encode()
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("x-amz-request-id", what if self.server.place == "id" else "R-7")
        self.end_headers()
        self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


@pytest.mark.parametrize("status", [400, 403, 409])
@pytest.mark.parametrize("place, rest", [("code", "request R-7"), ("id", "Strange")])
@pytest.mark.parametrize("word", ["signature", "token"])
def test_what_a_server_sends_back_is_not_shown(word, place, rest, status):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), EchoHandler) as server:
        server.word, server.place, server.status, server.sent = word, place, status, []
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        with pytest.raises(penstock.Error) as raised:
            penstock.open(ADDRESS, {"endpoint": f"http://127.0.0.1:{server.server_port}",
                                    "region": "us-east-1", "key_id": KEY, "secret": SECRET,
                                    "token": TOKEN})
        server.shutdown()
    message = told(raised.value)
    assert rest in message and server.sent
    assert not [what for what in server.sent if what in message]


@pytest.mark.parametrize("give", [
    lambda: None, lambda: SECRET, lambda: (KEY,), lambda: (KEY, SECRET, TOKEN, SECRET),
    lambda: (KEY, SECRET.encode()), lambda: {"key_id": KEY, "secret": SECRET, "tokn": TOKEN},
    lambda: (KEY, SECRET, 7421), lambda: (KEY, SECRET, TOKEN, -1), lambda: (KEY, SECRET + "\0"),
    lambda: (KEY, SECRET * 1000), lambda: (KEY, SECRET, TOKEN, 1), lambda: ("", ""),
], ids=range(12))
def test_what_a_callback_gave_is_not_shown(server, give):
    with pytest.raises(penstock.Error) as raised:
        penstock.open(ADDRESS, {"endpoint": server.url, "region": "us-east-1",
                                "credentials": give, "outage": 2})
    assert isinstance(raised.value, (penstock.AccessError, penstock.InvalidError))
    clean([told(raised.value)])


def test_an_exception_of_a_callback_is_the_cause(server):
    """Its type is in the message; its text, which may hold anything, is its own."""
    mine = ValueError("canarySecret7421")

    def credentials():
        raise mine

    with pytest.raises(penstock.AccessError, match="callback raised ValueError") as raised:
        penstock.open(ADDRESS, {"endpoint": server.url, "region": "us-east-1",
                                "credentials": credentials})
    clean([str(raised.value), repr(raised.value)])
    assert raised.value.__cause__ is mine
    clean([repr(pickle.dumps(raised.value))])


def test_callbacks_are_let_go(server):
    """When the pack is closed, nothing of ours holds the function."""
    class Source:
        def __call__(self):
            return KEY, SECRET, TOKEN

    source = Source()
    seen = weakref.ref(source)
    pack = penstock.open(ADDRESS, {"endpoint": server.url, "region": "us-east-1",
                                   "credentials": source})
    assert pack[3]["label"] == 3
    pack.close()
    del source, pack
    gc.collect()
    assert seen() is None


CORE_CODE = """
import sys, penstock
from remote_tools import ADDRESS
made = bytes(b ^ 1 for b in bytes.fromhex(sys.argv[2])).decode()
pack = penstock.open(ADDRESS, {"endpoint": sys.argv[1], "region": "us-east-1",
                               "key_id": "CANARYID7421", "secret": made, "token": made.replace(
                                   "Secret", "Token")})
assert pack[3]["label"] == 3
smaps = open("/proc/self/smaps").read().split("VmFlags:")
print(sum("dd" in part.splitlines()[0].split() for part in smaps[1:]))
"""


def test_pages_with_keys_are_left_out_of_dumps(server):
    """As the kernel says: some mappings are marked so."""
    hidden = bytes(b ^ 1 for b in SECRET.encode()).hex()
    path = f"import sys; sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})\n"
    done = run_python(path + CORE_CODE, server.url, hidden, env=net_stage.clean_environment())
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 2
