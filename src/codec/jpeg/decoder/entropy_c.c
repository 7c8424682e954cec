/* SPDX-License-Identifier: Apache-2.0 */
/* Segments in scalar code, for any machine: the reference. */
#include "codec/jpeg/decoder/streams.h"

const PenOwnEntropy pen__own_entropy_c = STREAMS_ENTROPY("c");
