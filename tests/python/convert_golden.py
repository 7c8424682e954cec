# SPDX-License-Identifier: Apache-2.0
"""Compare what readers find with the samples that a real library wrote: tests/golden/convert, and
fresh ones in tests/long/long_convert_real.py."""

import gzip
import hashlib
import io
import json
import pathlib
import random
import shutil

import penstock
from PIL import Image

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden" / "convert"


def _plain(value, expected):
    """A value of a pack in the words of the expectation."""
    if isinstance(expected, dict) and expected.keys() == {"sha256"}:
        return {"sha256": hashlib.sha256(value).hexdigest()}
    if isinstance(expected, dict) and expected.keys() == {"pixels"}:
        image = Image.open(io.BytesIO(value))
        head = repr((image.mode, image.size)).encode()
        return {"pixels": hashlib.sha256(head + image.tobytes()).hexdigest()}
    if isinstance(value, penstock.Clip):
        frames = list(value)
        assert len(frames) == len(expected)
        return [_plain(frame, one) for frame, one in zip(frames, expected)]
    if isinstance(value, bytes):
        return value.decode()
    return value.tolist() if hasattr(value, "tolist") else value


def compare(pack, samples):
    """Every field of every sample. Returns the number of values."""
    assert len(pack) == len(samples)
    for i, expected in enumerate(samples):
        sample = pack[i]
        assert sample.keys() == expected.keys()
        for name, value in expected.items():
            assert _plain(sample[name], value) == value, (i, sample.key, name)
    return sum(map(len, samples))


def write(reader, out, **settings):
    """A pack of everything that a reader finds."""
    with penstock.Writer(out, reader.schema, **settings) as writer:
        for part in range(reader.parts):
            for key, values in reader.rows(part):
                writer.add(key, **values)
    return penstock.open(out)


def unpacked(source, to):
    """A copy of a golden dataset, with files that end in .golden.gz unpacked."""
    if source.is_dir():
        shutil.copytree(source, to)
        return to
    name = source.name.removesuffix(".golden.gz")
    to.mkdir()
    data = source.read_bytes()
    (to / name).write_bytes(gzip.decompress(data) if name != source.name else data)
    return to / name


def expected(folder, name):
    return json.loads((folder / f"{name}.expect.json").read_text(encoding="utf-8"))["samples"]


def read_all(module, source, choice):
    """Number of rows; 0 if the reader refuses the dataset. Other exceptions pass."""
    try:
        reader = module.open(str(source), choice)
        return sum(1 for part in range(reader.parts) for _ in reader.rows(part))
    except penstock.Error:
        return 0


def damage(module, source, file, choice, seed, flips, cuts):
    """Reads a dataset with a damaged file many times: cut at `cuts` places, and with up to 4
    random bytes changed. Returns how many were refused."""
    data = file.read_bytes()
    random_ = random.Random(seed)
    refused = 0
    for end in sorted(random_.sample(range(len(data)), min(cuts, len(data)))):
        file.write_bytes(data[:end])
        refused += not read_all(module, source, choice)
    for _ in range(flips):
        changed = bytearray(data)
        for _ in range(random_.randint(1, 4)):
            # Heads and tables are more fragile than pixels.
            at = random_.randrange(min(len(data), random_.choice((24, 400, len(data)))))
            changed[at] = random_.choice((0, 1, 0x7F, 0x80, 0xFF, random_.randrange(256)))
        file.write_bytes(changed)
        refused += not read_all(module, source, choice)
    file.write_bytes(data)
    return refused
