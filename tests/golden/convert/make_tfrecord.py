# SPDX-License-Identifier: Apache-2.0
"""TFRecord files of tf.train.Example, written by TensorFlow, and what they hold.

    build/peers/tfdata/bin/python tests/golden/convert/make_tfrecord.py \\
        --out tests/golden/convert/tfrecord
"""

import shutil

import golden_tools as golden
import numpy as np
import tensorflow as tf


def feature(values):
    if isinstance(values[0], bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    if isinstance(values[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def single(value):
    """A float as the file has it, in 32 bits."""
    return float(np.float32(value))


def picture(i):
    y, x = np.mgrid[0:18, 0:24]
    rgb = np.stack([x * 9 + i * 31, y * 11 + i * 17, (x + y) * 5 + i], 2) % 256
    return rgb.astype(np.uint8)


def photograph(paths, i):
    return paths[i % len(paths)].read_bytes() if paths else tf.io.encode_jpeg(picture(i)).numpy()


def sample(paths, i):
    """What is written, and what is expected."""
    jpeg = photograph(paths, i)
    png = tf.io.encode_png(picture(i)).numpy()
    frames = [tf.io.encode_jpeg(picture(i + k)).numpy() for k in range(i % 3 + 1)]
    label = [0, -1, 2**63 - 1, -(2**63), 7, 300][i % 6]
    written = {
        "image": [jpeg], "png": [png], "frames": frames, "label": [label],
        "score": [i / 7], "box": [i * 0.1, i * 0.2, 0.3, 0.4], "ids": list(range(-2, i % 4)),
        "pair": [i, -i], "caption": [golden.texts(i).encode()], "blob": [b"\xff" + golden.blob(i)],
        "words": [b"a", golden.texts(i).encode()],
    }  # fmt: skip
    if i % 2:
        written["note"] = [b"odd"]
        written["extra"] = [i]
    expected = {
        "image": golden.sha256(jpeg), "png": golden.sha256(png),
        "frames": [golden.sha256(frame) for frame in frames], "label": label,
        "score": single(i / 7), "box": [single(v) for v in written["box"]],
        "ids": written["ids"], "pair": [i, -i], "caption": golden.texts(i),
        "blob": golden.sha256(b"\xff" + golden.blob(i)), "words": ["a", golden.texts(i)],
        "note": "odd" if i % 2 else None, "extra": [i] if i % 2 else None,
    }  # fmt: skip
    return written, expected


def write(out, samples, files, **options):
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    ends = [len(samples) * (k + 1) // files for k in range(files)]
    for k, end in enumerate(ends):
        begin = ends[k - 1] if k else 0
        name = str(out / f"train-{k:05d}-of-{files:05d}.tfrecord")
        with tf.io.TFRecordWriter(name, tf.io.TFRecordOptions(**options)) as writer:
            for written, _ in samples[begin:end]:
                features = {key: feature(values) for key, values in written.items()}
                example = tf.train.Example(features=tf.train.Features(feature=features))
                writer.write(example.SerializeToString())


def main():
    options = golden.options(__doc__)
    paths = sorted(options.photos.rglob("*.jpg")) if options.photos else []
    samples = [sample(paths, i) for i in range(options.count)]
    version = f"tensorflow {tf.__version__}"
    write(options.out / "all", samples, 2)
    write(options.out / "gzip", samples, 1, compression_type="GZIP")
    for name in ("all", "gzip"):
        golden.record(options.out, name, version, [expected for _, expected in samples])


if __name__ == "__main__":
    main()
