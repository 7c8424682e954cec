# SPDX-License-Identifier: Apache-2.0
"""Experiments: parameters, reports, sweeps and their statistics."""
