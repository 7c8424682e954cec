/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a pipeline. What is accepted is written in full, reads the same again, and makes
 * programs that make sample plans whose regions lie in their image, or errors. */
#include <stdlib.h>
#include <string.h>

#include "help.h"
#include "ops/pipeline/bucket.h"
#include "ops/pipeline/follow.h"
#include "ops/pipeline/list.h"
#include "ops/run/program.h"

static void same_texts(const char *a, const char *b)
{
    REQUIRE(!a == !b && (!a || strcmp(a, b) == 0));
}

static void same_specs(const PenSpec *a, const PenSpec *b)
{
    REQUIRE(a->n_fields == b->n_fields);
    for (uint32_t i = 0; i < a->n_fields; i++) {
        const PenSpecField *f = &a->fields[i], *g = &b->fields[i];
        REQUIRE(f->n_ops == g->n_ops);
        same_texts(f->name, g->name);
        same_texts(f->source, g->source);
        same_texts(f->of, g->of);
        REQUIRE((!f->source || f->name) && (!f->of || f->source));
        for (uint32_t k = 0; k < f->n_ops; k++) {
            REQUIRE(f->ops[k].op == g->ops[k].op);
            REQUIRE(f->ops[k].inside == g->ops[k].inside && f->ops[k].inside < f->n_ops - k &&
                    f->ops[k].bracket == g->ops[k].bracket);
            for (uint32_t v = 0; v < f->ops[k].op->n_params; v++) {
                const PenParamValue *x = &f->ops[k].values[v], *y = &g->ops[k].values[v];
                REQUIRE(x->n == y->n && x->word == y->word);
                for (uint32_t n = 0; n < x->n; n++)
                    REQUIRE(x->v[n] == y->v[n]);
                if (f->ops[k].op->params[v].type == PEN_PARAM_NAME)
                    same_texts(x->name, y->name);
            }
        }
    }
}

static uint32_t check_warp(const PenWarp *w)
{
    REQUIRE(w->window.w && w->window.h && w->held.w && w->held.h);
    REQUIRE(w->window.x + w->window.w <= w->width && w->window.y + w->window.h <= w->height);
    REQUIRE(w->held.x + w->held.w <= w->from_width && w->held.y + w->held.h <= w->from_height);
    return w->window.w;
}

static void check_recipe(const PenSamplePlan *r, const PenProgram *p)
{
    PenTensor t = pen__program_result(p);
    REQUIRE(pen__program_bytes(p) % pen__program_repeats(p) == 0);
    int64_t w = t.shape[t.n_dims - (t.channels_last ? 2 : 1)];
    uint32_t width = 0;
    REQUIRE(r->n_steps >= 1 && r->n_steps <= PEN_MAX_STEPS && r->n_erase <= PEN_MAX_ERASE);
    REQUIRE(r->steps[0].kind == PEN_STEP_PASS);
    REQUIRE(r->region.w && r->region.h && r->shrink <= PEN_SHRINK_MOST &&
            r->region.x + r->region.w <= pen__shrunk_side(r->shape.width, r->shrink) &&
            r->region.y + r->region.h <= pen__shrunk_side(r->shape.height, r->shrink));
    for (uint32_t i = 0; i < r->n_steps; i++) {
        PenResize resize;
        PenBox place;
        if (r->steps[i].kind == PEN_STEP_WARP)
            width = check_warp(&r->steps[i].u.warp);
        if (r->steps[i].kind != PEN_STEP_PASS)
            continue;
        const PenPass *pass = &r->steps[i].u.pass;
        width = pass->w;
        if (pen__pass_view(pass, 3, &resize, &place))
            REQUIRE(pen__resize_check(&resize, NULL) == PEN_OK && place.x + place.w <= pass->w &&
                    place.y + place.h <= pass->h);
    }
    PenSizesRule rule;
    bool differs = pen__program_sizes(p, &rule);
    PenPatches patches;
    if (pen__program_patches(p, &patches))
        REQUIRE(r->width % patches.side == 0 && r->height % patches.side == 0 &&
                (uint64_t)(r->width / patches.side) * (r->height / patches.side) <= patches.length);
    else
        REQUIRE(differs ? w == -1 : w == r->width);
    REQUIRE(width == r->width && r->width && r->height);
    if (differs)
        REQUIRE((uint64_t)r->width * r->height * rule.channels * rule.element <=
                pen__program_bytes(p));
}

