# SPDX-License-Identifier: Apache-2.0
"""The image workloads of MLPerf Storage: batch, step time and line of each."""

from __future__ import annotations

from typing import NamedTuple

from ..errors import LabError


class Workload(NamedTuple):
    """What one simulated accelerator consumes.

    batch        images of a step
    step         seconds of a step
    utilization  the least accelerator utilization (AU) at which an accelerator counts as fed
    image_bytes  mean size of an image in the original data set
    order        how samples are read: "shuffle", as shuffled record files; "random", as single
                 files
    pipeline     what is done with an image; MLPerf Storage itself decodes nothing
    """

    name: str
    title: str
    batch: int
    step: float
    utilization: float
    image_bytes: int
    order: str
    pipeline: str

    @property
    def rate(self) -> float:
        """Images per second of one accelerator that never waits."""
        return self.batch / self.step


WORKLOADS = {
    one.name: one
    for one in (
        Workload("resnet50", "ResNet-50 / H100", 400, 0.224, 0.90, 114_660, "shuffle",
                 "decode | random_resized_crop 224 | hflip | tensor u8"),
        Workload("retinanet", "RetinaNet / B200", 24, 0.04755, 0.85, 322_957, "random",
                 "decode | resize 800,800 | hflip | tensor u8"),
    )
}


def workload(name: str) -> Workload:
    if name not in WORKLOADS:
        raise LabError(f"unknown workload '{name}'; expected one of {', '.join(WORKLOADS)}")
    return WORKLOADS[name]
