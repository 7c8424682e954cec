# SPDX-License-Identifier: Apache-2.0
"""What the programs in bench/ share with each other. What they share with penstock-lab is in
penstock.lab.loaders; this package, which is imported first, makes that importable, and what worker
processes use of it in other environments (answers, processes, sides). The environments of other
loaders are in build/peers."""

import os
import sys

from common import places

os.environ.setdefault("PENSTOCK_LAB_HOME", str(places.PEERS))
os.environ.setdefault("PENSTOCK_BUILD", str(places.BUILD))
if str(places.BUILD / "python") not in sys.path:
    sys.path.insert(0, str(places.BUILD / "python"))
sys.path.append(str(places.WORKER))


def say(text):
    print(text, flush=True)
