/* SPDX-License-Identifier: Apache-2.0 */
/* What a loader reports about itself. */
#ifndef PEN_LOAD_FIGURES_H
#define PEN_LOAD_FIGURES_H

#include "load/engine.h"

/* What there is now, whichever period the counters are for. With the lock held. */
PenLoaderStats pen__figures_now(const PenLoadEngine *e);
/* The counters of the epoch, or since the loader was opened; without the lock. */
void pen__figures_read(PenLoadEngine *e, bool epoch, PenLoaderStats *ret);
/* The path or URL of a pack, without what may follow a URL, such as a signature. */
void pen__figures_path(const PenLoadPlan *plan, char *ret, size_t bytes);

#endif
