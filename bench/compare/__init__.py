# SPDX-License-Identifier: Apache-2.0
"""What the programs in bench/ share: environments, scenarios, worker processes, figures, tables."""
