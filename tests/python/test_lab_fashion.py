# SPDX-License-Identifier: Apache-2.0
"""penstock-lab fashion: IDX files, packs of several encodings, and the plain loop."""

import dataclasses
import gzip
import io
import struct

import penstock
import pytest
from penstock.lab import _cli
from penstock.lab.errors import LabError
from penstock.lab.experiment import report
from penstock.lab.training.accuracy import encodings, idx, question
from penstock.lab.verbs import accuracy, fashion

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")
Image = pytest.importorskip("PIL.Image")
pytest.importorskip("matplotlib")


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Threads of PyTorch wait for each other for long on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def write_idx(path, array):
    header = bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape)
    path.write_bytes(gzip.compress(header + array.tobytes(), 1))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A small Fashion-MNIST in the layout of Debian's package."""
    folder, draw = tmp_path_factory.mktemp("fashion"), numpy.random.default_rng(0)
    for name, n in (("train", 170), ("t10k", 45)):
        labels = numpy.arange(n, dtype="u1") % 10
        images = draw.integers(0, 90, (n, 28, 28)) + 16 * labels[:, None, None]
        write_idx(folder / f"{name}-images-idx3-ubyte.gz", images.astype("u1"))
        write_idx(folder / f"{name}-labels-idx1-ubyte.gz", labels)
    return folder


WORDS = ["fashion", "--rounds", "2", "--epochs", "2", "--batch-size", "32", "--encodings",
         "raw,jpeg20,webp50", "--regimen", "1:jpeg20,1:raw", "--name", "a"]


def results_of(lines):
    return {(line["cell"]["data"], line["round"]): (line["seed"], line["top1"], line["top5"],
                                                    line.get("top1_as_stored"))
            for line in lines if line["kind"] == "turn"}


def test_fashion(data, tmp_path, capsys):
    words = [*WORDS, "--data", str(data), "--out", str(tmp_path)]
    assert _cli.main(words) == 0
    said = capsys.readouterr().out
    assert "5 of 5 batches of the raw pack equal those of the plain loop, bit for bit" in said
    for name in ("raw", "jpeg20", "webp50", "plain", "1:jpeg20,1:raw"):
        assert f"| {name} " in said
    folder = tmp_path / "fashion" / "a"
    lines = report.read(folder)
    want = results_of(lines)
    assert len(want) == 10 and len({line["cell"]["data"] for line in lines[1:6]}) == 5
    for number in (0, 1):  # the same batches in the same order give the same weights
        assert want["plain", number][:3] == want["raw", number][:3]
    # Killed in the middle of the sweep: the same table.
    text = (folder / report.NAME).read_text().splitlines(keepends=True)
    (folder / report.NAME).write_text("".join(text[:9]) + text[9][:20])
    assert _cli.main(words) == 0
    assert results_of(report.read(folder)) == want


def test_packs_have_the_pixels(data, tmp_path):
    source = idx.Fashion(str(data))
    images, labels = source.arrays["test"]
    paths = {name: encodings.make(source, "test", name, tmp_path)[0]
             for name in ("raw", "jpeg90", "webp80", "raw@14")}
    assert encodings.make(source, "test", "raw", tmp_path)[1] == 0  # it exists
    for name, path in paths.items():
        pack = penstock.open(path)
        assert pack.column("label").tolist() == labels.tolist() and pack.classes[0] == "T-shirt/top"
        side = 14 if "@" in name else 28
        loader = penstock.Loader(pack, 45, output="numpy",
                                 pipeline={"image": f"decode gray | center_crop {side}"})
        found = next(iter(loader)).image[..., 0]
        want = images if side == 28 else images.reshape(45, 14, 2, 14, 2).mean((2, 4))
        difference = numpy.abs(found - want.astype(float)).mean()
        assert difference == 0 if name == "raw" else 0 < difference < 20, name
    assert numpy.array_equal(numpy.asarray(Image.open(io.BytesIO(idx.png(images[3])))), images[3])


def test_table_names_differences():
    def turns(name, values):
        cell = {"data": name}
        yield {"kind": "prepared", "cell": cell, "bytes": 2_000_000, "batches": 5,
               "equal_batches": 4}
        for i, value in enumerate(values):
            yield {"kind": "turn", "cell": cell, "round": i, "top1": value, "top1_as_stored": value}

    lines = [*turns("raw", [90.0, 90.1, 89.9]), *turns("jpeg90", [90.1, 89.9, 90.05]),
             *turns("jpeg10", [85.0, 85.1, 85.2]), *turns("plain", [90.0, 90.1, 89.9])]
    rows = [[part.strip() for part in line.split("|")[1:-1]]
            for line in question.table(lines).splitlines()[2:6]]
    assert rows[0] == ["raw", "3", "2.0", "90.00 ± 0.10", "90.00 ± 0.10", "-"]
    assert [row[-1] for row in rows[1:]] == ["within noise", "lower", "the same"]
    assert "4 of 5 batches" in question.table(lines)
    lines += turns("3:jpeg10,2:raw", [89.0, 89.1])
    del lines[12]["bytes"]  # of the plain loop
    table, note, picture = fashion.page(lines)
    assert [row[0] for row in table.rows] == ["raw", "jpeg90", "jpeg10", "plain", "3:jpeg10,2:raw"]
    assert "4 of 5 batches" in note.text
    for text in ("jpeg90", "jpeg10", "in stages", "top-1, %"):
        assert f">{text}<" in picture.svg, text
    assert ">plain<" not in picture.svg


