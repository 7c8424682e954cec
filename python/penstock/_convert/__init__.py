# SPDX-License-Identifier: Apache-2.0
"""Datasets of other libraries as packs. Every format is one file, imported when it is used."""
