# SPDX-License-Identifier: Apache-2.0
"""What a loader gives depends on the pack, the pipeline, the seed, the epoch and the position, and
on nothing else: threads, read-ahead, memory, ranks, restarts. For images with captions, for clips
of frames and of kept videos, and for several views of an image.

PENSTOCK_SCALE=full has more samples, and makes 200 restarts instead of 20. Under a sanitizer, which
takes seven times as long, it is fewer samples, one seed and 3 restarts.
"""

import hashlib
import itertools
import json
import os
import random
import re

import conftest
import kept_tools
import pytest
from packet_tools import PLUGIN
from py_tools import check_steps, encoded, need_penstock, pixels

os.environ.setdefault("PENSTOCK_VIDEO_LIBRARY", str(PLUGIN))
penstock = need_penstock()
np = pytest.importorskip("numpy")

pytestmark = pytest.mark.threads

FULL = os.environ.get("PENSTOCK_SCALE") == "full"
GLOBAL = 12  # samples of a batch over all ranks
ORDERS = ("sequential", "random", "shuffle", "sticky")
SANITIZED = conftest.is_sanitized(conftest.BUILD)
N = 112 if SANITIZED else 256 if FULL else 160
SEEDS = (0,) if SANITIZED else (0, 2**63 + 11)
EPOCHS = (0, 7)
RESTARTS = 3 if SANITIZED else 200 if FULL else 20
each_seed = pytest.mark.parametrize("seed", [
    SEEDS[-1], *(pytest.param(seed, marks=pytest.mark.slow) for seed in SEEDS[:-1])])
PIPELINES = {
    "image": "image: decode | random_resized_crop 20,24 | hflip | color_jitter 0.4 0.4 0.4 0.1 "
    "| random_erasing | tensor u8; label: tensor; caption: text 40; id: key 8; "
    "points: ragged 7; scores: ragged 7 pad=-1",
    "video": "video: decode | clip 4 3 n=2 | random_resized_crop 8,10 | hflip | color_jitter 0.4 "
    "| random_erasing | tensor u8; label: tensor",
    "photo": "photo: decode | random_resized_crop 20,24 | hflip; a = photo: decode | "
    "random_resized_crop 20,24 | color_jitter 0.4; many = photo: decode | random_resized_crop 8 "
    "scale=0.05,0.4 | hflip | repeat 3; label: tensor",
}
PACKS = ["image", "video", pytest.param("kept", marks=pytest.mark.slow),
         pytest.param("photo", marks=pytest.mark.slow)]


def image(number):
    """Some take much longer than others."""
    picture = pixels(number, 30 + number * 7 % 50, 24 + number * 5 % 60)
    if number % 16 == 3:
        picture = picture.resize((300, 200))
    if number % 3 == 0:
        return encoded(picture)
    return encoded(picture, "JPEG", quality=90, progressive=number % 5 == 0)


def write_images(path, field):
    """With captions of 0 to 38 bytes, and up to 7 points and scores."""
    schema = {field: "image", "label": "i64", "caption": "text", "points": "f32[*,2]",
              "scores": "i64[*]?"}
    with penstock.Writer(path, schema, block_samples=8) as writer:
        for i in range(N):
            values = {field: image(i), "label": i % 3, "caption": "\u20ac" * (i * 7 % 13)}
            writer.add(key=f"s{i}", points=[[i, k] for k in range(i * 3 % 8)],
                       scores=None if i % 9 == 5 else range(i % 5), **values)
    return penstock.open(path)


def write_clips(path):
    """From 1 to 30 frames, of one size in each clip."""
    rng = random.Random(5)
    frames = [encoded(pixels(i, 16, 12 + i % 3 * 2), "JPEG", quality=90) for i in range(120)]
    with penstock.Writer(path, {"video": "clip", "label": "i64"}, block_samples=8) as writer:
        for i in range(N):
            size = rng.randrange(3)
            numbers = [rng.randrange(40) * 3 + size for _ in range(rng.choice((1, 7, 13, 30)))]
            writer.add(key=f"s{i}", video=[frames[number] for number in numbers], label=i % 3)
    return penstock.open(path)


