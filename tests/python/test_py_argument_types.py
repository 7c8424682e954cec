# SPDX-License-Identifier: Apache-2.0
"""Every parameter of every public callable, given values of every kind: it works, or it is a
TypeError, a ValueError or a penstock.Error whose message names the parameter. Nothing else comes
out: no exception from inside, no crash, no hang. No boolean and no NaN is taken for a number, and
nothing but a boolean (or 0 and 1) for a flag.

Callables and parameters are found by looking at the package, so that a new one is covered; a new
callable that this file does not know how to call fails the test.
"""

import collections
import contextlib
import datetime
import decimal
import fractions
import inspect
import math
import os
import re
import signal
import tarfile
import typing

import conftest
import pytest
from py_tools import encoded, need_penstock, pixels

penstock = need_penstock()
np = pytest.importorskip("numpy")

from penstock import _core, _pipeline, _remote, ops  # noqa: E402

N = 6
SECONDS = 600  # far more than all of it takes, on a busy machine too: what hangs is killed

torch = None
if "san.so" not in os.environ.get("LD_PRELOAD", ""):  # which torch does not bear
    with contextlib.suppress(ImportError):
        import torch


# ---- values


class Broken:
    """Fails wherever it is asked."""

    def __index__(self):
        raise ZeroDivisionError("index")

    def __float__(self):
        raise ZeroDivisionError("float")

    def __len__(self):
        raise ZeroDivisionError("len")

    def __getitem__(self, at):
        raise ZeroDivisionError("getitem")

    def __iter__(self):
        raise ZeroDivisionError("iter")

    def __repr__(self):
        raise ZeroDivisionError("repr")

    def __bool__(self):
        raise ZeroDivisionError("bool")

    def __fspath__(self):
        raise ZeroDivisionError("fspath")

    def __call__(self, *args, **kwargs):
        raise ZeroDivisionError("call")

    def __eq__(self, other):
        raise ZeroDivisionError("eq")

    def __hash__(self):
        raise ZeroDivisionError("hash")


class Liar:
    """Answers, and never what it should."""

    def __index__(self):
        return "1"  # noqa: PLE0305

    def __float__(self):
        return "1.0"

    def __len__(self):
        return -1  # noqa: PLE0303

    def __getitem__(self, at):
        return self

    def __iter__(self):
        return iter((self, None, "x"))

    def __fspath__(self):
        return 5

    def keys(self):
        return [1, None]

    def items(self):
        return [(1, 2, 3), None]

    def tolist(self):
        return self


class HalfWay:
    """Ends in the middle."""

    def __len__(self):
        return N

    def __getitem__(self, at):
        if at > 2:
            raise ZeroDivisionError("the third one")
        return at


class Text(str):
    """A text of a type of its own."""


class Number(int):
    """A number of a type of its own."""


def values():
    nan, inf = math.nan, math.inf
    found = [
        None, True, False, np.True_, np.False_, 0, 1, -1, 3, 7, 2**31, 2**32, 2**63, 2**64,
        -(2**63) - 1, 10**5000, Number(2), 0.5, 1.0, -0.0, nan, inf, -inf, 1e308, 5e-324, 1 + 2j,
        decimal.Decimal("NaN"), decimal.Decimal(2), fractions.Fraction(1, 3), np.int8(3),
        np.uint64(2**64 - 1), np.float32(nan), np.float64(2), np.float16(inf), np.array(3),
        np.array(True), np.array([1, 2, 3]), np.array([True] * N), np.array([True, False]),
        np.zeros((2, 2)), np.array([nan]), np.array(["a"]), np.array([None, 1]), np.zeros(0),
        np.datetime64("2020-01-01"), "", "a", "1", "nan", "0.5", "True", "\0", "a\0b", "\ud800",
        "\udc80", "é", "x" * 100_000, "b/../c", "a=b c=d", "a | b; c: d", Text("a"), b"", b"a",
        b"\xff", bytearray(b"x"), memoryview(b"xy"), memoryview(b"abcd").cast("I"), [], [None],
        [[]], [1, 2], [True, False], [nan, inf], ["a"], [b"a"], [1, "a"], [2**70], (), (1,),
        (1, 2, 3, 4, 5), {}, {1: 2}, {"a": None}, {"a": nan}, {None: None}, {"image": None},
        {"image": 5}, {1}, frozenset(), range(3), range(0, -5, -1), range(2**70), slice(None),
        slice("a", None), slice(0, 2, 0), object(), int, len, lambda *args: None, Ellipsis,
        NotImplemented, datetime.datetime(2020, 1, 1), Broken(), Liar(), HalfWay(), Broken,
        [Broken()], iter([1]), (i for i in range(2)), re.compile("a"), KeyError("x"),
    ]
    if torch is not None:
        found += [torch.tensor(2), torch.tensor(True), torch.tensor(nan), torch.tensor([1, 2]),
                  torch.tensor([True] * N), torch.zeros(2, 2),
                  torch.tensor(1, dtype=torch.bfloat16)]
    return found


