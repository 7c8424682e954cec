/* SPDX-License-Identifier: Apache-2.0 */
/* The same with the shifts of BMI2. Gathering from tables with AVX2 is no faster than that. */
#include "codec/jpeg/decoder/streams.h"

const PenOwnEntropy pen__own_entropy_avx2 = STREAMS_ENTROPY("avx2");
