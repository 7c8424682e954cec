/* SPDX-License-Identifier: Apache-2.0 */
/* Predicts how a multi-node training job will perform when it reads a pack from an object store.
 *
 * The sample order, what a rank fetches when, and the request policy are those of a real job. The
 * network, the store and the training steps are a model with its own clock. The simulation reads at
 * most the manifest of a pack. The same settings give the same result. */
#ifndef PEN_SIM_SIMULATE_H
#define PEN_SIM_SIMULATE_H

#include "sim/result.h"
#include "sim/settings.h"

int pen__simulate(const PenSimSettings *settings, PenSimResult *ret, PenError *reterr);

#endif
