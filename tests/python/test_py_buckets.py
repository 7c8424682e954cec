# SPDX-License-Identifier: Apache-2.0
"""Loader(buckets=...): batches of several sizes, each of one bucket."""

import collections
import pathlib

import pytest
from PIL import Image
from py_tools import encoded, need_penstock, pixels, write_pack
from remote_tools import options

penstock = need_penstock()
np = pytest.importorskip("numpy")

N = 60
ORDERS = ("sequential", "random", "shuffle", "sticky")
BUCKETS = [(8, 8), (6, 12), (12, 6), (4, 16)]  # nothing is nearest to the last one
SIZES = [(32, 32), (48, 24), (24, 48), (40, 38), (44, 24)]
PIPELINE = {"image": "decode | cover bucket position=random | hflip | tensor u8",
            "label": "tensor"}


def image(number):
    """As wide as high, wider, or higher: some of them only after they are turned upright."""
    width, height = SIZES[number**2 % 7 % 5]
    if number % 7 == 3:
        exif = Image.Exif()
        exif[0x0112] = 6
        return encoded(pixels(number, height, width), "JPEG", exif=exif.tobytes())
    return encoded(pixels(number, width, height), "JPEG")


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    folder = tmp_path_factory.mktemp("root") / "packs"
    folder.mkdir()
    return write_pack(penstock, folder / "a.pen", N, image)


def bucket_of(number):
    width, height = SIZES[number**2 % 7 % 5]
    return 0 if width / height < 1.3 and height / width < 1.3 else 1 if width > height else 2


def opened(pack, **settings):
    base = {"batch_size": 4, "order": "random", "seed": 5, "pipeline": PIPELINE,
            "buckets": BUCKETS, "output": "numpy", "return_info": True, "memory": "64MiB",
            "threads": 2, "rank": 0, "world_size": 1, "shuffle_buffer": 48, "last_batch": "pad"}
    return penstock.Loader(pack, **{**base, **settings})


def taken(batches):
    return [(info.position, info.bucket, info.samples.tolist(), info.valid.tolist(),
             image.tobytes()) for image, _, info in batches]


def load(pack, epoch=0, state=None, **settings):
    with opened(pack, **settings) as loader:
        loader.set_epoch(epoch)
        if state:
            loader.load_state_dict(state)
        found = taken(loader)
        assert state or len(found) == len(loader)
        return found


# ---- a slow model of the order


def steps(pack, epoch, group, last_batch="pad", **settings):
    """The global batches of an epoch: (bucket, samples, samples that only fill up) each."""
    with opened(pack, pipeline=None, buckets=None, batch_size=1, **settings) as loader:
        loader.set_epoch(epoch)
        order = [int(info.samples[0]) for *_, info in loader]
    made, seen = [], [[] for _ in BUCKETS]
    for sample in order:
        mine = seen[bucket := bucket_of(sample)]
        mine.append(sample)
        if len(mine) % group == 0:
            made.append((bucket, sorted(mine[-group:]), []))
    for bucket, mine in enumerate(seen):
        rest = len(mine) % group
        if rest and last_batch != "drop":
            fills = [mine[k % len(mine)] for k in range(group - rest)] * (last_batch == "pad")
            made.append((bucket, sorted(mine[-rest:]), sorted(fills)))
    return made


def together(step):
    """The batches of all ranks in a step, as one."""
    (bucket,) = {bucket for _, bucket, *_ in step}
    rows = [row for _, _, samples, valid, _ in step for row in zip(samples, valid)]
    valid = [sum(valid) for _, _, _, valid, _ in step]
    assert max(valid) - min(valid) <= 1
    return bucket, sorted(s for s, v in rows if v), sorted(s for s, v in rows if not v)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("last_batch", ["short", "pad", "drop"])
