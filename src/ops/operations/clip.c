/* SPDX-License-Identifier: Apache-2.0 */
/* Adds no step: the program makes a rule of it, by which frames are chosen before they are read. */
#include "ops/operations/frame_choice.h"
#include "ops/operations/op.h"

/* pen__program_set_clip goes by this order. */
const PenParam pen__params_clip[10] = {
    {"frames", PEN_PARAM_INT, 1, PEN_CLIP_MAX_FRAMES, "16", NULL, "number of frames to select"},
    {"stride", PEN_PARAM_INT, 1, 65536, "2", NULL, "distance between selected frames, in frames"},
    {"offset", PEN_PARAM_FLOAT, 0, 1e9, "random", "random center",
     "first frame; with fps or seconds, the start time in seconds"},
    {"pad", PEN_PARAM_WORD, 0, 0, "last", "last loop none",
     "if the clip is too short: repeat the last frame, start over, or fail"},
    {"n", PEN_PARAM_INT, 1, PEN_CLIP_MAX_N, "1", NULL,
     "clips per sample; more than one adds a dimension; each clip has its own random draws"},
    {"fps", PEN_PARAM_FLOAT, 0, 1000, "0", NULL,
     "select frames by time at this rate, instead of by stride; 0: off"},
    {"seconds", PEN_PARAM_FLOAT, 0, 86400, "0", NULL,
     "select frames by time over this duration, instead of by stride; 0: off"},
    {"indices", PEN_PARAM_INTS, 0, 1e9, "none", "none",
     "frame numbers to select, instead of frames, stride and offset"},
    {"times", PEN_PARAM_WORD, 0, 0, "no", "no yes",
     "also return the frame times in ns, as a field NAME_times"},
    {"at", PEN_PARAM_INT, -1e6, 1e6, "none", "none",
     "if samples are frames: first frame, counted from the frame of the sample, instead of offset; "
     "also return a field NAME_mask that is true for frames of the clip, and false where its first "
     "or last frame is repeated"},
};
