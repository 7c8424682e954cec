# SPDX-License-Identifier: Apache-2.0
"""One module for each writer; serve.py runs one of them as a worker process.

A module has a class Side:
    __init__(task)   what is not measured, such as the start of the processes that write
    write()          packs task["files"] into the new directory task["out"]; file i has the label i
    read()           yields (i, bytes or pixels) of every sample, read back with the same library
    versions         {package: version}
A task has: files, folder (which holds them, as CLASS/NAME), out, processes, penstock, options.
"""
