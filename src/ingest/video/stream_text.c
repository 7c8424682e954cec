/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "ingest/source/text.h"
#include "ingest/video/packets_impl.h"

#define WHERE "ingest/video"
#define STREAM "streams.stream.0."
#define MATRIX STREAM "side_data_list.side_data."

enum { VALUE_BYTES = 256 };

/* ---- values ---------------------------------------------------------------------------------- */

/* What follows "name=" at the start of a line, to the end of the line; NULL: there is none. */
static const char *find(const char *text, const char *name, size_t *ret_bytes)
{
    size_t n = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, n) == 0 && line[n] == '=') {
            *ret_bytes = strcspn(line + n + 1, "\r\n");
            return line + n + 1;
        }
    }
    return NULL;
}

/* Without quotes and backslashes. */
static int add_plain(PenBuf *out, const char *value, size_t bytes)
{
    bool is_quoted = bytes >= 2 && value[0] == '"' && value[bytes - 1] == '"';
    if (pen__buf_reserve(out, bytes + 1) < 0)
        return PEN_E_NO_MEMORY;
    for (size_t i = is_quoted, end = bytes - is_quoted; i < end; i++) {
        char c = value[i];
        if (c == '\\' && i + 1 < end) {
            c = value[++i];
            c = (char)(c == 'n' ? '\n' : c == 'r' ? '\r' : c);
        }
        out->data[out->bytes++] = (uint8_t)c;
    }
    return PEN_OK;
}

/* Empty: not there, or longer than any that is known. */
static void find_text(const char *text, const char *name, char ret[VALUE_BYTES])
{
    size_t bytes = 0;
    const char *value = find(text, name, &bytes);
    bool is_quoted = value && bytes >= 2 && value[0] == '"' && value[bytes - 1] == '"';
    ret[0] = 0;
    if (value && bytes < VALUE_BYTES)
        snprintf(ret, VALUE_BYTES, "%.*s", (int)bytes - 2 * is_quoted, value + is_quoted);
}

static int64_t find_number(const char *text, const char *name)
{
    char value[VALUE_BYTES];
    int64_t v = 0;
    find_text(text, name, value);
    return pen__text_i64(value, &v) ? v : -1;
}

/* ---- codec, container, pixels ---------------------------------------------------------------- */

typedef struct Named {
    const char *name;
    uint8_t number;
} Named;

static uint8_t number_of(const Named *list, size_t n, const char *name, uint8_t otherwise)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0)
            return list[i].number;
    return otherwise;
}

static int take_container(const char *name, const char *text, PenVideoStream *s, PenError *reterr)
{
    char value[VALUE_BYTES];
    find_text(text, "format.format_name", value);
    if (strstr(value, "mp4"))
        s->container = PEN_CONTAINER_MP4;
    else if (strstr(value, "matroska"))
        s->container = PEN_CONTAINER_MATROSKA;
    else
        return pen__fail(
            reterr, PEN_E_UNSUPPORTED, WHERE,
            "%s: expected an MP4, MOV, Matroska or WebM file, found %s" PEN_VIDEO_INSTEAD, name,
            *value ? value : "no format");
    return PEN_OK;
}

static int take_codec(const char *name, const char *text, PenVideoStream *s, PenError *reterr)
{
    static const Named codecs[] = {{"h264", PEN_VIDEO_H264},   {"hevc", PEN_VIDEO_HEVC},
                                   {"vp9", PEN_VIDEO_VP9},     {"av1", PEN_VIDEO_AV1},
                                   {"mpeg4", PEN_VIDEO_MPEG4}, {"mjpeg", PEN_VIDEO_MJPEG},
                                   {"vp8", PEN_VIDEO_VP8}};
    char value[VALUE_BYTES];
    find_text(text, STREAM "codec_name", value);
    if (!*value)
        return pen__fail(reterr, PEN_E_DECODE, WHERE, "%s: expected a video, found no pictures",
                         name);
    s->codec = number_of(codecs, PEN_LEN(codecs), value, 0);
    if (!s->codec)
        return pen__fail(
            reterr, PEN_E_UNSUPPORTED, WHERE,
            "%s: expected H.264, HEVC, VP8, VP9, AV1, MPEG-4 or MJPEG, found %s" PEN_VIDEO_INSTEAD,
            name, value);
    return PEN_OK;
}

