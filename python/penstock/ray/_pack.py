# SPDX-License-Identifier: Apache-2.0
"""Packs on a Ray cluster: plans, runs the tasks as Ray tasks, and finalises."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from .. import _core, _error
from . import _program, _task
from ._account import Account, of_result
from ._progress import Meter, Printer, Progress

Paths = str | os.PathLike[str]
POLL_S = 0.5
CANCEL_S = 30.0
STARVED_S = 60.0
TASK_BYTES = 1 << 30
FEW_TASKS, FEW_TASK_BYTES = 16, 1 << 24
MOST_TASKS = 1000
# Options of `penstock pack` that are set here, or have no meaning for tasks.
RESERVED = ("task", "append", "bad_report", "out", "json", "help")
PACK_ONLY = ("max_bad",)
REMOTE = (
    "endpoint", "region", "profile", "no_sign", "requester_pays", "allow_http", "ca", "work",
)


def need_ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise ImportError(
            "packing on Ray needs the package ray; install it with: pip install 'ray[data]'"
        ) from error
    return ray


@dataclasses.dataclass(frozen=True)
class Job:
    """Everything a run needs."""

    words: tuple[str, ...]  # sources, and options that `penstock plan` and `pack` share
    out: str
    pack_words: tuple[str, ...] = ()  # options of `pack` only
    remote_words: tuple[str, ...] = ()  # options that `finalise` has, too
    tasks: int | None = None
    threads: int | None = None
    resources: Mapping[str, float] = dataclasses.field(default_factory=dict)
    retries: int = 10
    wait_s: int = 3600
    ray_remote_args: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def check(self) -> None:
        if not self.words:
            raise _error.InvalidError("source: expected a path or a URL, found none")
        least = {"tasks": 1, "threads": 1, "retries": 0, "wait_s": 0}
        for field, limit in least.items():
            name, value = field.removesuffix("_s"), getattr(self, field)
            if value is None and field in ("tasks", "threads"):
                continue
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name}: expected an int, found {type(value).__name__}")
            if value < limit:
                raise _error.InvalidError(f"{name}: expected {limit} or more, found {value}")
        for name, amount in self.resources.items():
            if not isinstance(amount, (int, float)) or not amount >= 0:
                raise _error.InvalidError(f"resources: {name}: expected 0 or more, found {amount}")

    def remote_args(self) -> dict[str, Any]:
        """Arguments of ray.remote."""
        names = {"CPU": "num_cpus", "GPU": "num_gpus", "memory": "memory"}
        wanted = {"CPU": 1, **self.resources}
        found: dict[str, Any] = {
            names[name]: amount for name, amount in wanted.items() if name in names
        }
        others = {name: amount for name, amount in wanted.items() if name not in names}
        return {
            **found,
            "resources": others,
            "max_retries": self.retries,
            "retry_exceptions": [_task.LostError],
            **self.ray_remote_args,
        }

    def n_threads(self) -> int:
        return self.threads or max(1, int(self.remote_args()["num_cpus"]))


def default_tasks(samples: int, source_bytes: int) -> int:
    """A function of the inputs alone: the bytes of a pack depend on the number of tasks, and should
    not on the size of the cluster."""
    tasks = math.ceil(source_bytes / TASK_BYTES)
    tasks = max(tasks, min(FEW_TASKS, math.ceil(source_bytes / FEW_TASK_BYTES)))
    return max(1, min(tasks, MOST_TASKS, samples))


@contextlib.contextmanager
def _board() -> Iterator[Any]:
    """The actor for the progress. It starts while the driver plans. On this node and no other (not
    soft), or else it can be lost with another node, and then nobody can stop the tasks."""
    ray = need_ray()
    here = ray.get_runtime_context().get_node_id()
    affinity = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(here, soft=False)
    options = {"num_cpus": 0, "scheduling_strategy": affinity}
    board = ray.remote(_task.Board).options(**options).remote()
    try:
        yield board
    finally:
        with contextlib.suppress(Exception):  # Ray may be gone
            ray.kill(board)


class _Run:
    """The Ray tasks of one pack."""

    def __init__(self, job: Job, spec: _task.Spec, meter: Meter, board: Any) -> None:
        ray = self.ray = need_ray()
        self.meter, self.board = meter, board
        task = ray.remote(_task.run).options(**job.remote_args())
        self.pending = {task.remote(spec, i, self.board): i for i in range(spec.n_tasks)}
        self.reading = self.board.read.remote()

    def _read_board(self) -> None:
        """Never waits: without the actor there is no progress, but a pack."""
        if not self.ray.wait([self.reading], timeout=0)[0]:
            return
        with contextlib.suppress(self.ray.exceptions.RayError):
            self.meter.running(*self.ray.get(self.reading))
        self.reading = self.board.read.remote()

    def step(self) -> bool:
        """Waits for a moment. False when all tasks are complete."""
        done, _ = self.ray.wait(list(self.pending), timeout=POLL_S)
        self._read_board()
        for ref in done:
            task = self.pending.pop(ref)
            self.meter.complete(task, self._result(ref, task))
        return bool(self.pending)

    def _result(self, ref: Any, task: int) -> Mapping[str, Any]:
        try:
            result: dict[str, Any] = self.ray.get(ref)
        except self.ray.exceptions.RayError as error:
            raise self._explain(error, task) from None
        if "error" in result:
            raise result["error"]
        return result

    def _explain(self, error: Exception, task: int) -> _error.Error:
        cause = getattr(error, "cause", None) or error
        text = str(cause).strip().splitlines()
        if any("No module named 'penstock'" in line for line in text):
            return _error.InvalidError(
                "a node cannot import penstock; install the same version on all nodes"
            )
        why = text[-1] if isinstance(cause, _task.LostError) else text[0] if text else ""
        return _error.Error(
            f"task {task} failed in all of its attempts; the last one: "
            f"{type(cause).__name__}: {why}"
        )

    def finish_count(self) -> None:
        """The last starts, for the account."""
        self.ray.wait([self.reading], timeout=5)
        self._read_board()
        self.ray.wait([self.reading], timeout=5)
        self._read_board()

    def _wait_for_all(self) -> None:
        if not self.pending:
            return
        refs = list(self.pending)
        for ref in self.ray.wait(refs, num_returns=len(refs), timeout=CANCEL_S)[0]:
            del self.pending[ref]

    def cancel(self) -> None:
        """Asks the tasks to stop; those that do not in time are killed. ray.cancel is not the first
        step: Ray 2.60 ends the driver if a task completes while it is cancelled."""
        with contextlib.suppress(Exception):  # Ray may be gone
            self.board.stop.remote()
            self._wait_for_all()
            for ref in self.pending:
                self.ray.cancel(ref, force=True)
            self._wait_for_all()


def _warn_starved(run: _Run, job: Job, printer: Printer | None) -> None:
    wanted = ", ".join(f"{n} {a:g}" for n, a in {"CPU": 1, **job.resources}.items())
    if printer:
        printer.message(
            f"no task has started in {STARVED_S:.0f} s: the cluster has no free node with {wanted}"
        )


def _run_tasks(job: Job, run: _Run, meter: Meter, call: Callable[[Progress], None]) -> None:
    printer = call if isinstance(call, Printer) else None
    starved_at = time.monotonic() + STARVED_S
    try:
        while run.step():
            call(meter.progress(time.monotonic()))
            if not meter.any_started and time.monotonic() > starved_at:
                starved_at = math.inf
                _warn_starved(run, job, printer)
        run.finish_count()
    except BaseException:
        run.cancel()
        raise


def _nothing(_progress: Progress) -> None:
    pass


def _exists(out: str, error: _error.Error) -> _error.Error:
    """The program names an option that tasks do not have."""
    if "the pack already exists" not in str(error):
        return error
    text = f"{out}: the pack already exists; choose another name"
    if _task.is_remote(out):
        text += (
            "; if an earlier run was stopped while it published the pack, "
            f"'penstock finalise {out}' ends it"
        )
    return _error.ExistsError(text)


def run_job(job: Job, call: Callable[[Progress], None] | None) -> Account:
    """Packs. Ray has to be initialized."""
    job.check()
    with _board() as board:
        return _pack_with(board, job, call or _nothing)


def _pack_with(board: Any, job: Job, call: Callable[[Progress], None]) -> Account:
    start, cwd = time.monotonic(), os.getcwd()
    wait = ("--wait", str(job.wait_s))
    call(Progress(stage="plan"))
    shared = (*job.words, *job.remote_words)
    try:
        plan = _program.good(["plan", *shared, "-o", job.out, *wait], cwd)
    except _error.ExistsError as error:
        raise _exists(job.out, error) from None
    n_tasks = job.tasks or default_tasks(plan["samples"], plan["source_bytes"])
    words = (*shared, *job.pack_words, "--threads", str(job.n_threads()))
    spec = _task.Spec(words, job.out, n_tasks, job.wait_s, cwd, _core.version)
    meter = Meter(n_tasks, plan["samples"], start)
    try:
        _run_tasks(job, _Run(job, spec, meter, board), meter, call)
        call(dataclasses.replace(meter.progress(time.monotonic()), stage="finalise"))
        result = _program.good(["finalise", job.out, *job.remote_words, *wait], cwd)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"{meter.tasks_done} of {n_tasks} tasks are complete; run the same command again to "
            "continue"
        ) from None
    report = result.get("bad_report")
    seconds = time.monotonic() - start
    return of_result(result, seconds, n_tasks, meter.retries, report)


def _word(value: object) -> str:
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def program_options(given: Mapping[str, object], names: Collection[str]) -> tuple[str, ...]:
    """Arguments of Python as those of the program: no_index=True becomes --no-index, and a list
    gives the option several times."""
    words: list[str] = []
    for name in names:
        value = given.get(name)
        if value is None or value is False:
            continue
        for one in value if isinstance(value, (list, tuple)) else (value,):
            words.append("--" + name.replace("_", "-"))
            if one is not True:
                words.append(_word(one))
    return tuple(words)


def _sources(source: Paths | Sequence[Paths]) -> tuple[str, ...]:
    given = [source] if isinstance(source, (str, os.PathLike)) else list(source)
    return tuple(map(absolute, given))


def absolute(path: Paths) -> str:
    """The same file for a process in another directory."""
    text = os.fspath(path)
    return text if _task.is_remote(text) else os.path.abspath(text)


def start_ray(address: str | None) -> None:
    """Connects to a cluster, or starts Ray on this machine, unless that was done."""
    ray = need_ray()
    if not ray.is_initialized():
        ray.init(address=address, log_to_driver=False, logging_level="WARNING")


def pack(
    source: Paths | Sequence[Paths],
    out: Paths,
    *,
    tasks: int | None = None,
    resources: Mapping[str, float] | None = None,
    threads: int | None = None,
    retries: int = 10,
    wait: int = 3600,
    address: str | None = None,
    ray_remote_args: Mapping[str, Any] | None = None,
    progress: bool | Callable[[Progress], None] = True,
    **options: object,
) -> Account:
    """Packs on a Ray cluster, with the same bytes as `penstock pack --task` writes without Ray.

    If it was interrupted, the same call continues: complete tasks are not run again.

    source           as of `penstock pack`: a folder, list, tar files or URLs; one or several
    out              NAME.pen in a directory that all nodes share, or an s3:// URL
    tasks            number of tasks; None = one per GiB of inputs, at least 16 from 256 MiB
                     on, and at most 1,000. The bytes of a pack depend on it
    resources        what a task needs, such as {"CPU": 4, "memory": 2e9}; 1 CPU by default
    threads          threads of a task; None = its CPUs
    retries          how often Ray runs a task again that was lost with its node or worker, or that
                     failed to read or write
    wait             seconds to wait for another process that writes the same task
    address          of the cluster, for ray.init; None = as ray.init() finds it
    ray_remote_args  further arguments of ray.remote for the tasks
    progress         True prints to stderr; or a function that is called with a Progress
    options          options of `penstock pack`, with underscores: mode="encode", no_index=True

    Credentials are those of each node: its environment, files or instance role.
    """
    for name in RESERVED:
        if name in options:
            raise _error.InvalidError(f"{name}: packing on Ray has no such option")
    shared = [name for name in options if name not in PACK_ONLY + REMOTE]
    job = Job(
        words=(*_sources(source), *program_options(options, shared)),
        out=absolute(out),
        pack_words=program_options(options, PACK_ONLY),
        remote_words=program_options(options, REMOTE),
        tasks=tasks, threads=threads, resources=resources or {}, retries=retries, wait_s=wait,
        ray_remote_args=ray_remote_args or {},
    )
    job.check()
    start_ray(address)
    if callable(progress):
        return run_job(job, progress)
    printer = Printer() if progress else None
    try:
        return run_job(job, printer)
    finally:
        if printer:
            printer.close()
