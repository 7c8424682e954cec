# SPDX-License-Identifier: Apache-2.0
"""torchcodec, without a scan of the file (approximate seeks): opens the file for each clip, or
keeps the files of each thread open. From a store it reads by ranged requests."""

import importlib.metadata
import threading

import torch
from torchcodec.decoders import VideoDecoder

from . import pool, ranged


def versions():
    return {"torchcodec": importlib.metadata.version("torchcodec"), "torch": torch.__version__}


class Reader(pool.Pool):
    def __init__(self, task):
        super().__init__(task, self.clip)
        self.local, self.count = threading.local(), ranged.Count()

    @property
    def bytes(self):
        return self.count.bytes if ranged.is_url(self.task["address"]) else None

    def opened(self, name):
        file = f"{self.task['address']}/{name}"
        if ranged.is_url(file):
            file = ranged.File(file, self.count)
        return VideoDecoder(file, num_ffmpeg_threads=1, seek_mode="approximate")

    def decoder(self, name):
        if not self.task["keeps"]:
            return self.opened(name)
        kept = self.local.__dict__.setdefault("kept", {})
        if name not in kept:
            kept[name] = self.opened(name)
        return kept[name]

    def clip(self, task, epoch, i):
        decoder = self.decoder(task["names"][i % len(task["names"])])
        numbers = pool.frame_numbers(task, epoch, i, len(decoder))
        return pool.shaped(task, decoder.get_frames_at(numbers).data)
