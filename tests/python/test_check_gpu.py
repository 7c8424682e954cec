# SPDX-License-Identifier: Apache-2.0
"""tools/check_gpu.py with a device that exists in software alone. Its copies run as late as they
can, from the memory where the batch was, so that a slot which is reused too early is noticed."""

import ctypes
import importlib.util
import json
import subprocess
import sys
import time
import warnings

import pytest
from example_tools import ROOT, need
from py_tools import need_penstock

penstock = need_penstock()
need("torch", "numpy")

import torch  # noqa: E402
from penstock import torch as penstock_torch  # noqa: E402

TOOL = ROOT / "tools" / "check_gpu.py"
CHECKS = [
    "batches are pinned", "a copy does not wait for the device",
    "batches stay intact, default stream", "batches stay intact, another stream",
    "copies overlap with computation",
]


def load_tool():
    spec = importlib.util.spec_from_file_location("check_gpu", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.BATCHES = 4
    return module


check_gpu = load_tool()


class Event:
    """Has passed when the device has come to it."""

    def __init__(self, device):
        self.device, self.passed = device, False

    def query(self):
        return self.passed

    def synchronize(self):
        while not self.passed:
            self.device.step()


class LateDevice:
    """A queue of copies and events, which moves only when somebody waits for it."""

    name = "a device in software"

    def __init__(self):
        self.queue, self.locked, self.current, self.ms = [], {}, 0, [0, 0]

    # As penstock.torch uses CUDA.

    def register(self, address, size):
        self.locked[address] = size

    def unregister(self, address):
        del self.locked[address]

    def record(self):
        event = Event(self)
        self.queue.append(lambda: setattr(event, "passed", True))
        return event

    # As the tool uses it.

    def loader(self, pack, **settings):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # there is no CUDA
            loader = penstock.Loader(pack, pin_memory=True, **settings)
        self.pin(loader)
        return loader

    def pin(self, loader):
        limit = loader.stats()["slots_limit"]
        loader._output._pinner = penstock_torch.Pinner(self, limit)

    def step(self):
        self.queue.pop(0)()

    def synchronize(self):
        while self.queue:
            self.step()

    def delay(self, ms):
        self.ms[self.current] += ms

    def copy(self, tensor):
        made = torch.empty_like(tensor)
        source, target, size = tensor.data_ptr(), made.data_ptr(), tensor.nbytes
        self.queue.append(lambda made=made: ctypes.memmove(target, source, size))
        self.ms[self.current] += 1
        return made

    def is_pinned(self, tensor):
        at = tensor.data_ptr()
        return any(start <= at < start + size for start, size in self.locked.items())

    def stream(self):
        return self

    def __enter__(self):
        self.current = 1

    def __exit__(self, *exc):
        self.current = 0

    def elapsed_ms(self, work):
        self.ms = [0, 0]
        work()
        self.synchronize()
        return self.together(self.ms)

    together = staticmethod(max)


class Unpinned(LateDevice):
    """Slots are neither locked nor kept for their copies."""

    def pin(self, loader):
        pass


class Waits(LateDevice):
    def copy(self, tensor):
        time.sleep(0.06)
        return super().copy(tensor)


class OneAfterTheOther(LateDevice):
    together = staticmethod(sum)


def run(device, folder):
    code = check_gpu.main(["--json", str(folder / "r.json"), "--seconds", "0.01"], device)
    report = json.loads((folder / "r.json").read_text())
    assert [check["check"] for check in report["checks"]] == CHECKS
    assert all(rate > 0 for rate in report["rates"].values()) and len(report["rates"]) == 3
    return code, [check["check"] for check in report["checks"] if not check["passed"]]


def test_a_good_device_passes(tmp_path, capsys):
    assert run(LateDevice(), tmp_path) == (0, [])
    printed = capsys.readouterr().out
    assert "5 passed, 0 failed" in printed and "device_pinned_images_per_second" in printed


@pytest.mark.parametrize("device, failed", [
    (Unpinned, [CHECKS[0], CHECKS[2], CHECKS[3]]),
    (OneAfterTheOther, [CHECKS[4]]),
])
def test_a_bad_device_fails(device, failed, tmp_path):
    assert run(device(), tmp_path) == (1, failed)


def test_a_copy_that_waits_is_noticed(tmp_path):
    pack = check_gpu.draw_pack(tmp_path)
    check = check_gpu.check_asynchronous(Waits(), pack)
    assert not check["passed"] and float(check["found"].split()[0]) > 50


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_cuda_it_says_so_and_ends(tmp_path):
    done = subprocess.run([sys.executable, TOOL], cwd=tmp_path, timeout=60, check=False,
                          capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (77, "")
    assert "not run: PyTorch finds no CUDA device" in done.stdout
    assert list(tmp_path.iterdir()) == []
