# SPDX-License-Identifier: Apache-2.0
"""Networks in plain PyTorch: a small one for a CPU, and ResNet-18 and ResNet-50."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

_WIDTHS = (64, 128, 256, 512)  # channels of the four parts of a ResNet


def _convolution(inside: int, outside: int, side: int, stride: int = 1) -> list[Any]:
    """A convolution without bias, and the batch normalization that follows it."""
    return [
        nn.Conv2d(inside, outside, side, stride, side // 2, bias=False),
        nn.BatchNorm2d(outside),
    ]


class Residual(nn.Module):  # type: ignore[misc]
    """relu(body(x) + x); a convolution of side 1 changes x where the shapes differ."""

    def __init__(self, body: list[Any], inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(*body)
        differs = stride != 1 or inside != outside
        self.shortcut = nn.Sequential(*_convolution(inside, outside, 1, stride) if differs else ())

    def forward(self, x: Any) -> Any:
        return (self.body(x) + self.shortcut(x)).relu()


def _basic(inside: int, width: int, stride: int) -> Residual:
    """Two convolutions of side 3, as in ResNet-18."""
    body = [*_convolution(inside, width, 3, stride), nn.ReLU(), *_convolution(width, width, 3)]
    return Residual(body, inside, width, stride)


def _bottleneck(inside: int, width: int, stride: int) -> Residual:
    """Sides 1, 3 and 1, with the stride in the middle, as in torchvision's ResNet-50."""
    body = [
        *_convolution(inside, width, 1), nn.ReLU(),
        *_convolution(width, width, 3, stride), nn.ReLU(),
        *_convolution(width, 4 * width, 1),
    ]
    return Residual(body, inside, 4 * width, stride)


def _resnet(
    block: Callable[[int, int, int], Residual], factor: int, repeats: tuple[int, ...],
    classes: int, channels: int,
) -> Any:
    layers = [*_convolution(channels, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    inside = 64
    for part, (width, repeat) in enumerate(zip(_WIDTHS, repeats)):
        for i in range(repeat):
            layers.append(block(inside, width, 2 if part > 0 and i == 0 else 1))
            inside = factor * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, classes))


def resnet18(classes: int, channels: int) -> Any:
    return _resnet(_basic, 1, (2, 2, 2, 2), classes, channels)


def resnet50(classes: int, channels: int) -> Any:
    return _resnet(_bottleneck, 4, (3, 4, 6, 3), classes, channels)


def small(classes: int, channels: int) -> Any:
    """Three convolutions of stride 2. It takes images of any size."""
    layers: list[Any] = []
    for inside, outside in ((channels, 32), (32, 64), (64, 128)):
        layers += [*_convolution(inside, outside, 3, 2), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, classes))


_MODELS: dict[str, Callable[[int, int], Any]] = {
    "small": small, "resnet18": resnet18, "resnet50": resnet50,
}


def _initialize(part: Any) -> None:
    """As in torchvision: He's normal distribution by the fan out."""
    if isinstance(part, nn.Conv2d):
        nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")


def make(name: str, classes: int, channels: int) -> Any:
    """A network by its name, with random weights from PyTorch's generator."""
    model = _MODELS[name](classes, channels)
    model.apply(_initialize)
    return model
