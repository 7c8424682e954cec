# SPDX-License-Identifier: Apache-2.0
"""One module for each loader of videos; turn.py runs it in the loader's own environment.

    versions()                what the loader is made of
    Reader(task)              opens it
    Reader.batches(epoch)     yields batches, uint8 [N, 3, frames, size, size]
    Reader.bytes              bytes read from an object store so far; None: from local files
    Reader.close()
A task has address (of the pack, or the folder of the videos), names (of the videos), clips (of an
epoch: the videos in turn), batch, frames, stride, crop (the center box that is resized), size,
threads, keeps, and center (clips from the middle of each video, for comparing pixels).
"""
