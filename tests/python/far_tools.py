# SPDX-License-Identifier: Apache-2.0
"""Epochs of images with captions and ragged fields, and of clips, by any number of ranks, and one
SHA-256 for what they give."""

import contextlib
import hashlib
import json
import random

from py_tools import encoded, pixels

GLOBAL = 48  # samples of all ranks in a step; 1, 2, 3, 4 or 8 ranks have an even share
KINDS = ("image", "clip")
PIPELINES = {
    "image": "image: decode | random_resized_crop 20,24 | hflip | color_jitter 0.4 0.4 0.4 0.1 "
    "| tensor u8; label: tensor; caption: text; id: key; boxes: ragged 8; "
    "tokens: ragged 8 pad=-1",
    "clip": "video: decode | clip 4 2 n=2 times=yes | random_resized_crop 8,10 | hflip "
    "| color_jitter 0.4 | tensor u8; label: tensor",
}
SCHEMAS = {"image": {"image": "image", "label": "i64", "caption": "text", "boxes": "f32[*,4]",
                     "tokens": "i64[*]"},
           "clip": {"video": "clip", "label": "i64"}}


def photograph(number, width, height):
    return encoded(pixels(number, width, height), "JPEG", quality=90)


def samples(kind, n):
    """Images of several sizes; clips of 1 to 24 frames with times, of one size each."""
    dice = random.Random(5)
    if kind == "image":
        some = [photograph(i, 40 + i * 7 % 40, 32 + i * 5 % 48) for i in range(97)]
        yield from ({"image": some[i % 97] if i % 9 else encoded(pixels(i, 30, 24)),
                     "caption": f"caption {i} " * (i % 5), "tokens": range(i, i + i % 7),
                     "boxes": [[i, k, i, k] for k in range(i % 6)]} for i in range(n))
        return
    frames = [photograph(i, 16, 12 + i % 3 * 2) for i in range(90)]
    for _ in range(n):
        size, length = dice.randrange(3), dice.choice((1, 6, 13, 24))
        chosen = [frames[dice.randrange(30) * 3 + size] for _ in range(length)]
        yield {"video": (chosen, [40_000_000 * k for k in range(length)])}


def write_pack(penstock, path, kind, n, **settings):
    path.parent.mkdir(parents=True, exist_ok=True)
    settings = {"block_samples": 4, "shard_size": "512KiB", **settings}
    with penstock.Writer(path, SCHEMAS[kind], **settings) as writer:
        for i, sample in enumerate(samples(kind, n)):
            writer.add(key=f"s{i}", label=i, **sample)


class Ranks:
    """The loaders of all ranks. The shuffle buffer is smaller than the pack, which would be
    shuffled completely otherwise."""

    def __init__(self, penstock, kind, where, world=1, **settings):
        settings = {"order": "shuffle", "seed": 3, "threads": 2, "shuffle_buffer": 48,
                    "batch_size": None if "tokens" in settings else GLOBAL // world,
                    "compare_ranks": False, **settings}
        self.loaders = []
        try:
            for rank in range(world):
                self.loaders.append(penstock.Loader(
                    where, rank=rank, world_size=world, pipeline=PIPELINES[kind],
                    output="numpy", return_info=True, **settings))
        except BaseException:
            self.close()
            raise

    def close(self):
        for loader in self.loaders:
            loader.close()

    def state(self):
        states = [json.loads(json.dumps(loader.state_dict())) for loader in self.loaders]
        assert all(state == states[0] for state in states)
        return states[0]

    def steps(self, digest, most=None):
        """Takes batches from all ranks. Which rank has which sample of a step may depend on their
        number, so the samples of each step are sorted. What only fills up is left out. The numbers
        of the samples."""
        seen, taken = [], 0
        passes = [iter(loader) for loader in self.loaders]
        while most is None or taken < most:
            parts = [next(one, None) for one in passes]
            if parts[0] is None:
                assert all(part is None for part in parts), "ranks end at different times"
                break
            taken += 1
            rows = sorted(row for part in parts for row in self.rows(part))
            seen += [int.from_bytes(row[:8], "big") for row in rows]
            for row in rows:
                digest.update(row)
        return seen

    @staticmethod
    def rows(batch):
        """Number and bytes of each sample."""
        *fields, info = batch
        for i in range(len(batch.label)):
            if info.valid[i]:
                values = (field[i] for field in fields)
                yield int(info.samples[i]).to_bytes(8, "big") + b"".join(
                    value.tobytes() if hasattr(value, "tobytes") else repr(value).encode()
                    for value in values)


def epoch_digest(penstock, kind, legs, n=None, epoch=0, **settings):
    """SHA-256 of one epoch, which goes through `legs`: (where it is read, ranks, steps), each
    resumed in new loaders from the state of the one before; the last one's steps are None."""
    digest, seen, state = hashlib.sha256(), [], None
    for (where, more), world, steps in legs:
        ranks = Ranks(penstock, kind, where, world, **{**settings, **more})
        with contextlib.closing(ranks):
            for loader in ranks.loaders:
                if state is not None:
                    loader.load_state_dict(state)
                else:
                    loader.set_epoch(epoch)
            seen += ranks.steps(digest, steps)
            state = ranks.state()
    assert n is None or sorted(seen) == list(range(n)), "not every sample once"
    return digest.hexdigest()
