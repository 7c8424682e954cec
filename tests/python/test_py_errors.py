# SPDX-License-Identifier: Apache-2.0
"""penstock.Error and its kinds."""

import builtins
import errno
import pickle

import pytest
from py_tools import need_penstock

penstock = need_penstock()

from penstock import _core, _error  # noqa: E402


def failures():
    return {name: value for name, value in _core.STATUS.items() if value < 0}


def test_every_status_has_its_class():
    assert set(_error.KINDS) == set(failures().values())
    for name, value in failures().items():
        kind = _error.KINDS[value]
        made = _error.make(value, 0, 3, "a/b", "x: expected y")
        assert type(made) is kind and made.status == value
        assert kind.__name__ in penstock.__all__, name


@pytest.mark.parametrize("kind", _error.KINDS.values(), ids=lambda kind: kind.__name__)
def test_errors_pickle(kind):
    error = kind("x: expected y", sample=3, where="a/b", os_errno=errno.EIO)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind and str(again) == str(error) == "x: expected y"
    assert (again.sample, again.where, again.status) == (3, "a/b", kind.status)
    assert getattr(again, "errno", None) == getattr(error, "errno", None)


def test_python_s_own_classes_catch_them():
    pairs = [
        (penstock.NotFoundError, FileNotFoundError), (penstock.NotFoundError, KeyError),
        (penstock.TimeoutError, builtins.TimeoutError), (penstock.InvalidError, ValueError),
        (penstock.ReadWriteError, OSError), (penstock.ExistsError, FileExistsError),
        (penstock.AccessError, PermissionError), (penstock.NoMemoryError, MemoryError),
    ]
    for kind, base in pairs:
        assert issubclass(kind, base) and issubclass(kind, penstock.Error)
    assert issubclass(penstock.Error, RuntimeError)


def test_system_errors_have_a_number():
    assert penstock.NotFoundError("x").errno == errno.ENOENT
    assert _error.make(-5, errno.ENOSPC, -1, "io/sink", "x").errno == errno.ENOSPC
    assert _error.make(-5, 0, -1, "io/sink", "x").sample is None


def test_unknown_status_is_an_error_all_the_same():
    made = _error.make(-99, 0, -1, "a", "b")
    assert type(made) is penstock.Error and made.status == -99


def test_messages_are_one_line(tmp_path):
    with pytest.raises(penstock.Error) as caught:
        penstock.open(tmp_path)
    assert "\n" not in str(caught.value) and caught.value.where.startswith(("pack/", "io/"))
    assert str(caught.value).count(str(tmp_path)) == 1
