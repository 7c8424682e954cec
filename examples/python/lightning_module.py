# SPDX-License-Identifier: Apache-2.0
"""Train with Lightning, and go on in the middle of an epoch.

    pip install lightning
    python3 examples/python/lightning_module.py photos.pen --max-steps 25
    python3 examples/python/lightning_module.py photos.pen --resume checkpoints/last.ckpt

The Trainer keeps the loader's state in its checkpoints and gives it back by itself, because the
loader has state_dict and load_state_dict; it tells the epoch through loader.sampler.
"""

from __future__ import annotations

import lightning
import penstock
import torch
from common import Progress, parser, small_net
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from penstock import ops
from torch.nn.functional import cross_entropy


class Classifier(lightning.LightningModule):
    def __init__(self, path: str, batch_size: int) -> None:
        super().__init__()
        self.pack = penstock.open(path)
        self.batch_size = batch_size
        self.net = small_net(len(self.pack.classes))

    def train_dataloader(self) -> penstock.Loader:
        """Made here, where Lightning has set up its processes, so that it finds its rank."""
        return penstock.Loader(
            self.pack,
            self.batch_size,
            shuffle=True,
            drop_last=True,
            pipeline=[
                ops.decode(),
                ops.random_resized_crop(64),
                ops.hflip(),
                ops.normalize(),
                ops.tensor("f32"),
            ],
        )

    def training_step(self, batch, batch_idx: int) -> dict[str, torch.Tensor]:
        image, label = batch
        scores = self.net(image)
        return {
            "loss": cross_entropy(scores, label),
            "correct": (scores.argmax(1) == label).sum(),
        }

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=0.003)


class Lines(Callback):
    """The line of the other examples, instead of the progress bar."""

    progress: Progress | None = None

    def on_train_batch_start(self, trainer, module, batch, batch_idx: int) -> None:
        if self.progress is None or self.progress.epoch != trainer.current_epoch:
            batches = trainer.num_training_batches
            self.progress = Progress(trainer.current_epoch, batches, first=batch_idx)
        self.progress.got_batch()

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx: int) -> None:
        n = len(batch.label)
        self.progress.done_batch(outputs["loss"].item(), int(outputs["correct"]), n)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--max-steps", type=int, default=-1, help="stop after so many batches")
    options.add_argument("--checkpoints", default="checkpoints", help="folder")
    options.add_argument("--resume", help="a checkpoint")
    args = options.parse_args()
    keep = ModelCheckpoint(args.checkpoints, save_last=True, every_n_train_steps=5)
    trainer = lightning.Trainer(
        max_epochs=args.epochs,
        max_steps=args.max_steps,
        accelerator="auto",
        callbacks=[Lines(), keep],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Classifier(args.path, args.batch_size), ckpt_path=args.resume)


if __name__ == "__main__":
    main()
