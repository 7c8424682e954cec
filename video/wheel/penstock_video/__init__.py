# SPDX-License-Identifier: Apache-2.0
"""The video decoder of penstock. Nothing has to be imported: penstock finds this package."""

import os

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libpenstock-video.so.0")
