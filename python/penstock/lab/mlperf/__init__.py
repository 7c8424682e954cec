# SPDX-License-Identifier: Apache-2.0
"""Image workloads in the manner of MLPerf Storage. This is not a submission."""
