/* SPDX-License-Identifier: Apache-2.0 */
/* A loader that only reads, for measurements. */
#ifndef PEN_LOAD_LOADER_H
#define PEN_LOAD_LOADER_H

#include <penstock/loader.h>

/* Samples are fetched, read and checked, and not decoded; before the first pass. */
void pen__loader_skip_decoding(PenLoader *loader);

#endif
