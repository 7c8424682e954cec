# SPDX-License-Identifier: Apache-2.0
"""Accuracy against image quality: one dataset in several encodings, trained on each."""
