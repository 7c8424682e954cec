# SPDX-License-Identifier: Apache-2.0
"""Messages of the Python package that advise an action: each advice is followed, and has to work.

A row: the advice as it is in the source, what is done wrong, and the same after the advice.
test_advice_list.py finds the messages that have no row.
"""

import io
import pickle
import shutil

import pytest
from advice_tools import png_16
from cli_tools import good, make_folder
from PIL import Image
from py_tools import encoded, in_child, jpeg, need_penstock, png, run_python
from remote_tools import options

penstock = need_penstock()
pytest.importorskip("numpy")
MiB = 1 << 20
N = 24
FILLED = range(1, N)  # the first image is empty


class World:
    """Packs that the rows share, and a directory of each row's own."""

    def __init__(self, top):
        self.shared, self.top = top, None
        self.images, self.clips, self.numbers = top / "i.pen", top / "c.pen", top / "n.pen"
        self.bytes, self.big, self.boxes = top / "b.pen", top / "big.pen", top / "m.pen"
        self.still = top / "still.pen"
        self.server = None
        image = {"image": "image", "label": "i64", "note": "text"}
        self.write(self.images, image,
                   ({"key": f"s{i}", "image": png(i, 12, 10) if i else b"", "label": i, "note": "n"}
                    for i in range(N)))
        self.write(self.clips, {"video": "clip"},
                   ({"video": ([jpeg(i, 16, 12)] * i, [40_000_000 * k for k in range(i)])}
                    for i in range(5)))
        self.write(self.numbers, {"label": "i64", "more": "i64"},
                   ({"label": i, "more": i} for i in range(N)))
        self.heavy(self.bytes, N)
        self.heavy(top / "small.pen", 1)
        self.write(self.big, {"image": "image"},
                   ({"image": png(1, 12, 10) if i == 0 else encoded(Image.new("RGB", (3000, 3000)))}
                    for i in range(2)))
        self.write(self.still, {"video": "clip", "video_times": "i64"},
                   ({"video": ([jpeg(1, 16, 12)] * 4, times), "video_times": 1} for times in
                    ([0] * 4, [day * 200 * 86400 * 10**9 for day in range(4)])))
        self.write(self.boxes, {"image": "image", "mask": "mask"},
                   ({"image": png(i, 12, 10), "mask": grey()} for i in range(2)))

    @staticmethod
    def write(path, schema, samples, **settings):
        with penstock.Writer(path, schema, **settings) as writer:
            for sample in samples:
                writer.add(**sample)
        return path

    def heavy(self, path, block):
        return self.write(path, {"label": "i64", "data": "bytes"},
                          ({"label": i, "data": bytes(1 << 20)} for i in range(N)),
                          block_samples=block)

    def load(self, pack=None, pipeline="decode | resize 8,8", batch_size=4, subset=FILLED,
             output="numpy", **more):
        with penstock.Loader(pack or self.images, batch_size, pipeline=pipeline, subset=subset,
                             output=output, threads=1, **more) as loader:
            return sum(1 for _ in loader)

    def clip(self, text, subset=None, pack=None):
        return self.load(pack or self.clips, f"decode | {text} | resize 8,8", 1, subset)

    def s3(self, name="i.pen"):
        return penstock.open(f"s3://packs/{name}", options(self.server))


def grey():
    out = io.BytesIO()
    Image.new("L", (12, 10)).save(out, "PNG")
    return out.getvalue()


def odd_bytes(w):
    return w.write(w.top / "odd.pen", {"x": "bytes"}, [{"x": b"\xff"}])


def long_image(w):
    return w.write(w.top / "long.pen", {"image": "image"}, [{"image": png(0, 16385, 1)}])


def two_clips(w):
    return w.write(w.top / "clips.pen", {"video": "clip"},
                   [{"video": [jpeg(0, side, 12)]} for side in (12, 16)])


def pipe(text, pack="images", good_subset=FILLED):
    """Loads with these operations."""
    return lambda w: w.load(getattr(w, pack), text, 2, good_subset if pack == "images" else None)


