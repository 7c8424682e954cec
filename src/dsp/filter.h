/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEN_DSP_FILTER_H
#define PEN_DSP_FILTER_H

enum {
    PEN_FILTER_BILINEAR = 0,
    PEN_FILTER_NEAREST = 1,
    PEN_FILTER_BICUBIC = 2,
    PEN_FILTER_LANCZOS = 3,
    PEN_FILTER_BOX = 4
};

#endif