# With a sanitizer, all parts run: slow tests do not.
PARTS = 3
in_parts = pytest.mark.parametrize("part", [0, *(
    pytest.param(i, marks=() if conftest.is_sanitized(conftest.BUILD) else pytest.mark.slow)
    for i in range(1, PARTS))])


def values_of(part, number):
    """The values that a part gives to the parameter with this number."""
    return [value for i, value in enumerate(values()) if (i + number) % PARTS == part]


def kind_of(value):
    """Is it a boolean, or not finite?"""
    if isinstance(value, (np.ndarray, np.generic)) or (torch and isinstance(value, torch.Tensor)):
        if value.ndim or "bool" in str(value.dtype):
            return "bool" if not value.ndim else None
        value = value.item()
    if isinstance(value, bool):
        return "bool"
    finite = not isinstance(value, (float, decimal.Decimal)) or math.isfinite(value)
    return None if finite else "not finite"


def shown(value):
    try:
        return repr(value)[:60]
    except Exception:
        return f"<{type(value).__name__}>"


# ---- callables

SCHEMA = {"image": "image", "mask": "mask", "video": "clip", "blob": "bytes", "meta": "json",
          "caption": "text", "label": "i64", "score": "f64", "weights": "f32[2]",
          "rows": "i64[*]"}
PIPELINE = "image: decode | center_crop 8 | tensor u8; label: tensor"
# Names of the package that are made by it, not by its users, or that only hold what they are given.
NOT_CALLED = {"BadSample", "BatchInfo", "BatchList", "Field", "ImageInfo", "Preloaded", "Ragged",
              "StorageOptions", "Sample", "Clip"}
# What a message may say instead of a parameter's name.
OTHER_NAMES = {"number": "a pack is indexed|sample", "at": "frame|slice|clip", "name": "field|name",
               "index": "index|slice|sample|epoch",
               "key": "key|sample|column", "samples": "samples?|field|key|schema",
               "path": "path|pack|no such file|No such file|no plan found|choose another name",
               "pack": "pack|no such file", "data": "data|image", "tasks": "tasks?",
               "source": "source|no such file|unknown format", "label": "label|column",
               "columns": "columns?|field", "out": "out|pack|choose another name"}


