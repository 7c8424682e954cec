/* SPDX-License-Identifier: Apache-2.0 */
/* They add no step: the loader moves the rows by the sample plan of an image, see
 * ops/pipeline/follow.h. */
#include "ops/operations/op.h"

#define OF_HELP "image of the pipeline that they follow; auto: the only one"
#define KEPT_HELP "also return the numbers of the rows that are kept, as a field NAME_kept"
#define UNIT_HELP "of the result: pixels, or fractions of its width and height"

/* pen__follow_rule goes by this order. */
const PenParam pen__params_boxes[9] = {
    {"of", PEN_PARAM_NAME, 0, 0, "auto", "auto", OF_HELP},
    {"format", PEN_PARAM_WORD, 0, 0, "stored", "stored xyxy xywh cxcywh", "of the result"},
    {"unit", PEN_PARAM_WORD, 0, 0, "stored", "stored absolute relative", UNIT_HELP},
    {"clip", PEN_PARAM_WORD, 0, 0, "yes", "yes no",
     "cut boxes at the edges of what the result shows of the image"},
    {"drop", PEN_PARAM_WORD, 0, 0, "yes", "yes no",
     "drop boxes of which nothing is visible, or less than the next three"},
    {"min_size", PEN_PARAM_FLOAT, 0, 65535, "1", NULL,
     "smallest width and height of the visible part, in pixels of the result"},
    {"min_area", PEN_PARAM_FLOAT, 0, 1e9, "0", NULL,
     "smallest area of the visible part, in pixels of the result"},
    {"min_visibility", PEN_PARAM_FLOAT, 0, 1, "0", NULL,
     "smallest visible fraction of the area of the box"},
    {"kept", PEN_PARAM_WORD, 0, 0, "no", "no yes", KEPT_HELP},
};

const PenParam pen__params_points[5] = {
    {"of", PEN_PARAM_NAME, 0, 0, "auto", "auto", OF_HELP},
    {"unit", PEN_PARAM_WORD, 0, 0, "stored", "stored absolute relative", UNIT_HELP},
    {"clip", PEN_PARAM_WORD, 0, 0, "no", "no yes",
     "move points to the nearest edge of what the result shows of the image"},
    {"drop", PEN_PARAM_WORD, 0, 0, "yes", "yes no", "drop rows without a visible point"},
    {"kept", PEN_PARAM_WORD, 0, 0, "no", "no yes", KEPT_HELP},
};

const PenParam pen__params_keep[1] = {
    {"of", PEN_PARAM_NAME, 0, 0, NULL, NULL,
     "field of the pipeline with the operation boxes or points"},
};
