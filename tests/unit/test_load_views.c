/* SPDX-License-Identifier: Apache-2.0 */
/* Several views of one image: each is what it is alone, however they are decoded. */
#include "fault_sweep.h"
#include "load_help.h"
#include "ops/run/program.h"
#include "tools.h"

enum { N = 43, BATCH = 8, BAD = 11 };

#define CROP "decode | random_resized_crop 24 | hflip"
#define SMALL                                                                                      \
    "decode shrink=auto | random_resized_crop 9 scale=0.05,0.3 | tensor f16 nchw | repeat 5"

static const char *const views[] = {
    "a = image: " CROP " | color_jitter 0.4",
    "b = image: " CROP " | color_jitter 0.4",
    "c = image: " SMALL,
    "grey = image: decode gray | random_crop 20 | random_erasing 1",
    "image: " CROP,
};

static PenLoaderSettings settings(const char *pipeline)
{
    PenLoaderSettings s = help_loader_settings(BATCH);
    s.pipeline = pipeline;
    s.seed = 5;
    s.memory_bytes = 256 << 20; /* of the plans of many views */
    return s;
}

static PenLoader *loader_of(PenPack *from, const char *pipeline)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenLoaderSettings s = settings(pipeline);
    if (pen_loader_open(from, &s, &l, &err) < 0)
        test__fail(__FILE__, __LINE__, "%s: %s", pipeline, err.message);
    return l;
}

/* Field `field` of all batches is the only field of the other loader's. */
static void compare(PenLoader *all, uint32_t field, PenLoader *alone)
{
    PenError err = {0};
    PenBatch *a = NULL, *b = NULL;
    for (int n = 0; pen_loader_next(all, -1, &a, &err) == PEN_OK; n++) {
        CHECK_INT(pen_loader_next(alone, -1, &b, &err), PEN_OK);
        const PenTensor *t = &a->fields[field], *u = &b->fields[0];
        CHECK_INT(t->n_dims, u->n_dims);
        CHECK_INT(t->dtype, u->dtype);
        size_t bytes = pen_dtype_bytes(t->dtype);
        for (uint32_t i = 0; i < t->n_dims; i++) {
            CHECK_INT(t->shape[i], u->shape[i]);
            bytes *= (size_t)t->shape[i];
        }
        CHECK_MEM(t->data, u->data, bytes);
        pen_batch_unref(&a);
        pen_batch_unref(&b);
        CHECK(n < N);
    }
    CHECK_INT(pen_loader_next(alone, -1, &b, &err), PEN_END);
}

static void join_views(char *text, size_t cap)
{
    text[0] = '\0';
    for (size_t i = 0; i < PEN_LEN(views); i++)
        snprintf(text + strlen(text), cap - strlen(text), "%s%s", i ? "; " : "", views[i]);
}

static void compare_pack(const char *name, int mode)
{
    char text[2000];
    PenPack *made = help_load_pack(name, N, -1, mode);
    CHECK(made);
    join_views(text, sizeof text);
    for (uint32_t i = 0; i < PEN_LEN(views); i++) {
        PenLoader *all = loader_of(made, text), *alone = loader_of(made, views[i]);
        if (all && alone)
            compare(all, i, alone);
        pen_loader_close(&all);
        pen_loader_close(&alone);
    }
    pen_pack_close(&made);
}

TEST(a_view_is_what_it_is_alone)
{
    compare_pack("indexed.pen", PEN_MODE_KEEP);
    compare_pack("tiled.pen", PEN_MODE_TILE);
    compare_pack("raw.pen", PEN_MODE_RAW);
}

/* Whether all views need the broken part of it or only one. */
TEST(a_broken_image_is_replaced_for_all_its_views)
{
    char text[2000];
    PenPack *made = help_load_pack("broken.pen", N, BAD, PEN_MODE_KEEP);
    join_views(text, sizeof text);
    PenLoaderSettings s = settings(text);
    CHECK(made);
    CHECK_INT(help_epoch_hash(made, &s), 0);
    s.on_bad = PEN_BAD_SUBSTITUTE;
    uint64_t hash = help_epoch_hash(made, &s);
    CHECK(hash);
    s.threads = 1;
    s.memory_bytes = 64 << 20;
    CHECK_INT(help_epoch_hash(made, &s), hash);
    pen_pack_close(&made);
}