class Bench:
    """A pack, and calls of everything."""

    def __init__(self, folder):
        self.folder = folder
        self.count = 0
        picture = encoded(pixels(1, 20, 16))
        self.sample = {"image": picture, "mask": encoded(pixels(1, 20, 16).convert("L")),
                       "video": [picture, picture], "blob": b"x", "meta": {"a": 1},
                       "caption": "a", "label": 1, "score": 0.5, "weights": [1, 2],
                       "rows": [3, 4]}
        penstock.write(folder / "a.pen", [self.sample] * N, SCHEMA)
        self.pack = penstock.open(folder / "a.pen")
        self.tar = folder / "a.tar"
        (folder / "0.txt").write_text("a caption")
        with tarfile.open(self.tar, "w") as tar:
            tar.add(folder / "0.txt", "0.txt")
        self.loader = penstock.Loader(self.pack, 2, pipeline=PIPELINE, output="numpy", threads=1,
                                      memory="64MiB")
        self.state = self.loader.state_dict()
        self.dataset = penstock.Dataset(self.pack, PIPELINE, output="numpy")
        lists = "id: key; rows: ragged 8"
        with penstock.Loader(self.pack, N, pipeline=lists, output="numpy") as loader:
            self.keys, self.ragged = next(iter(loader))

    def close(self):
        self.loader.close()
        self.pack.close()

    def fresh(self):
        self.count += 1
        return self.folder / f"{self.count}.pen"

    def use_pack(self, **given):
        with penstock.open(**{"path": self.folder / "a.pen", **given}) as pack:
            assert len(pack) >= 0

    def use_loader(self, **given):
        base = {"pack": self.pack, "batch_size": 2, "output": "numpy", "threads": 1,
                "memory": "64MiB", "pipeline": PIPELINE, "timeout": 20}
        if {"cache", "cache_bytes", "preload", "storage_options"} & given.keys():
            base["pack"] = self.folder / "a.pen"
        with penstock.Loader(**{**base, **given}) as loader:
            assert loader.state_dict() and loader.stats() and repr(loader)
            # Values that are allowed and that nobody uses: that many threads, or samples.
            if "threads" not in given and "timeout" not in given and len(loader) < 100:
                next(iter(loader))

    def use_dataset(self, **given):
        base = {"pack": self.pack, "output": "numpy", "pipeline": PIPELINE}
        dataset = penstock.Dataset(**{**base, **given})
        assert repr(dataset) and dataset[0]

    def use_stages(self, **given):
        stage = {"pack": self.pack, "batch_size": 2, "output": "numpy", "pipeline": PIPELINE}
        with penstock.stages(**{"stages": [(0, stage)], **given}) as loader:
            assert repr(loader) and len(loader)

    def use_mix(self, **given):
        mixed = penstock.mix(**{"sources": [(self.pack, 1)], **given})
        with penstock.Loader(mixed, 2, output="numpy", pipeline=PIPELINE) as loader:
            assert repr(mixed) and len(loader) and loader.source_counts()

    def use_writer(self, **given):
        given = {"path": self.fresh(), "schema": SCHEMA, **given}
        with contextlib.closing(penstock.Writer(**given)) as writer:
            assert len(writer) == 0
            if given["schema"] is SCHEMA:
                writer.add(**self.sample)
                writer.finish()

    def use_write(self, **given):
        base = {"path": self.fresh(), "samples": [self.sample], "schema": SCHEMA}
        penstock.write(**{**base, **given})

    def use_finalise(self, **given):
        path = self.fresh()
        with penstock.Writer(path, SCHEMA, task=(0, None)) as writer:
            writer.add(**self.sample)
        penstock.finalise(**{"path": path, "tasks": 1, **given})

    def use_convert(self, **given):
        base = {"source": self.tar, "out": self.fresh(), "workers": 1}
        if "workers" in given:  # processes would take long
            base["columns"] = ["no such column"]
        if "progress" in given and callable(given["progress"]):
            del given["progress"]
        try:
            penstock.convert(**{**base, **given})
        except penstock.InvalidError as error:
            if "no such column" not in str(error):
                raise

    def use_add(self, **given):
        with contextlib.closing(penstock.Writer(self.fresh(), SCHEMA)) as writer:
            key = given.pop("key", None)
            writer.add(key, **{**self.sample, **given})
            writer.finish()

    def use_batch(self, **given):
        files = [self.sample["image"]] * 2
        penstock.decode_batch(**{"datas": files, "size": 8, "threads": 1, **given})

    def use_trace(self, **given):
        penstock.trace(**{"path": self.fresh(), **given}).close()

    def method(self, call, **base):
        return lambda **given: call(**{**base, **given})

    def at(self, what, name):
        """Methods whose one parameter is given by place."""
        return lambda **given: getattr(what, name)(*given.values())

    def calls(self):
        """Qualified name: a function that is called with some parameters, and gives the rest."""
        pack, clip, sample = self.pack, self.pack[0]["video"], self.pack[0]
        first = {"number": 0, "name": "image"}
        return {
            "open": self.use_pack, "Pack": self.use_pack, "Loader": self.use_loader,
            "Writer": self.use_writer, "write": self.use_write, "convert": self.use_convert,
            "finalise": self.use_finalise, "Writer.add": self.use_add,
            "Pack.key": self.method(pack.key), "Pack.index": self.method(pack.index),
            "Pack.missing": self.method(pack.missing, **first),
            "Pack.read": self.method(pack.read, **first),
            "Pack.frames": self.method(pack.frames, number=0, name="video"),
            "Pack.column": self.method(pack.column, name="label"),
            "Pack.image": self.method(pack.image, **first),
            "Pack.extract": self.method(pack.extract, **first),
            "Pack.metadata": self.method(pack.metadata, **first),
            "Pack.__getitem__": self.at(pack, "__getitem__"),
            "Sample.__getitem__": self.at(sample, "__getitem__"),
            "Sample.__contains__": self.at(sample, "__contains__"),
            "Clip.__getitem__": self.at(clip, "__getitem__"),
            "BatchList.__getitem__": self.at(self.keys, "__getitem__"),
            "Ragged.__getitem__": self.at(self.ragged, "__getitem__"),
            "Ragged.pad": self.method(self.ragged.pad),
            "Dataset": self.use_dataset,
            "Dataset.__getitem__": self.at(self.dataset, "__getitem__"),
            "Dataset.set_epoch": self.method(self.dataset.set_epoch),
            "Clip.decode": self.method(clip.decode),
            "Loader.set_epoch": self.method(self.loader.set_epoch),
            "Loader.sampler.set_epoch": self.method(self.loader.sampler.set_epoch),
            "Loader.load_state_dict": self.method(self.loader.load_state_dict, state=self.state),
            "aspect_buckets": self.method(penstock.aspect_buckets),
            "merge_stats": self.method(penstock.merge_stats),
            "balanced_weights": self.method(penstock.balanced_weights, labels=[0, 1, 1]),
            "Loader.report": self.method(self.loader.report),
            "decode": self.method(penstock.decode, data=self.sample["image"]),
            "decode_batch": self.use_batch,
            "trace": self.use_trace, "stages": self.use_stages, "mix": self.use_mix,
            "span": self.method(penstock.span),
        }


