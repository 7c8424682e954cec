/* SPDX-License-Identifier: Apache-2.0 */
/* Images of different sizes in a batch. While a slot is filled, every sample has a place of the
 * most bytes that a result can have. */
#ifndef PEN_LOAD_DECODE_SIZES_H
#define PEN_LOAD_DECODE_SIZES_H

#include "load/ring.h"

/* Images stay where they are: sets the offsets of the list. */
void pen__sizes_list(PenSlot *s, uint32_t field);
/* Moves the images of a slot together, each padded to the largest sides, without other memory, and
 * sets the shape of the tensor. */
void pen__sizes_pad(PenSlot *s, uint32_t field);

#endif
