/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of pictures: the first byte chooses the codec, and configuration and packets follow, each
 * after its length in a byte. Each packet is understood in the same way by a parser that has seen
 * the same ones before, and a message is one that can be printed. */
#include <stdlib.h>
#include <string.h>

#include "help.h"
#include "ingest/video/picture.h"
#include "pack/format/video_table.h"

static const char *take(PenPictureParser *p, Input *in, bool is_start, PenPicture *ret)
{
    size_t n = 0;
    const uint8_t *data = take_bytes(in, take_byte(in), &n);
    uint8_t *exact = copy_of(data, n);
    const char *wrong =
        is_start ? pen__picture_start(p, (uint8_t)(1 + p->codec % PEN_VIDEO_LAST_CODEC), exact, n)
                 : pen__picture_parse(p, exact, n, ret);
    free(exact);
    return wrong;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    Input inputs[2] = {{data, bytes}, {data, bytes}};
    PenPictureParser parsers[2];
    memset(parsers, 0, sizeof parsers);
    for (int i = 0; i < 2; i++)
        parsers[i].codec = take_byte(&inputs[i]);
    for (bool is_start = true; inputs[0].bytes; is_start = false) {
        PenPicture pictures[2] = {{0}, {0}};
        const char *wrong = take(&parsers[0], &inputs[0], is_start, &pictures[0]);
        REQUIRE(take(&parsers[1], &inputs[1], is_start, &pictures[1]) == wrong);
        REQUIRE(!wrong || (strlen(wrong) > 8 && strlen(wrong) < 80));
        REQUIRE(pictures[0].shown == pictures[1].shown && pictures[0].shown <= 255);
        REQUIRE(pictures[0].is_key == pictures[1].is_key);
        REQUIRE(!wrong || is_start || parsers[0].codec != PEN_VIDEO_MJPEG);
    }
    return 0;
}
