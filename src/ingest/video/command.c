/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ingest/source/part.h"
#include "ingest/video/video_impl.h"

#define WHERE "ingest/video"

void pen__video_command_add(PenVideoCommand *c, const char *a, const char *b)
{
    c->argv[c->n++] = a;
    if (b)
        c->argv[c->n++] = b;
    c->argv[c->n] = NULL;
}

static const char *seconds_text(uint64_t ns, char ret[PEN_VIDEO_NUMBER])
{
    snprintf(ret, PEN_VIDEO_NUMBER, "%" PRIu64 ".%09" PRIu64, ns / 1000000000, ns % 1000000000);
    return ret;
}

int pen__video_command_start(PenVideoCommand *c, const PenVideoPart *part, PenError *reterr)
{
    int r = pen__buf_add(&c->url, "file:", 5); /* a name with a colon is no address */
    if (r == PEN_OK)
        r = pen__buf_add(&c->url, part->path, strlen(part->path) + 1);
    if (r < 0)
        return pen__fail_memory(reterr, WHERE, part->path);
    pen__video_command_add(c, "ffmpeg", "-nostdin");
    pen__video_command_add(c, "-hide_banner", "-xerror"); /* damage is no picture that is made up */
    pen__video_command_add(c, "-loglevel", "error");
    pen__video_command_add(c, "-filter_threads", "1");
    pen__video_command_add(c, "-protocol_whitelist", "file,pipe");
    pen__video_command_add(c, "-format_whitelist", PEN_VIDEO_FORMATS);
    pen__video_command_add(c, "-threads", "1");
    pen__video_command_add(c, "-flags", "+bitexact");
    if (c->keeps_times)
        pen__video_command_add(c, "-copyts", "-noautorotate");
    if (part->start)
        pen__video_command_add(c, "-ss", seconds_text(part->start, c->start));
    if (part->end != PEN_NO_END)
        pen__video_command_add(c, "-t", seconds_text(part->end - part->start, c->length));
    pen__video_command_add(c, "-i", (const char *)c->url.data);
    return PEN_OK;
}

void pen__video_command_free(PenVideoCommand *c)
{
    pen__buf_free(&c->url);
}