static int take_size(const char *name, const char *text, PenVideoStream *s, PenError *reterr)
{
    int64_t w = find_number(text, STREAM "width"), h = find_number(text, STREAM "height");
    if (w < 1 || h < 1 || w > PEN_MAX_VIDEO_SIDE || h > PEN_MAX_VIDEO_SIDE)
        return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                         "%s: expected pictures of at most %ux%u, found %" PRId64 "x%" PRId64, name,
                         PEN_MAX_VIDEO_SIDE, PEN_MAX_VIDEO_SIDE, w, h);
    s->width = (uint32_t)w;
    s->height = (uint32_t)h;
    return PEN_OK;
}

/* yuv420p, yuvj422p, yuv444p10le, gray12le and the like. */
static int take_pixels(const char *name, const char *text, PenVideoStream *s, PenError *reterr)
{
    static const char *const kinds[] = {"yuv420p",  "yuv422p",  "yuv444p", "yuvj420p",
                                        "yuvj422p", "yuvj444p", "gray"};
    static const Named depths[] = {{"", 8}, {"10le", 10}, {"12le", 12}};
    char value[VALUE_BYTES];
    find_text(text, STREAM "pix_fmt", value);
    for (size_t i = 0; i < PEN_LEN(kinds); i++) {
        size_t n = strlen(kinds[i]);
        if (strncmp(value, kinds[i], n) == 0)
            s->depth = number_of(depths, PEN_LEN(depths), value + n, 0);
        if (s->depth) {
            s->range = value[3] == 'j' ? 2 : 0;
            return PEN_OK;
        }
    }
    return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                     "%s: expected 4:2:0, 4:2:2, 4:4:4 or gray pixels of 8, 10 or 12 bits, found "
                     "%s" PEN_VIDEO_INSTEAD,
                     name, *value ? value : "no pixel format");
}

static void take_color(const char *text, PenVideoStream *s)
{
    static const Named ranges[] = {{"tv", 1}, {"pc", 2}};
    static const Named matrices[] = {/* H.273 */
                                     {"gbr", 0},        {"bt709", 1},     {"fcc", 4},
                                     {"bt470bg", 5},    {"smpte170m", 6}, {"smpte240m", 7},
                                     {"ycgco", 8},      {"bt2020nc", 9},  {"bt2020c", 10},
                                     {"smpte2085", 11}, {"ictcp", 14}};
    char value[VALUE_BYTES];
    find_text(text, STREAM "color_range", value);
    s->range = number_of(ranges, PEN_LEN(ranges), value, s->range);
    find_text(text, STREAM "color_space", value);
    s->matrix = number_of(matrices, PEN_LEN(matrices), value, 2);
}

/* "1/12800" */
static int take_time_base(const char *name, const char *text, PenVideoStream *s, PenError *reterr)
{
    char value[VALUE_BYTES];
    int64_t num = 0, den = 0;
    find_text(text, STREAM "time_base", value);
    char *slash = strchr(value, '/');
    if (slash)
        *slash = 0;
    if (!slash || !pen__text_i64(value, &num) || !pen__text_i64(slash + 1, &den) || num < 1 ||
        den < 1 || num > INT32_MAX || den > INT32_MAX)
        return pen__fail(reterr, PEN_E_DECODE, WHERE, "%s: expected a time base, found none", name);
    s->tick_num = (uint32_t)num;
    s->tick_den = (uint32_t)den;
    return PEN_OK;
}

/* ---- orientation ----------------------------------------------------------------------------- */

/* "\n00000000: a b u\n00000001: c d v\n...": x' = a x + c y, y' = b x + d y. */
static bool take_matrix(const char *value, double ret[4])
{
    int64_t all[2][3];
    for (int row = 0; row < 2; row++) {
        value = strchr(value, ':');
        if (!value++)
            return false;
        for (int i = 0; i < 3; i++) {
            char *end = NULL;
            all[row][i] = strtoll(value, &end, 10);
            if (end == value)
                return false;
            value = end;
        }
        ret[2 * row] = (double)all[row][0];
        ret[2 * row + 1] = (double)all[row][1];
    }
    return true;
}

/* As EXIF; 0: it is none of quarter turns and mirrors. Scaling is left out, as ffmpeg does. */
static uint8_t orientation_of(const double m[4])
{
    const double slope = 0.0175; /* of one degree, which ffmpeg takes for none */
    double a = m[0], b = m[1], c = m[2], d = m[3];
    if (a == 0 && b == 0 && c == 0 && d == 0)
        return 1;
    if (fabs(b) <= slope * fabs(a) && fabs(c) <= slope * fabs(d))
        return a > 0 ? (d > 0 ? 1 : 4) : (d > 0 ? 2 : 3);
    if (fabs(a) <= slope * fabs(b) && fabs(d) <= slope * fabs(c))
        return b > 0 ? (c > 0 ? 5 : 6) : (c > 0 ? 8 : 7);
    return 0;
}

