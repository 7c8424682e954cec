# SPDX-License-Identifier: Apache-2.0
"""A Ray cluster of several nodes on this machine, and the processes of its nodes."""

import contextlib
import importlib.util
import inspect
import logging
import os
import pathlib
import signal
import socket

import pytest

SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_memory_monitor_refresh_ms": "0",  # other tests use the memory of this machine, too
    # A raylet that was killed is noticed after 2.5 s instead of 15 s.
    "RAY_health_check_failure_threshold": "5",
    "RAY_health_check_period_ms": "500",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    # Workers have a low priority otherwise, and start too slowly on a busy machine.
    "RAY_worker_niceness": "0",
    "RAY_worker_register_timeout_seconds": "600",
}


def missing_ray():
    """Why Ray cannot run here; None if it can."""
    if "san.so" in os.environ.get("LD_PRELOAD", ""):
        return "Ray is not run under a sanitizer"
    return None if importlib.util.find_spec("ray") else "ray: not installed"


def need_ray():
    """Skips the file that calls it if Ray cannot run."""
    reason = missing_ray()
    if reason:
        pytest.skip(reason, allow_module_level=True)


@contextlib.contextmanager
def cluster(nodes):
    """A head without CPUs, where the driver is, and nodes with one CPU each."""
    os.environ.update(SETTINGS)
    import ray
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "include_dashboard": False, **node_settings()}
    with patient_raylets():
        running = Cluster(initialize_head=True, head_node_args=head)
        try:
            for _ in range(nodes):
                add_node(running)
            running.wait_for_nodes(600)
            ray.init(address=running.address, log_to_driver=False, logging_level=logging.ERROR)
            yield running
        finally:
            ray.shutdown()
            running.shutdown()


PORTS = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port",
         "runtime_env_agent_port")


def node_settings():
    with contextlib.ExitStack() as held:  # all at once, so that they differ
        sockets = [held.enter_context(socket.socket()) for _ in PORTS]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        ports = [one.getsockname()[1] for one in sockets]
    return {"object_store_memory": 80 << 20, **dict(zip(PORTS, ports))}


@contextlib.contextmanager
def patient_raylets():
    """A raylet fails if its agents have not chosen their ports after 15 s, as on a busy machine.
    Here the ports are chosen in advance, so that it need not wait for them."""
    from ray._private import services
    from ray._raylet import persist_port

    before = services.start_raylet

    def start(*args, **more):
        found = inspect.signature(before).bind(*args, **more).arguments
        for name in PORTS:
            persist_port(found["session_dir"], found["node_id"], name, found[name])
        return before(*args, **more)

    services.start_raylet = start
    try:
        yield
    finally:
        services.start_raylet = before


def add_node(running):
    return running.add_node(num_cpus=1, **node_settings())


def lose_node(running, node):
    """The node fails: its processes are gone at once."""
    top = raylet(node)
    for pid in [top, *children(top)]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    running.remove_node(node)


def raylet(node):
    """Process number of the node's raylet."""
    return node.all_processes["raylet"][0].process.pid


def children(pid):
    """All processes below it."""
    parents = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                text = (entry / "stat").read_text().rpartition(")")[2]
                parents.setdefault(int(text.split()[1]), []).append(int(entry.name))
    found, rest = [], [pid]
    while rest:
        below = parents.get(rest.pop(), [])
        found += below
        rest += below
    return found


def words(pid):
    """The command line of a process; [] if it has ended."""
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
    except OSError:
        return []


def programs(node):
    """{process number of a running penstock: that of its Ray worker}"""
    below = {pid: words(pid) for pid in children(raylet(node))}
    return {pid: int(found[found.index(child) + 1]) for pid, found in below.items()
            for child in found if child.endswith("penstock/ray/_child.py")}
