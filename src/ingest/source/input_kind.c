/* SPDX-License-Identifier: Apache-2.0 */
/* What an input is: an image, a folder of frames, a video. */
#include "ingest/source/input.h"

bool pen__name_is_video(const char *name)
{
    static const char *const ends[] = {".mp4", ".avi",  ".mkv",  ".webm", ".mov", ".m4v",
                                       ".mpg", ".mpeg", ".wmv",  ".flv",  ".ts",  ".3gp",
                                       ".ogv", ".mts",  ".m2ts", ".vob",  ".asf"};
    for (size_t i = 0; i < PEN_LEN(ends); i++)
        if (pen__text_ends(name, ends[i]))
            return true;
    return false;
}

static bool is_clip(uint8_t what)
{
    return what == PEN_INPUT_FRAMES || what == PEN_INPUT_VIDEOS;
}

const char *pen__what_field(uint8_t what)
{
    return is_clip(what) ? "video" : "image";
}

int32_t pen__what_type(uint8_t what)
{
    return is_clip(what) ? PEN_TYPE_CLIP : PEN_TYPE_IMAGE;
}

bool pen__text_seconds(const char *text, uint64_t *ret_ns)
{
    double seconds;
    if (!pen__text_f64(text, &seconds) || !(seconds >= 0 && seconds <= 8589934592.0))
        return false;
    /* To the nanosecond; a double has 15 digits, which is a microsecond in 30 years. */
    *ret_ns = (uint64_t)(seconds * 1e9 + 0.5);
    return true;
}
