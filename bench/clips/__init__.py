# SPDX-License-Identifier: Apache-2.0
"""What bench/clips_speed.py is made of: the set, a disk that seeks, turns, tables."""
