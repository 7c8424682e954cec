/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ingest/source/text.h"
#include "ingest/video/video_impl.h"

#define WHERE "ingest/video"
#define MAX_BYTES ((uint64_t)64 << 10)

/* The value of "name=..." in lines of such; empty when there is none. */
static void find(const char *text, const char *name, char *ret, size_t cap)
{
    size_t n = strlen(name);
    ret[0] = 0;
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, n) == 0 && line[n] == '=') {
            size_t bytes = strcspn(line + n + 1, "\r\n");
            snprintf(ret, cap, "%.*s", (int)PEN_MIN(bytes, cap - 1), line + n + 1);
            return;
        }
    }
}

static double find_number(const char *text, const char *name)
{
    char value[64];
    double v = 0;
    find(text, name, value, sizeof value);
    return pen__text_f64(value, &v) && v >= 0 ? v : 0;
}

/* "30000/1001" */
static double find_rate(const char *text, const char *name)
{
    char value[64];
    int64_t a = 0, b = 0;
    find(text, name, value, sizeof value);
    char *slash = strchr(value, '/');
    if (!slash)
        return 0;
    *slash = 0;
    bool ok = pen__text_i64(value, &a) && pen__text_i64(slash + 1, &b) && a > 0 && b > 0;
    return ok ? (double)a / (double)b : 0;
}

static int understand(const char *path, const char *text, PenVideoInfo *ret, PenError *reterr)
{
    double w = find_number(text, "width"), h = find_number(text, "height");
    if (!(w >= 1 && w <= UINT32_MAX && h >= 1 && h <= UINT32_MAX))
        return pen__fail(reterr, PEN_E_DECODE, WHERE, "%s: expected a video, found no pictures",
                         path);
    *ret = (PenVideoInfo){.width = (uint32_t)w,
                          .height = (uint32_t)h,
                          .fps = find_rate(text, "avg_frame_rate"),
                          .seconds = find_number(text, "duration")};
    return PEN_OK;
}

int pen__video_probe(const PenVideoSettings *settings, const char *path, PenVideoInfo *ret,
                     PenError *reterr)
{
    static const char formats[] = PEN_VIDEO_FORMATS;
    PenBuf text = {0}, url = {0};
    int r = pen__buf_add(&url, "file:", 5);
    if (r == PEN_OK)
        r = pen__buf_add(&url, path, strlen(path) + 1);
    if (r < 0)
        return pen__fail_memory(reterr, WHERE, path);
    const char *argv[] = {"ffprobe",
                          "-hide_banner",
                          "-loglevel",
                          "error",
                          "-protocol_whitelist",
                          "file",
                          "-format_whitelist",
                          formats,
                          "-select_streams",
                          "V:0",
                          "-show_entries",
                          "stream=width,height,avg_frame_rate:format=duration",
                          "-of",
                          "default=noprint_wrappers=1",
                          (const char *)url.data,
                          NULL};
    PenProcessSettings s = {
        .argv = argv, .take = pen__process_take_buf, .take_ctx = &text, .out_bytes = MAX_BYTES};
    PenProcessResult result;
    r = pen__video_run(settings, path, &s, &result, reterr);
    if (r == PEN_OK && result.exit.code)
        r = pen__video_fail_exit("ffprobe", path, &result, reterr);
    if (r == PEN_OK && pen__buf_add(&text, "", 1) < 0)
        r = pen__fail_memory(reterr, WHERE, path);
    if (r == PEN_OK)
        r = understand(path, (const char *)text.data, ret, reterr);
    pen__buf_free(&text);
    pen__buf_free(&url);
    return r;
}