def test_folders(tmp_path, capsys):
    """penstock-lab accuracy, with encodings of several sizes."""
    draw = numpy.random.default_rng(0)
    for split, n in (("train", 20), ("val", 7)):
        for name, low in (("dark", 0), ("bright", 120)):
            folder = tmp_path / split / name
            folder.mkdir(parents=True)
            for i in range(n):
                pixels = draw.integers(low, low + 100, (30, 40, 3)).astype("u1")
                Image.fromarray(pixels).save(folder / f"{i}.png")
    words = ["accuracy", str(tmp_path / "train"), "--val", str(tmp_path / "val"), "--encodings",
             "jpeg90@24,raw@16,webp50", "--regimen", "1:webp50,1:jpeg90@24", "--epochs", "2",
             "--size", "16", "--batch-size", "8", "--out", str(tmp_path), "--name", "a"]
    assert _cli.main(words) == 0
    said = capsys.readouterr().out
    assert "against jpeg90@24" in said and "| 1:webp50,1:jpeg90@24 " in said
    packs = tmp_path / "accuracy" / "a" / "packs"
    assert penstock.open(packs / "test-webp50.pen").classes == ["bright", "dark"]
    assert len(penstock.open(packs / "test-raw@16.pen")) == 14
    for more, text in (
        (["--encodings", "png"], "found 'png'"), (["--regimen", "webp50"], "regimen: expected"),
        (["--stages", "1:a.pen"], "expected TRAIN or --stages"),
        (["--val", str(tmp_path / "none")], "expected a folder with a directory of images"),
    ):
        assert _cli.main([*words[:-1], "b", *more]) == 1
        assert text in capsys.readouterr().err
    assert _cli.main(["accuracy", "--stages", "1:a.pen", *words[2:-1], "b"]) == 1
    assert "use --regimen EPOCHS:ENCODING" in capsys.readouterr().err


def test_without_raw_the_plain_loop_is_left_out(data, tmp_path, capsys):
    words = ["fashion", "--data", str(data), "--rounds", "1", "--epochs", "1", "--batch-size", "32",
             "--encodings", "jpeg20", "--out", str(tmp_path), "--name", "a"]
    assert _cli.main(words) == 1
    assert "or pass --no-plain" in capsys.readouterr().err
    assert _cli.main([*words, "--no-plain"]) == 0  # as the message advises
    assert "| plain" not in capsys.readouterr().out


class Watched:
    """Parameters that know which of them were read."""

    def __init__(self, values):
        self.values, self.read = values, set()

    def __getattr__(self, name):
        self.read.add(name)
        return getattr(self.values, name)


def test_every_parameter_is_used(data, tmp_path):
    """All but rounds, which the sweep reads."""
    made = fashion.Parameters(data=str(data), epochs=7, batch_size=9, lr=0.3, seed=5, threads=2,
                              model="resnet18")
    watched = Watched(made)
    training = fashion.question(watched, tmp_path).training
    assert watched.read | {"rounds"} == {field.name for field in dataclasses.fields(made)}
    for name in ("epochs", "batch_size", "lr", "seed", "threads", "model"):
        assert getattr(training, name) == getattr(made, name)
    made = accuracy.Parameters(train=str(data), val=str(data), gray=True)
    watched = Watched(made)
    assert accuracy.question(watched, tmp_path).training.gray
    assert watched.read == {field.name for field in dataclasses.fields(made)}


def test_refused(data, tmp_path):
    def broken(text, name="train-images-idx3-ubyte.gz"):
        for file in data.iterdir():
            (tmp_path / file.name).write_bytes(file.read_bytes())
        (tmp_path / name).write_bytes(text)
        return str(tmp_path)

    good = gzip.decompress((data / "train-images-idx3-ubyte.gz").read_bytes())
    for text, message in (
        (b"no gzip", "Not a gzipped file"),
        (gzip.compress(good)[:-30], "cannot read"),
        (gzip.compress(good[:9]), "no IDX file"),
        (gzip.compress(b"\0\0\x09" + good[3:]), "no IDX file of bytes with 3 dimensions"),
        (gzip.compress(good[:-1]), "its header says 133280"),
    ):
        with pytest.raises(LabError, match=message):
            idx.Fashion(broken(text))
    with pytest.raises(LabError, match="do not fit together"):
        idx.Fashion(broken(gzip.compress(b"\0\0\x08\x01" + struct.pack(">I", 1) + b"\1"),
                           "train-labels-idx1-ubyte.gz"))
    with pytest.raises(LabError, match="apt-get install dataset-fashion-mnist"):
        idx.Fashion(str(tmp_path / "none"))
    for name in ("jpeg0", "webp101", "png", "raw50", "jpeg"):
        with pytest.raises(LabError, match=f"found '{name}'"):
            encodings.options(name)
    for change, text in (({"names": []}, "expected at least one"),
                         ({"names": ["jpeg50"]}, "expected raw as the first of --encodings")):
        given = {"training": None, "source": None, "regimen": "", "folder": tmp_path,
                 "arrays": {"train": ()}, **change}
        with pytest.raises(LabError, match=text):
            question.AccuracyQuestion(**given)
    for text in ("raw", "0:raw", "1:raw,x"):
        with pytest.raises(LabError, match="regimen: expected"):
            question._parts(text)
