# SPDX-License-Identifier: Apache-2.0
"""The pages for users of the Python package: their code is run, their tables are compared with what
the package says of itself. Skipped without torch and NumPy."""

import inspect
import re
import shlex

import pytest
from example_tools import ROOT, need, python
from py_tools import need_penstock

penstock = need_penstock()
need("torch", "numpy", "PIL")

import ops_table  # noqa: E402
from penstock import _pipeline as p  # noqa: E402

DOCS = ROOT / "docs"
PAGES = [
    "reference/python.md", "reference/pipeline.md", "reference/video.md", "how-to/cache.md",
    "how-to/video.md", "how-to/moving-from-gulpio.md", "how-to/moving-from-dataloader.md",
    "how-to/moving-from-ffcv.md", "how-to/recipes.md", "how-to/monitor.md", "how-to/trace.md",
    "how-to/find-the-bottleneck.md", "reference/counters.md", "tutorials/first-pack.md",
    "explanation/concepts.md", "explanation/order.md", "how-to/decode.md", "how-to/large-images.md",
    "how-to/train-elastically.md", "how-to/jax.md",
    "how-to/moving-from-huggingface.md", "how-to/moving-from-webdataset.md",
    "how-to/dataloader.md", "how-to/several-views.md", "how-to/aspect-buckets.md",
    "how-to/token-budgets.md",
    "how-to/detection.md", "how-to/mixup.md", "how-to/augmentation.md",
    "how-to/sampling.md", "how-to/clip.md", "how-to/segmentation.md", "how-to/stages.md",
    "how-to/evaluate.md",
    "how-to/moving-from-openclip.md", "how-to/mixtures.md", "how-to/train-with-the-lab.md",
]
# Pages whose code other files run.
ELSEWHERE = {
    "how-to/s3.md": "test_s3_docs.py", "reference/object-stores.md": "test_s3_docs.py",
    "how-to/size-a-node.md": "test_s3_docs.py",
    "tutorials/training-from-s3.md": "test_training_docs.py",
    "tutorials/why-is-my-gpu-idle.md": "test_idle_docs.py",
    "how-to/tars-in-place.md": "test_in_place.py",
    "how-to/lerobot.md": "test_lerobot.py",
    "how-to/pack-on-a-cluster.md": "test_ray_pack.py",
    "how-to/ray-data.md": "test_ray_sink.py",
}
# What takes longest runs in CI only.
PARAMS = [pytest.param(name, marks=pytest.mark.slow) if name in (
    "reference/python.md", "tutorials/first-pack.md", "how-to/jax.md",
    "how-to/dataloader.md") else name for name in PAGES]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos")
    python(ROOT / "examples" / "make_photos.py", "photos", "120", cwd=folder)
    python("-m", "penstock", "pack", "photos", "-o", "photos.pen", cwd=folder)
    python("-m", "penstock", "pack", "photos/star", "-o", "stars.pen", cwd=folder)
    python(ROOT / "examples" / "make_clips.py", "clips.pen", "60", cwd=folder)
    return folder


@pytest.mark.parametrize("name", PARAMS)
def test_code_runs(name, photos, tmp_path, monkeypatch):
    if name == "how-to/jax.md":
        need("jax", "grain")
    if name == "how-to/dataloader.md":
        need("grain")
    for file in photos.iterdir():
        (tmp_path / file.name).symlink_to(file)
    monkeypatch.chdir(tmp_path)
    page = (DOCS / name).read_text()
    blocks = list(BLOCK.finditer(page))
    assert blocks
    scope = {"__name__": "__main__"}
    for block in blocks:
        # As many lines before it as on the page, so that errors name the right one.
        lines = "\n" * page.count("\n", 0, block.start(1))
        exec(compile(lines + block[1], str(DOCS / name), "exec"), scope)
    for value in scope.values():
        for loader in value if isinstance(value, list) else [value]:
            if isinstance(loader, penstock.Loader):
                loader.close()


@pytest.mark.parametrize("name", ["moving-from-dataloader", "moving-from-ffcv",
                                  "moving-from-gulpio", "moving-from-webdataset"])
def test_code_of_penstock_runs_alone(name, photos, monkeypatch):
    """People copy it without the block of the other loader before it."""
    monkeypatch.chdir(photos)
    page = (DOCS / "how-to" / f"{name}.md").read_text()
    scope = {}
    exec(next(code for code in BLOCK.findall(page) if "penstock.Loader(" in code), scope)
    scope["loader"].close()


def test_every_page_with_code_is_run():
    with_code = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")
                 if BLOCK.search(page.read_text())}
    assert with_code == {*PAGES, *ELSEWHERE}
    for page, test in ELSEWHERE.items():
        assert page.rpartition("/")[2] in (ROOT / "tests" / "python" / test).read_text(), page


def readme_block():
    text = (ROOT / "README.md").read_text()
    (block,) = BLOCK.findall(text)
    return block


def test_readme_runs(photos, monkeypatch):
    """And the first batch is there within five lines, but for those that are empty."""
    monkeypatch.chdir(photos)
    scope = {}
    exec(compile(readme_block(), "README.md", "exec"), scope)
    scope["loader"].close()
    assert scope["image"].shape[1:] == (3, 224, 224)
    assert len([line for line in readme_block().splitlines() if line.strip()]) <= 5


def run_shell(name, folder):
    """Runs the commands of a page, except those that build or activate an environment."""
    (folder / "examples").symlink_to(ROOT / "examples")
    programs = {"python": (), "penstock": ("-m", "penstock")}
    printed = ""
    for block in re.findall(r"^```sh\n(.*?)^```$", (ROOT / name).read_text(), re.M | re.S):
        for program, *words in (shlex.split(line, comments=True) for line in block.splitlines()):
            if program in programs:
                printed += python(*programs[program], *words, cwd=folder)
    return printed


