# SPDX-License-Identifier: Apache-2.0
"""One side of bench/augment_speed.py, in an environment of its own:

    python bench/augment/side.py pillow|torchvision|opencv|albumentations|dali IMAGES.npy

Prints the CPU milliseconds per image of each case that the library has, and what differs, as JSON.
The images are what the library works on; making them is not timed.

A module by_NAME has images(arrays), the list of what its functions take; cases(), the functions;
and, if needed, NOTES and IMAGES_PER_CALL. The time of a case "nothing" is subtracted from
the others.
"""

import importlib
import json
import pathlib
import sys
import time

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

ENOUGH_SECONDS = 0.2


def cpu_ms(function, images):
    for image in images[:4]:
        function(image)
    begin, n = time.process_time(), 0
    while time.process_time() - begin < ENOUGH_SECONDS:
        for image in images:
            function(image)
        n += len(images)
    return (time.process_time() - begin) / n * 1000


def main():
    name, path = sys.argv[1:]
    side = importlib.import_module(f"augment.by_{name}")
    images = side.images(numpy.load(path))
    per_call = getattr(side, "IMAGES_PER_CALL", 1)
    times = {case: cpu_ms(function, images) / per_call for case, function in side.cases().items()}
    nothing = times.pop("nothing", 0)
    times = {case: ms - nothing for case, ms in times.items()}
    print(json.dumps({"ms": times, "notes": getattr(side, "NOTES", {})}))


if __name__ == "__main__":
    main()
