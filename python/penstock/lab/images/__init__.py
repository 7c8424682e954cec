# SPDX-License-Identifier: Apache-2.0
"""Images: what a dataset has, how much it takes in other forms, and what is lost."""
