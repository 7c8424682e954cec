/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/jpeg/decoder/scan_run.h"

const PenScanKernels pen__scan_c = {run, count, &pen__own_entropy_c};
