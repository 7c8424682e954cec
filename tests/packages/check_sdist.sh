#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the source distribution (sdist) of HEAD, and installs it with pip in a clean Debian 12 that
# has only the packages of the README. A user without privileges then packs a folder and loads a
# batch, from the disk and from the test server of the S3 tutorial. Needs root, debootstrap, and
# build/venv of ./dev setup.
#
#     tests/packages/check_sdist.sh [DIRECTORY]    default: build/sdist-check; removed first
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=tests/packages/roots.sh
. tests/packages/roots.sh

build() {
    build/venv/bin/python -c 'import mesonpy, sys; mesonpy.build_sdist(sys.argv[1])' "$work"
}

make_user() {
    make_root root
    in_root root 'useradd --create-home --shell /bin/bash user'
}

# The commands of the README, as root and without questions.
install_packages() {
    local commands
    commands=$(sed -n 's/^sudo apt-get install/apt-get install -y/p' README.md)
    [ -n "$commands" ] || return 1
    in_root root "$commands"
}

as_user() { # SCRIPT
    # shellcheck disable=SC2016 # the other shell expands it
    in_root root 'exec runuser -u user -- env HOME=/home/user bash -euc "cd; $1"' "$1"
}

install() {
    tar -C "$work/root/home/user" -xf "$work"/penstock-*.tar.gz
    in_root root 'chown -R user: /home/user'
    as_user 'cd penstock-*; python3 -m venv venv; . venv/bin/activate; pip install .'
}

use() {
    as_user 'cd penstock-*; . venv/bin/activate; pip install numpy pillow
        python examples/make_photos.py photos
        penstock pack photos -o photos.pen; penstock verify photos.pen
        cat >load.py; python load.py photos.pen' <<'TEXT'
import sys, penstock

loader = penstock.Loader(sys.argv[1], batch_size=16, order="block", output="numpy",
                         pipeline="decode | random_resized_crop 224 | hflip | tensor u8")
image, label = next(iter(loader))
assert image.shape == (16, 224, 224, 3), image.shape
print(label.tolist())
TEXT
}

use_s3() {
    local block
    # shellcheck disable=SC2016 # no command is meant
    block=$(sed -n '/^```sh server$/,/^```$/{/^```/d;p}' docs/tutorials/training-from-s3.md)
    [ -n "$block" ] || return 1
    as_user "cd penstock-*; . venv/bin/activate; $block
        penstock pack photos -o s3://packs/photos.pen; python load.py s3://packs/photos.pen"
}

new_work "${1:-build/sdist-check}"
step "sdist" build
step "clean root" make_user
step "packages of the README" install_packages
step "pip install" install
step "pack and load" use
step "pack and load from S3" use_s3
ls -l "$work"/penstock-*.tar.gz
echo "$passed passed, 0 failed"