def test_commands_of_the_readme_run(tmp_path):
    run_shell("README.md", tmp_path)
    assert len(penstock.open(tmp_path / "photos.pen")) == 60


def test_commands_of_the_first_tutorial_run(tmp_path):
    """Files and lines that the page shows exist."""
    name = "docs/tutorials/first-pack.md"
    printed = [line.split() for line in run_shell(name, tmp_path).splitlines()]
    files, info, _ = re.findall(r"^```text\n(.*?)^```$", (ROOT / name).read_text(), re.M | re.S)
    assert all((tmp_path / file).exists() for file in files.split())
    assert all(line.split() in printed for line in info.splitlines())
    assert len(list((tmp_path / "extracted").glob("*/*.jpg"))) == 120


def rows(name, head):
    """The rows of the table with this first line, as lists of cells."""
    page = (DOCS / name).read_text()
    table = page[page.index(head) :].split("\n\n")[0]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]


def test_every_counter_is_in_a_table(photos):
    page = (DOCS / "reference/counters.md").read_text()
    tables = re.findall(r"^\| name \| meaning \|\n(.*?)\n\n", page, re.M | re.S)
    cells = re.findall(r"^\| (`.*?) \|", "\n".join(tables), re.M)
    listed = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    with penstock.Loader(photos / "photos.pen", 8) as loader:
        stats = loader.stats()
    assert sorted(listed) == sorted(set(stats) - {"epoch"})
    assert set(stats["epoch"]) == set(listed)


def test_every_argument_is_in_the_table():
    known = {}
    for parameter in inspect.signature(penstock.Loader.__init__).parameters.values():
        if parameter.kind is not parameter.VAR_KEYWORD and parameter.name != "self":
            default = parameter.default
            shown = f"`{default!r}`".replace("'", '"')
            known[parameter.name] = "" if default is parameter.empty else shown
    table = rows("reference/python.md", "| argument | default |")
    listed = {row[0].strip("`"): row[1] for row in table}
    assert listed == known
    assert all(row[2] for row in table)


def test_every_parameter_of_decoding_is_in_the_table():
    known = {}
    for function in (penstock.decode, penstock.decode_batch):
        for name, parameter in inspect.signature(function).parameters.items():
            shown = f"`{parameter.default!r}`".replace("'", '"')
            known[name] = "" if parameter.default is parameter.empty else shown
    table = rows("reference/python.md", "| parameter | default |")
    assert {name: row[1] for row in table for name in re.findall(r"`(\w+)`", row[0])} == known


def test_every_error_is_in_the_table():
    known = {}
    for kind in penstock.Error.__subclasses__():
        known[kind.__name__] = [base.__name__ for base in kind.__bases__[1:]]
    listed = {
        row[0].strip("`"): [word.strip(" `") for word in row[1].split(",") if word.strip()]
        for row in rows("reference/python.md", "| error | also |")
    }
    assert listed == known


def test_operations_are_those_of_the_library():
    _, inside, _ = ops_table.split(ops_table.PAGE.read_text())
    assert inside == ops_table.table(), "run tests/python/ops_table.py"


def test_tensor_says_what_follows_it(photos):
    follow = {"repeat 2", "pad_batch", "mixup", "cutmix"}
    help_ = p.table()["tensor"][0]
    assert set(re.findall(r"[a-z_]+", help_)) & set(p.table()) == {w.split()[0] for w in follow}
    for name in (*follow, "hflip", "center_crop 8", "normalize", "random_erasing"):
        with pytest.raises(penstock.InvalidError) as raised:  # decode is never right
            penstock.Loader(photos / "photos.pen", 8,
                            pipeline=f"decode | resize 32,32 | tensor f32 | {name} | decode")
        assert ("after tensor: only" in str(raised.value)) == (name not in follow)


def test_every_argument_of_dataloader_is_spoken_of():
    """All that torch's has are in the table; what Loader does not take, it names a reason for."""
    from torch.utils.data import DataLoader

    words = re.findall(r"`(\w+)`", " ".join(
        row[0] for row in rows("how-to/moving-from-dataloader.md", "| DataLoader | Loader |")
    ))
    # Deprecated there, or meaningless without an accelerator.
    others = {"self", "pin_memory_device"}
    assert set(inspect.signature(DataLoader.__init__).parameters) - others == set(words)
    taken = inspect.signature(penstock.Loader.__init__).parameters
    for name in set(words) - set(taken):
        with pytest.raises(TypeError, match=f"Loader has no argument '{name}': "):
            penstock.Loader("photos.pen", 1, **{name: None})


def anchors(page):
    """Of its headings, as GitHub makes them."""
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-")
            for head in re.findall(r"^##+ (.+)$", page.read_text(), re.M)}


def test_links_and_files_exist():
    for name in [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]:
        page = name.read_text()
        for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", page):
            other = name.parent / target if target else name
            assert other.exists(), f"{name}: {target}"
            assert not anchor or anchor in anchors(other), f"{name}: {target}#{anchor}"
        for target in re.findall(r"\b((?:examples|tests)/[\w/]+\.py)", page):
            assert (ROOT / target).exists(), f"{name}: {target}"
        for target in re.findall(r"`((?:src|cli|include|python|tools)/[\w/.-]+)`", page):
            assert (ROOT / target).exists(), f"{name}: {target}"
