# SPDX-License-Identifier: Apache-2.0
"""What bench/remote_speed.py is made of: a remote store, what is in it, turns, tables."""