@pytest.fixture(scope="module", params=PACKS)
def pack(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("packs") / "a.pen"
    if request.param == "kept":
        if kept_tools.missing():
            pytest.skip(kept_tools.missing())
        kept_tools.write_kept(path, N, "--block-samples", "8")
        return penstock.open(path)
    return write_clips(path) if request.param == "video" else write_images(path, request.param)


def main_field(pack):
    return next(iter(pack.schema))


def open_rank(pack, rank=0, world=1, batch=GLOBAL, **settings):
    """The shuffle buffer is smaller than the pack, which would be shuffled completely otherwise."""
    settings = {"threads": 2, "memory": "64MiB", "shuffle_buffer": 48, **settings}
    return penstock.Loader(
        pack, batch, rank=rank, world_size=world, pipeline=PIPELINES[main_field(pack)],
        output="numpy", return_info=True, **{"last_batch": "pad", **settings},
    )


class Ranks:
    """All loaders of a world, which go on together."""

    def __init__(self, pack, world=1, batch=GLOBAL, **settings):
        self.field = main_field(pack)
        self.loaders = [open_rank(pack, rank, world, batch, **settings) for rank in range(world)]

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        for loader in self.loaders:
            loader.close()

    def set_epoch(self, epoch):
        for loader in self.loaders:
            loader.set_epoch(epoch)

    def state(self):
        states = [json.loads(json.dumps(loader.state_dict())) for loader in self.loaders]
        assert all(state == states[0] for state in states)
        return states[0]

    def restore(self, state, **settings):
        for loader in self.loaders:
            loader.load_state_dict(state, **settings)

    def batches(self):
        """Global batches of a pass: (epoch, first position, samples, valid, images, labels). The
        samples of one rank follow those of another."""
        missing = object()
        done = self.state()["position"] % self.loaders[0].samples
        for parts in itertools.zip_longest(*self.loaders, fillvalue=missing):
            assert missing not in parts, "ranks have different numbers of batches"
            epoch, n = parts[0].info.epoch, sum(part.info.n_valid for part in parts)
            for part in parts:
                assert part.info.epoch == epoch
                assert done <= part.info.position < done + n or not part.info.n_valid
                assert part.info.n_valid == part.info.valid.sum() and part.info.substituted == 0
                assert abs(part.info.n_valid - n / len(parts)) < 1
            done += n
            yield (
                epoch,
                done - n,
                mixed([part.info.samples for part in parts]),
                mixed([part.info.valid for part in parts]),
                mixed([getattr(part, self.field) for part in parts]),
                mixed([labels_of(part) for part in parts]),
            )


def labels_of(batch):
    """With the text and the rows of a sample, where it has some, or its views."""
    if hasattr(batch, "many"):
        return np.concatenate([view.reshape(len(view), -1) for view in (batch.a, batch.many)], 1)
    if not hasattr(batch, "caption"):
        return batch.label
    points = [rows.tobytes().hex() for rows in batch.points]
    scores = [rows[mask].tolist() for rows, mask in zip(batch.scores, batch.scores_mask)]
    fields = (batch.label, batch.caption, batch.id, points, scores)
    return np.array([" ".join(map(str, row)) for row in zip(*fields, strict=True)], "U192")


def mixed(parts):
    return np.concatenate(parts)


def by_sample(arrays):
    """Which rank has which sample of a global batch depends on their number."""
    samples, valid, *fields = arrays
    rows = sorted(range(len(samples)), key=lambda i: (
        not valid[i], samples[i], *(field[i].tobytes() for field in fields)))
    return [array[rows] for array in arrays]


def digest(pack, order, seed, is_sorted=None, **settings):
    """One for two epochs, with everything that a user can see of them."""
    sha = hashlib.sha256()
    world = settings.pop("world", 1)
    is_sorted = world > 1 if is_sorted is None else is_sorted
    with Ranks(pack, world, GLOBAL // world, order=order, seed=seed, **settings) as ranks:
        for epoch in EPOCHS:
            ranks.set_epoch(epoch)
            for _, position, *arrays in ranks.batches():
                arrays = by_sample(arrays) if is_sorted else arrays
                sha.update(f"{epoch} {position} {[array.shape for array in arrays]}".encode())
                for array in arrays:
                    sha.update(array.tobytes())
    return sha.hexdigest()


class Expected(dict):
    """One digest for each order and seed, made when it is needed; with True, of what does not
    depend on the number of ranks."""

    def __init__(self, pack):
        self.pack = pack

    def __missing__(self, which):
        found = digest(self.pack, *which, threads=1, prefetch=1)
        others = [self[other] for other in self if len(other) == len(which)]
        assert found not in others, "another order or seed gives the same"
        self[which] = found
        return found


@pytest.fixture(scope="module")
def expected(pack):
    return Expected(pack)


@pytest.fixture(scope="module")
def tight(pack):
    """For a number of threads, the least memory that is enough for all samples."""
    found = {}
    for threads in (1, 8):
        with pytest.raises(penstock.LimitError) as caught:
            open_rank(pack, threads=threads, memory=1)
        least = int(re.search(r"at least (\d+) MiB", str(caught.value))[1])
        found[threads] = next(m for m in range(least, least + 16) if is_enough(pack, threads, m))
    return found


def is_enough(pack, threads, mib):
    try:
        with open_rank(pack, threads=threads, memory=f"{mib}MiB") as loader:
            return len(list(map(len, loader))) == len(loader)
    except penstock.LimitError:
        return False


@pytest.mark.parametrize("order", ORDERS)
@each_seed
def test_threads_and_prefetch(pack, expected, order, seed):
    for threads, prefetch in itertools.product((1, 2, 8), (1, 4)):
        settings = {"threads": threads, "prefetch": prefetch}
        assert digest(pack, order, seed, **settings) == expected[order, seed], settings


@pytest.mark.parametrize("pack", ["kept"], indirect=True)
@pytest.mark.slow
@pytest.mark.skipif(SANITIZED, reason="what is confined cannot have a sanitizer")
def test_decoders_in_processes(pack, expected, monkeypatch):
    inline = expected["random", SEEDS[-1], True]
    monkeypatch.setenv("PENSTOCK_VIDEO", "process")
    for threads, world in ((1, 1), (3, 2)):
        found = digest(pack, "random", SEEDS[-1], is_sorted=True, threads=threads, world=world)
        assert found == inline, (threads, world)


@pytest.mark.parametrize("order", ORDERS)
@each_seed
def test_memory(pack, expected, tight, order, seed):
    for threads in (1, 8):
        for memory in (f"{tight[threads]}MiB", "1GiB"):
            found = digest(pack, order, seed, memory=memory, threads=threads)
            assert found == expected[order, seed], (memory, threads)


@pytest.mark.parametrize("order", ORDERS)
@each_seed
def test_world_sizes(pack, expected, order, seed):
    for world in (2, 3, 4):
        assert digest(pack, order, seed, world=world) == expected[order, seed, True], world


def test_world_sizes_of_a_subset(pack):
    chosen = random.Random(1).sample(range(N), 100)
    for last_batch in ("pad", "drop"):
        settings = {"order": "random", "seed": 3, "subset": chosen, "last_batch": last_batch}
        found = {digest(pack, world=world, is_sorted=True, **settings) for world in (1, 2, 3, 4)}
        assert len(found) == 1, last_batch


def test_repeats_in_a_subset(pack):
    """A sample that is listed again is cropped anew, in the same way for any ranks and threads;
    the first time it is as if it were listed once."""
    rng = random.Random(2)
    once = rng.sample(range(N), 60)
    repeated = once + [rng.choice(once) for _ in range(140)]
    settings = {"order": "random", "seed": 3, "subset": repeated}
    found = {digest(pack, world=world, threads=threads, is_sorted=True, **settings)
             for world, threads in ((1, 1), (1, 5), (2, 2), (3, 2), (4, 1))}
    assert len(found) == 1
    sequential = {"order": "sequential", "seed": 3}
    with Ranks(pack, subset=once, **sequential) as ranks:
        expected = sequence(ranks.batches())
    with Ranks(pack, subset=repeated, **sequential) as ranks:
        seen = sequence(ranks.batches())
    assert seen[:60] == expected
    assert len(set(seen)) > 190  # of 200; small pictures may look alike
    with Ranks(pack, subset=repeated, **sequential) as ranks:
        for number, _ in enumerate(ranks.batches()):
            if number == 6:
                break
        state = ranks.state()
    with Ranks(pack, world=2, batch=GLOBAL // 2, subset=repeated, **sequential) as ranks:
        ranks.restore(state)
        assert check_steps(steps_of(ranks.batches()), seen[7 * GLOBAL:]) == 200 - 7 * GLOBAL


def steps_of(batches):
    """(sample, its values) of what each step of a pass gives, without what only fills up."""
    return [[
        (int(samples[i]), hashlib.sha256(images[i].tobytes() + labels[i].tobytes()).digest())
        for i in range(len(samples))
        if valid[i]
    ] for _, _, samples, valid, images, labels in batches]


def sequence(batches):
    """Of one rank: in the order of the epoch."""
    return sum(steps_of(batches), [])


class Whole(dict):
    """All of an epoch, undisturbed, by order, seed and epoch; made when it is needed."""

    def __init__(self, pack):
        self.pack = pack

    def __missing__(self, which):
        order, seed, epoch = which
        with Ranks(self.pack, order=order, seed=seed) as ranks:
            ranks.set_epoch(epoch)
            found = self[which] = sequence(ranks.batches())
        assert sorted(sample for sample, _ in found) == list(range(N))
        return found


@pytest.fixture(scope="module")
def whole(pack):
    return Whole(pack)


def some_world(rng):
    """A number of ranks, a batch size of each, and settings that must not matter."""
    settings = {"threads": rng.choice((1, 2, 3)), "prefetch": rng.choice((1, 2, 4))}
    return rng.randint(1, 4), rng.randint(1, 9), settings


@pytest.mark.parametrize("trial", range(RESTARTS))
def test_restarts(pack, whole, trial):
    """Up to three in one epoch; then the next epoch begins at its start."""
    rng = random.Random(1000 + trial)
    order, seed, epoch = rng.choice(ORDERS), rng.choice(SEEDS), rng.choice(EPOCHS)
    expected, got, state, history = whole[order, seed, epoch], [], None, []
    for last in (False,) * rng.randint(1, 3) + (True,):
        world, batch, settings = some_world(rng)
        with Ranks(pack, world, batch, order=order, seed=seed, **settings) as ranks:
            if state:
                ranks.restore(state)
            if not state or state["position"] == N or rng.random() < 0.5:
                ranks.set_epoch(epoch)
            steps = (N - (state["position"] if state else 0)) // (world * batch)
            n = None if last else rng.randint(0, steps)
            history.append((world, batch, n))
            got += steps_of(itertools.islice(ranks.batches(), n))
            state, done = ranks.state(), check_steps(got, expected)
            if last:
                assert done == N, (order, seed, epoch, history)
                following = steps_of(itertools.islice(ranks.batches(), 3))
                assert check_steps(following, whole[order, seed, epoch + 1]) > 0, history
            else:
                assert state["position"] == done and state["epoch"] == epoch, history


def test_restart_at_the_end(pack, whole):
    """Nothing is left of the epoch, whether it is named or not; then the next one begins."""
    with Ranks(pack, 2, 8, order="random") as ranks:
        assert len(sequence(itertools.islice(ranks.batches(), N // 16))) == N
        state = ranks.state()
    for names in (False, True):
        with Ranks(pack, 3, 7, order="random") as ranks:
            ranks.restore(state)
            if names:
                ranks.set_epoch(0)
            assert list(ranks.batches()) == []
            assert check_steps(steps_of(ranks.batches()), whole["random", 0, 1]) == N


def test_restart_with_another_shuffle_buffer(pack, whole):
    """It is refused, as another seed is; if it is not, the order is that of the loader."""
    with Ranks(pack, order="shuffle") as ranks:
        next(ranks.batches())
        state = ranks.state()
    with Ranks(pack, order="shuffle", shuffle_buffer=96) as ranks:
        other = sequence(ranks.batches())
        assert other != whole["shuffle", 0, 0]
        with pytest.raises(penstock.InvalidError, match="shuffle_buffer=48, expected 96"):
            ranks.restore(state)
        ranks.restore(state, strict=False)
        assert sequence(ranks.batches()) == other[GLOBAL:]


def test_restart_drops_only_the_end(pack, whole):
    """With "drop" a restarted epoch ends in a whole batch, wherever it was begun."""
    expected = whole["random", 0, 0]
    for before, after in ((1, 3), (4, 2), (3, 4)):
        with Ranks(pack, before, 5, order="random", last_batch="drop") as ranks:
            got = steps_of(itertools.islice(ranks.batches(), 4))
            state = ranks.state()
        with Ranks(pack, after, 4, order="random", last_batch="drop") as ranks:
            ranks.restore(state)
            got += steps_of(ranks.batches())
        assert N - 4 * after < check_steps(got, expected) <= N
