# SPDX-License-Identifier: Apache-2.0
"""What bench/lerobot_speed.py runs in processes of their own, in the loaders' environments."""
