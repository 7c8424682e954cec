/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the packs that only the writer's calls can make: all types of numbers, ragged fields, and
 * clips.
 *
 *     golden_make types OUT.pen
 *     golden_make ragged OUT.pen
 *     golden_make clips OUT.pen FRAME...         image files; the first sample has all of them */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <penstock/penstock.h>

#define LEN(a) (sizeof(a) / sizeof *(a))

static void must(int r, const PenError *e)
{
    if (r >= 0)
        return;
    fprintf(stderr, "golden_make: %s\n", e->message);
    exit(1);
}

static PenValue bytes_of(const void *data, size_t bytes)
{
    return (PenValue){.data = data, .bytes = bytes};
}

static PenValue text_of(const char *text)
{
    return bytes_of(text, strlen(text));
}

static void finish(PenWriter *w, PenError *e)
{
    uint64_t n = 0;
    must(pen_writer_finish(w, &n, e), e);
    pen_writer_close(&w);
}

/* ---- numbers and bytes ---------------------------------------------------------------------- */

static const PenField type_fields[] = {
    {.name = "label", .type = PEN_TYPE_I64},
    {.name = "ratio", .type = PEN_TYPE_F32},
    {.name = "value", .type = PEN_TYPE_F64},
    {.name = "grid", .type = PEN_TYPE_I64, .n_dims = 2, .dims = {2, 3}},
    {.name = "box", .type = PEN_TYPE_F32, .n_dims = 1, .dims = {4}},
    {.name = "cube", .type = PEN_TYPE_F64, .n_dims = 4, .dims = {2, 1, 2, 1}},
    {.name = "blob", .type = PEN_TYPE_BYTES},
    {.name = "doc", .type = PEN_TYPE_JSON},
    {.name = "Bildunterschrift \303\244", .type = PEN_TYPE_TEXT},
};
static const char *const type_classes[] = {"", "cat", "Gr\303\274\303\237e", "dog, black"};

enum { TYPE_SAMPLES = 7, LONGEST_KEY = 4096 };

static size_t type_key(int i, char key[LONGEST_KEY])
{
    if (i == 1) { /* of any bytes */
        memcpy(key, "\0\xff\n\"/../", 8);
        return 8;
    }
    if (i == 2) {
        memset(key, 'k', LONGEST_KEY);
        return LONGEST_KEY;
    }
    return (size_t)snprintf(key, LONGEST_KEY, "%d", i);
}

static void add_type_sample(PenWriter *w, int i, PenError *e)
{
    static const float ratios[TYPE_SAMPLES] = {0, -0.0f, NAN, INFINITY, -INFINITY, FLT_MAX, 1e-45f};
    static const double values[TYPE_SAMPLES] = {0, -0.0, NAN, INFINITY, -INFINITY, DBL_MAX, 5e-324};
    int64_t label = i % 4;
    int64_t grid[6] = {INT64_MIN, INT64_MAX, -1, 0, i, 1LL << 40};
    float box[4] = {ratios[i], (float)i, -0.5f, 1.0f / 3};
    double cube[4] = {values[i], -values[i], i, 0.1};
    char key[LONGEST_KEY], blob[600], doc[64];
    for (size_t k = 0; k < sizeof blob; k++)
        blob[k] = (char)(k * (size_t)(i + 1));
    snprintf(doc, sizeof doc, "{\"n\": %d, \"list\": [1, null, \"\\u00e4\"]}", i);
    size_t key_bytes = type_key(i, key);
    PenValue v[] = {
        bytes_of(&label, sizeof label),
        bytes_of(&ratios[i], sizeof ratios[i]),
        bytes_of(&values[i], sizeof values[i]),
        bytes_of(grid, sizeof grid),
        bytes_of(box, sizeof box),
        bytes_of(cube, sizeof cube),
        bytes_of(blob, (size_t)i * 100),
        text_of(doc),
        text_of(i == 3 ? "" : "Gr\303\274\303\237e\nzwei Zeilen"),
    };
    must(pen_writer_add(w, key, key_bytes, v, LEN(v), e), e);
}

static void make_types(const char *out)
{
    PenError e = {0};
    PenWriter *w = NULL;
    PenWriterSettings s;
    pen_writer_settings_init(&s);
    s.fields = type_fields;
    s.n_fields = LEN(type_fields);
    s.class_field = "label";
    s.classes = type_classes;
    s.n_classes = LEN(type_classes);
    s.block_samples = 3;
    s.name = "golden types";
    must(pen_writer_open(out, &s, &w, &e), &e);
    for (int i = 0; i < TYPE_SAMPLES; i++)
        add_type_sample(w, i, &e);
    finish(w, &e);
}

/* ---- ragged fields -------------------------------------------------------------------------- */