static int take_orientation(const char *name, const char *text, PenVideoStream *s, PenError *reterr)
{
    s->orientation = 1;
    for (int i = 0; i < 8; i++) {
        char key[128];
        double m[4];
        size_t bytes = 0;
        snprintf(key, sizeof key, MATRIX "%d.displaymatrix", i);
        const char *value = find(text, key, &bytes);
        if (!value)
            continue;
        PenBuf plain = {0};
        if (add_plain(&plain, value, bytes) < 0)
            return pen__fail_memory(reterr, WHERE, name);
        plain.data[plain.bytes] = 0;
        s->orientation = take_matrix((const char *)plain.data, m) ? orientation_of(m) : 0;
        pen__buf_free(&plain);
        if (!s->orientation)
            return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                             "%s: expected a rotation by 0, 90, 180 or 270 degrees, found "
                             "another" PEN_VIDEO_INSTEAD,
                             name);
        return PEN_OK;
    }
    return PEN_OK;
}

/* ---- codec configuration --------------------------------------------------------------------- */

/* A line is "00000010: 0110 0000 0300 ...  .......", where the bytes take 41 columns. */
static bool take_dump_line(const char *line, size_t bytes, PenBuf *out)
{
    enum { COLUMNS = 41 };
    const char *at = memchr(line, ':', bytes);
    if (!at || line + bytes - at < COLUMNS + 2)
        return false;
    at += 2;
    for (const char *end = at + COLUMNS; at + 1 < end; at++) {
        if (*at == ' ')
            continue;
        int high = pen__hex_value(at[0]), low = pen__hex_value(at[1]);
        if (high < 0 || low < 0)
            return false;
        out->data[out->bytes++] = (uint8_t)(high << 4 | low);
        at++;
    }
    return true;
}

/* NULL, or what is wrong. */
static const char *take_dump(const PenBuf *plain, PenBuf *out)
{
    const char *line = (const char *)plain->data, *end = line + plain->bytes;
    if (pen__buf_reserve(out, plain->bytes) < 0)
        return "no memory";
    while (line < end) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        size_t bytes = (size_t)((stop ? stop : end) - line);
        if (bytes && !take_dump_line(line, bytes, out))
            return "a line that is no dump";
        line += bytes + 1;
    }
    return out->bytes > PEN_MAX_VIDEO_EXTRA ? "more than 1 MiB" : NULL;
}

static int take_extra(const char *name, const char *text, PenStreamText *ret, PenError *reterr)
{
    size_t bytes = 0;
    PenBuf plain = {0};
    const char *value = find(text, STREAM "extradata", &bytes);
    int64_t expected = find_number(text, STREAM "extradata_size");
    if (!value)
        return PEN_OK;
    if (add_plain(&plain, value, bytes) < 0)
        return pen__fail_memory(reterr, WHERE, name);
    const char *wrong = take_dump(&plain, &ret->extra);
    pen__buf_free(&plain);
    if (!wrong && expected >= 0 && (uint64_t)expected != ret->extra.bytes)
        wrong = "another size";
    if (wrong)
        return pen__fail(reterr, PEN_E_DECODE, WHERE,
                         "%s: expected the codec configuration in the output of ffprobe, found %s",
                         name, wrong);
    ret->stream.extra = ret->extra.data;
    ret->stream.extra_bytes = (uint32_t)ret->extra.bytes;
    return PEN_OK;
}

/* "0.083000"; 0 if it is not known. */
static int64_t find_start(const char *text)
{
    char value[VALUE_BYTES];
    double seconds = 0;
    find_text(text, "format.start_time", value);
    return pen__text_f64(value, &seconds) && fabs(seconds) < 1e9
               ? (int64_t)llround(seconds * 1e6) * 1000
               : 0;
}

int pen__stream_text_parse(const char *name, const char *text, PenStreamText *ret, PenError *reterr)
{
    PenVideoStream *s = &ret->stream;
    int r = take_codec(name, text, s, reterr);
    if (r == PEN_OK)
        r = take_container(name, text, s, reterr);
    if (r == PEN_OK)
        r = take_size(name, text, s, reterr);
    if (r == PEN_OK)
        r = take_pixels(name, text, s, reterr);
    if (r == PEN_OK)
        r = take_time_base(name, text, s, reterr);
    if (r == PEN_OK)
        r = take_orientation(name, text, s, reterr);
    if (r == PEN_OK)
        r = take_extra(name, text, ret, reterr);
    if (r < 0)
        return r;
    take_color(text, s);
    ret->start_ns = find_start(text);
    ret->has_reordering = find_number(text, STREAM "has_b_frames") != 0;
    return PEN_OK;
}
