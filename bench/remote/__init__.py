# SPDX-License-Identifier: Apache-2.0
"""What bench/remote_speed.py is made of: a far store, what lies in it, turns, tables."""
