/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/video/encode.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "ingest/video/video_impl.h"
#include "pack/format/video_table.h"

#define WHERE "ingest/video"
#define MAX_LISTING ((uint64_t)1 << 20) /* of encoders */

/* What to try next. */
typedef struct Attempt {
    bool is_old, is_silent;
} Attempt;

typedef struct Output {
    PenVideoBytesTaker take;
    void *ctx;
    uint64_t bytes;
} Output;

static int take_bytes(void *ctx, const void *data, size_t bytes, PenError *reterr)
{
    Output *out = ctx;
    out->bytes += bytes;
    return out->take(out->ctx, data, bytes, reterr);
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Of the output, apart from those that depend on the settings. Fragments, since a pipe cannot be
 * rewound; their times are in the time base of the source. The encoder takes other decisions on
 * other processors unless it is told not to. */
static const char *const options[] = {
    "-map_chapters",
    "-1",
    "-vf",
    PEN_VIDEO_RISING,
    "-sws_flags",
    "bicubic+accurate_rnd+full_chroma_int+bitexact",
    "-enc_time_base",
    "-1",
    "-threads",
    "1",
    "-c:v",
    "libx264",
    "-preset",
    "medium",
    "-crf",
    "18",
    "-sc_threshold",
    "0",
    "-x264-params",
    "cpu-independent=1",
    "-flags",
    "+cgop+bitexact",
    "-fflags",
    "+bitexact",
    "-max_muxing_queue_size",
    "65536",
    "-movflags",
    "+frag_keyframe+delay_moov+default_base_moof",
    "-min_frag_duration",
    "1000000",
    "-f",
    "mp4",
    "pipe:1",
};

enum { GOP_BYTES = 16 };

static int make_command(PenVideoCommand *c, const PenVideoPart *part, const char *gop,
                        bool is_silent, PenError *reterr)
{
    int r = pen__video_command_start(c, part, reterr);
    if (r < 0)
        return r;
    pen__video_command_add(c, "-map", "0:V:0"); /* not the picture on a cover */
    if (!is_silent) {
        pen__video_command_add(c, "-map", "0:a?");
        pen__video_command_add(c, "-c:a", "copy");
        if (part->start) /* nothing from before the part */
            pen__video_command_add(c, "-copypriorss:a", "0");
    }
    pen__video_command_add(c, "-g", gop);
    pen__video_command_add(c, c->is_old ? "-vsync" : "-fps_mode", "passthrough");
    if (!c->is_old) /* else the time of the first frame is rounded to milliseconds */
        pen__video_command_add(c, "-movie_timescale", "360000");
    for (size_t i = 0; i < PEN_LEN(options); i++)
        pen__video_command_add(c, options[i], NULL);
    return PEN_OK;
}

/* ---- what it says ---------------------------------------------------------------------------- */

static int fail_encoder(int status, PenError *reterr)
{
    return pen__fail(reterr, status, WHERE,
                     "ffmpeg: expected the encoder libx264, which --gop needs, found none; install "
                     "an ffmpeg that has it, or leave --gop out");
}

static bool says(const PenProcessResult *result, const char *text)
{
    return strstr(result->tail, text) != NULL;
}

/* ffmpeg has ended with an error. 1: there is another way to try. */
static int judge(PenProcessResult *result, const Output *out, const char *name, Attempt *attempt,
                 PenError *reterr)
{
    if (!out->bytes && !attempt->is_old && says(result, "fps_mode")) {
        attempt->is_old = true;
        return 1;
    }
    if (!out->bytes && !attempt->is_silent &&
        (says(result, "not currently supported in container") ||
         says(result, "support is experimental"))) {
        attempt->is_silent = true;
        return 1;
    }
    if (says(result, "Unknown encoder"))
        return fail_encoder(PEN_E_IO, reterr);
    if (says(result, "not divisible by 2"))
        return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                         "%s: expected an even width and height, which encoding with --gop needs, "
                         "found an odd one; pack it without --gop, or without --video keep",
                         name);
    return pen__video_fail_exit("ffmpeg", name, result, reterr);
}

static int encode_once(const PenVideoSettings *s, const PenVideoPart *part, Output *out,
                       Attempt *attempt, PenError *reterr)
{
    char gop[GOP_BYTES];
    PenVideoCommand c = {.is_old = attempt->is_old, .keeps_times = true};
    PenProcessResult result;
    snprintf(gop, sizeof gop, "%" PRIu32, s->gop);
    int r = make_command(&c, part, gop, attempt->is_silent, reterr);
    PenProcessSettings process = {
        .argv = c.argv, .take = take_bytes, .take_ctx = out, .out_bytes = PEN_MAX_VIDEO_BYTES};
    if (r == PEN_OK)
        r = pen__video_run(s, part->path, &process, &result, reterr);
    if (r == PEN_OK && result.exit.code)
        r = judge(&result, out, part->path, attempt, reterr);
    pen__video_command_free(&c);
    return r;
}

int pen__video_encode(const PenVideoSettings *settings, const PenVideoPart *part,
                      PenVideoBytesTaker take, void *ctx, PenError *reterr)
{
    Output out = {.take = take, .ctx = ctx};
    Attempt attempt = {.is_old = false};
    int r = 1;
    while (r == 1) /* each attempt differs from those before it */
        r = encode_once(settings, part, &out, &attempt, reterr);
    if (r == PEN_OK && !out.bytes)
        r = pen__fail(reterr, PEN_E_DECODE, WHERE, "%s: expected frames, found none", part->path);
    return r;
}

/* A line is " V....D libx264              libx264 H.264 / AVC (codec h264)". */
static bool lists_encoder(const char *text)
{
    static const char name[] = "libx264 ";
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += strspn(line, "\n ");
        const char *second = line + strcspn(line, "\n ");
        second += strspn(second, " ");
        if (strncmp(second, name, sizeof name - 1) == 0)
            return true;
    }
    return false;
}

int pen__video_check_encoder(const PenVideoSettings *settings, PenError *reterr)
{
    const char *argv[] = {"ffmpeg", "-hide_banner", "-loglevel", "error", "-encoders", NULL};
    PenBuf text = {0};
    PenProcessSettings s = {
        .argv = argv, .take = pen__process_take_buf, .take_ctx = &text, .out_bytes = MAX_LISTING};
    PenProcessResult result;
    int r = pen__video_run_alone(settings, "ffmpeg", &s, &result, reterr);
    if (r == PEN_OK && pen__buf_add(&text, "", 1) < 0)
        r = pen__fail_memory(reterr, WHERE, "ffmpeg");
    if (r == PEN_OK && !lists_encoder((const char *)text.data))
        r = fail_encoder(PEN_E_NOT_FOUND, reterr);
    pen__buf_free(&text);
    return r;
}
