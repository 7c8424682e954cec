# SPDX-License-Identifier: Apache-2.0
"""What the processes do that long_python.py starts: python _python_scenes.py SCENE ARGUMENT...

They need nothing but the package. What they tell goes to standard output, a line each; standard
error belongs to Python.
"""

import atexit
import copy
import gc
import itertools
import multiprocessing
import os
import pickle
import random
import re
import resource
import subprocess
import sys
import threading
import time
import traceback

if __name__ == "__main__":
    # Registered before the package's own, so that it runs behind it.
    at_the_end = []
    atexit.register(lambda: [call() for call in at_the_end])

import penstock

SCENES = {}
SMALL = "decode | center_crop 16 | tensor u8"
SLOW = "decode | resize 1200,1200 lanczos | color_jitter 0.5 0.5 0.5 0.2 | tensor f32"
CHILD_SECONDS = 30


def scene(call):
    SCENES[call.__name__] = call
    return call


def say(*words):
    print(*words, flush=True)


def now():
    """Seconds of a clock that all processes share."""
    return f"{time.monotonic():.6f}"


def make(path, **settings):
    base = {"batch_size": 8, "output": "dlpack", "threads": 2, "memory": "256MiB"}
    return penstock.Loader(path, **{**base, "pipeline": SMALL, "return_info": True, **settings})


def slow_loader(path, **settings):
    return make(path, **{"batch_size": 4, "memory": "1GiB", "pipeline": SLOW, **settings})


def for_ever(loader):
    while True:
        yield from loader


def numbers(batch):
    return [n for n, valid in zip(memoryview(batch.info.samples), memoryview(batch.info.valid))
            if valid]


def raised(kind, call, *args, **more):
    """The exception, which has to be one of this class."""
    try:
        call(*args, **more)
    except kind as error:
        return error
    raise AssertionError(f"{call} raised nothing")


class Stall:
    """Storage that answers, or not; as stalling_read.c does."""

    def __init__(self):
        self.flag = os.environ["STALL_WHILE"]

    def begin(self):
        with open(self.flag, "w", encoding="ascii"):
            pass

    def end(self):
        os.unlink(self.flag)


# ---- waiting


def stopwatch(call, *args):
    start = time.monotonic()
    result = call(*args)
    return time.monotonic() - start, result


def check_account(error, least):
    """Of a wait that was given up: what is being read, and for how long."""
    text = str(error)
    waited = re.search(r"no batch for (\d+\.\d) s", text)
    assert waited and 0 <= float(waited[1]) - least <= 9, text
    assert re.search(r"(locating|reading) sample \d+ for \d+\.\d s", text), text
    assert re.search(r"\(shard \d+, block \d+\)", text) and error.sample is not None, text
    assert isinstance(error, TimeoutError) and pickle.loads(pickle.dumps(error)).args == (text,)


@scene
def waits(path, rounds):
    """Every call comes back in time while the storage does not answer, and all goes on after."""
    stall, worst = Stall(), 0.0
    for turn in range(int(rounds)):
        loader = make(path, timeout=60, prefetch=2, subset=range(turn % 7, 64))
        taken = numbers(next(iter(loader)))
        stall.begin()
        other = make(path, timeout=1.0)
        batches = iter(other)
        spent, error = stopwatch(raised, penstock.TimeoutError, next, batches)
        check_account(error, 1.0)
        worst = max(worst, spent)
        spent, error = stopwatch(raised, penstock.TimeoutError, iter, other)
        check_account(error, 1.0)
        worst = max(worst, spent)
        spent, error = stopwatch(
            raised, penstock.TimeoutError, other.load_state_dict, other.state_dict()
        )
        check_account(error, 1.0)
        worst = max(worst, spent)
        raised(penstock.Error, next, batches)
        assert len(other) == 8 and other.stats()["batches"] == 0
        stall.end()
        found = [n for batch in other for n in numbers(batch)]
        assert found == list(range(64)), found
        other.close()
        taken += [n for batch in loader for n in numbers(batch)]
        assert taken[8:] == list(range(turn % 7, 64)), taken
    say(f"worst {worst:.3f}")


