# SPDX-License-Identifier: Apache-2.0
"""penstock.decode and decode_batch: pixels against Pillow and torch, memory of NumPy and torch,
and everything that is refused."""

import array
import contextlib
import ctypes
import gc
import io
import os
import random
import signal
import struct
import sys
import threading
import time
import zlib

import pytest
from PIL import Image, ImageOps
from py_tools import encoded, in_child, need_penstock, pixels, run_python

penstock = need_penstock()
np = pytest.importorskip("numpy")
from penstock import _decode  # noqa: E402

torch = None
if "san.so" not in os.environ.get("LD_PRELOAD", ""):  # which torch does not bear
    with contextlib.suppress(ImportError):
        import torch

needs_torch = pytest.mark.skipif(torch is None, reason="needs torch")
W, H = 90, 70


def noise(width=W, height=H):
    """Edges and noise, so that every wrong pixel shows."""
    base = np.asarray(pixels(3, width, height)).astype(np.int16)
    return Image.fromarray(
        np.clip(base + np.random.default_rng(1).integers(-30, 30, base.shape), 0, 255).astype("u1"))


def oriented(number):
    exif = Image.Exif()
    exif[0x0112] = number
    return encoded(noise(), "JPEG", quality=90, exif=exif)


FILES = {
    "jpeg 4:2:0": encoded(noise(), "JPEG", quality=90, subsampling="4:2:0"),
    "jpeg 4:4:4": encoded(noise(), "JPEG", quality=95, subsampling="4:4:4"),
    "jpeg 4:2:2": encoded(noise(), "JPEG", quality=60, subsampling="4:2:2"),
    "jpeg progressive": encoded(noise(), "JPEG", progressive=True),
    "jpeg gray": encoded(noise().convert("L"), "JPEG"),
    "jpeg cmyk": encoded(noise().convert("CMYK"), "JPEG"),
    **{f"jpeg orientation {i}": oriented(i) for i in (2, 3, 6, 8)},
    "png": encoded(noise()),
    "png rgba": encoded(noise().convert("RGBA")),
    "png gray": encoded(noise().convert("L")),
    "png palette": encoded(noise().quantize(40)),
    "webp": encoded(noise(), "WEBP", lossless=True),
    "webp lossy": encoded(noise(), "WEBP", quality=80),
}
JPEG = FILES["jpeg 4:2:0"]


def by_pillow(data, mode="RGB"):
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    image = image.convert("RGB").convert(mode) if image.mode != mode else image
    return np.asarray(image)


def by_torch(image, size, filter):
    if image.shape[:2] == tuple(size):
        return image
    if filter == "box":
        return np.asarray(Image.fromarray(image).resize(size[::-1], Image.Resampling.BOX))
    x = torch.from_numpy(np.array(image)).permute(2, 0, 1)[None]
    y = torch.nn.functional.interpolate(
        x, list(size), mode=filter, antialias=filter != "nearest")
    return y[0].permute(1, 2, 0).numpy()


def crop(image, box):
    top, left, height, width = box
    return image[top : top + height, left : left + width]


def a_box(rng, height, width):
    h, w = rng.randint(1, height), rng.randint(1, width)
    return rng.randint(0, height - h), rng.randint(0, width - w), h, w


# ---- pixels


@pytest.mark.parametrize("name", FILES)
def test_entire_image_equals_pillow(name):
    expected = by_pillow(FILES[name])
    found = penstock.decode(FILES[name])
    assert found.dtype == np.uint8 and found.flags.c_contiguous and found.flags.writeable
    np.testing.assert_array_equal(found, expected)
    gray = penstock.decode(FILES[name], mode="gray")
    np.testing.assert_array_equal(gray[..., 0], by_pillow(FILES[name], "L"))


@pytest.mark.parametrize("name", FILES)
def test_boxes_equal_crops(name):
    whole, rng = by_pillow(FILES[name]), random.Random(name)
    for _ in range(20):
        box = a_box(rng, *whole.shape[:2])
        found = penstock.decode(FILES[name], box)
        np.testing.assert_array_equal(found, crop(whole, box), err_msg=str(box))


