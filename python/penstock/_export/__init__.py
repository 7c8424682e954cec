# SPDX-License-Identifier: Apache-2.0
"""penstock extract --to webdataset or parquet."""
