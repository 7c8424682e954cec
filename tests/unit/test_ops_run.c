/* SPDX-License-Identifier: Apache-2.0 */
/* Recipes against the same operations done one by one on whole images. */
#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "base/sys.h"
#include "codec_images.h"
#include "ops/operations/boxes.h"
#include "ops/operations/op.h"
#include "ops/run/program.h"
#include "ops_reference.h"
#include "test.h"

static double half_value(uint16_t half)
{
    int e = half >> 10 & 31;
    double m = half & 1023, v = e ? ldexp(m + 1024, e - 25) : ldexp(m, -24);
    return half & 0x8000 ? -v : v;
}

/* Is `found` what the float becomes in this type? */
static int is_element(int dtype, const uint8_t *found, float v)
{
    uint32_t bits;
    uint16_t small;
    float f;
    memcpy(&small, found, 2);
    if (dtype == PEN_F32) {
        memcpy(&f, found, 4);
        return memcmp(&f, &v, 4) == 0 || (f == 0 && v == 0);
    }
    if (dtype == PEN_BF16) {
        memcpy(&bits, &v, 4);
        return small == (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
    int e = v == 0 ? -14 : PEN_MAX(ilogbf(v), -14);
    double step = ldexp(1, e - 10);
    return half_value(small) == rint((double)v / step) * step;
}

static int n_compared;

typedef struct Case {
    PenSpec spec;
    PenProgram *program;
    int is_mask;
    PenImageShape shape;
    PenDrawKey key;
    uint64_t sample;
} Case;

static PenDraw draw_of(const Case *c, uint32_t i)
{
    const PenSpecField *f = &c->spec.fields[0];
    uint32_t occurrence = 0;
    for (uint32_t k = 0; k < i; k++)
        occurrence += f->ops[k].op == f->ops[i].op;
    return pen__draw_start(c->key, c->sample, pen__op_work(f->ops[i].op)->draw_id, occurrence);
}

static float normal(const PenSpecOp *op, uint8_t x, uint32_t channel)
{
    const PenParamValue *mean = &op->values[0], *std = &op->values[1];
    float m = (float)mean->v[mean->n == 1 ? 0 : channel];
    float s = (float)std->v[std->n == 1 ? 0 : channel];
    return ((float)x / 255.0f - m) / s;
}

/* Compares element by element. */
static void check_result(const Case *c, const Pic *p, const PenSpecOp *normalize,
                         const PenBox *erased, const PenParamValue *value, const uint8_t *dst)
{
    PenTensor t = pen__program_result(c->program);
    size_t element = pen_dtype_bytes(t.dtype), plane = (size_t)p->w * p->h;
    int planes = t.n_dims == 3 && !t.channels_last;
    CHECK_INT(pen__program_bytes(c->program), plane * p->c * element);
    for (uint32_t y = 0; y < p->h; y++) {
        for (uint32_t x = 0; x < p->w; x++) {
            for (uint32_t k = 0; k < p->c; k++) {
                size_t i = (size_t)y * p->w + x;
                const uint8_t *found = dst + (planes ? k * plane + i : i * p->c + k) * element;
                uint8_t v = pic_at(p, x, y)[k];
                float f = normalize ? normal(normalize, v, k) : (float)v / 255.0f;
                if (x - erased->x < erased->w && y - erased->y < erased->h)
                    f = (float)value->v[value->n == 1 ? 0 : k];
                int64_t wide = v;
                if (t.dtype == PEN_U8    ? *found != v
                    : t.dtype == PEN_I64 ? memcmp(found, &wide, 8) != 0
                                         : !is_element(t.dtype, found, f)) {
                    test__fail(__FILE__, __LINE__,
                               "pixel %u, %u channel %u: found 0x%02x, expected %u", x, y, k,
                               *found, v);
                    return;
                }
            }
        }
    }
}

static void check_against_reference(const Case *c, const PenEncoded *e, const uint8_t *dst)
{
    const PenSpecField *f = &c->spec.fields[0];
    Pic p = pic_decode(e, pen__program_colour(c->program), c->shape.orientation);
    const PenSpecOp *normalize = NULL;
    PenBox erased = {0};
    PenParamValue value = {.n = 1};
    for (uint32_t i = 0; i < f->n_ops; i++) {
        PenDraw d = draw_of(c, i);
        const PenSpecOp *op = &f->ops[i];
        if (pen__op_number(op->op) == PEN_OP_normalize) {
            normalize = op;
        } else if (normalize && pen__op_number(op->op) == PEN_OP_random_erasing) {
            PenSampleRule rule = {{op->values[1].v[0], op->values[1].v[1]},
                                  {op->values[2].v[0], op->values[2].v[1]}};
            if (pen__draw_happens(&d, op->values[0].v[0]))
                erased = pen__sample_erase(&d, p.w, p.h, &rule);
            value = op->values[3];
        } else {
            pic_apply(&p, op, &d, c->is_mask);
        }
    }
    check_result(c, &p, normalize, &erased, &value, dst);
    n_compared++;
    free(p.data);
}

/* ---- running ---- */

static PenDecodeContext *context;

static int open_case(Case *c, const char *text, int kind)
{
    PenFieldKind field = {.kind = kind};
    PenError err = {0};
    int r = pen__spec_parse(text, &c->spec, &err);
    c->is_mask = kind == PEN_KIND_MASK;
    if (r == PEN_OK)
        r = pen__program_new(&c->spec.fields[0], &field, &c->program, &err);
    if (r < 0)
        test__fail(__FILE__, __LINE__, "%s: %s", text, err.message);
    return r;
}

static void close_case(Case *c)
{
    pen__program_free(&c->program);
    pen__spec_free(&c->spec);
}

/* Runs it; PEN_E_INVALID for sample plans that cannot be (a crop larger than its image). */
static int run_case(Case *c, const PenEncoded *e, uint8_t **ret_dst)
{
    PenSamplePlan sample_plan;
    PenError err = {0};
    uint64_t bytes = pen__program_bytes(c->program);
    int r = pen__sample_plan_make(c->program, &c->shape, c->key, c->sample, &sample_plan, &err);
    if (r < 0)
        return r;
    uint8_t *dst = malloc(bytes); /* exactly: the sanitizer sees a byte too many */
    if (!dst)
        abort();
    memset(dst, 0xa5, bytes);
    r = pen__sample_run(context, c->program, &sample_plan, e, &pen__limits_default, dst, &err);
    if (r < 0) {
        test__fail(__FILE__, __LINE__, "run: %s", err.message);
        free(dst);
        return r;
    }
    *ret_dst = dst;
    return PEN_OK;
}

static void check_text(const char *text, int kind, const PenEncoded *e, uint8_t orientation,
                       uint64_t sample)
{
    Case c = {.shape = {e->width, e->height, orientation, e->codec == PEN_STORED_JPEG},
              .key = pen__draw_key(1, 2),
              .sample = sample};
    uint8_t *dst = NULL;
    if (open_case(&c, text, kind) == PEN_OK && run_case(&c, e, &dst) == PEN_OK)
        check_against_reference(&c, e, dst);
    if (test__now.state == TEST_FAILED)
        printf("  with '%s', orientation %u, sample %d\n", text, orientation, (int)sample);
    free(dst);
    close_case(&c);
}

/* ---- images ---- */

static PenEncoded encoded(const PenBuf *buf, uint8_t codec, uint32_t w, uint32_t h,
                          uint8_t channels)
{
    PenEncoded e = {
        .bytes = buf->bytes, .width = w, .height = h, .codec = codec, .channels = channels};
    e.data = calloc(buf->bytes + PEN_SLACK, 1);
    if (!e.data)
        abort();
    memcpy(e.data, buf->data, buf->bytes);
    return e;
}

enum { N_IMAGES = 7 };

static PenEncoded images[N_IMAGES], masks[2];

static void add_jpeg(int i, JpegSpec spec)
{
    PenBuf buf = {0};
    make_jpeg(&spec, &buf);
    images[i] = encoded(&buf, PEN_STORED_JPEG, spec.width, spec.height,
                        (uint8_t)(spec.channels ? spec.channels : 3));
    pen__buf_free(&buf);
}

static PenEncoded make_png(uint32_t w, uint32_t h, uint32_t channels)
{
    PenPixels px;
    PenBuf buf = {0};
    make_pixels(w, h, channels, 9, &px);
    if (pen__png_encode(&px, &buf, NULL) < 0)
        abort();
    PenEncoded e = encoded(&buf, PEN_STORED_PNG, w, h, (uint8_t)channels);
    pen__pixels_free(&px);
    pen__buf_free(&buf);
    return e;
}

static PenEncoded make_raw(uint32_t w, uint32_t h, uint32_t channels)
{
    PenPixels px;
    make_pixels(w, h, channels, 4, &px);
    PenBuf buf = {.data = px.data, .bytes = (size_t)w * h * channels};
    PenEncoded e = encoded(&buf, PEN_STORED_RAW, w, h, (uint8_t)channels);
    pen__pixels_free(&px);
    return e;
}

static void make_images(void)
{
    add_jpeg(0, (JpegSpec){.width = 83, .height = 61, .h = 2, .v = 2});
    add_jpeg(1, (JpegSpec){.width = 64, .height = 90});
    add_jpeg(2, (JpegSpec){.width = 57, .height = 40, .channels = 1});
    add_jpeg(3, (JpegSpec){.width = 70, .height = 33, .progressive = true, .h = 2, .v = 1});
    images[4] = make_png(45, 52, 3);
    images[5] = make_png(31, 60, 4);
    images[6] = make_raw(40, 38, 3);
    masks[0] = make_png(83, 61, 1);
    masks[1] = make_raw(64, 90, 1);
}

static void free_images(void)
{
    for (int i = 0; i < N_IMAGES; i++)
        free(images[i].data);
    free(masks[0].data);
    free(masks[1].data);
}

/* ---- tests ---- */

TEST(run_known_pipelines)
{
    static const char *const texts[] = {
        "decode | center_crop 24 | tensor",
        "decode | random_resized_crop 24 | hflip | tensor u8 nhwc",
        "decode | random_resized_crop 24,17 bicubic | hflip | vflip | normalize | tensor f32",
        "decode | random_resized_crop 24,17 lanczos | hflip | normalize | tensor f16 nchw",
        "decode | resize 40 | center_crop 32 | tensor bf16",
        "decode | resize 40 box | center_crop 64 | hflip | tensor u8 nchw",
        "decode | random_crop 90 padding=40 fill=77 | hflip 1 | tensor f32 nchw",
        "decode gray | resize 20,30 nearest | random_erasing 1 value=200 | tensor",
        "decode gray | hflip 1 | random_resized_crop 12 | tensor f32 nchw",
        "decode | resize 30,30 | color_jitter 0.4 0.4 0.4 0.1 | grayscale 0.5 | tensor",
        "decode | color_jitter 0.4 | center_crop 20 | random_erasing 1 value=1,2,3 | vflip",
        "decode | center_crop 30 | normalize | random_erasing 1 value=0.5,-1,7 | tensor f32",
        "decode | center_crop 30 | normalize 0.5 0.5 | random_erasing 1 value=7 | tensor f16 nchw",
        "decode | center_crop 30 | normalize 0.5 0.5 | random_erasing 1 value=-0.3 | tensor bf16",
    };
    for (size_t t = 0; t < PEN_LEN(texts); t++) {
        for (int i = 0; i < N_IMAGES; i++) {
            for (uint64_t sample = 0; sample < 3; sample++) {
                check_text(texts[t], PEN_KIND_IMAGE, &images[i], 1, sample);
                CHECK_OK_SO_FAR();
            }
        }
    }
}

TEST(run_every_orientation)
{
    for (uint8_t o = 1; o <= 8; o++) {
        for (int i = 0; i < N_IMAGES; i++) {
            check_text("decode | resize 60,50 | tensor", PEN_KIND_IMAGE, &images[i], o, o);
            check_text("decode | random_resized_crop 24 | hflip | tensor f32", PEN_KIND_IMAGE,
                       &images[i], o, o);
            check_text("decode gray | random_crop 120 50 9", PEN_KIND_IMAGE, &images[i], o, o);
            CHECK_OK_SO_FAR();
        }
        check_text("decode | random_resized_crop 24 | hflip | tensor i64", PEN_KIND_MASK, &masks[0],
                   o, o);
        check_text("decode | resize 100 | random_crop 64 8 255", PEN_KIND_MASK, &masks[1], o, o);
        CHECK_OK_SO_FAR();
    }
}

static uint32_t below(PenRng *rng, uint32_t n)
{
    return (uint32_t)pen__rng_below(rng, n);
}

static size_t add_random_op(PenRng *rng, char *text, size_t cap, int plain)
{
    static const char *const filters[] = {"bilinear", "nearest", "bicubic", "lanczos", "box"};
    const char *filter = filters[below(rng, 5)];
    uint32_t a = 1 + below(rng, 70), b = 1 + below(rng, 70);
    switch (below(rng, plain ? 7 : 10)) {
    case 0:
        return (size_t)snprintf(text, cap, " | resize %u %s", a, filter);
    case 1:
        return (size_t)snprintf(text, cap, " | resize %u,%u %s", a, b, filter);
    case 2:
        return (size_t)snprintf(text, cap, " | center_crop %u,%u", a, b);
    case 3:
        return (size_t)snprintf(text, cap, " | random_crop %u,%u padding=%u fill=%u", a, b,
                                below(rng, 30), below(rng, 256));
    case 4:
        return (size_t)snprintf(text, cap, " | random_resized_crop %u,%u %s", a, b, filter);
    case 5:
        return (size_t)snprintf(text, cap, " | hflip");
    case 6:
        return (size_t)snprintf(text, cap, " | vflip");
    case 7:
        return (size_t)snprintf(text, cap, " | color_jitter 0.5 0.%u 0.%u 0.%u", below(rng, 9),
                                below(rng, 9), below(rng, 5));
    case 8:
        return (size_t)snprintf(text, cap, " | grayscale 0.5");
    default:
        return (size_t)snprintf(text, cap, " | random_erasing 0.7 value=%u", below(rng, 256));
    }
}

static void random_text(PenRng *rng, char *text, size_t cap, int kind)
{
    static const char *const dtypes[] = {"u8", "f32", "f16", "bf16"};
    static const char *const layouts[] = {"nhwc", "nchw"};
    int is_mask = kind == PEN_KIND_MASK;
    int grey = !is_mask && below(rng, 4) == 0, normalize = !is_mask && below(rng, 3) == 0;
    size_t used = (size_t)snprintf(text, cap, "decode%s", grey ? " gray" : "");
    for (uint32_t n = below(rng, 6); n > 0; n--)
        used += add_random_op(rng, text + used, cap - used, grey || is_mask);
    used += (size_t)snprintf(text + used, cap - used, " | center_crop %u,%u", 1 + below(rng, 50),
                             1 + below(rng, 50));
    if (below(rng, 2))
        used += (size_t)snprintf(text + used, cap - used, " | hflip");
    if (normalize)
        used += (size_t)snprintf(text + used, cap - used, " | normalize 0.4 0.3%s",
                                 below(rng, 2) ? " | random_erasing value=0.25" : "");
    uint32_t first = normalize ? 1 : 0;
    const char *dtype = dtypes[first + below(rng, 4 - first)];
    if (is_mask)
        dtype = below(rng, 2) ? "i64" : "u8";
    snprintf(text + used, cap - used, " | tensor %s %s", dtype, layouts[below(rng, 2)]);
}

TEST(run_random_pipelines)
{
    PenRng rng = pen__rng_init(8, 0);
    int runs = 1000;
    n_compared = 0;
    for (int i = 0; i < runs; i++) {
        char text[600];
        int kind = below(&rng, 5) ? PEN_KIND_IMAGE : PEN_KIND_MASK;
        uint8_t orientation = (uint8_t)(below(&rng, 3) ? 1 : 1 + below(&rng, 8));
        random_text(&rng, text, sizeof text, kind);
        const PenEncoded *e =
            kind == PEN_KIND_MASK ? &masks[below(&rng, 2)] : &images[below(&rng, N_IMAGES)];
        check_text(text, kind, e, orientation, (uint64_t)i);
        CHECK_OK_SO_FAR();
    }
    CHECK(n_compared > runs / 2); /* others crop more than there is */
}

/* Image and mask are cut at the same place: where the mask is the image's own copy in grey, so are
 * the results. */
TEST(run_mask_is_cut_as_its_image)
{
    for (uint64_t i = 0; i < 30; i++) {
        Case a = {.shape = {83, 61, 1, 0}, .key = pen__draw_key(1, 2), .sample = i}, b = a;
        uint8_t *x = NULL, *y = NULL;
        open_case(&a, "decode gray | random_resized_crop 24 nearest | hflip | tensor",
                  PEN_KIND_IMAGE);
        open_case(&b, "decode | random_resized_crop 24 | hflip | tensor", PEN_KIND_MASK);
        CHECK_OK_SO_FAR();
        CHECK_INT(run_case(&a, &masks[0], &x), PEN_OK);
        CHECK_INT(run_case(&b, &masks[0], &y), PEN_OK);
        CHECK_MEM(x, y, 24 * 24);
        free(x);
        free(y);
        close_case(&a);
        close_case(&b);
    }
}

/* Broken files are errors, also when nothing of them would be seen. */
TEST(run_broken_image_is_an_error)
{
    static const char *const texts[] = {
        "decode | center_crop 24",
        "decode | resize 8,8 | grayscale",
        "decode | center_crop 4000 | random_crop 2",
    };
    for (size_t t = 0; t < PEN_LEN(texts); t++) {
        Case c = {.shape = {83, 61, 1, 0}, .key = pen__draw_key(1, 2), .sample = 5};
        PenSamplePlan sample_plan;
        PenError err = {0};
        uint8_t dst[24 * 24 * 3];
        PenEncoded e = images[0];
        open_case(&c, texts[t], PEN_KIND_IMAGE);
        CHECK_OK_SO_FAR();
        CHECK_INT(pen__sample_plan_make(c.program, &c.shape, c.key, c.sample, &sample_plan, &err),
                  PEN_OK);
        e.bytes = 300;
        CHECK_INT(
            pen__sample_run(context, c.program, &sample_plan, &e, &pen__limits_default, dst, &err),
            PEN_E_DECODE);
        /* The context works on. */
        CHECK_INT(pen__sample_run(context, c.program, &sample_plan, &images[0],
                                  &pen__limits_default, dst, &err),
                  PEN_OK);
        CHECK_INT(pen__sample_run(context, c.program, &sample_plan, &images[1],
                                  &pen__limits_default, dst, &err),
                  PEN_E_INVALID);
        CHECK_STR(err.message, "expected an image of 83 x 61 pixels as in its plan, found 64 "
                               "x 90");
        close_case(&c);
    }
}

/* ---- memory ---- */

typedef struct Head { /* before every block */
    size_t bytes, unused;
} Head;

static uint64_t held, peak, n_allocs, fail_at;

static void *count_alloc(size_t bytes)
{
    if (fail_at && ++n_allocs == fail_at)
        return NULL;
    n_allocs += !fail_at;
    Head *h = malloc(sizeof *h + bytes);
    if (!h)
        abort();
    h->bytes = bytes;
    held += bytes;
    peak = PEN_MAX(peak, held);
    return h + 1;
}

static void count_release(void *p)
{
    Head *h = p;
    if (!h)
        return;
    held -= h[-1].bytes;
    free(h - 1);
}

static void *count_resize(void *p, size_t bytes)
{
    void *to = count_alloc(bytes);
    if (to && p) {
        memcpy(to, p, PEN_MIN(((Head *)p)[-1].bytes, bytes));
        count_release(p);
    }
    return to;
}

static PenSys counting;

static void count_begin(void)
{
    counting = pen__sys_real;
    counting.alloc = count_alloc;
    counting.resize = count_resize;
    counting.release = count_release;
    held = peak = n_allocs = fail_at = 0;
    pen__sys = &counting;
}

static const char *const memory_texts[] = {
    "decode | random_resized_crop 24 | hflip | tensor u8",
    "decode | random_resized_crop 24 | hflip | normalize | tensor f32 nchw",
    "decode | random_crop 64 padding=40 | tensor",
    "decode | color_jitter 0.4 | random_resized_crop 24 | resize 50,50 | hflip | resize 9,9",
    "decode shrink=auto | vflip 1 | random_resized_crop 9 | tensor",
    "decode | random_adjust_sharpness 2 p=1 | gaussian_blur 9 sigma=3 | center_crop 24",
    "decode gray | gaussian_blur 255,1 sigma=90 | random_equalize p=1 | jpeg 100 | center_crop 24",
    "decode | aug_mix chain_depth=3 | random_order [hflip | rand_augment] | center_crop 24",
    "decode | center_crop 24 | aug_mix alpha=0.01 mixture_width=5 | three_augment",
    "decode | jpeg 1 | resize 30,30 | jpeg 90 | random_adjust_sharpness 0.5 p=1",
    "decode | random_affine 40 translate=0.5,0.5 scale=0.5,2 shear=40 | center_crop 24",
    "decode gray | random_rotation 90 bilinear | random_perspective p=1 | vflip 1 | center_crop 64",
    "decode | resize 9,30 | pad 5,30,20,4 reflect | random_rotation 90,90 | pad 0,0,10,0 1,2,3",
};

static void check_memory(const char *text, const PenEncoded *e, uint8_t orientation)
{
    PenDecodeContext *k = NULL;
    PenSamplePlan sample_plan;
    Case c = {.shape = {e->width, e->height, orientation, e->codec == PEN_STORED_JPEG},
              .key = pen__draw_key(1, 2)};
    uint8_t dst[4 * 64 * 64 * 3];
    PenImageHeader header;
    uint64_t before;
    open_case(&c, text, PEN_KIND_IMAGE);
    CHECK_OK_SO_FAR();
    CHECK_INT(pen__sample_plan_make(c.program, &c.shape, c.key, 3, &sample_plan, NULL), PEN_OK);
    CHECK_INT(pen__image_header(e, &pen__limits_default, &header, NULL), PEN_OK);
    CHECK_OK_SO_FAR();
    uint64_t bound = pen__sample_plan_memory(c.program, &sample_plan, &header);
    CHECK_INT(pen__decode_context_new(&k, NULL), PEN_OK);
    before = peak = held;
    CHECK_INT(pen__sample_run(k, c.program, &sample_plan, e, &pen__limits_default, dst, NULL),
              PEN_OK);
    CHECK(peak - before <= bound);
    CHECK(peak > before);
    /* The next one finds all it needs. */
    n_allocs = 0;
    CHECK_INT(pen__sample_run(k, c.program, &sample_plan, e, &pen__limits_default, dst, NULL),
              PEN_OK);
    if (e->codec == PEN_STORED_JPEG)
        CHECK_INT(n_allocs, 0);
    pen__decode_context_trim(k, 0);
    CHECK_INT(pen__sample_run(k, c.program, &sample_plan, e, &pen__limits_default, dst, NULL),
              PEN_OK);
    pen__decode_context_free(&k);
    close_case(&c);
}

TEST(run_memory_is_bounded_and_kept)
{
    count_begin();
    for (size_t t = 0; t < PEN_LEN(memory_texts); t++)
        for (int i = 0; i < N_IMAGES; i++)
            for (uint8_t o = 1; o <= 6; o = (uint8_t)(o + 5))
                check_memory(memory_texts[t], &images[i], o);
    /* One whose whole image is held between two steps. */
    PenBuf buf = {0};
    make_jpeg(&(JpegSpec){.width = 900, .height = 700, .quality = 50}, &buf);
    PenEncoded large = encoded(&buf, PEN_STORED_JPEG, 900, 700, 3);
    pen__buf_free(&buf);
    check_memory("decode | color_jitter 0.4 | resize 9,9", &large, 6);
    free(large.data);
    pen__sys = &pen__sys_real;
    CHECK_OK_SO_FAR();
    CHECK_INT(held, 0);
}

/* Each allocation fails once: an error, nothing lost, and the next run is right. */
TEST(run_survives_failing_allocations)
{
    count_begin();
    for (size_t t = 0; t < PEN_LEN(memory_texts); t++) {
        int r = PEN_E_NO_MEMORY;
        for (fail_at = 1; r == PEN_E_NO_MEMORY && fail_at < 200; fail_at++) {
            PenDecodeContext *k = NULL;
            PenSpec s = {0};
            PenProgram *p = NULL;
            PenSamplePlan sample_plan;
            PenFieldKind kind = {.kind = PEN_KIND_IMAGE};
            PenImageShape shape = {83, 61, 6, 0};
            uint8_t dst[4 * 64 * 64 * 3];
            n_allocs = 0;
            r = pen__spec_parse(memory_texts[t], &s, NULL);
            if (r == PEN_OK)
                r = pen__program_new(&s.fields[0], &kind, &p, NULL);
            if (r == PEN_OK)
                r = pen__sample_plan_make(p, &shape, pen__draw_key(1, 2), 3, &sample_plan, NULL);
            if (r == PEN_OK)
                r = pen__decode_context_new(&k, NULL);
            if (r == PEN_OK)
                r = pen__sample_run(k, p, &sample_plan, &images[0], &pen__limits_default, dst,
                                    NULL);
            pen__decode_context_free(&k);
            pen__program_free(&p);
            pen__spec_free(&s);
            CHECK_INT(held, 0);
        }
        CHECK_INT(r, PEN_OK);
        CHECK(fail_at > 5);
    }
    pen__sys = &pen__sys_real;
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    make_images();
    if (pen__decode_context_new(&context, NULL) < 0)
        return 1;
    RUN(run_known_pipelines);
    RUN(run_every_orientation);
    RUN(run_random_pipelines);
    RUN(run_mask_is_cut_as_its_image);
    RUN(run_broken_image_is_an_error);
    RUN(run_memory_is_bounded_and_kept);
    RUN(run_survives_failing_allocations);
    pen__decode_context_free(&context);
    free_images();
    return TEST_END();
}
