# SPDX-License-Identifier: Apache-2.0
"""The command `penstock-lab`. Each verb is a module of lab/verbs that is imported when it is used.

A verb module has HELP (the text of its --help), add_arguments(parser) and run(options), which
returns the exit code. Verbs that run experiments also have what experiment/command.py describes.
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
from typing import Any

from .._error import Error
from .errors import LabError

# The verb, which is also the name of its module, and what it does.
VERBS = {
    "run": "run the experiment that a TOML file describes",
    "resume": "continue a run that was interrupted",
    "rerun": "repeat a run from the first line of its report",
    "compare": "compare two reports: is the difference larger than the noise?",
    "advise": "find the cheapest configuration that reaches a rate",
    "growth": "measure what an image costs as threads, packs, batches and image sides grow",
    "mlperf": "count the accelerators that this host feeds, in the manner of MLPerf Storage",
    "seeds": "measure the figures of five published documents, beside theirs",
    "report": "make a page of runs: tables, plots, verdicts, commands to repeat them",
    "train": "train an image classifier: accuracy, and the time spent waiting for data",
    "shapes": "measure the simulated storages: do they hold within 5 %?",
    "accuracy": "accuracy against image quality and size, on a folder of images",
    "fashion": "the same on Fashion-MNIST",
    "analyse": "measure the images of a dataset: quality, sizes, statistics of the pixels",
    "sizes": "show what a dataset takes in other qualities and sizes, and what is lost",
    "load": "compare loaders: rate, waits, CPU time, memory and the bottleneck",
    "bottlenecks": "check that the bottleneck is named rightly where it is known",
    "timeline": "draw a trace: what each thread did over time",
    "clips": "compare loaders of video clips: size, rate, waits for data",
    "videos": "compare loaders of clips from kept videos: rate, CPU time, bytes",
    "loaders": "list loaders and scenarios",
    "setup": "install other loaders, to compare with",
}

USAGE = """usage: penstock-lab VERB [options]

Experiments on your data and your machine, with figures to choose by.

{verbs}

'penstock-lab VERB --help' describes a verb. Each run is a folder with one report.jsonl, whose first
line holds all parameters, the machine, the versions and the identity of the inputs.
"""


def usage() -> str:
    width = max(map(len, VERBS)) + 2
    return USAGE.format(verbs="\n".join(f"  {verb:<{width}}{text}" for verb, text in VERBS.items()))


def module(verb: str) -> Any:
    """The module of a verb."""
    return importlib.import_module(f".verbs.{verb}", __package__)


def parser(verb: str) -> argparse.ArgumentParser:
    found = module(verb)
    made = argparse.ArgumentParser(
        prog=f"penstock-lab {verb}",
        description=found.HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    found.add_arguments(made)
    return made


def fail(text: object, code: int) -> int:
    print(f"penstock-lab: {text}", file=sys.stderr)
    return code


def _run(words: list[str]) -> int:
    options = parser(words[0]).parse_args(words[1:])
    options.command = ["penstock-lab", *words]
    code: int = module(words[0]).run(options)
    return code


def main(words: list[str] | None = None) -> int:
    words = sys.argv[1:] if words is None else words
    if words[:1] in (["help"], ["-h"], ["--help"]) and words[1:2] and words[1] in VERBS:
        words = [words[1], "--help"]
    if not words or words[0] in ("help", "-h", "--help"):
        print(usage(), end="")
        return 0 if words else 2
    if words[0] not in VERBS:
        return fail(f"unknown verb '{words[0]}'; expected one of {', '.join(VERBS)}", 2)
    # As Ctrl-C, so that the processes of a run are stopped.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if hasattr(sys.stdout, "reconfigure"):  # names of files can have any bytes
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        return _run(words)
    except (LabError, Error) as error:
        return fail(error, 1)
    except KeyboardInterrupt as stopped:
        return fail(stopped.args[0] if stopped.args else "interrupted", 130)
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except OSError as error:  # such as a full disk
        named = f"'{os.fsdecode(error.filename)}': " if error.filename else ""
        return fail(f"{named}{error.strerror or error}", 1)
    except ModuleNotFoundError as error:
        return fail(f"needs the Python package {error.name}, which is not installed. "
                    "Run: pip install matplotlib numpy pillow", 1)