def opened(**more):
    """A loader of a pack that is open already, with arguments that are open()'s."""
    def wrong(w):
        with penstock.open(w.images) as pack:
            return w.load(pack, **more(w) if callable(more) else more)
    return wrong


def in_new_process(function):
    def child(w):
        with penstock.Loader(w.images, 4, pipeline="decode | resize 8,8", subset=range(1, N),
                             output="numpy", threads=1) as loader:
            text = in_child(function, w, loader)
            if text:
                raise penstock.Error(text)
    return child


def written_with(**settings):
    def wrong(w):
        return w.write(w.top / f"w{len(settings)}.pen", {"image": "image"}, [{"image": png_16()}],
                       **settings)
    return wrong


def held(w, keep, memory="16MiB"):
    """All batches of an epoch; keep: what is kept of each."""
    with penstock.Loader(w.images, 4, pipeline="decode | resize 512,512", output="numpy", threads=1,
                         subset=range(1, N), memory=memory) as loader:
        assert len([keep(batch) for batch in loader]) == 6


def passes(w, second):
    settings = dict(pipeline="label: tensor", output="numpy", threads=1)
    with penstock.Loader(w.numbers, 4, **settings) as one, \
            penstock.Loader(w.numbers, 4, **settings) as two:
        first = iter(one)
        next(first)
        next(iter(two if second else one))
        next(first)


def mask_of_numbers():
    import numpy

    return numpy.array([0, *[1] * (N - 1)])


def first_buffer(w, kind):
    with penstock.Loader(w.images, 4, pipeline=f"decode | resize 8,8 | tensor {kind}", threads=1,
                         subset=range(1, N), output="dlpack") as loader:
        return memoryview(next(iter(loader))[0]).nbytes


def with_ranks(w, **more):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOCAL_WORLD_SIZE", "8")
        return w.load(**more)


def state_of(w, strict=True, **other):
    settings = dict(pipeline="label: tensor", output="numpy", threads=1, order="shuffle")
    with penstock.Loader(w.numbers, 4, **settings, seed=3) as loader:
        next(iter(loader))
        state = loader.state_dict()
    with penstock.Loader(w.numbers, 4, **{**settings, "seed": 3, **other}) as loader:
        loader.load_state_dict(state, strict=strict)
        next(iter(loader))


def no_module(name, *args):
    """In a process in which a package cannot be imported."""
    def wrong(w):
        code = (f"import sys; sys.modules[{name!r}] = None; import penstock\n"
                f"for _ in penstock.Loader({str(w.numbers)!r}, 4, pipeline='label: tensor',"
                f" output=sys.argv[1], threads=1): pass")
        done = run_python(code, *args)
        if done.returncode:
            raise penstock.Error(done.stderr)
    return wrong


CACHE_ROWS = {
    "a directory in it": ("name a subdirectory, which is then created",
        lambda w: penstock.open(w.images, cache=common(w)),
        lambda w: penstock.open(w.images, cache=common(w) / "mine")),
    "an empty directory": ("name an empty or a new directory",
        lambda w: penstock.open(w.images, cache=full(w)),
        lambda w: penstock.open(w.images, cache=w.top / "new")),
    "another version": ("was written by another version of penstock; name another directory",
        lambda w: penstock.open(w.images, cache=old_cache(w)),
        lambda w: penstock.open(w.images, cache=w.top / "other")),
    "what is there": ("expected a directory that belongs to this user; remove it",
        lambda w: penstock.open(w.images, cache=blocked(w)),
        lambda w: penstock.open(w.images, cache=unblocked(w))),
}


def common(w):
    folder = w.top / "common"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o777)
    return folder


def full(w):
    (w.top / "full").mkdir(exist_ok=True)
    (w.top / "full" / "file").write_text("x")
    return w.top / "full"


def marker(w, name):
    cache = w.top / name
    penstock.open(w.images, cache=cache).close()
    return cache


def old_cache(w):
    cache = marker(w, "old")
    for file in cache.iterdir():
        if file.is_file() and file.stat().st_size:
            file.write_bytes(b"penstock cache 99\n")
    return cache