static PenPack *pack;

TEST(shapes_have_the_repeats)
{
    PenLoader *l = loader_of(pack, "c = image: " SMALL "; m = mask of=c: decode | "
                                   "random_resized_crop 9 scale=0.05,0.3 | repeat 5");
    CHECK(l);
    PenTensor t = pen_loader_field_tensor(l, 0), m = pen_loader_field_tensor(l, 1);
    CHECK_INT(t.n_dims, 5);
    CHECK_INT(t.shape[1], 5);
    CHECK_INT(t.shape[2], 3);
    CHECK_INT(m.n_dims, 4);
    CHECK_INT(m.shape[1], 5);
    CHECK_STR(pen_loader_field_name(l, 1), "m");
    pen_loader_close(&l);
}

static void refuses(const char *pipeline, int status, const char *message)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenLoaderSettings s = settings(pipeline);
    CHECK_INT(pen_loader_open(pack, &s, &l, &err), status);
    CHECK_STR(err.message, message);
    pen_loader_close(&l);
}

#define REFUSES(pipeline, message) refuses(pipeline, PEN_E_INVALID, message)

TEST(views_that_cannot_be_are_refused)
{
    char text[200];
    snprintf(text, sizeof text,
             "pipeline: column 5: no field 'imag' in %s; its first field is "
             "'image'",
             at("views.pen"));
    REFUSES("a = imag: decode | center_crop 4", text);
    REFUSES("label = image: decode | center_crop 4",
            "pipeline: column 1: 'label' is a field of the pack; use another name for the view");
    REFUSES(
        "a = image of=b: decode | center_crop 4",
        "pipeline: column 14: of: only masks follow an image, and 'image' is none; remove of=b");
    REFUSES("view1 = image: decode | center_crop 4; m = mask of=view: decode | center_crop 4",
            "pipeline: column 52: of: no image 'view' in the pipeline; did you mean 'view1'?");
    REFUSES("a = image: decode | center_crop 4; m = mask of=label: decode | center_crop 4",
            "pipeline: column 48: of: no image 'label' in the pipeline; name one of its images or "
            "views");
    REFUSES("a = image: decode | center_crop 4; mask: decode | center_crop 4",
            "pipeline: column 36: mask 'mask': name the view that it follows: 'mask = mask of=a: "
            "...'");
    REFUSES("image: decode | center_crop 4; m = mask: decode | center_crop 4",
            "pipeline: column 32: mask 'm': name the view that it follows: 'm = mask of=image: "
            "...'");
    REFUSES("a = image: decode | center_crop 4; b = image: decode | center_crop 5; m = mask of=b: "
            "decode | center_crop 4",
            "pipeline: column 95: the geometry of mask 'm' differs from that of image 'b': "
            "'center_crop size=4,4', where the image has 'center_crop size=5,5'; give it the "
            "image's crops, resizes and flips in the same order (a further resize may follow)");
    REFUSES("a = image: decode | center_crop 4 | repeat 2; m = mask of=a: decode | center_crop 4",
            "pipeline: column 47: mask 'm': its repeat differs from that of image 'a'; give both "
            "the same");
    REFUSES("image: decode | center_crop 4 | repeat 2 | tensor u8",
            "pipeline: column 44: tensor after repeat: repeat must be the last operation; move it "
            "behind tensor");
    REFUSES("image: decode | center_crop 4 | repeat 65",
            "pipeline: column 40: repeat: n: expected 1 to 64, found '65'");
    REFUSES("label: repeat 2", "pipeline: column 8: repeat: the field holds numbers; only one_hot "
                               "and tensor can be used on "
                               "them");
}