@needs_torch
@pytest.mark.parametrize("filter", _decode._FILTERS)
@pytest.mark.parametrize("name", ["jpeg 4:2:0", "jpeg orientation 6", "png"])
def test_boxes_are_resized_as_by_torch(name, filter):
    whole, rng = by_pillow(FILES[name]), random.Random(filter)
    for _ in range(8):
        box, size = a_box(rng, *whole.shape[:2]), (rng.randint(1, 99), rng.randint(1, 99))
        # torch has no lanczos for uint8.
        if filter == "lanczos":
            part = Image.fromarray(crop(whole, box))
            found = penstock.decode(encoded(part), size=size, filter=filter)
            again = penstock.decode(FILES[name], box, size, filter)
            np.testing.assert_array_equal(again, found)
            continue
        expected = by_torch(crop(whole, box), size, filter)
        found = penstock.decode(FILES[name], box, size, filter)
        np.testing.assert_array_equal(found, expected, err_msg=f"{box} {size}")


def test_equals_the_loader(tmp_path):
    """The same pixels from a pack, also of its default mode."""
    files = list(FILES.values())
    with penstock.Writer(tmp_path / "a.pen", {"image": "image"}) as writer:
        for i, data in enumerate(files):
            writer.add(key=str(i), image=data)
    loader = penstock.Loader(tmp_path / "a.pen", len(files), order="sequential", output="numpy",
                             pipeline="decode | resize 33,47 bicubic | tensor u8 nhwc")
    with loader:
        expected = next(iter(loader)).image
        found = penstock.decode_batch(files, size=(33, 47), filter="bicubic")
        np.testing.assert_array_equal(expected, found)


def test_masks():
    palette = Image.open(io.BytesIO(FILES["png palette"]))
    indices = np.asarray(palette)
    found = penstock.decode(FILES["png palette"], mode="mask")
    np.testing.assert_array_equal(found, indices)
    small = penstock.decode(FILES["png palette"], (3, 5, 40, 60), (20, 30), mode="mask")
    assert small.shape == (20, 30) and set(small.flat) <= set(indices.flat)
    np.testing.assert_array_equal(small, indices[3:43:2, 5:65:2])
    with pytest.raises(penstock.DecodeError, match="mask: expected 1 channel"):
        penstock.decode(FILES["png"], mode="mask")


def test_sixteen_bits_keep_the_upper_eight():
    values = np.arange(256 * 16, dtype=np.uint16).reshape(64, 64) * 16
    found = penstock.decode(encoded(Image.fromarray(values)), mode="gray")
    np.testing.assert_array_equal(found[..., 0], values >> 8)


@pytest.mark.parametrize("size, shape", [(20, (20, 20, 3)), ((20, 30), (20, 30, 3)),
                                         ([1, 1], (1, 1, 3)), (np.array([5, 6]), (5, 6, 3)),
                                         (np.int64(7), (7, 7, 3))])
def test_sizes(size, shape):
    assert penstock.decode(JPEG, size=size).shape == shape


def test_bytes_of_every_kind():
    expected = penstock.decode(JPEG)
    twice = bytes(b for byte in JPEG for b in (byte, 0))
    kinds = [bytearray(JPEG), memoryview(JPEG), np.frombuffer(JPEG, np.uint8),
             array.array("B", JPEG), memoryview(twice)[::2], np.frombuffer(twice, np.uint8)[::2],
             (ctypes.c_ubyte * len(JPEG)).from_buffer_copy(JPEG)]
    for data in kinds:
        np.testing.assert_array_equal(penstock.decode(data), expected)


# ---- memory


def test_into_numpy():
    expected = penstock.decode(JPEG, size=(20, 30))
    out = np.zeros((20, 30, 3), np.uint8)
    assert penstock.decode(JPEG, size=(20, 30), out=out) is out
    np.testing.assert_array_equal(out, expected)
    frame = np.zeros((3, 20, 30, 3), np.uint8)
    penstock.decode(JPEG, size=(20, 30), out=frame[1])
    np.testing.assert_array_equal(frame[1], expected)
    assert not frame[0].any() and not frame[2].any()
    whole = np.zeros((H, W, 3), np.uint8)
    assert penstock.decode(JPEG, out=whole) is whole and whole.any()
    raw = bytearray(20 * 30)
    view = memoryview(raw).cast("B", (20, 30, 1))
    penstock.decode(JPEG, size=(20, 30), mode="gray", out=view)
    assert raw == penstock.decode(JPEG, size=(20, 30), mode="gray").tobytes()


