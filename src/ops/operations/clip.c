/* SPDX-License-Identifier: Apache-2.0 */
/* Adds no step: the program makes a rule of it, by which frames are chosen before they are read. */
#include "ops/operations/frame_choice.h"
#include "ops/operations/op.h"

/* pen__program_set_clip goes by this order. */
const PenParam pen__params_clip[9] = {
    {"frames", PEN_PARAM_INT, 1, PEN_CLIP_MAX_FRAMES, "16", NULL, "of the result"},
    {"stride", PEN_PARAM_INT, 1, 65536, "2", NULL, "frames from one that is taken to the next"},
    {"offset", PEN_PARAM_FLOAT, 0, 1e9, "random", "random center",
     "where it begins, or the first frame (with fps or seconds: its time in seconds)"},
    {"pad", PEN_PARAM_WORD, 0, 0, "last", "last loop none",
     "when there are too few: repeat the last, begin again, or fail"},
    {"n", PEN_PARAM_INT, 1, PEN_CLIP_MAX_N, "1", NULL,
     "clips of each sample; more than one adds a dimension, and each has draws of its own"},
    {"fps", PEN_PARAM_FLOAT, 0, 1000, "0", NULL,
     "frames a second by their times, instead of stride; 0: by stride"},
    {"seconds", PEN_PARAM_FLOAT, 0, 86400, "0", NULL,
     "length of the result by the frames' times, instead of stride; 0: by stride"},
    {"indices", PEN_PARAM_INTS, 0, 1e9, "none", "none",
     "numbers of the frames, instead of all other ways"},
    {"times", PEN_PARAM_WORD, 0, 0, "no", "no yes",
     "give the frames' times too, in ns, as a field NAME_times"},
};
