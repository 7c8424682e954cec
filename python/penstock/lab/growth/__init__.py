# SPDX-License-Identifier: Apache-2.0
"""What an image costs as threads, packs, batches and image sides grow."""
