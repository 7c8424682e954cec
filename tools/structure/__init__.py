# SPDX-License-Identifier: Apache-2.0
"""The parts of tools/check_structure.py."""
