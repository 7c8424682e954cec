# SPDX-License-Identifier: Apache-2.0
"""For Lightning: a callback that logs how long training waits for data."""

from __future__ import annotations

from typing import Any

from lightning.pytorch.callbacks import Callback

from ._loader import Loader


class DataWait(Callback):
    """Logs data_wait_share at the end of each epoch: the part of its time in which training waited
    for batches. With several processes, Lightning logs the largest share."""

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        loader = trainer.train_dataloader
        if isinstance(loader, Loader):
            share = loader.stats()["epoch"]["wait_share"]
            pl_module.log("data_wait_share", share, sync_dist=True, reduce_fx="max")
