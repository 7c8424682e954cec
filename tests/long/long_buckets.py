# SPDX-License-Identifier: Apache-2.0
"""Batches of one bucket each depend on the pack, the pipeline, the buckets, the seed, the epoch and
the ranks for which they were made, and on nothing else.

As long_same.py, whose packs and places it uses: in four orders, with 1, 2 and 8 threads; from a
disk and from an object store; packed, and in place. An epoch that was made for some ranks is
resumed at random batches, each part by another number of ranks, from another place.
"""

import contextlib
import hashlib
import itertools
import pathlib
import random
import sys
import tempfile

import long_same
from _package import FULL, Tests, penstock

BATCH = 4
BUCKETS = penstock.aspect_buckets(area=24 * 24, multiple=4, max_ratio=3)
PIPELINE = ("image: decode | cover bucket position=random | hflip | tensor u8; label: tensor; "
            "id: key 32")


def open_ranks(place, world, **settings):
    return [penstock.Loader(place, BATCH, pipeline=PIPELINE, buckets=BUCKETS, output="numpy",
                            seed=3, lanes=12 if settings["order"] in long_same.ORDERS[2:] else None,
                            rank=rank, world_size=world, return_info=True, memory="256MiB",
                            **settings)
            for rank in range(world)]


def content(batch):
    image, label, keys, info = batch
    return repr((info.bucket, image.shape, info.samples.tolist(), info.valid.tolist(),
                 label.tolist(), list(keys))).encode() + image.tobytes()


class Epochs:
    """Epochs that are made for a number of ranks."""

    def __init__(self, places):
        self.places, self.known = places, {}

    def digest(self, made_for, legs, order, epoch, threads=2):
        """Of the batches of all ranks, through legs: (name of the place, ranks, steps)."""
        with contextlib.ExitStack() as stack:
            first = open_ranks(self.places["packed"], made_for, order=order)
            for loader in first:
                stack.enter_context(loader)
            first[0].set_epoch(epoch)
            state, n = first[0].state_dict(), len(first[0]) * made_for
        digest, done = hashlib.sha256(), 0
        for place, world, steps in legs:
            with contextlib.ExitStack() as stack:
                ranks = [stack.enter_context(loader) for loader in open_ranks(
                    self.places[place], world, order=order, threads=threads)]
                for loader in ranks:
                    loader.load_state_dict(state)
                batches = [iter(loader) for loader in ranks]
                for _ in itertools.count() if steps is None else range(steps):
                    step = [next(passed, None) for passed in batches]
                    if step[0] is None:
                        break
                    for batch in step:
                        if done < n:
                            digest.update(content(batch))
                        done += 1
                states = [loader.state_dict() for loader in ranks]
                assert states.count(states[0]) == world
                state = states[0]
        assert n <= done < n + legs[-1][1]
        return digest.hexdigest(), n

    def expected(self, made_for, order, epoch):
        if (made_for, order, epoch) not in self.known:
            found = self.digest(made_for, [("packed", made_for, None)], order, epoch, threads=1)
            assert found not in self.known.values(), "another order, epoch or group gives the same"
            self.known[made_for, order, epoch] = found
        return self.known[made_for, order, epoch]

    def check_combinations(self):
        """Threads, ranks, orders and places; sampled, each value of each once."""
        combinations = itertools.product(long_same.ORDERS, self.places, long_same.THREADS,
                                         long_same.WORLDS, long_same.WORLDS)
        if not FULL:
            combinations = zip(long_same.ORDERS, itertools.cycle(self.places), (8, 1, 2, 8),
                               (4, 3, 2, 1), (1, 2, 3, 4))
        combinations = list(combinations)
        for order, place, threads, made_for, world in combinations:
            found = self.digest(made_for, [(place, world, None)], order, 1, threads)
            assert found == self.expected(made_for, order, 1), (order, place, threads, made_for,
                                                                world)
        return f"{len(combinations)} epochs from {len(self.places)} places"

    def check_resumes(self):
        """Up to 3 in an epoch. The last part of an epoch has all that is left."""
        resumes = 0
        for trial in range(long_same.RESUMES):
            dice = random.Random(trial)
            order, epoch = dice.choice(long_same.ORDERS), dice.choice((0, 3))
            made_for = dice.choice(long_same.WORLDS)
            wanted = self.expected(made_for, order, epoch)
            left, legs = wanted[1], []
            for _ in range(dice.randint(1, 3)):
                world = dice.choice(long_same.WORLDS)
                steps = dice.randint(0, left // world)
                left -= steps * world
                legs.append((dice.choice(list(self.places)), world, steps))
            legs.append((dice.choice(list(self.places)), dice.choice(long_same.WORLDS), None))
            found = self.digest(made_for, legs, order, epoch, dice.choice(long_same.THREADS))
            assert found == wanted, (trial, order, epoch, made_for, legs)
            resumes += len(legs) - 1
        return f"{long_same.RESUMES} epochs with {resumes} resumes"


def main():
    tests = Tests("same buckets")
    with tempfile.TemporaryDirectory(prefix="penstock-long-") as made:
        top = pathlib.Path(made)
        with long_same.object_store() as server:
            disk = long_same.write_packs(top)
            store = long_same.fill_store(server, top)
            epochs = Epochs(long_same.places_of("text", disk, store))
            tests.run("buckets", epochs.check_combinations)
            tests.run("buckets, resumed", epochs.check_resumes)
    return tests.end()


if __name__ == "__main__":
    sys.exit(main())
