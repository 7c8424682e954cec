/* SPDX-License-Identifier: Apache-2.0 */
/* Videos that are encoded anew before they are stored: into a file, which ffprobe and the block
 * writer read. */
#include "base/error.h"
#include "ingest/prepare/prepare.h"
#include "ingest/prepare/prepared_video.h"
#include "ingest/video/encode.h"

enum { TRIES = 3 }; /* of what was ended from outside */

/* Whatever keeps the file from being written, it is not the video. */
static int take_bytes(void *ctx, const void *data, size_t bytes, PenError *reterr)
{
    int r = pen__spill_write(ctx, data, bytes, reterr);
    if (!pen__status_is_bad_input(r))
        return r;
    if (reterr)
        reterr->status = PEN_E_IO;
    return PEN_E_IO;
}

static int encode(const PenVideoSettings *settings, const PenVideoPart *part, PenSpill *file,
                  PenError *reterr)
{
    int r = PEN_E_IO;
    for (int i = 0; r == PEN_E_IO && i < TRIES; i++) {
        pen__spill_close(file);
        r = pen__video_encode(settings, part, take_bytes, file, reterr);
    }
    pen__spill_finish(file);
    return r;
}

/* All of the file. */
static int prepare(const PenVideoSettings *settings, const char *path, PenPreparedVideo *ret,
                   PenError *reterr)
{
    PenVideoList list = {.n = 0};
    int r = pen__video_list_again(settings, path, &list, reterr);
    if (r == PEN_OK)
        r = pen__prepare_video(settings, path, &list, (PenVideoFrames){0, UINT32_MAX}, ret, reterr);
    pen__video_list_free(&list);
    return r;
}

int pen__prepare_encoded_video(const PenVideoSettings *settings, const PenVideoPart *part,
                               char *temporary, PenPreparedVideo *ret, PenError *reterr)
{
    PenSpill file = {.path = temporary, .is_named = true};
    *ret = (PenPreparedVideo){.source = NULL};
    int r = encode(settings, part, &file, reterr);
    if (r == PEN_OK) {
        r = prepare(settings, temporary, ret, reterr);
        if (r < 0)
            pen__error_prefix(reterr, "%s: encoded", part->path);
    }
    ret->file = file;
    ret->temporary = temporary;
    if (r < 0 || !ret->source) /* what is small is in memory now */
        pen__spill_close(&ret->file);
    if (r < 0)
        pen__prepared_video_free(ret);
    return r;
}
