# SPDX-License-Identifier: Apache-2.0
"""Train a small network on a pack in an object store, and resume after an interruption.

    python3 examples/make_photos.py photos 600
    penstock pack photos -o s3://packs/photos.pen
    python3 examples/python/train_s3.py s3://packs/photos.pen

Credentials, region and endpoint come from the same places as for the AWS CLI (AWS_PROFILE,
AWS_ENDPOINT_URL, ...). --profile and --endpoint replace them.
"""

from __future__ import annotations

import pathlib

import penstock
import torch
from common import Progress, parser, small_net
from penstock import ops
from torch.nn.functional import cross_entropy


def main() -> None:
    options = parser(__doc__, "an s3:// URL of a pack")
    options.add_argument("--profile", help="of ~/.aws/config")
    options.add_argument("--endpoint", help="https://host of a store other than AWS")
    options.add_argument("--save", default="train_s3.pt", help="the state, after every epoch")
    args = options.parse_args()
    loader = penstock.Loader(
        args.path,
        batch_size=args.batch_size,
        shuffle=True,  # by windows of blocks, as whole blocks are read
        drop_last=True,
        pipeline=[ops.decode(), ops.random_resized_crop(64), ops.hflip(), ops.normalize(),
                  ops.tensor("f32")],
        storage_options={"profile": args.profile, "endpoint": args.endpoint},
    )
    model = small_net(len(loader.dataset.classes))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    if pathlib.Path(args.save).exists():
        saved = torch.load(args.save)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["loader"])  # contains no credentials
    for epoch in range(loader.epoch, args.epochs):
        loader.set_epoch(epoch)
        progress = Progress(epoch, len(loader))
        for image, label in loader:
            progress.got_batch()
            scores = model(image)
            loss = cross_entropy(scores, label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            progress.done_batch(loss.item(), int((scores.argmax(1) == label).sum()), len(label))
        torch.save(
            {
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "loader": loader.state_dict(),
            },
            args.save,
        )


if __name__ == "__main__":
    main()
