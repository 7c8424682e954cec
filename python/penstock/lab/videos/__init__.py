# SPDX-License-Identifier: Apache-2.0
"""Kept videos: decoders of short clips compared, by the distance of key frames."""
