# SPDX-License-Identifier: Apache-2.0
"""What runs in the environments of other loaders, where penstock is not installed."""