ASKED = ("__getitem__", "__contains__")


def is_public(name, function):
    """Not private, of the package and not of collections.abc, and with parameters."""
    return ((not name.startswith("_") or name in ASKED) and list(parameters(function))
            and function.__module__.startswith("penstock"))


def public_callables():
    """(qualified name, the function) of all that users call."""
    for name in penstock.__all__:
        what = getattr(penstock, name)
        if inspect.isfunction(what):
            yield name, what
        if not inspect.isclass(what) or issubclass(what, BaseException):
            continue
        if name not in NOT_CALLED:
            yield name, what.__init__
        if issubclass(what, tuple) or typing.is_typeddict(what):
            continue
        for part, function in inspect.getmembers(what, inspect.isfunction):
            if is_public(part, function):
                yield f"{name}.{part}", function
    yield "Loader.sampler.set_epoch", penstock._loader._Sampler.set_epoch


def parameters(function):
    """(name, the annotation as text) of all that can be given."""
    for parameter in list(inspect.signature(function).parameters.values()):
        if parameter.name != "self" and parameter.kind not in (
            parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL
        ):
            yield parameter.name, str(parameter.annotation)


# ---- outcomes


# What the functions and iterators of the caller raise stays as it is. (A function for preload is
# called or not, as it happens, so that only one that works is given.)
CALLED = {"transform": callable, "samples": lambda value: True, "datas": lambda value: True,
          "boxes": lambda value: True}


def is_named(name, value, text):
    """Does the message say which parameter it is, or show the path?"""
    is_path = isinstance(value, str) and len(value) > 2 and value[:40] in text
    return is_path or re.search(rf"\b({name}|{OTHER_NAMES.get(name, name)})\b", text)


