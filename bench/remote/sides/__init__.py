# SPDX-License-Identifier: Apache-2.0
"""One module for each loader; remote/turn.py runs it in the loader's own environment.

    prepare(task)    writes what is uploaded into task["out"], unless that was done before
    warm(task)       imports what is not imported with the module; may be missing
    batches(task)    one epoch from its very start: yields the ids of each batch when its pixels are
                     in memory; nothing that it makes on the disk outlives the turn
    versions()       what the loader is made of
A task is what remote/stock.py makes of a scenario. Modules without prepare() read what another one,
or the stock itself, has written.
"""