@scene
def begins_anew(path):
    """A pass that is waited for while another one begins gets none of its batches."""
    stall, errors = Stall(), []
    loader = make(path, timeout=60)
    for _ in range(3):
        stall.begin()
        old = iter(loader)
        waiting = threading.Thread(
            target=lambda b=old: errors.append(raised(penstock.Error, next, b))
        )
        waiting.start()
        threading.Timer(0.8, stall.end).start()
        time.sleep(0.15)
        found = [n for batch in loader for n in numbers(batch)]
        waiting.join(30)
        assert found == list(range(64)), found
    assert len(errors) == 3 and all("one pass at a time" in str(error) for error in errors), errors
    refused = raised(penstock.InvalidError, loader.load_state_dict, {"epoch": 1})
    batches = iter(loader)
    next(batches)
    raised(type(refused), loader.load_state_dict, {"epoch": 1})
    assert sum(1 for _ in batches) == 7


@scene
def closes(path):
    """Loaders whose storage does not answer are closed, or dropped, in bounded time."""
    stall, times = Stall(), []
    before = n_threads()
    for how in ("close", "drop", "close with a thread"):
        stall.begin()
        loader = make(path, timeout=60)
        batches = iter(loader)
        thread = threading.Thread(target=lambda b=batches: raised(penstock.ClosedError, next, b))
        if how == "close with a thread":
            thread.start()
        time.sleep(0.05)
        if how == "drop":
            start = time.monotonic()
            del loader, batches, thread
            spent = time.monotonic() - start
        else:
            spent, _ = stopwatch(loader.close)
        times.append(spent)
        if how == "close with a thread":
            thread.join(30)
            assert not thread.is_alive()
        stall.end()
    settle(lambda: n_threads() <= before)
    assert n_threads() <= before, (n_threads(), before)
    say(f"best {min(times):.3f}")
    say(f"worst {max(times):.3f}")


@scene
def counts_on(path, slow):
    """Other threads of Python run while next() waits: for storage, or for decoding."""
    stall, n, ended = Stall(), 0, False

    def count():
        nonlocal n
        while not ended:
            n += 1
            time.sleep(0.001)

    threading.Thread(target=count, daemon=True).start()
    stall.begin()
    batches, before = iter(make(path, timeout=1.0)), n
    raised(penstock.TimeoutError, next, batches)
    stalled = n - before
    stall.end()
    batches, before = iter(slow_loader(slow, threads=1)), n
    spent, _ = stopwatch(next, batches)
    ended = True
    say(f"stalled {stalled}")
    say(f"decoding {(n - before) / spent:.0f}")


# ---- fork


def read_ten(pack, turn):
    for i in range(10):
        sample = (turn + 7 * i) % len(pack)
        assert pack[sample]["label"] == sample % 3 and pack.key(sample) == f"s{sample}"
        assert pack[sample]["image"][1:4] == b"PNG"


class Parent:
    """A process whose loader is busy: eight threads of the library, and some of Python's that take
    batches from it, one pass after the other."""

    def __init__(self, path):
        self.pack = penstock.open(path)
        self.loader = make(self.pack, threads=8, prefetch=6, io_threads=4)
        self.batches = iter(self.loader)
        self.held = next(self.batches)
        self.first = bytes(memoryview(self.held.image))
        self.state = self.loader.state_dict()
        self.other = make(self.pack, threads=2)
        self.second = iter(self.other)
        self.ended = False
        self.threads = [threading.Thread(target=self.take) for _ in range(2)]
        for thread in self.threads:
            thread.start()

    def take(self):
        """From the second loader; whoever ends a pass begins the next."""
        while not self.ended:
            try:
                for batch in self.second:
                    assert numbers(batch)
                    if self.ended:
                        return
                self.second = iter(self.other)
            except penstock.Error as error:
                if "one pass at a time" not in str(error):
                    raise

    def next_own(self):
        try:
            next(self.batches)
        except StopIteration:
            self.batches = iter(self.loader)

    def end(self):
        self.ended = True
        for thread in self.threads:
            thread.join()
        self.loader.set_epoch(0)
        found = [n for batch in self.loader for n in numbers(batch)]
        assert found == list(range(len(self.pack))), found


