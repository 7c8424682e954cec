# SPDX-License-Identifier: Apache-2.0
"""Train with JAX on all devices of this process, data-parallel.

    python3 examples/python/train_jax.py photos.pen

Without GPUs, try two devices on one CPU: XLA_FLAGS=--xla_force_host_platform_device_count=2.
Batches are jax.Arrays that share the memory of the loader. --batch-size is of all devices together
and must be a multiple of their number.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import penstock
from common import Progress, parser
from jax.sharding import NamedSharding, PartitionSpec
from penstock import ops

CHANNELS = (3, 16, 32)


def small_net(classes: int) -> dict[str, Any]:
    """The parameters of two convolutions and a linear layer."""
    keys = jax.random.split(jax.random.key(0), 3)
    net: dict[str, Any] = {}
    for i, (before, after) in enumerate(zip(CHANNELS, CHANNELS[1:])):
        scale = (2 / (9 * before)) ** 0.5
        net[f"conv{i}"] = scale * jax.random.normal(keys[i], (3, 3, before, after))
    net["linear"] = 0.1 * jax.random.normal(keys[2], (CHANNELS[-1], classes))
    return net


def scores(net: dict[str, Any], image: jax.Array) -> jax.Array:
    x = image.astype(jnp.float32) / 127.5 - 1
    for i in range(len(CHANNELS) - 1):
        x = jax.lax.conv_general_dilated(
            x, net[f"conv{i}"], (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        x = jax.nn.relu(x)
    return x.mean((1, 2)) @ net["linear"]


def loss_of(net: dict[str, Any], image: jax.Array, label: jax.Array, valid: jax.Array) -> Any:
    """The mean loss, and the number of correct answers. Samples that only pad have no weight."""
    logits = scores(net, image)
    losses = -jnp.take_along_axis(jax.nn.log_softmax(logits), label[:, None], 1)[:, 0]
    correct = (logits.argmax(1) == label) & valid
    return jnp.where(valid, losses, 0).sum() / valid.sum(), correct.sum()


@jax.jit
def train_step(net: dict[str, Any], image: jax.Array, label: jax.Array, valid: jax.Array) -> Any:
    (loss, correct), grads = jax.value_and_grad(loss_of, has_aux=True)(net, image, label, valid)
    return jax.tree.map(lambda p, g: p - 0.3 * g, net, grads), loss, correct


def main() -> None:
    args = parser(__doc__).parse_args()
    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    by_sample = NamedSharding(mesh, PartitionSpec("data"))
    pack = penstock.open(args.path)
    loader = penstock.Loader(
        pack,
        batch_size=args.batch_size,
        shuffle=True,
        last_batch="pad",  # one shape: JAX compiles once, and devices have equal parts
        pipeline=[ops.decode(), ops.random_resized_crop(64), ops.hflip(), ops.tensor("u8")],
        output="jax",
        return_info=True,
    )
    net = jax.device_put(small_net(len(pack.classes)), NamedSharding(mesh, PartitionSpec()))
    for epoch in range(args.epochs):
        loader.set_epoch(epoch)
        progress = Progress(epoch, len(loader))
        for image, label, info in loader:
            progress.got_batch()
            # Each device gets its samples; the gradients are summed over all of them.
            batch = jax.device_put((image, label, info.valid), by_sample)
            net, loss, correct = train_step(net, *batch)
            progress.done_batch(float(loss), int(correct), info.n_valid)
    devices = sorted(str(device) for device in batch[0].devices())
    print(f"Trained on {len(devices)} devices: {', '.join(devices)}")


if __name__ == "__main__":
    main()