@pytest.mark.parametrize(("ranks", "batch"), [(1, 4), (2, 3), (3, 2), (4, 1), (2, 16)])
def test_order_is_that_of_the_model(pack, order, last_batch, ranks, batch):
    settings = {"order": order, "last_batch": last_batch}
    want = steps(pack, 2, batch * ranks, **settings)
    if not want:
        pytest.warns(UserWarning, opened, pack, batch_size=batch, world_size=ranks,
                     **settings).close()
        return
    parts = [load(pack, 2, rank=rank, world_size=ranks, batch_size=batch, **settings)
             for rank in range(ranks)]
    found = [together(step) for step in zip(*parts, strict=True)]
    full = sum(len(valid) == batch * ranks for _, valid, _ in want)
    if order == "random":
        assert sorted(found[:full]) == sorted(want[:full]) and found[full:] == want[full:]
    else:
        assert found == want
    with opened(pack, batch_size=batch, world_size=ranks, **settings) as loader:
        assert loader.dropped == N - sum(len(valid) for _, valid, _ in found)
        assert loader.samples == N and loader.buckets == tuple(BUCKETS)


@pytest.mark.parametrize("order", ORDERS)
def test_the_same_for_threads(pack, order):
    whole = load(pack, 1, order=order)
    for threads in (1, 8):
        assert load(pack, 1, order=order, threads=threads) == whole
    assert load(pack, 2, order=order) != whole
    assert {bucket for _, bucket, *_ in whole} == {0, 1, 2}


def test_from_a_store(pack, s3, no_other_settings):
    """Blocks are prefetched for the samples of the table."""
    folder = pathlib.Path(pack.path).parents[1]
    remote = penstock.open("s3://packs/a.pen", options(s3(directory=folder)))
    for order in ORDERS:
        for settings in ({"order": order, "batch_size": 3, "world_size": 2, "rank": 1},
                         {"order": order, "weights": np.arange(N) % 3}):
            assert load(remote, 1, **settings) == load(pack, 1, **settings)
    with opened(remote) as loader:
        for _ in range(3):
            batches = iter(loader)
            for _ in range(4):
                next(batches)


