# SPDX-License-Identifier: Apache-2.0
"""penstock.ops: functions made from the library's table."""

import copy
import inspect
import pathlib
import pickle
import sys

import pytest
from py_tools import need_penstock

penstock = need_penstock()

import ops_stub  # noqa: E402
from penstock import _core, _pipeline, ops  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
STUB = ROOT / "python" / "penstock" / "ops.pyi"
NAMES = sorted(_pipeline.table())


def full(pipeline):
    return _core.pipeline_check(_pipeline.text(pipeline))


@pytest.mark.parametrize("name", NAMES)
def test_signature_is_the_table_s(name):
    params = _pipeline.table()[name][1]
    signature = inspect.signature(getattr(ops, name))
    assert list(signature.parameters) == [param.name for param in params]
    for param in params:
        shown = signature.parameters[param.name].default
        assert (shown is inspect.Parameter.empty) == (param.initial is None)
        assert param.help in getattr(ops, name).__doc__
    assert name in ops.__all__


def test_stub_is_the_table_s():
    assert STUB.read_text() == ops_stub.stub(), "run tests/python/ops_stub.py"


def test_text_of_operations():
    assert repr(ops.random_resized_crop(224)) == "random_resized_crop 224"
    assert str(ops.resize((256, 320), "bicubic")) == "resize 256,320 bicubic"
    assert str(ops.random_resized_crop(9, ratio=(0.5, 2))) == "random_resized_crop 9 ratio=0.5,2"
    assert str(ops.tensor(layout="nchw")) == "tensor layout=nchw"
    assert str(ops.normalize(0.5, [0.25, 0.5, 1])) == "normalize 0.5 0.25,0.5,1"
    assert str(ops.hflip(1e-7)) == "hflip 1e-07"
    assert str(ops.color_jitter(0.4, hue=0.1)) == "color_jitter 0.4 hue=0.1"


def test_text_of_compositions():
    flip, gray = ops.hflip(1), ops.grayscale()
    assert repr(ops.random_apply([flip, gray], p=0.8)) == "random_apply 0.8 [hflip 1 | grayscale]"
    assert str(ops.random_apply(flip)) == "random_apply [hflip 1]"
    assert str(ops.random_apply("hflip 1 | vflip")) == "random_apply [hflip 1 | vflip]"
    two = ops.random_choice([flip, [gray, "vflip"]])
    assert str(two) == "random_choice [hflip 1] [grayscale | vflip]"
    assert str(ops.random_choice([flip, gray], (1, 2))) == "random_choice 1,2 [hflip 1] [grayscale]"
    nested = ops.random_order([flip, ops.random_apply([gray])])
    assert str(nested) == "random_order [hflip 1 | random_apply [grayscale]]"
    assert full(nested) == "random_order [hflip p=1 | random_apply p=0.5 [grayscale p=1]]"
    assert pickle.loads(pickle.dumps(nested)) == nested


@pytest.mark.parametrize(
    "make, kind, message",
    [
        (lambda: ops.random_apply(None), TypeError,
         "random_apply: ops: expected a text or a list of penstock.ops, found None"),
        (lambda: ops.random_apply([ops.hflip]), TypeError, None),
        (lambda: ops.random_apply([3]), TypeError,
         "random_apply: ops: expected operations of penstock.ops, found 3"),
        (lambda: ops.random_apply(ops.source("a")), penstock.InvalidError,
         "random_apply: ops: source cannot be inside another operation"),
        (lambda: ops.random_apply([ops.python(print)]), penstock.InvalidError,
         "random_apply: ops: python cannot be inside another operation"),
        (lambda: ops.random_choice(ops.hflip()), TypeError,
         "random_choice: ops: expected a list of alternatives, found hflip"),
        (lambda: ops.random_choice("hflip"), TypeError,
         "random_choice: ops: expected a list of alternatives, found 'hflip'"),
        (lambda: ops.random_choice(["hflip"], p=[]), penstock.InvalidError,
         "random_choice: p: expected at least one number, found []"),
        (lambda: ops.random_choice(["hflip"], p=[-1]), penstock.InvalidError, None),
        (lambda: full(ops.random_choice(["hflip"], p=[1, 2])), penstock.InvalidError,
         "pipeline: column 1: random_choice: p has 2 numbers for 1 bracket"),
        (lambda: full(ops.random_choice([])), penstock.InvalidError,
         "pipeline: column 1: random_choice needs operations in brackets: 'random_choice "
         "[hflip]'"),
        (lambda: full(ops.random_apply([])), penstock.InvalidError,
         "pipeline: column 15: expected an operation, found ']'"),
    ],
)
def test_wrong_compositions(make, kind, message):
    with pytest.raises(kind) as error:
        make()
    assert message is None or str(error.value) == message


