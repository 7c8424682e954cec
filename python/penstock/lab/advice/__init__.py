# SPDX-License-Identifier: Apache-2.0
"""Which configuration reaches a rate: from measured cells, on this machine and on another one."""