def opens_anew(parent, turn):
    with penstock.open(parent.pack.path) as pack:
        read_ten(pack, turn)


def uses_the_pack(parent, turn):
    read_ten(parent.pack, turn)
    assert pickle.loads(pickle.dumps(parent.pack)).id == parent.pack.id


def uses_the_loader(parent, turn):
    for loader, batches in ((parent.loader, parent.batches), (parent.other, parent.second)):
        for call in (
            lambda b=batches: next(b), lambda s=loader: iter(s), lambda s=loader: len(s),
            loader.stats, loader.state_dict, lambda s=loader: s.set_epoch(turn),
            lambda s=loader: s.load_state_dict(parent.state),
        ):
            error = raised(penstock.ClosedError, call)
            assert "parent process" in str(error), error
        assert loader.dataset.path in repr(loader)
        loader.close()
    assert bytes(memoryview(parent.held.image)) == parent.first
    parent.held = None


def makes_a_loader(parent, turn):
    with make(parent.pack, threads=1 + turn % 3) as loader:
        assert bytes(memoryview(next(iter(loader)).image)) == parent.first


KINDS = (opens_anew, uses_the_pack, uses_the_loader, makes_a_loader)


def wait_for_child(pid):
    """Its exit code, or None when it hangs."""
    deadline = time.monotonic() + CHILD_SECONDS
    while time.monotonic() < deadline:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return None


@scene
def forks(path, n):
    """Half of the children end as programs do, with all that is done then."""
    parent, bad, rng = Parent(path), 0, random.Random(4)
    for turn in range(int(n)):
        use, whole = KINDS[turn % len(KINDS)], turn // len(KINDS) % 2
        parent.next_own()
        time.sleep(rng.uniform(0, 0.003))
        pid = os.fork()
        if pid == 0:
            try:
                use(parent, turn)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            if whole:
                parent.ended = True
                sys.exit(0)
            os._exit(0)
        code = wait_for_child(pid)
        if code != 0:
            bad += 1
            print(f"fork {turn}, {use.__name__}: exit {code}", file=sys.stderr)
    parent.end()
    say(f"bad {bad}")


def in_worker(pack, sample):
    read_ten(pack, sample)
    loader = make(pack)
    return loader.dataset.path, numbers(next(iter(loader))), os.getpid()


def fails_in_worker(path):
    penstock.open(path)


@scene
def starts(path, n):
    """Packs go to other processes, whichever way these are started; errors come back."""
    pack = penstock.open(path)
    batches = iter(make(pack))
    next(batches)
    for how in ("spawn", "forkserver", "fork"):
        context = multiprocessing.get_context(how)
        with context.Pool(2) as pool:
            args = [(pack, i) for i in range(int(n))]
            for where, found, pid in pool.starmap(in_worker, args, chunksize=1):
                assert where == pack.path and found == list(range(8)) and pid != os.getpid()
            error = raised(penstock.NotFoundError, pool.apply, fails_in_worker, (path + ".no",))
            assert isinstance(error, FileNotFoundError) and "no such file" in str(error)
            pool.close()
            pool.join()
    assert sum(1 for _ in batches) == 7


# ---- Ctrl-C: each scene goes on for ever; run() tells when the interrupt has come


@scene
def int_stalled(path, turn):
    """Odd turns: with another thread that waits for the same pass."""
    Stall().begin()
    batches = iter(make(path, timeout=60))
    if int(turn) % 2:
        threading.Thread(target=lambda: next(batches), daemon=True).start()
    say("ready")
    next(batches)


@scene
def int_beginning(path, turn):
    """In iter(), which waits for the pass before; or in load_state_dict()."""
    Stall().begin()
    loader = make(path, timeout=60)
    iter(loader)
    time.sleep(0.05)
    say("ready")
    if int(turn) % 2:
        loader.load_state_dict(loader.state_dict())
    else:
        iter(loader)


@scene
def int_decoding(slow, turn):
    loader = slow_loader(slow)
    say("ready")
    for _ in for_ever(loader):
        pass


