#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds packaging/Dockerfile of HEAD with buildah, and uses the image. The base image is made by
# debootstrap, so that no registry is needed. Needs root, debootstrap and buildah.
#
#     tests/packages/check_image.sh [DIRECTORY]    default: build/image-check; removed first
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=tests/packages/roots.sh
. tests/packages/roots.sh

# Without overlay file systems and namespaces, which this machine may lack.
build_tool() {
    STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot \
        buildah --root "$work/storage" --runroot "$work/run" "$@"
}

make_base() {
    local container
    make_root base
    container=$(build_tool from scratch)
    build_tool add -q "$container" "$work/base" /
    build_tool commit -q --rm "$container" docker.io/library/debian:12-slim
}

build() {
    mkdir "$work/source"
    git archive HEAD | tar -C "$work/source" -x
    build_tool build --pull-never -f "$work/source/packaging/Dockerfile" -t penstock "$work/source"
}

use() {
    local container photos=$work/photos
    build/venv/bin/python examples/make_photos.py "$photos"
    container=$(build_tool from --pull-never localhost/penstock)
    build_tool copy -q "$container" "$photos" /data/photos
    build_tool run "$container" -- penstock pack photos -o photos.pen
    build_tool run "$container" -- penstock verify photos.pen
    build_tool run "$container" -- python3 -c 'import numpy, penstock
image, label = next(iter(penstock.Loader("photos.pen", batch_size=16, output="numpy",
                                         pipeline="decode | center_crop 64 | tensor u8")))
assert image.shape == (16, 64, 64, 3), image.shape'
}

new_work "${1:-build/image-check}"
step "base image" make_base
step "build" build
step "pack and load" use
build_tool images
echo "$passed passed, 0 failed"
