/* SPDX-License-Identifier: Apache-2.0 */
/* The same with the shifts of BMI2. */
#include "codec/jpeg/decoder/scan_run.h"

const PenScanKernels pen__scan_avx2 = {run, count, &pen__own_entropy_avx2};