def test_an_array_of_bytes_is_not_a_list_of_files():
    data = np.frombuffer(encoded(noise(), "JPEG"), np.uint8)
    for datas in (data, array.array("B", data.tobytes())):
        with pytest.raises(TypeError, match="datas: expected a list of files as bytes, found "):
            penstock.decode_batch(datas, size=8)
    files = np.empty(2, object)
    files[:] = [data.tobytes()] * 2
    assert penstock.decode_batch(files, size=8).shape == (2, 8, 8, 3)


@needs_torch
def test_into_torch():
    expected = penstock.decode(JPEG, size=(20, 30))
    out = torch.zeros((20, 30, 3), dtype=torch.uint8)
    assert penstock.decode(JPEG, size=(20, 30), out=out) is out
    np.testing.assert_array_equal(out.numpy(), expected)
    batch = torch.zeros((4, 20, 30, 3), dtype=torch.uint8)
    assert penstock.decode_batch([JPEG] * 2, size=(20, 30), out=batch[1:3]).shape[0] == 2
    np.testing.assert_array_equal(batch[2].numpy(), expected)
    assert not batch[0].any() and not batch[3].any()


class OldDlpack:
    """A producer that knows no versions, as torch before 2.9."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, stream=None):
        return self.tensor.__dlpack__()

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


@needs_torch
def test_into_old_dlpack():
    out = torch.zeros((20, 30, 3), dtype=torch.uint8)
    penstock.decode(JPEG, size=(20, 30), out=OldDlpack(out))
    np.testing.assert_array_equal(out.numpy(), penstock.decode(JPEG, size=(20, 30)))


class Version(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32)]


class Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class Managed(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = [("version", Version), ("manager_ctx", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", Tensor)]


class OnDevice:
    """Memory of this process that says it is on some device, or of some version of DLPack."""

    def __init__(self, device=1, major=1, has_data=True):
        self.memory = (ctypes.c_uint8 * (20 * 30 * 3))()
        self.shape = (ctypes.c_int64 * 3)(20, 30, 3)
        data = ctypes.addressof(self.memory) if has_data else None
        tensor = Tensor(data, device, 0, 3, 1, 8, 1, self.shape, None, 0)
        self.managed = Managed(Version(major, 0), None, None, 0, tensor)

    def __dlpack__(self, max_version):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype = ctypes.py_object
        new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.managed), b"dltensor_versioned", None)


@pytest.mark.parametrize("device", [1, 3, 11])
def test_into_host_memory(device):
    """Plain, and page-locked for CUDA or ROCm."""
    out = OnDevice(device)
    assert penstock.decode(JPEG, size=(20, 30), out=out) is out
    assert bytes(out.memory) == penstock.decode(JPEG, size=(20, 30)).tobytes()


class NoCapsule:
    def __dlpack__(self, **kwargs):
        return 5


class ReadOnlyNumpy:
    """NumPy states in its capsule that memory is read-only; it has no other way here."""

    def __init__(self, out):
        self.out = out

    def __dlpack__(self, **kwargs):
        return self.out.__dlpack__(**kwargs)


def bad_outs():
    good = np.zeros((20, 30, 3), np.uint8)
    fixed = good.copy()
    fixed.flags.writeable = False
    outs = {
        "uint8, found another dtype": [good.astype(np.int8), good.astype(np.float32),
                                       good.astype(bool), good.view([("r", "u1")])],
        r"shape \(20, 30, 3\), found \(30, 20, 3\)": [np.zeros((30, 20, 3), np.uint8)],
        r"shape \(20, 30, 3\), found \(20, 30\)": [good[..., 0].copy()],
        r"shape \(20, 30, 3\), found \(1800,\)": [bytearray(1800), good.reshape(-1)],
        r"shape \(20, 30, 3\), found \(\)": [np.array(0, np.uint8)],
        r"found \(1, 1, 1, 1, 1, 20, ...\)": [good.reshape(1, 1, 1, 1, 1, 20, 30, 3)],
        "contiguous memory in row-major order": [
            np.zeros((20, 60, 3), np.uint8)[:, ::2], np.asfortranarray(good), good[::-1],
            np.zeros((30, 20, 3), np.uint8).transpose(1, 0, 2)],
        "writable memory, found read-only": [fixed, ReadOnlyNumpy(fixed)],
        "expected a DLPack capsule": [NoCapsule()],
        "host memory, found another device": [OnDevice(device=2), OnDevice(device=10)],
        "DLPack version 1, found 2": [OnDevice(major=2)],
        "expected memory, found the address 0": [OnDevice(has_data=False)],
    }
    if torch is not None:
        outs["uint8, found another dtype"].append(torch.zeros((20, 30, 3)))
        outs["contiguous memory in row-major order"].append(
            torch.zeros((30, 20, 3), dtype=torch.uint8).permute(1, 0, 2))
    return [(message, out) for message, all_of_it in outs.items() for out in all_of_it]


@pytest.mark.parametrize("message, out", bad_outs())
def test_memory_that_is_refused(message, out):
    with pytest.raises(penstock.InvalidError, match=message) as caught:
        penstock.decode(JPEG, size=(20, 30), out=out)
    assert str(caught.value).startswith("out: ")


@needs_torch
def test_gradients_are_refused():
    out = torch.zeros((20, 30, 3), requires_grad=True)
    with pytest.raises(penstock.InvalidError, match="out: cannot write to this Tensor: .*grad"):
        penstock.decode(JPEG, size=(20, 30), out=out)


@pytest.mark.parametrize("out", [5, "text", object(), [1, 2], {}])
def test_what_is_no_memory_is_refused(out):
    with pytest.raises(TypeError, match="out: expected a NumPy array or a torch tensor, found"):
        penstock.decode(JPEG, size=20, out=out)


def test_memory_is_released():
    """Of all kinds, also after failures: a bytearray can be resized then."""
    out = bytearray(20 * 30 * 3)
    view = memoryview(out).cast("B", (20, 30, 3))
    penstock.decode(JPEG, size=(20, 30), out=view)
    with pytest.raises(penstock.InvalidError):
        penstock.decode(JPEG, size=(20, 31), out=view)
    with pytest.raises(penstock.DecodeError):
        penstock.decode(b"", size=(20, 30), out=view)
    view.release()
    out.clear()


# ---- refusals


@pytest.mark.parametrize("box", [(0, 0, H + 1, 1), (0, 0, 1, W + 1), (H, 0, 1, 1), (0, W, 1, 1),
                                 (1, 0, H, 1), (2**32 - 1, 0, 2**32 - 1, 1)])
def test_boxes_outside_the_image(box):
    with pytest.raises(penstock.InvalidError,
                       match=f"box: expected a box inside the image of {W} x {H} pixels"):
        penstock.decode(JPEG, box)


def test_boxes_are_of_the_upright_image():
    assert penstock.decode(FILES["jpeg orientation 6"], (W - 1, H - 1, 1, 1)).shape == (1, 1, 3)
    with pytest.raises(penstock.InvalidError, match=f"{H} x {W} pixels"):
        penstock.decode(FILES["jpeg orientation 6"], (H - 1, W - 1, 1, 1))


@pytest.mark.parametrize("arguments, kind, message", [
    ({"box": (-1, 0, 1, 1)}, penstock.InvalidError, "box: top: expected 0 to"),
    ({"box": (0, 0, 0, 1)}, penstock.InvalidError, "box: height: expected 1 to"),
    ({"box": (0, 0, 1, 0)}, penstock.InvalidError, "box: width: expected 1 to"),
    ({"box": (0, 2**32, 1, 1)}, penstock.InvalidError, "box: left: expected 0 to"),
    ({"box": (0, 0, 1)}, penstock.InvalidError, r"box: expected \(top, left, height, width\)"),
    ({"box": (0, 0, 1, 1, 1)}, penstock.InvalidError, r"box: expected \(top, left"),
    ({"box": (0, 0, float("nan"), 1)}, TypeError, "box: height: expected an integer, found nan"),
    ({"box": (0.5, 0, 1, 1)}, TypeError, "box: top: expected an integer, found 0.5"),
    ({"box": (True, 0, 1, 1)}, TypeError, "box: top: expected an integer, found True"),
    ({"box": "abcd"}, TypeError, "box: expected"),
    ({"box": 5}, TypeError, "box: expected"),
    ({"size": 0}, penstock.InvalidError, "size: expected 1 or more, found 0"),
    ({"size": (5, -1)}, penstock.InvalidError, "size: expected 1 or more, found -1"),
    ({"size": 16385}, penstock.LimitError, "size: expected at most 16384 pixels"),
    ({"size": (1, 2**70)}, penstock.LimitError, "size: expected at most 16384 pixels"),
    ({"size": float("nan")}, TypeError, "size: expected an integer, or height and width"),
    ({"size": (1, float("nan"))}, TypeError, "size: expected an integer, found nan"),
    ({"size": (1, 2, 3)}, penstock.InvalidError, "size: expected an integer, or height and width"),
    ({"size": "20"}, TypeError, "size: expected an integer, or height and width"),
    ({"filter": "bilinaer"}, penstock.InvalidError, "filter: .*did you mean 'bilinear'"),
    ({"filter": None}, TypeError, "filter: expected one of"),
    ({"mode": "RGB"}, penstock.InvalidError, "mode: expected one of rgb, gray, mask"),
    ({"data": "text"}, TypeError, "data: expected the bytes of a JPEG, PNG or WebP file"),
    ({"data": None}, TypeError, "data: expected the bytes"),
    ({"data": [1, 2]}, TypeError, "data: expected the bytes"),
    ({"data": b""}, penstock.DecodeError, "expected a jpeg, png or webp file, found 0 bytes"),
    ({"data": b"GIF89a"}, penstock.DecodeError, "found a GIF: convert or remove it"),
])
def test_arguments(arguments, kind, message):
    with pytest.raises(kind, match=message):
        penstock.decode(**{"data": JPEG, **arguments})


@pytest.mark.parametrize("name", FILES)
def test_truncated_files(name):
    data = FILES[name]
    for n in [*range(0, 40, 3), *range(40, len(data) - 60, len(data) // 40)]:
        with pytest.raises(penstock.DecodeError):
            penstock.decode(data[:n])


def test_huge_images():
    """A header that promises more than 64 Mi pixels is refused before anything is allocated."""
    data = bytearray(encoded(Image.new("L", (8, 8)), "JPEG"))
    at = data.index(b"\xff\xc0") + 5
    data[at : at + 4] = b"\xff\xf0\xff\xf0"
    with pytest.raises(penstock.LimitError, match="pixels, found 65520 x 65520"):
        penstock.decode(data)


def png_header(width, height):
    """A PNG without pixels, of 1 bit each."""
    def chunk(name, content):
        crc = zlib.crc32(name + content)
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", crc)
    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", b"")


@pytest.mark.parametrize("size", [1, 224])
def test_resizes_that_take_too_much_memory(size):
    """Tables for 64 Mi rows, of a file of 57 bytes."""
    data = png_header(1, 2**26)
    with pytest.raises(penstock.LimitError, match="at most 1024 MiB of memory for the decoding"):
        penstock.decode(data, size=size)


def test_sides_longer_than_a_size_may_be():
    data = encoded(Image.new("L", (16_400, 2), 7), "PNG")
    assert penstock.decode(data, mode="mask").shape == (2, 16_400)
    assert penstock.decode(data, (0, 10, 1, 16_390), mode="mask").tolist() == [[7] * 16_390]
    assert penstock.decode_batch([data], mode="mask")[0].shape == (2, 16_400)


@pytest.mark.parametrize("call", [
    lambda data: penstock.decode(data), lambda data: penstock.decode(data, size=8),
    lambda data: penstock.decode_batch([data]), lambda data: penstock.decode_batch([data], size=8),
])
def test_errors_keep_no_files_alive(call):
    data = b"not an image" * 100 + str(call).encode()
    before = sys.getrefcount(data)
    gc.disable()
    try:
        for _ in range(3):
            with contextlib.suppress(penstock.DecodeError):
                call(data)
        assert sys.getrefcount(data) == before
    finally:
        gc.enable()


def test_a_lack_of_memory_is_not_reported_as_a_bad_file():
    bad = []
    results = [penstock.DecodeError("a bad file"), penstock.NoMemoryError("out of memory")]
    with pytest.raises(penstock.NoMemoryError):
        _decode._report(results, lambda number, error: bad.append(number))
    assert bad == [0]


def test_filters_are_those_of_the_pipeline():
    (words,) = [words for op, _, params in penstock._pipeline._core.ops() if op == "resize"
                for name, *_, words, _ in params if name == "filter"]
    assert tuple(words.split()) == _decode._FILTERS


# ---- batches


@pytest.mark.threads
@pytest.mark.parametrize("threads", [None, 1, 2, 5])
def test_batch_equals_single_images(threads):
    files, rng = list(FILES.values()), random.Random(7)
    boxes = [None if i % 3 == 0 else a_box(rng, *by_pillow(data).shape[:2])
             for i, data in enumerate(files)]
    found = penstock.decode_batch(files, boxes, (24, 20), threads)
    assert found.shape == (len(files), 24, 20, 3)
    lists = penstock.decode_batch(files, boxes, threads=threads, mode="gray")
    for data, box, one, own in zip(files, boxes, found, lists, strict=True):
        np.testing.assert_array_equal(one, penstock.decode(data, box, (24, 20)))
        np.testing.assert_array_equal(own, penstock.decode(data, box, mode="gray"))


def test_batches_of_nothing():
    assert penstock.decode_batch([]) == []
    assert penstock.decode_batch([], size=(3, 4)).shape == (0, 3, 4, 3)
    assert penstock.decode_batch(iter([JPEG]), iter([None]), 8).shape == (1, 8, 8, 3)
    assert penstock.decode_batch([FILES["png gray"]], size=8, mode="mask").shape == (1, 8, 8)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("size", [None, 16])
def test_bad_files_raise(size, threads):
    files = [JPEG] * 12
    files[9], files[4] = b"", JPEG[: len(JPEG) // 2]
    with pytest.raises(penstock.DecodeError, match="image 4: jpeg: truncated") as caught:
        penstock.decode_batch(files, size=size, threads=threads)
    assert caught.value.sample == 4
    boxes = [None] * 12
    boxes[2] = (0, 0, 1, W + 1)
    with pytest.raises(penstock.InvalidError, match="image 2: box: expected") as caught:
        penstock.decode_batch(files, boxes, size, threads)
    assert caught.value.sample == 2


@pytest.mark.threads
@pytest.mark.parametrize("threads", [1, 3])
def test_bad_files_are_reported(threads):
    files = [JPEG] * 12
    files[9], files[4] = b"", JPEG[: len(JPEG) // 2]
    bad = {}
    out = np.full((12, 16, 16, 3), 7, np.uint8)
    found = penstock.decode_batch(files, size=16, threads=threads, out=out, on_bad=bad.__setitem__)
    assert found is out and sorted(bad) == [4, 9]
    assert all(type(e) is penstock.DecodeError and e.sample == i for i, e in bad.items())
    assert "image 4: " in str(bad[4]) and not out[4].any() and not out[9].any()
    good = penstock.decode(JPEG, size=16)
    for i in {*range(12)} - {4, 9}:
        np.testing.assert_array_equal(out[i], good)
    bad.clear()
    found = penstock.decode_batch(files, threads=threads, on_bad=bad.__setitem__)
    assert sorted(bad) == [4, 9] and [i for i, a in enumerate(found) if a is None] == [4, 9]


def test_on_bad_may_raise():
    def stop(number, error):
        raise KeyError(number)

    with pytest.raises(KeyError):
        penstock.decode_batch([b""], size=8, on_bad=stop)


@pytest.mark.parametrize("arguments, kind, message", [
    ({"datas": JPEG}, TypeError, "datas: expected a list of files as bytes"),
    ({"datas": 5}, TypeError, "datas: expected a list"),
    ({"datas": [JPEG, "text"]}, TypeError, "datas: 1: expected the bytes of"),
    ({"boxes": [None]}, penstock.InvalidError, "boxes: expected 2, one for each image, found 1"),
    ({"boxes": [None] * 3}, penstock.InvalidError, "boxes: expected 2.*found more"),
    ({"boxes": [None, (0, 0, 1)]}, penstock.InvalidError, "boxes: 1: expected"),
    ({"boxes": [None, (0, 0, float("nan"), 1)]}, TypeError, "boxes: 1: height: expected an int"),
    ({"boxes": 5}, TypeError, "boxes: expected a list of boxes"),
    ({"threads": 0}, penstock.InvalidError, "threads: expected 1 to 256, found 0"),
    ({"threads": 1.5}, TypeError, "threads: expected an integer"),
    ({"on_bad": "skip"}, penstock.InvalidError, "on_bad: expected one of raise"),
    ({"on_bad": None}, TypeError, 'on_bad: expected "raise" or a function'),
    ({"size": None, "out": np.zeros(5, np.uint8)}, penstock.InvalidError, "out: expected a size"),
    ({"out": np.zeros((3, 8, 8, 3), np.uint8)}, penstock.InvalidError,
     r"out: expected the shape \(2, 8, 8, 3\), found \(3, 8, 8, 3\)"),
])
def test_arguments_of_batches(arguments, kind, message):
    with pytest.raises(kind, match=message):
        penstock.decode_batch(**{"datas": [JPEG] * 2, "size": 8, **arguments})


def test_iterators_may_raise():
    def files():
        yield JPEG
        raise FileNotFoundError("second")

    with pytest.raises(FileNotFoundError, match="second"):
        penstock.decode_batch(files(), size=8)


# ---- threads, processes, signals


@pytest.mark.threads
def test_other_threads_run_meanwhile():
    """Threads that decode at the same time, all of them right; and one that only counts."""
    large = encoded(noise(1200, 1000), "JPEG", quality=95)
    expected = penstock.decode(large)
    ends, counts, wrong = threading.Event(), [0], []

    def count():
        while not ends.is_set():
            counts[0] += 1
            time.sleep(0)

    def work():
        for _ in range(4):
            if not np.array_equal(penstock.decode(large), expected):
                wrong.append(1)

    workers = [threading.Thread(target=work) for _ in range(3)]
    counter = threading.Thread(target=count)
    counter.start()
    for thread in workers:
        thread.start()
    for thread in workers:
        thread.join(60)
    ends.set()
    counter.join(60)
    assert not wrong and counts[0] > 10


def test_in_forked_children():
    expected = penstock.decode_batch([JPEG] * 5, size=16, threads=2)

    def child():
        found = penstock.decode_batch([JPEG] * 5, size=16, threads=2)
        assert np.array_equal(found, expected)

    assert in_child(child) is None


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_ends_a_batch(threads):
    large = encoded(noise(800, 600), "JPEG")
    files = [large] * 20_000  # minutes of work

    def interrupt():
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    start = time.monotonic()
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        penstock.decode_batch(files, size=4, threads=threads)
    thread.join(60)
    assert time.monotonic() - start < 30


def test_without_numpy(tmp_path):
    """NumPy is needed for new arrays only."""
    code = """
import sys
sys.modules["numpy"] = None
import penstock
data = open(sys.argv[1], "rb").read()
out = bytearray(8 * 8 * 3)
penstock.decode(data, size=8, out=memoryview(out).cast("B", (8, 8, 3)))
print(any(out))
"""
    (tmp_path / "a.jpg").write_bytes(JPEG)
    done = run_python(code, tmp_path / "a.jpg")
    assert done.stdout == "True\n", done.stderr