def test_operations_and_text_give_the_same():
    made = [
        ops.decode(), ops.random_resized_crop(64, scale=(0.2, 1.0)), ops.hflip(1e-7),
        ops.color_jitter(0.4, (0.5, 1.5), hue=0.1), ops.normalize(0.5, 0.25),
        ops.tensor("f32", layout="nchw"),
    ]
    text = (
        "decode | random_resized_crop 64 scale=0.2,1 | hflip p=0.0000001 | color_jitter brightness="
        "0.4 contrast=0.5,1.5 hue=0.1 | normalize mean=0.5 std=0.25 | tensor dtype=f32 layout=nchw"
    )
    assert full(made) == full(text)
    assert full({"image": made, "label": "tensor i64"}) == full(f"image: {text}; label: tensor i64")
    assert full({"image": iter(made)}) == full(f"image: {text}")
    assert full({"label": ops.tensor("i64")}) == full("label: tensor i64")


@pytest.mark.parametrize("name", NAMES)
def test_defaults_are_the_library_s(name):
    """What the signature shows is what the library does without it."""
    params = _pipeline.table()[name][1]
    wanted = {_pipeline.NAME: "64", _pipeline.OPS: [ops.hflip()]}
    needed = [wanted.get(param.type, min(64, param.max))
              for param in params if param.initial is None]
    shown = {
        param.name: _pipeline.initial(param) for param in params if param.initial is not None
    }
    if name == "resize":  # one of two is required
        del shown["size"]
        needed = [64]
    op = getattr(ops, name)
    text = " ".join([name, *(f"{p.name}={p.initial}" for p in params if p.initial is not None)])
    assert str(op(*needed, **shown)) == str(op(*needed))
    if not needed and name not in ("decode", "tensor"):
        assert full(["decode", op(), "tensor f32"]) == full(["decode", text, "tensor f32"])


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: ops.hflip(2), "hflip: p: expected 0 to 1, found 2"),
        (lambda: ops.hflip(float("nan")), "hflip: p: expected 0 to 1, found nan"),
        (lambda: ops.random_resized_crop(224.5), "size: expected an integer, found 224.5"),
        (lambda: ops.random_resized_crop(224, scale=0.5), "scale: expected two numbers"),
        (lambda: ops.center_crop((1, 2, 3)), "size: expected one number or two"),
        (lambda: ops.resize(64, "bilinaer"), "did you mean 'bilinear'"),
        (lambda: ops.tensor("float32"), "tensor: dtype: expected one of auto, u8"),
    ],
)
def test_wrong_values(make, message):
    with pytest.raises(penstock.InvalidError, match=message):
        make()


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: ops.hflip("0.5"), "hflip: p: expected a number, found '0.5'"),
        (ops.center_crop, "missing 1 required positional argument: 'size'"),
        (lambda: ops.center_crop(size=3, p=1), "unexpected keyword argument 'p'"),
        (lambda: ops.resize(64, 3), "filter: expected one of"),
        (lambda: _pipeline.text([ops.decode]), r"<function decode.*; call it: ops.decode\(\)$"),
        (lambda: _pipeline.text({"image": [abs]}), "pipeline: image: .*use ops.python"),
    ],
)
def test_wrong_kinds(make, message):
    with pytest.raises(TypeError, match=message):
        make()


def test_mistake_in_a_text_has_its_place():
    with pytest.raises(penstock.InvalidError, match=r"rezise.*resize"):
        full("decode | rezise 64 | tensor u8")
    with pytest.raises(ValueError, match="null bytes"):
        full("decode\0")
    with pytest.raises(penstock.InvalidError, match="at least one field"):
        full({})


def test_operations_are_values():
    op = ops.center_crop(32)
    assert op == ops.center_crop(32) != ops.center_crop(33)
    assert {op: 1}[ops.center_crop(32)] == 1
    assert pickle.loads(pickle.dumps(op)) == copy.copy(op) == op


def test_the_table_of_operations_is_released():
    table = _core.ops()
    assert {sys.getrefcount(op) for op in table} == {3}  # the table, the set's loop, the argument