TEST(the_number_of_views_is_limited)
{
    char text[400] = "";
    for (int i = 0; i < 5; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "%sv%d = image: decode | center_crop 4 | repeat %d", i ? "; " : "", i,
                 i < 4 ? 63 : 5);
    refuses(text, PEN_E_LIMIT,
            "pipeline: expected at most 256 images per sample, found 257; use fewer views, or "
            "smaller numbers of repeat");
    text[strlen(text) - 1] = '4';
    PenLoader *l = loader_of(pack, text);
    CHECK(l);
    PenBatch *b = NULL;
    PenError err = {0};
    CHECK_INT(pen_loader_next(l, -1, &b, &err), PEN_OK);
    pen_batch_unref(&b);
    pen_loader_close(&l);
}

TEST(their_packs_are_compared)
{
    char text[2000];
    PenError err = {0};
    PenMeasured measured;
    join_views(text, sizeof text);
    PenLoaderSettings s = settings(text);
    CHECK_INT(pen_measure(pack, &s, 0.05, &measured, &err), PEN_OK);
    CHECK(measured.read > 0 && measured.raw_ratio > 0);
}

static int open_and_close(PenError *err)
{
    PenLoader *l = NULL;
    PenLoaderSettings s = settings("a = image: " CROP "; b = image: " CROP " | repeat 3; m = mask "
                                   "of=a: " CROP);
    int r = pen_loader_open(pack, &s, &l, err);
    pen_loader_close(&l);
    return r;
}

/* Two plans are run on one image. */
static int run_together(PenError *err)
{
    static const PenFieldKind kind = {.kind = PEN_KIND_IMAGE};
    static uint8_t jpeg[20000], dst[2][3 * 16 * 16];
    static size_t bytes;
    PenImageShape shape = {80, 64, 6, 1};
    PenEncoded image = {
        .data = jpeg, .width = 80, .height = 64, .codec = PEN_STORED_JPEG, .channels = 3};
    PenSpec spec = {0};
    PenProgram *p = NULL;
    PenDecodeContext *k = NULL;
    PenImageHeader header;
    PenSamplePlan plan;
    if (!bytes) {
        PenBuf made = {0};
        make_jpeg(&(JpegSpec){.width = 80, .height = 64, .h = 2, .v = 2}, &made);
        bytes = PEN_MIN(made.bytes, sizeof jpeg);
        memcpy(jpeg, made.data, bytes);
        pen__buf_free(&made);
    }
    image.bytes = bytes;
    int r = pen__spec_parse("decode | center_crop 40 | resize 16,16 | grayscale", &spec, err);
    if (r == PEN_OK)
        r = pen__program_new(&spec.fields[0], &kind, &p, err);
    if (r == PEN_OK)
        r = pen__decode_context_new(&k, err);
    if (r == PEN_OK)
        r = pen__image_header(&image, &pen__limits_default, &header, err);
    if (r == PEN_OK)
        r = pen__sample_plan_make(p, &shape, pen__draw_key(1, 2), 3, &plan, err);
    PenSampleRun runs[2] = {{p, &plan, dst[0]}, {p, &plan, dst[1]}};
    if (r == PEN_OK)
        r = pen__sample_run_together(k, runs, 2, &header, &plan.region, &pen__limits_default, err);
    pen__decode_context_free(&k);
    pen__program_free(&p);
    pen__spec_free(&spec);
    return r;
}

TEST(every_allocation_may_fail)
{
    int points = 0;
    PenError err = {0};
    CHECK_INT(run_together(&err), PEN_OK); /* its file is made before */
    fault_sweep(open_and_close, &points);
    CHECK(points > 10);
    fault_sweep(run_together, &points);
    CHECK(points > 5);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    RUN(a_view_is_what_it_is_alone);
    RUN(a_broken_image_is_replaced_for_all_its_views);
    pack = help_load_pack("views.pen", N, -1, PEN_MODE_KEEP);
    RUN(shapes_have_the_repeats);
    RUN(views_that_cannot_be_are_refused);
    RUN(the_number_of_views_is_limited);
    RUN(their_packs_are_compared);
    RUN(every_allocation_may_fail);
    pen_pack_close(&pack);
    help_end();
    return TEST_END();
}
