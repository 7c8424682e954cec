# SPDX-License-Identifier: Apache-2.0
"""Train image classifiers with PyTorch: models, schedules, the loop, and Fashion-MNIST."""
