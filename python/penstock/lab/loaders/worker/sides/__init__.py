# SPDX-License-Identifier: Apache-2.0
"""One module for each loader; serve.py runs one of them as a worker process.

A module has a class Side:
    __init__(task)   prepares: packs or encodes the files of the task, unless that was done before
    epoch()          one pass: yields the ids of each batch when its pixels are in memory
    check()          the pixels of the task's cases in their order, u8 of shape (n, size, size, 3)
    versions         what the loader is made of
    stored           the files that an epoch reads
    notes            what a reader of the figures must know
    bottleneck()     optional: what the loader itself names as its bottleneck in the last epoch
A task with "addresses" is about a simulated object store: those of the files in `stored`, in their
order; "cache" is an empty folder. Each epoch from a store opens the dataset, and starts with an
empty cache.
A task is what penstock.lab.loaders.question makes of a cell. Modules import each other relatively:
in a worker this package is called sides.
"""