static void try_field(const PenSpecField *f, int32_t kind, uint32_t width, uint32_t height)
{
    static PenSamplePlan sample_plan;
    PenError err;
    PenProgram *p = NULL;
    PenFieldKind field = {.kind = kind, .dtype = PEN_F64};
    if (!GOES(pen__program_new(f, &field, &p, &err)))
        return;
    REQUIRE(pen__program_bytes(p) > 0);
    for (uint64_t i = 0; kind != PEN_KIND_NUMBER && i < 3; i++) {
        PenImageShape shape = {width, height, (uint8_t)(1 + i * 3), i % 2 == 0};
        PenClipShape clip = {.views = 1};
        pen__program_clip(p, &clip);
        uint32_t view = PEN_MAX(clip.views, pen__program_repeats(p)) - 1;
        if (GOES(pen__sample_plan_make_view(p, &shape, pen__draw_key(width, height), i, view,
                                            &sample_plan, &err)))
            check_recipe(&sample_plan, p);
    }
    pen__program_free(&p);
}

/* Sizes that are those of a bucket, and lengths of a step, become numbers, and the field is as any
 * other. */
static void try_bucket(const PenSpecField *f)
{
    PenError err;
    PenSpecField with_size = *f;
    if (!pen__bucket_used(f))
        return;
    PenBatchShape shape = {.height = 48, .width = 80, .length = 30};
    MUST(pen__bucket_resolve(f, &shape, &with_size.ops, &err));
    REQUIRE(!pen__bucket_used(&with_size));
    for (int32_t kind = PEN_KIND_IMAGE; kind <= PEN_KIND_CLIP; kind++)
        try_field(&with_size, kind, 500, 375);
    pen__free(with_size.ops);
}

static void try_rows(const PenSpecField *f)
{
    PenError err;
    PenRaggedRule ragged;
    PenFollowSpec follow = pen__follow_spec(f);
    if (GOES(pen__ragged_rule(f, &ragged, &err)))
        REQUIRE(ragged.max_rows >= 1 && f->n_ops - follow.n_ops <= 1);
    for (int i = 0; follow.moves && i <= PEN_COORDS_POINTS; i++) {
        PenFollowRule rule = {.stored = (PenCoordinates)i, .points = 1};
        if (GOES(pen__follow_rule(&follow, "boxes", &rule, &err)))
            REQUIRE(i && rule.wanted >= 1 && rule.min_visibility <= 1 &&
                    (rule.drop || !pen__follow_wants_kept(follow.moves)));
    }
}

static void try_list(const PenSpecField *f)
{
    PenError err;
    uint64_t most = 0;
    try_rows(f);
    if (GOES(pen__list_check(f, "text", &most, &err)))
        REQUIRE(pen__list_kind(f) && f->n_ops == 1 && most >= 1 && most <= 1 << 30);
    PenRaggedRule rule;
    if (GOES(pen__ragged_rule(f, &rule, &err)))
        REQUIRE(f->n_ops - pen__follow_spec(f).n_ops <= 1 && rule.max_rows >= 1 &&
                rule.max_rows <= 1 << 24 && !most);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    PenError err;
    PenSpec a = {0}, b = {0};
    PenBuf out = {0};
    char *text = malloc(bytes + 1);
    REQUIRE(text);
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    if (GOES(pen__spec_parse(text, &a, &err))) {
        REQUIRE(pen__spec_write(&a, &out) == PEN_OK && pen__buf_add(&out, "", 1) == PEN_OK);
        MUST(pen__spec_parse((const char *)out.data, &b, &err));
        same_specs(&a, &b);
        for (uint32_t i = 0; i < a.n_fields; i++) {
            try_list(&a.fields[i]);
            try_bucket(&a.fields[i]);
            for (int32_t kind = PEN_KIND_IMAGE; kind <= PEN_KIND_CLIP; kind++) {
                try_field(&a.fields[i], kind, 500, 375);
                try_field(&a.fields[i], kind, 3, 1000);
            }
        }
    }
    pen__spec_free(&a);
    pen__spec_free(&b);
    pen__buf_free(&out);
    free(text);
    return 0;
}
