# SPDX-License-Identifier: Apache-2.0
"""Clips: loaders compared on a set that is cut out of videos."""