@pytest.mark.parametrize("order", ORDERS)
def test_the_same_steps_on_any_ranks(pack, order):
    """Of one global batch."""
    found = [[together(step) for step in zip(*[
        load(pack, 1, order=order, rank=rank, world_size=ranks, batch_size=12 // ranks)
        for rank in range(ranks)], strict=True)] for ranks in (1, 2, 3, 4, 6, 12)]
    assert found == found[:1] * len(found)


@pytest.mark.parametrize("order", ORDERS)
def test_resume_at_every_place_on_other_ranks(pack, order):
    whole = [[] for _ in range(2)]
    states = []
    for rank in range(2):
        with opened(pack, order=order, world_size=2, rank=rank, batch_size=4) as loader:
            batches = iter(loader)
            for _ in range(len(loader)):
                states.append(loader.state_dict())
                whole[rank] += taken([next(batches)])
            states.append(loader.state_dict())
            assert states[-1]["position"] == N
    n = len(whole[0])
    assert states[:n + 1] == states[n + 1:]
    expected = [together(step) for step in zip(*whole)]
    for done, state in enumerate(states[:n + 1]):
        assert state["global_batch"] == 8 and state["place"] == done * 8
        for ranks in (1, 2, 4, 8):
            parts = [load(pack, state=state, order=order, world_size=ranks, rank=rank,
                          batch_size=8 // ranks) for rank in range(ranks)]
            assert [together(step) for step in zip(*parts, strict=True)] == expected[done:]


def test_a_state_of_another_global_batch_is_refused(pack):
    """Its groups are others."""
    with opened(pack, world_size=2) as loader:
        next(iter(loader))
        state = loader.state_dict()
    with opened(pack) as other:
        with pytest.raises(penstock.InvalidError, match="global_batch=8, expected 4"):
            other.load_state_dict(state)
        other.load_state_dict(state, strict=False)
        assert other.state_dict()["place"] == 8


def test_a_state_continues_with_the_next_epoch(pack):
    with opened(pack, world_size=2) as loader:
        taken(loader)
        state = loader.state_dict()
    with opened(pack, batch_size=8) as one:
        one.load_state_dict(state)
        one.set_epoch(1)
        parts = [load(pack, 1, world_size=2, rank=rank) for rank in range(2)]
        assert [together([step]) for step in taken(one)] == [
            together(step) for step in zip(*parts, strict=True)]


def test_shapes_and_pixels(pack):
    """Images are those of a pipeline with the size of the bucket."""
    with opened(pack) as loader:
        for image, label, info in loader:
            height, width = BUCKETS[info.bucket]
            assert image.shape == (4, height, width, 3)
            assert label.tolist() == [s % 3 for s in info.samples]
            text = f"decode | cover {height},{width} position=random | hflip | tensor u8"
            with opened(pack, buckets=None, pipeline={"image": text}, subset=info.samples[:1],
                        batch_size=1) as same:
                assert (next(iter(same)).image[0] == image[0]).all()


def test_cover_keeps_the_aspect_ratio(pack):
    """The center of the largest region of that shape."""
    number = next(i for i in range(N) if bucket_of(i) == 1 and i % 7 != 3)
    width, height = SIZES[number**2 % 7 % 5]
    with opened(pack, buckets=None, subset=[number], batch_size=1,
                pipeline="decode shrink=off | cover 8 filter=nearest | tensor u8") as loader:
        found = next(iter(loader))[0][0]
    with opened(pack, buckets=None, subset=[number], batch_size=1,
                pipeline=f"decode shrink=off | center_crop {height} | resize 8,8 nearest | "
                "tensor u8") as loader:
        assert (next(iter(loader))[0][0] == found).all()
    assert width > height


def test_one_bucket_changes_nothing(pack):
    """But for the steps of a random order, which are mixed."""
    text = "decode | random_resized_crop 8 | tensor u8"
    for order in ("sequential", "shuffle", "sticky"):
        found, want = [], []
        for rank in range(2):
            settings = {"order": order, "world_size": 2, "rank": rank, "batch_size": 7}
            found.append(load(pack, 1, buckets=[(8, 8)],
                              pipeline=text.replace("p 8", "p bucket"), **settings))
            with opened(pack, buckets=None, pipeline=text, **settings) as loader:
                loader.set_epoch(1)
                want.append([(position, 0, *rest) for position, _, *rest in taken(loader)])
        assert [together(step) for step in zip(*found, strict=True)] == [
            together(step) for step in zip(*want, strict=True)]


def test_subset_and_weights(pack):
    chosen = [s for s in range(N) if s % 4 != 1][::-1]
    found = load(pack, subset=chosen)
    valid = [s for _, _, samples, mask, _ in found for s, v in zip(samples, mask) if v]
    assert sorted(valid) == sorted(chosen)
    assert all(bucket_of(s) == bucket for _, bucket, samples, *_ in found for s in samples)
    assert load(pack, subset=range(10, 50))
    weights = np.arange(N) % 3 * 1.7
    for epoch in range(2):
        times = collections.Counter()
        for _, bucket, samples, mask, _ in load(pack, epoch, weights=weights):
            assert all(bucket_of(s) == bucket for s in samples)
            times.update(s for s, v in zip(samples, mask) if v)
        want = N * weights / weights.sum()
        assert all(abs(times[s] - want[s]) < 1 for s in range(N))


def test_masks_lists_and_functions(pack):
    pipeline = {"image": "decode | center_crop bucket | tensor u8", "key": "key"}
    with opened(pack, pipeline=pipeline) as loader:
        for image, keys, info in loader:
            assert list(keys) == [f"s{s}" for s in info.samples]
            assert image.shape[1:3] == BUCKETS[info.bucket]

    def grey(sample, rng):
        return {"mean": sample["image"].mean(), "image": sample["image"]}

    with opened(pack, pipeline=[PIPELINE, penstock.ops.python(grey)]) as loader:
        for batch in loader:
            assert batch.image.shape[1:3] == BUCKETS[batch.info.bucket]
            assert np.allclose(batch.mean, batch.image.reshape(4, -1).mean(1))


def test_a_broken_sample_is_replaced(tmp_path):
    """By any other, in the size of the bucket of the batch."""
    path = tmp_path / "bad.pen"
    made = write_pack(penstock, path, N, image)
    data = made[11]["image"]
    made.close()
    shard = next(path.glob("*/*.shard"))
    content = bytearray(shard.read_bytes())
    content[bytes(content).find(data) + 50] ^= 1
    shard.write_bytes(content)
    with opened(path, on_bad="substitute") as loader:
        for found, _, info in loader:
            assert found.shape[1:3] == BUCKETS[info.bucket]
        (bad,) = loader.bad_samples()
        assert bad.sample == 11 and bad.instead != 11


def test_aspect_buckets():
    sizes = penstock.aspect_buckets()
    assert (1024, 1024) in sizes and (896, 1152) in sizes and (1152, 896) in sizes
    assert sizes == sorted(sizes, key=lambda size: size[0] / size[1])
    assert all(h * w <= 1024 * 1024 and h % 64 == w % 64 == 0 and max(h, w) <= 2 * min(h, w)
               for h, w in sizes)
    assert penstock.aspect_buckets(64 * 64, 32, 1) == [(64, 64)]
    with pytest.raises(penstock.InvalidError, match="have 0 sizes; expected 1 to 255"):
        penstock.aspect_buckets(100, 64)
    with pytest.raises(penstock.InvalidError, match="change multiple"):
        penstock.aspect_buckets(1 << 20, 1, 8)


@pytest.mark.parametrize(("settings", "message"), [
    ({"buckets": []}, "buckets: expected 1 to 255 sizes, found 0"),
    ({"buckets": [(8, 8)] * 256}, "buckets: expected 1 to 255 sizes, found 256"),
    ({"buckets": [(8, 8), (8,)]}, r"buckets: entry 1: expected \(height, width\), found \(8,\)"),
    ({"buckets": [(8, 0)]}, "buckets: entry 0: width: expected 1 to"),
    ({"pipeline": "decode | center_crop 8"},
     "buckets: no operation of the pipeline has the size of a bucket; write 'cover bucket'"),
    ({"buckets": None}, "cover: size is 'bucket', but there are no buckets; pass buckets= to"),
    ({"pipeline": "decode | cover bucket | resize min_side=9,12 max_side=40"},
     "buckets: images of 'image' have different sizes in one batch; end with the operation"),
    ({"pipeline": "decode | cover size=buckets"}, "cover: no size 'buckets'; did you mean"),
    ({"pipeline": "decode | three_crop size=bucket"}, "three_crop: size: expected a number"),
])
def test_refused(pack, settings, message):
    with pytest.raises(penstock.InvalidError, match=message):
        opened(pack, **settings)


def test_mixtures_are_refused(pack):
    with pytest.raises(penstock.InvalidError, match="buckets: a mixture of packs cannot have"):
        opened(penstock.mix([(pack, 1), (pack, 2)]))


def test_other_states_are_refused(pack):
    with opened(pack) as loader:
        next(iter(loader))
        state = loader.state_dict()
        loader.load_state_dict(state)
        assert not {"global_batch", "place"} & set(
            opened(pack, buckets=None, pipeline=None).state_dict())
        for name, value in [("global_batch", 0), ("global_batch", 2**48), ("place", -1)]:
            with pytest.raises(penstock.InvalidError, match=f"state: {name} is"):
                loader.load_state_dict({**state, name: value})
        for name in ("global_batch", "place"):
            with pytest.raises(penstock.InvalidError, match="expected global_batch with place"):
                loader.load_state_dict({k: v for k, v in state.items() if k != name})
    with opened(pack, buckets=BUCKETS[:3]) as loader:
        with pytest.raises(penstock.InvalidError, match="another subset, weights"):
            loader.load_state_dict(state)
        loader.load_state_dict(state, strict=False)
    with opened(pack, buckets=None, pipeline="decode | cover 8") as loader:
        loader.load_state_dict(state, strict=False)
        assert next(iter(loader)).info.position == 4
        plain_state = loader.state_dict()
    with opened(pack, batch_size=3) as loader:
        loader.load_state_dict(plain_state, strict=False)
        assert next(iter(loader)).info.position == 6
