# SPDX-License-Identifier: Apache-2.0
"""Loaders beside each other: environments, worker processes, scenarios, figures and tables.

Every loader is a worker process in an environment of its own. What runs in that process is in the
folder worker: it uses the standard library, NumPy and the loader's own package, and is started by
its path, because penstock is not installed there.
"""