static const PenField ragged_fields[] = {
    {.name = "boxes",
     .type = PEN_TYPE_F32,
     .flags = PEN_FIELD_BOXES_XYXY,
     .n_dims = 2,
     .dims = {PEN_DIM_ANY, 4}},
    {.name = "points",
     .type = PEN_TYPE_F32,
     .flags = PEN_FIELD_OPTIONAL | PEN_FIELD_POINTS | PEN_FIELD_RELATIVE,
     .n_dims = 3,
     .dims = {PEN_DIM_ANY, 3, 2}},
    {.name = "tokens", .type = PEN_TYPE_I64, .n_dims = 1, .dims = {PEN_DIM_ANY}},
    {.name = "curve", .type = PEN_TYPE_F64, .n_dims = 2, .dims = {PEN_DIM_ANY, 2}},
    {.name = "label", .type = PEN_TYPE_I64},
};

enum { RAGGED_SAMPLES = 6 };

static void add_ragged_sample(PenWriter *w, size_t i, PenError *e)
{
    float boxes[5 * 4], points[2 * 6];
    int64_t tokens[] = {INT64_MIN, -1, (int64_t)i, INT64_MAX}, label = (int64_t)i;
    double curve[3 * 2] = {0.1, (double)i, -0.0, DBL_MAX, 1.0 / 3, NAN};
    for (size_t k = 0; k < LEN(boxes); k++)
        boxes[k] = (float)i + (float)k / 4;
    for (size_t k = 0; k < LEN(points); k++)
        points[k] = (float)k / 16;
    PenValue v[] = {
        bytes_of(boxes, i % 6 * 16),    bytes_of(i == 3 ? NULL : points, i == 3 ? 0 : i % 3 * 24),
        bytes_of(tokens, i % 5 * 8),    bytes_of(curve, i % 4 * 16),
        bytes_of(&label, sizeof label),
    };
    char key = (char)('a' + i);
    must(pen_writer_add(w, &key, 1, v, LEN(v), e), e);
}

static void make_ragged(const char *out)
{
    PenError e = {0};
    PenWriter *w = NULL;
    PenWriterSettings s;
    pen_writer_settings_init(&s);
    s.fields = ragged_fields;
    s.n_fields = LEN(ragged_fields);
    s.block_samples = 4;
    s.name = "golden ragged";
    must(pen_writer_open(out, &s, &w, &e), &e);
    for (size_t i = 0; i < RAGGED_SAMPLES; i++)
        add_ragged_sample(w, i, &e);
    finish(w, &e);
}

/* ---- clips ---------------------------------------------------------------------------------- */

static PenValue load(const char *path)
{
    static char room[1 << 20];
    static size_t used;
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(room + used, 1, sizeof room - used, f) : 0;
    if (n == 0 || n == sizeof room - used) {
        fprintf(stderr, "golden_make: %s: cannot be read\n", path);
        exit(1);
    }
    fclose(f);
    used += n;
    return bytes_of(room + used - n, n);
}

static const PenField clip_fields[] = {
    {.name = "video", .type = PEN_TYPE_CLIP},
    {.name = "label", .type = PEN_TYPE_I64},
    {.name = "poster", .type = PEN_TYPE_IMAGE},
    {.name = "more", .type = PEN_TYPE_CLIP},
};

static void make_clips(const char *out, char **paths, uint32_t n)
{
    enum { MOST = 16 };
    PenValue frames[MOST];
    int64_t times[MOST];
    PenError e = {0};
    PenWriter *w = NULL;
    PenWriterSettings s;
    n = n < MOST ? n : MOST;
    for (uint32_t i = 0; i < n; i++) {
        frames[i] = load(paths[i]);
        times[i] = (int64_t)i * 33366666 - 5;
    }
    pen_writer_settings_init(&s);
    s.fields = clip_fields;
    s.n_fields = LEN(clip_fields);
    s.block_samples = 3;
    s.name = "golden clips";
    must(pen_writer_open(out, &s, &w, &e), &e);
    for (uint32_t i = 0; i < 4; i++) {
        char key[16];
        int64_t label = i;
        uint32_t first = i % n;
        uint32_t count = i == 0 ? n : i == 1 ? 0 : 1;
        PenValue v[] = {
            {.frames = frames + first, .n_frames = count, .timestamps_ns = i == 2 ? NULL : times},
            bytes_of(&label, sizeof label),
            i % 2 ? frames[0] : bytes_of(NULL, 0),
            {.frames = frames, .n_frames = i % 3, .timestamps_ns = times},
        };
        int bytes = snprintf(key, sizeof key, "clip %u", i);
        must(pen_writer_add(w, key, (size_t)bytes, v, LEN(v), &e), &e);
    }
    finish(w, &e);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "types") == 0)
        make_types(argv[2]);
    else if (argc == 3 && strcmp(argv[1], "ragged") == 0)
        make_ragged(argv[2]);
    else if (argc > 3 && strcmp(argv[1], "clips") == 0)
        make_clips(argv[2], argv + 3, (uint32_t)argc - 3);
    else {
        fprintf(stderr, "usage: golden_make types|ragged OUT.pen | clips OUT.pen FRAME...\n");
        return 2;
    }
    return 0;
}
