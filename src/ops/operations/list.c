/* SPDX-License-Identifier: Apache-2.0 */
/* They add no step: the loader copies the stored bytes, see ops/pipeline/list.h. */
#include "ops/operations/op.h"

enum { MOST_BYTES = 1 << 30, KEY_BYTES = 4096 /* of the format */, MOST_ROWS = 1 << 24 };
#define HELP "largest value in bytes; a batch reserves so many for each sample"

const PenParam pen__params_text[1] = {
    {"max_bytes", PEN_PARAM_INT, 1, MOST_BYTES, "65536", NULL, HELP}};
const PenParam pen__params_json[1] = {
    {"max_bytes", PEN_PARAM_INT, 1, MOST_BYTES, "65536", NULL, HELP}};
const PenParam pen__params_bytes[1] = {
    {"max_bytes", PEN_PARAM_INT, 1, MOST_BYTES, "65536", NULL, HELP}};
const PenParam pen__params_key[1] = {
    {"max_bytes", PEN_PARAM_INT, 1, KEY_BYTES, "4096", NULL, HELP}};
const PenParam pen__params_ragged[4] = {
    {"max_rows", PEN_PARAM_INT, 1, MOST_ROWS, "1024", NULL,
     "largest number of rows; a batch reserves so many for each sample"},
    {"pad", PEN_PARAM_FLOAT, -1e9, 1e9, "none", "none",
     "none: values and offsets; a number: a tensor of max_rows rows per sample, filled with it, "
     "and "
     "a field NAME_mask that is true for rows of the sample"},
    {"at", PEN_PARAM_INT, -1e6, 1e6, "none", "none",
     "if samples are frames: a tensor of max_rows rows, the first one counted from the frame of "
     "the "
     "sample, and a field NAME_mask that is false where the first or last row is repeated"},
    {"stride", PEN_PARAM_INT, 1, 65536, "none", "none", "with at: distance between rows; none: 1"}};
