# SPDX-License-Identifier: Apache-2.0
"""Worker processes for the tasks of a job. They are new interpreters: a program that calls
penstock.convert needs no guard around its main part."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any

from .._error import Error, InvalidError
from ._job import Job, Report, run_task

STOP_SECONDS = 10


class _Worker:
    def __init__(self, job: Job) -> None:
        self.connection, other = Pipe()
        paths = [path for path in sys.path if path]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        with other:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", __name__, str(other.fileno())],
                pass_fds=[other.fileno()],
                stdin=subprocess.DEVNULL,
                env=environment,
            )
        self.send(job)

    def send(self, what: Any) -> None:
        """A job or the number of a task. If the worker has ended, receive() reports it."""
        try:
            self.connection.send(what)
        except ConnectionError:
            pass

    def receive(self) -> Any:
        """A Report, an exception, or None if a task is done."""
        try:
            return self.connection.recv()
        except (EOFError, ConnectionError):
            code = self.process.wait()
            return Error(
                f"a worker process of convert ended with exit code {code}; if the machine is out "
                "of memory, use fewer workers"
            )

    def stop(self) -> None:
        self.connection.close()
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _check_picklable(job: Job) -> None:
    try:
        pickle.dumps(job)
    except Exception as error:  # functions can be part of storage_options
        raise InvalidError(
            f"a setting cannot be passed to worker processes; use workers=1: {error}"
        ) from None


def _start(worker: _Worker, tasks: list[int]) -> bool:
    """Give a worker its next task; False if there is none."""
    if not tasks:
        return False
    worker.send(tasks.pop(0))
    return True


def run(job: Job, tasks: Iterable[int], n_workers: int, tell: Callable[[Report], None]) -> None:
    """Run tasks in n_workers processes. Raises the first error of a task, and ends the others."""
    remaining = list(tasks)
    _check_picklable(job)
    workers: dict[Any, _Worker] = {}
    try:
        for _ in range(min(n_workers, len(remaining))):
            worker = _Worker(job)
            workers[worker.connection] = worker
        busy = {connection for connection, worker in workers.items() if _start(worker, remaining)}
        while busy:
            for connection in wait(busy):
                found = workers[connection].receive()
                if isinstance(found, BaseException):
                    raise found
                if isinstance(found, Report):
                    tell(found)
                elif not _start(workers[connection], remaining):
                    busy.remove(connection)
    finally:
        for worker in workers.values():
            worker.stop()


def serve(connection: Connection) -> None:
    """What a worker does. It ends when the other process ends."""
    try:
        job = connection.recv()
        reader = job.open()
        while True:
            run_task(job, reader, connection.recv(), connection.send)
            connection.send(None)
    except (EOFError, ConnectionError):
        return
    except Exception as error:
        connection.send(error)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other process ends this one
    serve(Connection(int(sys.argv[1])))
