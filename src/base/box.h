/* SPDX-License-Identifier: Apache-2.0 */
/* A rectangle of pixels. */
#ifndef PEN_BASE_BOX_H
#define PEN_BASE_BOX_H

#include <stdint.h>

typedef struct PenBox {
    uint32_t x, y, w, h;
} PenBox;

#endif