def blocked(w):
    """A file in the place of the pack's directory in the cache."""
    cache = marker(w, "cache")
    (folder,) = (path for path in cache.iterdir() if path.is_dir())
    shutil.rmtree(folder)
    folder.write_text("x")
    return cache


def unblocked(w):
    for path in (w.top / "cache").iterdir():
        if path.read_bytes() == b"x":
            path.unlink()
    return w.top / "cache"


LOADER_ROWS = {
    "a subset without the empty one": ("is empty; leave the sample out with a subset",
        lambda w: w.load(subset=None), lambda w: w.load()),
    "more memory for a batch": ("increase memory, or use smaller batches",
        lambda w: w.load(w.numbers, "label: tensor", 1_000_000, None, memory="16MiB"),
        lambda w: w.load(w.numbers, "label: tensor", 1_000_000, None, memory="256MiB")),
    "smaller batches": ("increase memory, or use smaller batches",
        lambda w: w.load(w.numbers, "label: tensor", 1_000_000, None, memory="16MiB"),
        lambda w: w.load(w.numbers, "label: tensor", 4, None, memory="16MiB")),
    "more memory for a sample": ("increase memory, or leave the sample out",
        lambda w: w.load(w.big, "decode | resize 8,8", 1, None, memory="24MiB"),
        lambda w: w.load(w.big, "decode | resize 8,8", 1, None, memory="256MiB")),
    "without the large sample": ("or leave the sample out",
        lambda w: w.load(w.big, "decode | resize 8,8", 1, None, memory="24MiB"),
        lambda w: w.load(w.big, "decode | resize 8,8", 1, [0], memory="24MiB")),
    "more memory for blocks": ("increase memory, or pack with fewer samples per block",
        lambda w: w.load(w.s3("b.pen"), "label: tensor", 1, None, memory="16MiB", order="shuffle"),
        lambda w: w.load(w.s3("b.pen"), "label: tensor", 1, None, memory="256MiB",
                         order="shuffle")),
    "fewer samples in a block": ("or pack with fewer samples per block",
        lambda w: w.load(w.s3("b.pen"), "label: tensor", 1, None, memory="16MiB", order="shuffle"),
        lambda w: w.load(w.s3("small.pen"), "label: tensor", 1, None, memory="16MiB",
                         order="shuffle")),
    "no buffer of bf16": ("no bf16: use output='torch' or 'dlpack', or 'tensor f16'",
        lambda w: first_buffer(w, "bf16"), lambda w: first_buffer(w, "f16")),
    "less memory each": ("or less, or start fewer processes",
        lambda w: with_ranks(w, memory="4TiB"), lambda w: with_ranks(w, memory="64MiB")),
    "name a field": ("the pack has no image field; name the field: 'label: tensor'",
        lambda w: w.load(w.numbers, "decode", 4, None),
        lambda w: w.load(w.numbers, "label: tensor", 4, None)),
    "a pipeline that names fields": ("numbers; pass a pipeline that names its fields",
        lambda w: w.load(odd_bytes(w), None, 1, None),
        lambda w: w.load(w.top / "odd.pen", "x: bytes", 1, None)),
    "a pipeline for long images": ("are returned; pass a pipeline that makes them smaller",
        lambda w: w.load(long_image(w), None, 1, None),
        lambda w: w.load(w.top / "long.pen", "decode | resize 8,8", 1, None)),
    "a pipeline for clips": (
        "batch; pass a pipeline: 'decode | clip 16 | resize 256 | center_crop 224'",
        lambda w: w.load(two_clips(w), None, 1, None),
        lambda w: w.load(w.top / "clips.pen", "decode | clip 16 | resize 256 | center_crop 224", 1,
                         None)),
    "a field that has no tensor": ("the field holds %s; use 'text', 'json' or 'bytes'",
        lambda w: w.load(pipeline="image: decode | resize 8,8; note: tensor"),
        lambda w: w.load(pipeline="image: decode | resize 8,8; note: text")),
    "a name for a list": ("name the field: 'caption: %s'",
        lambda w: w.load(pipeline="text"), lambda w: w.load(pipeline="note: text")),
    "a name for keys": ("use another name for the keys of the samples",
        lambda w: w.load(pipeline="note: key"), lambda w: w.load(pipeline="id: key")),
    "a larger max_bytes": ("increase max_bytes in the pipeline",
        lambda w: w.load(pipeline="id: key 1"), lambda w: w.load(pipeline="id: key 9")),
    "bytes that are no text": ("use 'bytes' to load them",
        lambda w: w.load(odd_bytes(w), "x: text", 1, None),
        lambda w: w.load(w.top / "odd.pen", "x: bytes", 1, None)),
    "the image's geometry": ("give it the image's crops, resizes and flips in the same order",
        lambda w: w.load(w.boxes, "image: decode | hflip | resize 8,8; mask: decode | resize 8,8",
                         1, None),
        lambda w: w.load(w.boxes, "image: decode | hflip | resize 8,8;"
                         " mask: decode | hflip | resize 8,8", 1, None)),
    "a loader in this process": (
        "the loader belongs to the parent process; create one in this process",
        in_new_process(lambda w, loader: next(iter(loader))),
        in_new_process(lambda w, loader: w.load())),
    "a second Loader": ("a loader runs one pass at a time: use a second Loader",
        lambda w: passes(w, False), lambda w: passes(w, True)),
    "batches to release": ("release batches (copy what you keep)",
        lambda w: held(w, lambda batch: batch),
        lambda w: held(w, lambda batch: [part.copy() for part in batch])),
    "more memory for batches that are held": ("or increase memory",
        lambda w: held(w, lambda batch: batch), lambda w: held(w, lambda batch: batch, "64MiB")),
    "a state of another order": ("pass strict=False to continue anyway",
        lambda w: state_of(w, order="sticky"), lambda w: state_of(w, False, order="sticky")),
    "a state of another seed": ("pass strict=False to continue anyway",
        lambda w: state_of(w, seed=4), lambda w: state_of(w, False, seed=4)),
    "order instead of shuffle": ("contradicts order=%s; use order alone",
        lambda w: w.load(shuffle=True, order="sequential"), lambda w: w.load(order="sequential")),
    "f16 for NumPy": ("NumPy has no bf16; use 'tensor f16' or 'tensor f32'",
        pipe("decode | resize 8,8 | tensor bf16"), pipe("decode | resize 8,8 | tensor f16")),
    "dlpack for bf16": ("or output='torch' or 'dlpack'",
        pipe("decode | resize 8,8 | tensor bf16"),
        lambda w: w.load(pipeline="decode | resize 8,8 | tensor bf16", output="dlpack")),
    "one in each process": ("has threads and cannot be pickled; create one in each process",
        lambda w: pickle.dumps(penstock.Loader(w.numbers, 4, pipeline="label: tensor")),
        in_new_process(lambda w, loader: w.load())),
    "no NumPy": ("output='numpy' needs NumPy: pip install numpy, or use output='torch' or 'dlpack'",
        no_module("numpy", "numpy"), no_module("numpy", "dlpack")),
    "no PyTorch": (
        "output='torch' needs PyTorch: pip install torch, or use output='numpy' or 'dlpack'",
        no_module("torch", "torch"), no_module("torch", "numpy")),
    "no JAX": (
        "output='jax' needs JAX: pip install jax, or use output='numpy' or 'dlpack'",
        no_module("jax", "jax"), no_module("jax", "numpy")),
    "options to open": ("storage_options: the pack is already open; pass them to open()",
        opened(storage_options={"region": "x"}),
        lambda w: w.load(w.s3())),
    "cache to open": ("cache: the pack is already open; pass it to open()",
        opened(cache="c"), lambda w: w.load(penstock.open(w.images, cache=w.top / "c"))),
    "preload to open": ("preload: the pack is already open; pass it to open()",
        opened(preload=True), lambda w: w.load(penstock.open(w.images, preload=True))),
    "sampler": ("use order=, subset=, weights= and seed=; the loader splits samples across ranks",
        lambda w: w.load(sampler=[1]), lambda w: w.load(subset=[1], order="random", seed=1)),
    "batch_sampler": ("use batch_size=, order=, subset= and last_batch=",
        lambda w: w.load(batch_sampler=[1]), lambda w: w.load(batch_size=2, last_batch="drop")),
    "prefetch_factor": ("use prefetch=, the number of batches to prefetch",
        lambda w: w.load(prefetch_factor=2), lambda w: w.load(prefetch=2)),
    "generator": ("use seed=", lambda w: w.load(generator=1), lambda w: w.load(seed=1)),
    "num_threads": ("use threads=", lambda w: w.load(num_threads=1), World.load),
    "num_workers": ("threads= sets the number of decoding threads",
        lambda w: w.load(num_workers=2), World.load),
    "collate_fn": ("transform= is called with each batch",
        lambda w: w.load(collate_fn=len), lambda w: w.load(transform=lambda batch: batch)),
    "world": ("use world_size=", lambda w: w.load(world=2), lambda w: w.load(world_size=2, rank=0)),
    "a subset from the start": ("negative numbers do not count from the end: use ",
        lambda w: w.load(subset=[-1]), lambda w: w.load(subset=[N - 1])),
    "a mask of booleans": ("pass a mask as booleans, for example mask.astype(bool)",
        lambda w: w.load(subset=mask_of_numbers()),
        lambda w: w.load(subset=mask_of_numbers().astype(bool))),
    "out of the dict": ("to skip the field, leave it out of the dict",
        lambda w: w.load(pipeline={"image": "decode | resize 8,8", "label": None}),
        lambda w: w.load(pipeline={"image": "decode | resize 8,8"})),
    "call an operation": ("; call it: ops.%s()",
        lambda w: w.load(pipeline=[penstock.ops.decode, "resize 8,8"]),
        lambda w: w.load(pipeline=[penstock.ops.decode(), "resize 8,8"])),
    "a function to call": ("to call a function, use ops.python(fn)",
        lambda w: w.load(pipeline=[len]),
        lambda w: w.load(pipeline=[penstock.ops.python(lambda sample, rng: sample)])),
}
PACK_ROWS = {
    "an optional text": ('; if values may be missing, use the type "',
        lambda w: w.write(w.top / "o.pen", {"text": "text"}, [{"text": None}]),
        lambda w: w.write(w.top / "o.pen", {"text": "text?"}, [{"text": None}])),
    "index for keys": ("use pack.index(key) for keys",
        lambda w: penstock.open(w.images)["s1"],
        lambda w: penstock.open(w.images)[penstock.open(w.images).index("s1")]),
    "subset for parts": ("and Loader(..., subset=...) for parts",
        lambda w: penstock.open(w.images)[1:3], lambda w: w.load(subset=slice(1, 3))),
    "preload or cache": ("preload: a preloaded pack needs no cache; leave cache out",
        lambda w: penstock.open(w.images, cache=w.top / "c", preload=True),
        lambda w: penstock.open(w.images, preload=True)),
    "cache_bytes with a cache": ("cache_bytes: there is no cache; set its directory with cache=",
        lambda w: penstock.open(w.images, cache_bytes="1GiB"),
        lambda w: penstock.open(w.images, cache=w.top / "c", cache_bytes="1GiB")),
    "make a pack of a folder": ("to pack a folder, run: penstock pack FOLDER -o NAME.pen",
        lambda w: penstock.open(make_folder(w.top / "in")),
        lambda w: good("pack", w.top / "in", "-o", w.top / "in.pen")
        and penstock.open(w.top / "in.pen")),
    "sixteen bits": ("(Python: sixteen_bit=\\\"reduce\\\")",
        written_with(), written_with(sixteen_bit="reduce")),
    "a mode that is gone": ("use \"keep\" (the default)",
        lambda w: w.write(w.top / "t.pen", {"image": "image"}, [{"image": png(1)}], mode="tile"),
        lambda w: w.write(w.top / "t.pen", {"image": "image"}, [{"image": png(1)}], mode="keep")),
    "sixteen bits as bytes": ("or store the file in a field of type bytes", written_with(),
        lambda w: w.write(w.top / "raw.pen", {"image": "bytes"}, [{"image": png_16()}])),
    "encode pixels": ("encode pixels first, for example as PNG, which is lossless",
        lambda w: w.write(w.top / "p.pen", {"image": "image"}, [{"image": [[0]]}]),
        lambda w: w.write(w.top / "q.pen", {"image": "image"}, [{"image": png(1)}])),
    "a writer in this process": (
        "the writer belongs to the parent process; create one in this process",
        lambda w: writer_in_child(w, False), lambda w: writer_in_child(w, True)),
}


