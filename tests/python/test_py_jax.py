# SPDX-License-Identifier: Apache-2.0
"""Batches as jax.Arrays: the same values as NumPy's, in the memory of the slot, which is not reused
while JAX can still read it. Skipped without jax."""

import os
import subprocess
import sys

import pytest
from elastic_tools import free_port
from example_tools import need
from py_tools import need_penstock, run_python, write_pack

penstock = need_penstock()
need("numpy", "jax")
pytestmark = pytest.mark.slow  # the import takes most of the time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

N, BATCH = 61, 4
CROP = "decode | random_resized_crop 32 | hflip | tensor "


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    return write_pack(penstock, tmp_path_factory.mktemp("packs") / "a.pen", N)


def loader(pack, output="jax", kind="f32", **settings):
    settings = {"shuffle": True, "threads": 2, "memory": "64MiB", "return_info": True, **settings}
    return penstock.Loader(pack, BATCH, pipeline=CROP + kind, output=output, **settings)


@pytest.mark.parametrize("kind", ["f32", "u8", "f16"])
def test_values_are_those_of_numpy(pack, kind):
    for ours, theirs in zip(loader(pack, kind=kind), loader(pack, "numpy", kind), strict=True):
        assert isinstance(ours.image, jax.Array) and ours.image.dtype == theirs.image.dtype
        assert ours.image.shape == (len(theirs.image), 32, 32, 3)
        for mine, other in zip((*ours[:2], *ours.info[:2]), (*theirs[:2], *theirs.info[:2])):
            assert np.array_equal(mine, other)


def test_bf16(pack):
    ours, exact = next(iter(loader(pack, kind="bf16"))), next(iter(loader(pack, kind="f32")))
    assert ours.image.dtype == jnp.bfloat16
    assert jnp.array_equal(ours.image, exact.image.astype(jnp.bfloat16))


def test_images_are_not_copied(pack):
    """The array has the address of the slot."""
    batches = loader(pack)
    slots = []
    batches._output.take = lambda batch: slots.append(batch.memory())
    for batch in batches:
        begin, size = slots[-1]
        assert begin <= batch.image.unsafe_buffer_pointer() < begin + size


def use(image):
    """Takes long enough that the loader could fill the slot again."""
    return jax.lax.fori_loop(0, 40, lambda _, x: x * 0.5 + image.mean() * 0.5, image)


@pytest.mark.parametrize("donate", [False, True])
def test_a_computation_in_flight_keeps_its_memory(pack, donate):
    """The arrays are dropped at once; their computations, also those that may write to them, still
    see the right pixels."""
    compute = jax.jit(use, donate_argnums=(0,) if donate else ())
    expected = [np.array(jax.jit(use)(batch.image.copy())) for batch in loader(pack, "numpy")]
    made = []
    for batch in loader(pack, prefetch=2):
        made.append(compute(batch.image))
        del batch
    for result, right in zip(made, expected, strict=True):
        assert np.allclose(result, right, atol=1e-6)


def test_arrays_outlive_the_loader(pack):
    """Kept ones are not overwritten by later batches, nor freed with the loader."""
    right = [batch.image.copy() for batch in loader(pack, "numpy")]
    batches = loader(pack)
    kept = [batch.image for batch in batches]
    batches.close()
    del batches
    assert all(np.array_equal(a, b) for a, b in zip(kept, right, strict=True))


def test_slots_return_when_arrays_are_gone(pack):
    """A ring that holds few batches serves any number of them."""
    batches = loader(pack, kind="f32", prefetch=2)
    for _ in range(10):
        for batch in batches:
            batch.image.sum().block_until_ready()
    assert batches.stats()["batches"] == 10 * len(batches)
    assert batches.stats()["slots"] < len(batches)


def run_ranks(code, pack):
    """The samples that each of two processes prints."""
    address = f"localhost:{free_port()}"
    processes = [
        subprocess.Popen([sys.executable, "-c", code, address, str(rank), pack.path],
                         stdout=subprocess.PIPE, text=True)
        for rank in (0, 1)
    ]
    try:
        return [[int(n) for n in process.communicate(timeout=600)[0].split()]
                for process in processes]
    finally:
        for process in processes:
            process.kill()


def test_ranks_from_jax_distributed(pack):
    """Two processes of jax.distributed have half of the samples each."""
    code = (
        "import sys, jax, penstock\n"
        "jax.distributed.initialize(sys.argv[1], 2, int(sys.argv[2]))\n"
        "loader = penstock.Loader(sys.argv[3], 4, output='numpy', return_info=True, threads=1)\n"
        "assert (loader.rank, loader.world_size) == (jax.process_index(), 2)\n"
        "print(*(n for b in loader for n in b.info.samples[b.info.valid].tolist()))\n"
    )
    for _ in range(3):  # another program can take the port
        parts = run_ranks(code, pack)
        if all(parts):
            break
    assert sorted(parts[0] + parts[1]) == list(range(N)) and all(parts)


def test_without_jax_the_error_names_the_package(pack):
    code = (
        "import sys; sys.modules['jax'] = None\n"
        "import penstock\n"
        "try:\n"
        "    penstock.Loader(sys.argv[1], 4, output='jax')\n"
        "except ModuleNotFoundError as error:\n"
        "    assert 'pip install jax' in str(error)\n"
        "else:\n"
        "    raise SystemExit('no error')\n"
    )
    done = run_python(code, pack.path)
    assert done.returncode == 0, done.stderr
