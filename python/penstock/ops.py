# SPDX-License-Identifier: Apache-2.0
"""The operations of a pipeline, one function each, made from the library's table.

    [ops.decode(), ops.random_resized_crop(224), ops.hflip(), ops.tensor("u8")]

gives what the text "decode | random_resized_crop 224 | hflip | tensor u8" gives.
"""

from . import _pipeline
from ._pipeline import Op

for _name, (_help, _params) in _pipeline.table().items():
    globals()[_name] = _pipeline.make_op(_name, _help, _params)

__all__ = ["Op", *_pipeline.table()]  # noqa: PLE0604