class Tally:
    def __init__(self):
        self.counts = collections.Counter()
        self.wrong = []

    def judge(self, call, where, name, annotation, value):
        self.counts["calls"] += 1
        words = set(re.findall(r"\w+", annotation))
        try:
            call(**{name: value})
        except (TypeError, ValueError, IndexError, penstock.Error) as error:
            self.counts["refused"] += 1
            text = str(error)
            if type(error) is IndexError and name not in ("number", "at", "index"):
                self.note(where, name, value, f"IndexError: {text}")
            elif not is_named(name, value, text) and not self.is_callers(name, value):
                self.note(where, name, value, f"not named in: {type(error).__name__}: {text[:160]}")
        except Exception as error:
            if self.is_callers(name, value):
                self.counts["refused"] += 1
                return
            self.note(where, name, value, f"{type(error).__name__}: {str(error)[:160]}")
        else:
            self.counts["worked"] += 1
            self.judge_taken(where, name, words, value)

    def judge_taken(self, where, name, words, value):
        if words & {"int", "float"} and "bool" not in words and kind_of(value):
            self.note(where, name, value, "a number was expected, and this was taken for one")
        is_flag = kind_of(value) == "bool" or (isinstance(value, int) and value in (0, 1))
        if words == {"bool"} and not is_flag:
            self.note(where, name, value, "a flag was expected, and this was taken for one")

    def is_callers(self, name, value):
        return name in CALLED and CALLED[name](value)

    def note(self, where, name, value, what):
        self.wrong.append(f"{where}({name}={shown(value)}): {what}")

    def report(self, capsys, what):
        with capsys.disabled():
            counts = self.counts
            print(f"\nargument types: {what}: {counts['parameters']} parameters, {counts['calls']} "
                  f"calls, {counts['worked']} worked, {counts['refused']} refused")
        assert not self.wrong, f"{len(self.wrong)} wrong:\n" + "\n".join(self.wrong[:400])


@pytest.fixture(autouse=True)
def no_hang():
    """What hangs in C ends the process, which is what should be seen."""
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    made = Bench(tmp_path_factory.mktemp("types"))
    yield made
    made.close()


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Values that are taken for paths make their files here."""
    monkeypatch.chdir(tmp_path)


@in_parts
@pytest.mark.filterwarnings("ignore")
def test_public_callables(bench, capsys, part):
    calls, tally = bench.calls(), Tally()
    known = dict(public_callables())
    assert sorted(known) == sorted(calls), "callables that this file does not know how to call"
    for where, function in known.items():
        for name, annotation in parameters(function):
            tally.counts["parameters"] += 1
            for value in values_of(part, tally.counts["parameters"]):
                if name != "preload" or not callable(value) or inspect.isfunction(value):
                    tally.judge(calls[where], where, name, annotation, value)
    tally.report(capsys, "package")


@in_parts
@pytest.mark.filterwarnings("ignore")
def test_values_of_fields(bench, capsys, part):
    tally = Tally()
    for name in SCHEMA:
        tally.counts["parameters"] += 1
        # These are data: booleans are 0 and 1, and NaN is a number.
        for value in values_of(part, tally.counts["parameters"]):
            tally.judge(bench.use_add, "Writer.add", name, "", value)
    tally.report(capsys, "fields")


@in_parts
@pytest.mark.filterwarnings("ignore")
def test_operations(capsys, part):
    tally = Tally()
    for op, (_, params) in _pipeline.table().items():
        needed = {
            p.name: ["hflip"] if p.type == _pipeline.OPS else 7 for p in params if p.initial is None
        }

        def call(op=op, needed=needed, **given):
            if op == "resize" and "size" not in given:
                needed = {"max_side": 2**14}
            made = getattr(ops, op)(**{**needed, **given})
            assert _core.pipeline_check(str(made))

        for param in params:
            if param.type == _pipeline.OPS:  # see test_py_ops.test_wrong_compositions
                continue
            tally.counts["parameters"] += 1
            annotation = "str" if param.type == _pipeline.WORD else "float"
            for value in values_of(part, tally.counts["parameters"]):
                tally.judge(call, f"ops.{op}", param.name, annotation, value)
    tally.report(capsys, "operations")


@in_parts
@pytest.mark.filterwarnings("ignore")
def test_storage_options(capsys, part):
    tally = Tally()
    for name, annotation in penstock.StorageOptions.__annotations__.items():
        tally.counts["parameters"] += 1
        base = {"secret": {"key_id": "a"}, "token": {"key_id": "a", "secret": "b"},
                "key_id": {"secret": "b"}}.get(name, {})

        def call(base=base, **given):
            _remote.check("s3://bucket/a.pen", {**base, **given})

        for value in values_of(part, tally.counts["parameters"]):
            tally.judge(call, "storage_options", name, str(annotation), value)
    tally.report(capsys, "storage options")
