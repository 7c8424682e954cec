# SPDX-License-Identifier: Apache-2.0
"""One module for each verb of penstock-lab."""
