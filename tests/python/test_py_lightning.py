# SPDX-License-Identifier: Apache-2.0
"""A real Lightning Trainer takes its batches from the loader, saves and resumes. Skipped without
lightning."""

import logging
import warnings

import pytest
from example_tools import need
from py_tools import need_penstock, write_pack

penstock = need_penstock()
need("torch", "lightning")
pytestmark = pytest.mark.slow  # the import takes most of the time

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import lightning
    import torch
    from lightning.pytorch.callbacks import ModelCheckpoint
    from penstock.lightning import DataWait

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

N, BATCH, BATCHES = 58, 8, 7
PIPELINE = "decode | random_resized_crop 16 | hflip | normalize | tensor f32"


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    return write_pack(penstock, tmp_path_factory.mktemp("packs") / "a.pen", N)


class Watched(penstock.Loader):
    """Records the epochs it is told."""

    def __init__(self, pack, **settings):
        self.told = []
        super().__init__(
            pack, BATCH, shuffle=True, drop_last=True, pipeline=PIPELINE, return_info=True,
            threads=2, memory="64MiB", **settings,
        )

    def set_epoch(self, epoch):
        self.told.append(epoch)
        super().set_epoch(epoch)


class Module(lightning.LightningModule):
    """Records the batches it is given."""

    def __init__(self, loader, validation=None):
        super().__init__()
        torch.manual_seed(0)
        self.net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 16 * 16, 3))
        self.loader, self.validation = loader, validation
        self.seen, self.validated = [], []

    def train_dataloader(self):
        return self.loader

    def val_dataloader(self):
        return self.validation or []

    def training_step(self, batch, batch_idx):
        assert batch.info.epoch == self.current_epoch
        self.seen.append((self.current_epoch, batch_idx, batch.info.samples.tolist()))
        return torch.nn.functional.cross_entropy(self.net(batch.image), batch.label)

    def validation_step(self, batch, batch_idx):
        self.validated += batch.info.samples[batch.info.valid].tolist()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01, momentum=0.9)


def fit(module, folder=None, ckpt_path=None, every=None, callbacks=(), **settings):
    callbacks = list(callbacks)
    if every:
        callbacks += [ModelCheckpoint(folder, every_n_train_steps=every, save_top_k=-1)]
    trainer = lightning.Trainer(
        accelerator="cpu", logger=False, enable_progress_bar=False, enable_model_summary=False,
        enable_checkpointing=bool(every), callbacks=callbacks, **settings,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer.fit(module, ckpt_path=ckpt_path)
    return trainer


def whole_run(pack, epochs=3):
    module = Module(Watched(pack))
    trainer = fit(module, max_epochs=epochs)
    return module, trainer


def test_trains_from_the_loader_itself(pack):
    """Not wrapped, not replaced, told every epoch, and every epoch another order."""
    module, trainer = whole_run(pack)
    assert trainer.train_dataloader is module.loader
    assert trainer.num_training_batches == BATCHES and trainer.global_step == 3 * BATCHES
    assert sorted(set(module.loader.told)) == [0, 1, 2]
    assert [place[:2] for place in module.seen] == [
        (epoch, i) for epoch in range(3) for i in range(BATCHES)
    ]
    epochs = [
        [sample for e, _, samples in module.seen if e == epoch for sample in samples]
        for epoch in (0, 1)
    ]
    assert all(len(set(samples)) == BATCHES * BATCH for samples in epochs)
    assert epochs[0] != epochs[1]


def test_batches_are_those_of_the_loader_alone(pack):
    module, _ = whole_run(pack, epochs=2)
    loader = Watched(pack)
    alone = [
        (epoch, i, batch.info.samples.tolist())
        for epoch in range(2)
        for i, batch in enumerate(loader)
    ]
    assert module.seen == alone


@pytest.mark.parametrize("step", [3, 10, BATCHES], ids=["first", "second", "between"])
def test_resumes_where_it_was_saved(pack, tmp_path, step):
    """In the middle of the first epoch, of the second, and between the two."""
    whole, _ = whole_run(pack)
    first = Module(Watched(pack))
    fit(first, tmp_path, every=step, max_epochs=3, max_steps=step + 2)
    assert first.seen == whole.seen[: step + 2]
    (saved,) = tmp_path.glob(f"*step={step}.ckpt")
    states = torch.load(saved, weights_only=False)["loops"]["fit_loop"]["state_dict"]
    (state,) = states["combined_loader"]
    epoch, done = divmod(step, BATCHES)
    assert (state["epoch"], state["position"]) in ((epoch, done * BATCH), (epoch - 1, N))
    second = Module(Watched(pack))
    fit(second, ckpt_path=str(saved), max_epochs=3)
    assert second.seen == whole.seen[step:]
    for a, b in zip(second.parameters(), whole.parameters()):
        assert torch.allclose(a, b, atol=1e-6)


def test_validates_every_sample_after_every_epoch(pack):
    validation = penstock.Loader(
        pack, 8, pipeline="decode | center_crop 16 | tensor f32", return_info=True, threads=2,
        memory="64MiB",
    )
    module = Module(Watched(pack), validation)
    fit(module, max_epochs=2, num_sanity_val_steps=2)
    # Two batches before it all, to see whether validation works.
    assert module.validated == list(range(16)) + list(range(N)) * 2
    assert len(module.seen) == 2 * BATCHES


def test_the_callback_logs_the_wait_share(pack):
    module = Module(Watched(pack))
    trainer = fit(module, max_epochs=2, callbacks=[DataWait()])
    share = float(trainer.callback_metrics["data_wait_share"])
    later = module.loader.stats()["epoch"]["wait_share"]  # of more time, and no more waits
    assert 0 < later <= share <= 1
