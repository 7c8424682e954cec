/* SPDX-License-Identifier: Apache-2.0 */
/* Where the pixels of a result come from: the crops, resizes and flips of a pipeline. */
#ifndef PEN_OPS_PIPELINE_GEOMETRY_H
#define PEN_OPS_PIPELINE_GEOMETRY_H

#include <stdbool.h>

#include "ops/pipeline/spec.h"

bool pen__geometry_any(const PenSpecField *field); /* it has such operations */

/* The first operations in which the geometry of a mask differs from that of its image; NULL for one
 * that is missing. False: it does not differ. Filters and fill values may differ; and the mask may
 * go on with resize behind the operations of the image, for the same part at another scale. */
bool pen__geometry_differs(const PenSpecField *image, const PenSpecField *mask,
                           const PenSpecOp **ret_image, const PenSpecOp **ret_mask);

#endif
