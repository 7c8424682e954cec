# SPDX-License-Identifier: Apache-2.0
"""The operations of a pipeline. Each function returns an Op; the library's table defines them.

    [ops.decode(), ops.random_resized_crop(224), ops.hflip(), ops.tensor("u8")]

is the same pipeline as the text "decode | random_resized_crop 224 | hflip | tensor u8".
"""

from . import _pipeline
from ._pipeline import Op, source
from ._python import python

for _name, (_help, _params) in _pipeline.table().items():
    globals()[_name] = _pipeline.make_op(_name, _help, _params)

python.__module__ = "penstock.ops"

__all__ = ["Op", "python", "source", *_pipeline.table()]  # noqa: PLE0604