def writer_in_child(w, new):
    name = w.top / f"child-{new}.pen"

    def child(writer):
        if new:
            writer = penstock.Writer(w.top / "grandchild.pen", {"image": "image"})
        writer.add(image=png(1))
        if new:
            writer.close()
    with penstock.Writer(name, {"image": "image"}) as writer:
        writer.add(image=png(1))
        text = in_child(child, writer)
    if text:
        raise penstock.Error(text)


OPS_ROWS = {
    "pad for a short clip": ("and pad is none; use pad=last or pad=loop",
        lambda w: w.clip("clip 4 pad=none", [2]), lambda w: w.clip("clip 4 pad=last", [2])),
    "loop for a short clip": ("use pad=last or pad=loop, or leave the sample out with a subset",
        lambda w: w.clip("clip 4 pad=none", [2]), lambda w: w.clip("clip 4 pad=loop", [2])),
    "no short clips": ("or leave the sample out with a subset",
        lambda w: w.clip("clip 2 pad=none", [2, 4]), lambda w: w.clip("clip 2 pad=none", [4])),
    "no empty clips": ("clip: no frames; leave the sample out with a subset",
        lambda w: w.clip("clip 2 pad=last", [0]), lambda w: w.clip("clip 2 pad=last", [1])),
    "the times of a clip": ("is also a field of the pack; leave one of them out",
        lambda w: w.load(w.still, "video: decode | clip 2 1 times=yes | resize 8,8;"
                         " video_times: tensor", 1, None),
        lambda w: w.load(w.still, "video: decode | clip 2 1 times=yes | resize 8,8", 1, None)),
    "stride without times": (" frames without them; use stride",
        lambda w: w.clip("clip 2 fps=5", [0], w.still), lambda w: w.clip("clip 2 1", [0], w.still)),
    "stride for slow clips": ("expected timestamps of at most 100 days, found ",
        lambda w: w.clip("clip 2 fps=5", [1], w.still), lambda w: w.clip("clip 2 1", [1], w.still)),
    "resize before the crop": ("add resize before it, or more padding",
        pipe("decode | random_crop 20"), pipe("decode | resize 24,24 | random_crop 20")),
    "resize before five crops": ("add resize before it",
        pipe("decode | five_crop 20"), pipe("decode | resize 24,24 | five_crop 20")),
    "padding for the crop": ("add resize before it, or more padding",
        pipe("decode | random_crop 20"), pipe("decode | random_crop 20 padding=8")),
    "before normalize": ("only random_erasing and tensor can follow; move it before normalize",
        pipe("decode | resize 8,8 | normalize | hflip"),
        pipe("decode | resize 8,8 | hflip | normalize | tensor f32")),
    "which frames": ("select frames of the clip first: 'decode | clip 16 | ",
        lambda w: w.load(w.clips, "decode | resize 8,8", 1, [4]),
        lambda w: w.load(w.clips, "decode | clip 16 pad=last | resize 8,8", 1, [4])),
    "which frames, in all": ("select frames of the clip: 'decode | clip 16 | ...'",
        lambda w: w.load(w.clips, "decode", 1, [4]),
        lambda w: w.load(w.clips, "decode | clip 16 pad=last | resize 8,8", 1, [4])),
    "no colours in masks": ("a mask holds class numbers, not colors; remove this operation",
        lambda w: w.load(w.boxes, "mask: decode | resize 8,8 | color_jitter 0.4", 1, None),
        lambda w: w.load(w.boxes, "mask: decode | resize 8,8", 1, None)),
    "decode rgb": ("but 'decode gray' removes them; use 'decode rgb'",
        pipe("decode gray | resize 8,8 | color_jitter 0.4 0.4 0.4 0.1"),
        pipe("decode rgb | resize 8,8 | color_jitter 0.4 0.4 0.4 0.1")),
    "one for each channel": ("pass one, or one for each channel",
        pipe("decode | resize 8,8 | normalize 0.5,0.5 0.5,0.5"),
        pipe("decode | resize 8,8 | normalize 0.5 0.5 | tensor f32")),
    "a fixed size": ("has no bound; add 'center_crop H,W' or 'resize H,W'",
        pipe("decode | resize 8"), pipe("decode | resize 8 | center_crop 8,8")),
    "a bound": ("or for images of different sizes 'resize min_side=800 max_side=1333'",
        pipe("decode | resize min_side=8"), pipe("decode | resize min_side=8 max_side=13")),
    "fps or seconds": ("clip: fps and seconds are mutually exclusive; pass one of them",
        lambda w: w.clip("clip 4 fps=5 seconds=1 pad=last", [4]),
        lambda w: w.clip("clip 4 fps=5 pad=last", [4])),
    "indices without n": ("clip: indices select one clip; remove n=",
        lambda w: w.clip("clip indices=0,1 n=2", [4]), lambda w: w.clip("clip indices=0,1", [4])),
    "indices without fps": ("clip: indices select frames by number; remove fps and seconds",
        lambda w: w.clip("clip indices=0,1 fps=5", [4]), lambda w: w.clip("clip indices=0,1", [4])),
    "an argument by name": (" to pass it by name",
        pipe("decode | resize 8,8 filter nearest"), pipe("decode | resize 8,8 filter=nearest")),
    "no parentheses": ("write values after the name, without parentheses: ",
        pipe("decode | resize(8,8)"), pipe("decode | resize 8,8")),
    "operations in brackets": (": put its operations in brackets: ",
        pipe("decode | resize 8,8 | random_apply hflip"),
        pipe("decode | resize 8,8 | random_apply [hflip]")),
    "a space before brackets": ("write a space before '['",
        pipe("decode | resize 8,8 | random_apply[hflip]"),
        pipe("decode | resize 8,8 | random_apply [hflip]")),
    "one bracket": ("; separate operations by '|'",
        pipe("decode | resize 8,8 | random_apply [hflip] [vflip]"),
        pipe("decode | resize 8,8 | random_apply [hflip | vflip]")),
    "values after normalize": ("for other values, move it after normalize",
        pipe("decode | resize 8,8 | random_erasing value=0.5"),
        pipe("decode | resize 8,8 | normalize | random_erasing value=0.5 | tensor f32")),
}


TABLES = {**CACHE_ROWS, **LOADER_ROWS, **PACK_ROWS, **OPS_ROWS}


@pytest.fixture(scope="module")
def shared(s3, tmp_path_factory):
    made = World(tmp_path_factory.mktemp("advice"))
    folder = made.shared / "served" / "packs"
    folder.mkdir(parents=True)
    for name in ("i.pen", "b.pen", "small.pen"):
        (folder / name).symlink_to(made.shared / name)
    made.server = s3(directory=folder.parent)
    return made


@pytest.fixture
def world(shared, no_other_settings, tmp_path):
    shared.top = tmp_path
    return shared


@pytest.mark.parametrize("row", TABLES)
def test_the_advice_works(world, row):
    advice, wrong, right = TABLES[row]
    with pytest.raises((penstock.Error, TypeError, ValueError, ImportError, BufferError)) as error:
        wrong(world)
    text = str(error.value)
    assert all(part in text for part in advice.replace('\\"', '"').split("%s")), text
    right(world)
