# SPDX-License-Identifier: Apache-2.0
"""One module for each loader of clips; turn.py runs it in the loader's own environment.

    batches(task)    yields float batches [N, 3, 18, 84, 84] (0-1) from the very start of an epoch
    versions()       what the loader is made of
A task has root (the folder with list.csv, frames, the pack, the gulp directory and videos), clips
(how many), batch, frames, stride, size, workers, threads, shuffle, and center (frames from the
middle of each clip, for comparing pixels).
"""