@scene
def int_opening(path, turn):
    say("ready")
    while True:
        loader = make(path, threads=1)
        if int(turn) % 2:
            loader.close()


@scene
def int_opening_stalled(path, turn):
    Stall().begin()
    say("ready")
    penstock.open(path)


@scene
def int_closing(slow, turn):
    say("ready")
    while True:
        loader = slow_loader(slow, threads=2)
        batches = iter(loader)
        if int(turn) % 2:
            loader.close()
        del loader, batches


@scene
def int_writing(path, turn):
    with penstock.open(path) as pack:
        images = [sample["image"] for sample in pack]
    say("ready")
    with penstock.Writer(f"{path}-{turn}", {"image": "image"}, block_samples=4) as writer:
        for image in itertools.cycle(images):
            writer.add(image=image)


@scene
def int_between(path, turn):
    loader = make(path)
    say("ready")
    for batch in for_ever(loader):
        if int(turn) % 2:
            time.sleep(0.003)
        sum(memoryview(batch.label))


# ---- the end of the interpreter


def begin(path, **settings):
    """A loader in the middle of a pass."""
    loader = make(path, **settings)
    batches = iter(loader)
    return loader, batches, next(batches)


@scene
def exit_normal(path):
    loader = make(path)
    assert sum(1 for _ in loader) == 8


@scene
def exit_exception(path):
    for _ in make(path):
        raise ValueError("on purpose")


@scene
def exit_sys_exit(path):
    for _ in make(path):
        sys.exit(3)


@scene
def exit_global(path):
    globals()["kept"] = begin(path)


@scene
def exit_cycle(path):
    gc.disable()
    box = [begin(path)]
    box.append(box)
    box[0][0].me = box


@scene
def exit_daemon_thread(path):
    """Which takes batches from one pass after the other until the end, or a little longer."""
    def take(loader):
        for batch in for_ever(loader):
            assert numbers(batch)

    for loader in make(path), make(path, batch_size=1):
        threading.Thread(target=take, args=[loader], daemon=True).start()
    time.sleep(random.uniform(0.05, 0.15))


@scene
def exit_daemon_decoding(slow):
    loader = slow_loader(slow)
    threading.Thread(target=lambda: list(loader), daemon=True).start()
    time.sleep(0.1)


@scene
def exit_signal(path):
    for _ in make(path):
        say("ending", now())
        os.kill(os.getpid(), 15)
        time.sleep(10)


@scene
def exit_at_once(path):
    for _ in make(path):
        say("ending", now())
        os._exit(5)


@scene
def exit_subprocess(path):
    kept = begin(path)
    done = subprocess.run([sys.executable, __file__, "exit_global", path], check=True)
    assert done.returncode == 0 and kept


@scene
def exit_order(path):
    """Functions for the end: those registered behind the package's run before it, with a loader
    that works; those before it see one that is closed."""
    loader, batches, _ = begin(path)

    def before():
        assert numbers(next(batches)) == list(range(8, 16))
        say("before")

    def behind():
        raised(penstock.ClosedError, next, batches)
        raised(penstock.ClosedError, iter, loader)
        with make(path) as late:
            assert len(late) == 8
        globals()["late"] = begin(path)
        say("behind")

    atexit.register(before)
    at_the_end.append(behind)


@scene
def exit_stalled(path):
    """Two loaders, and the storage does not answer any of them."""
    Stall().begin()
    loaders = [make(path, timeout=60) for _ in range(2)]
    globals()["kept"] = [iter(loader) for loader in loaders]
    threading.Thread(target=lambda: next(kept[0]), daemon=True).start()  # noqa: F821
    time.sleep(0.1)


# ---- what is left behind


def n_threads():
    return len(os.listdir("/proc/self/task"))


def n_files():
    return len(os.listdir("/proc/self/fd"))


def n_shared():
    """What this process maps of it, or has put there under its number: others use it, too."""
    with open("/proc/self/maps", encoding="utf-8") as file:
        mapped = sum("/dev/shm/" in line for line in file)
    return mapped + sum(str(os.getpid()) in name for name in os.listdir("/dev/shm"))


def resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def settle(is_so):
    """Threads that were joined are gone from the process a moment later."""
    deadline = time.monotonic() + 20
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.01)


def live_once(path, damaged, turn):
    if turn % 3 == 0:
        with make(path) as loader:
            next(iter(loader))
    elif turn % 3 == 1:
        begin(path)
    else:
        loader = make(damaged)
        batches = iter(loader)
        # Without a name for the error, whose frames would hold it, and all else, until the next gc.
        assert raised(penstock.CorruptError, list, batches).sample == 11
        if turn % 2:
            loader.close()


@scene
def lives(path, damaged, n):
    for turn in range(int(n)):
        live_once(path, damaged, turn)
        if turn == 99:
            gc.collect()
            settle(lambda: n_threads() == 1)
            files, threads, shared, memory = n_files(), n_threads(), n_shared(), resident()
    gc.collect()
    settle(lambda: n_threads() == threads)
    say(f"files {n_files() - files}")
    say(f"threads {n_threads() - threads}")
    say(f"shared {n_shared() - shared}")
    say(f"memory {resident() - memory}")


# ---- holding, sharing, errors


@scene
def holds(path, rounds):
    """list(loader) ends at the limit of memory with an error that says so; then all goes on."""
    worst, most = 0.0, 0
    for _ in range(int(rounds)):
        loader = make(path, batch_size=1, memory="16MiB", threads=1, timeout=60)
        held = []

        def hoard(loader=loader, held=held):
            for _ in range(1000):
                held.extend(loader)

        spent, error = stopwatch(raised, penstock.LimitError, hoard)
        assert "held by the caller" in str(error) and "memory=16777216" in str(error), error
        worst, most = max(worst, spent), max(most, len(held))
        spent, _ = stopwatch(raised, penstock.LimitError, next, iter(loader))
        worst = max(worst, spent)
        del held[:]
        loader.set_epoch(0)
        assert [n for batch in loader for n in numbers(batch)] == list(range(64))
    say(f"worst {worst:.3f}")
    say(f"batches {most}")


@scene
def shares(path, passes):
    """Every batch of a pass goes to one of its threads, in whatever order they come."""
    loader, turns = make(path, batch_size=2, shuffle=True), [0] * 4
    for _ in range(int(passes)):
        batches, found, errors = iter(loader), [], []

        def take(number, batches=batches, found=found, errors=errors):
            try:
                for batch in batches:
                    turns[number] += 1
                    found.extend(numbers(batch))
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=take, args=[i]) for i in range(len(turns))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
            assert not thread.is_alive(), "a thread hangs"
        assert not errors and sorted(found) == list(range(64)), (errors, found)
    say(f"took {' '.join(map(str, sorted(turns)))}")


@scene
def pickles(path, damaged):
    """Every class of error, and those that the library raises, with all that they carry."""
    kinds = penstock.Error.__subclasses__()
    errors = [kind(f"{kind.__name__} ü", sample=7, where="a/b", os_errno=5) for kind in kinds]
    errors.append(raised(penstock.CorruptError, list, make(damaged)))
    errors.append(raised(penstock.NotFoundError, penstock.open, path + ".no"))
    errors.append(raised(penstock.InvalidError, make, path, pipeline="decode | tensr u8"))
    for error in errors:
        protocols = range(pickle.HIGHEST_PROTOCOL + 1)
        for again in [copy.copy(error), copy.deepcopy(error)] + [
            pickle.loads(pickle.dumps(error, protocol)) for protocol in protocols
        ]:
            for name in ("args", "status", "sample", "where", "errno", "strerror"):
                assert getattr(again, name, None) == getattr(error, name, None), (error, name)
            assert type(again) is type(error) and str(again) == str(error)
    assert {error.status for error in errors} >= set(range(-15, 0))
    say(f"errors {len(errors)}")


def run(name, *args):
    try:
        SCENES[name](*args)
    except KeyboardInterrupt:
        say("interrupted", now())
        raise
    finally:
        if name.startswith("exit_"):
            say("ending", now())


if __name__ == "__main__":
    run(*sys.argv[1:])
