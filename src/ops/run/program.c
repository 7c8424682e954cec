/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/run/program.h"

#include <stdbool.h>
#include <string.h>

#include "ops/language/lex.h"
#include "ops/pipeline/bucket.h"
#include "ops/run/program_impl.h"

static const char where[] = "ops/program";

/* What is known of the pipeline while its operations are gone through. */
typedef struct Check {
    const PenSpecField *spec;
    PenProgram *p;
    PenSize size;
    const PenSpecOp *normalize, *tensor, *repeat, *pad, *mix, *patches;
    const PenSpecOp *several; /* that makes several results of one image by itself */
    uint32_t steps, n_erase;
    uint32_t inside; /* so many operations are still in brackets */
    PenError *reterr;
} Check;

static const char *field_noun(const Check *c)
{
    int kind = c->p->kind.kind;
    return kind == PEN_KIND_MASK ? "a mask" : kind == PEN_KIND_CLIP ? "a clip" : "an image";
}

static int check_repeat(Check *c, const PenSpecOp *op)
{
    uint32_t n = (uint32_t)op->values[0].v[0];
    if (c->p->kind.kind == PEN_KIND_CLIP)
        return pen__spec_fail(c->reterr, op->column,
                              "repeat: the field holds a clip; for several clips of a sample use "
                              "'clip n=%u'",
                              n);
    c->repeat = op;
    c->p->repeats = n;
    return PEN_OK;
}

static int check_pad(Check *c, const PenSpecOp *op)
{
    c->pad = op;
    c->p->pads = (uint32_t)op->values[0].v[0];
    return PEN_OK;
}

/* mixup and cutmix, and what follows them. */
static int check_mix(Check *c, const PenSpecOp *op)
{
    int does = pen__op_work(op->op)->does;
    const char *mix = c->mix ? c->mix->op->name : op->op->name;
    if (c->repeat || does == PEN_DOES_REPEAT)
        return pen__spec_fail(c->reterr, op->column,
                              "%s: repeat returns several results per image; use several views, "
                              "each with %s",
                              mix, mix);
    if (c->pad || does == PEN_DOES_PAD)
        return pen__spec_fail(c->reterr, op->column,
                              "%s: images of different sizes cannot be mixed; replace pad_batch by "
                              "'center_crop H,W' or 'resize H,W'",
                              mix);
    if (does != PEN_DOES_MIX)
        return pen__spec_fail(c->reterr, op->column,
                              "%s after %s: mixup and cutmix must be the last operations; move %s "
                              "before them",
                              op->op->name, mix, op->op->name);
    c->mix = op;
    return pen__program_set_mix(c->p, op, c->reterr);
}

static int check_order(Check *c, const PenSpecOp *op, uint32_t i)
{
    int does = pen__op_work(op->op)->does;
    const char *name = op->op->name;
    if (does == PEN_DOES_LIST || does == PEN_DOES_FOLLOW || does == PEN_DOES_CLASSES)
        return pen__spec_fail(c->reterr, op->column, "%s cannot be applied to %s", name,
                              field_noun(c));
    if (i == 0 && does != PEN_DOES_DECODE)
        return pen__spec_fail(c->reterr, op->column, "%s: %s must be decoded first: 'decode | %s'",
                              name, field_noun(c), name);
    if (i > 0 && does == PEN_DOES_DECODE)
        return pen__spec_fail(c->reterr, op->column, "decode is given twice");
    if (i > 1 && does == PEN_DOES_SELECT)
        return pen__spec_fail(c->reterr, op->column,
                              "clip must directly follow decode: 'decode | clip ...'");
    if (does == PEN_DOES_MIX || c->mix)
        return check_mix(c, op);
    if (c->repeat)
        return pen__spec_fail(c->reterr, op->column,
                              "%s after repeat: repeat must be the last operation; move it behind "
                              "%s",
                              name, name);
    if (c->pad)
        return pen__spec_fail(c->reterr, op->column,
                              "%s after pad_batch: pad_batch must be the last operation; move it "
                              "behind %s",
                              name, name);
    if (does == PEN_DOES_REPEAT)
        return check_repeat(c, op);
    if (does == PEN_DOES_PAD)
        return check_pad(c, op);
    if (c->tensor)
        return pen__spec_fail(c->reterr, op->column,
                              "%s after tensor: only repeat, pad_batch, mixup and cutmix can "
                              "follow; move it before tensor",
                              name);
    if (c->normalize && does != PEN_DOES_ERASE && does != PEN_DOES_STORE)
        return pen__spec_fail(c->reterr, op->column,
                              "%s after normalize: only random_erasing and tensor can follow; move "
                              "it before normalize",
                              name);
    return PEN_OK;
}

static uint32_t crops_of(uint32_t op)
{
    return op == PEN_OP_three_crop  ? 3
           : op == PEN_OP_five_crop ? 5
           : op == PEN_OP_ten_crop  ? 10
                                    : 0;
}

/* Those that make several results of one image or clip. */
static int check_crops(Check *c, const PenSpecOp *op)
{
    uint32_t crops = crops_of(pen__op_number(op->op));
    bool is_clip = c->p->kind.kind == PEN_KIND_CLIP;
    if (!crops)
        return PEN_OK;
    if (is_clip && crops > 3)
        return pen__spec_fail(c->reterr, op->column, "%s: the field holds a clip; use three_crop",
                              op->op->name);
    if (c->p->clip_shape.crops)
        return pen__spec_fail(c->reterr, op->column,
                              "%s: only one of three_crop, five_crop and "
                              "ten_crop can be used, once",
                              op->op->name);
    c->p->clip_shape.crops = crops;
    c->several = is_clip ? NULL : op;
    return PEN_OK;
}

/* Results of one image: each of the repeats in all of the crops. */
static int count_results(Check *c)
{
    PenProgram *p = c->p;
    if (!c->several)
        return PEN_OK;
    p->repeats = PEN_MAX(p->repeats, 1u) * p->clip_shape.crops;
    if (p->repeats > PEN_MAX_REPEATS)
        return pen__spec_fail(c->reterr, c->several->column,
                              "repeat: %u results of one image; at most %d are allowed", p->repeats,
                              PEN_MAX_REPEATS);
    return PEN_OK;
}

/* What is of clips alone, and what clips need. */
static int check_clip(Check *c, const PenSpecOp *op, uint32_t i)
{
    uint32_t number = pen__op_number(op->op);
    bool is_clip = c->p->kind.kind == PEN_KIND_CLIP;
    if (!is_clip && (number == PEN_OP_clip || number == PEN_OP_three_crop))
        return pen__spec_fail(c->reterr, op->column, "%s: the field holds %s, not a clip",
                              op->op->name, field_noun(c));
    if (is_clip && i == 1 && number != PEN_OP_clip)
        return pen__spec_fail(c->reterr, op->column,
                              "%s: select frames of the clip first: 'decode | clip 16 | %s'",
                              op->op->name, op->op->name);
    return check_crops(c, op);
}

/* One number for all channels, or one for each. */
static int check_channels(Check *c, const PenSpecOp *op, uint32_t param)
{
    uint32_t n = op->values[param].n;
    if (n == 1 || n == c->p->channels)
        return PEN_OK;
    return pen__spec_fail(
        c->reterr, op->column,
        "%s: %s has %u numbers for %u channel%s; pass one, or one for each channel", op->op->name,
        op->op->params[param].name, n, c->p->channels, c->p->channels == 1 ? "" : "s");
}

static int check_fill(Check *c, const PenSpecOp *op)
{
    int r = PEN_OK;
    for (uint32_t i = 0; r == PEN_OK && i < op->op->n_params; i++)
        if (strcmp(op->op->params[i].name, "fill") == 0)
            r = check_channels(c, op, i);
    return r;
}

/* Colours in the brackets of a composition that does more leave masks as they are. */
static int check_colour(Check *c, const PenSpecOp *op)
{
    int does = pen__op_work(op->op)->does;
    bool is_mask = c->p->kind.kind == PEN_KIND_MASK;
    if (does != PEN_DOES_NORMALIZE && does != PEN_DOES_POLICY && !pen__compose_is_colour(op))
        return PEN_OK;
    if (is_mask && does != PEN_DOES_POLICY && !c->inside)
        return pen__spec_fail(c->reterr, op->column,
                              "%s: a mask holds class numbers, not colors; remove this operation",
                              op->op->name);
    if ((does == PEN_DOES_COLOUR || does == PEN_DOES_POLICY) && c->p->colour == PEN_COLOUR_GREY)
        return pen__spec_fail(c->reterr, op->column,
                              "%s needs colors, but 'decode gray' removes them; use 'decode rgb'",
                              op->op->name);
    return PEN_OK;
}

static int check_erase(Check *c, const PenSpecOp *op)
{
    const PenParamValue *value = &op->values[3];
    int r = check_channels(c, op, 3);
    if (r < 0)
        return r;
    if (c->normalize) {
        if (++c->n_erase > PEN_MAX_ERASE)
            return pen__spec_fail(c->reterr, op->column,
                                  "more than %d random_erasing after normalize", PEN_MAX_ERASE);
        return PEN_OK;
    }
    for (uint32_t i = 0; i < value->n; i++)
        if (value->v[i] < 0 || value->v[i] > 255 || value->v[i] != (double)(int)value->v[i])
            return pen__spec_fail(c->reterr, op->column,
                                  "random_erasing: value: expected integers from 0 to 255; "
                                  "for other values, move it after normalize");
    return PEN_OK;
}

static int check_bucket(Check *c, const PenSpecOp *op)
{
    const PenParam *param = pen__bucket_param(op);
    if (!param)
        return PEN_OK;
    return pen__spec_fail(c->reterr, op->column,
                          "%s: %s is 'bucket', but there are no buckets; pass buckets= to the "
                          "loader, or height,width",
                          op->op->name, param->name);
}

/* Whatever changes the size comes before them: patches are all of one size. */
static int check_patches(Check *c, const PenSpecOp *op)
{
    if (c->patches && pen__op_work(op->op)->size)
        return pen__spec_fail(c->reterr, op->column,
                              "%s after patches: the patches would not fit; move it before patches",
                              op->op->name);
    if (pen__op_number(op->op) != PEN_OP_patches)
        return PEN_OK;
    if (c->p->kind.kind == PEN_KIND_CLIP)
        return pen__spec_fail(c->reterr, op->column,
                              "patches: the field holds a clip; expected an image or a mask");
    if (pen__patches_by_step(op->op, op->values))
        return pen__spec_fail(c->reterr, op->column,
                              "patches: length is 'tokens', but there is no token budget; pass "
                              "tokens= and lengths= to the loader, or write 'patches %u "
                              "length=256'",
                              (unsigned)op->values[0].v[0]);
    c->patches = op;
    c->p->patches = pen__patches_of(op->values);
    return PEN_OK;
}

/* What lies otherwise in a sequence of patches. */
static int check_sequence(Check *c)
{
    if (c->tensor && c->tensor->values[1].word)
        return pen__spec_fail(c->reterr, c->tensor->column,
                              "tensor: patches have their channels last; remove the layout");
    if (c->repeat || c->several)
        return pen__spec_fail(c->reterr, c->repeat ? c->repeat->column : c->several->column,
                              "%s does not work with patches; use several views",
                              c->repeat ? "repeat" : c->several->op->name);
    if (c->mix)
        return pen__spec_fail(c->reterr, c->mix->column,
                              "%s does not work with patches; mix in the training loop",
                              c->mix->op->name);
    if (c->pad)
        return pen__spec_fail(c->reterr, c->pad->column,
                              "pad_batch: patches are padded to their length; remove it");
    return PEN_OK;
}

static int check_op(Check *c, const PenSpecOp *op, uint32_t i)
{
    const PenOpWork *work = pen__op_work(op->op);
    int r = check_order(c, op, i);
    if (r == PEN_OK)
        r = check_bucket(c, op);
    if (r == PEN_OK)
        r = check_clip(c, op, i);
    if (r == PEN_OK)
        r = check_patches(c, op);
    if (r == PEN_OK)
        r = check_colour(c, op);
    if (r == PEN_OK)
        r = check_fill(c, op);
    if (r == PEN_OK && work->does == PEN_DOES_SELECT)
        r = pen__program_set_clip(c->p, op, c->reterr);
    if (r == PEN_OK && work->does == PEN_DOES_ERASE)
        r = check_erase(c, op);
    for (uint32_t k = 0; r == PEN_OK && work->does == PEN_DOES_NORMALIZE && k < 2; k++)
        r = check_channels(c, op, k);
    c->steps += c->inside ? 0 : pen__compose_steps(op);
    c->inside = c->inside ? c->inside - 1 : op->inside;
    if (r == PEN_OK && c->steps > PEN_MAX_STEPS)
        return pen__spec_fail(c->reterr, op->column,
                              "%s: too many operations for one image: more than %d steps",
                              op->op->name, PEN_MAX_STEPS);
    if (r == PEN_OK && work->size)
        work->size(op->values, &c->size);
    if (work->does == PEN_DOES_NORMALIZE)
        c->normalize = op;
    if (work->does == PEN_DOES_STORE)
        c->tensor = op;
    return r;
}

/* The operation that comes last, for mistakes that lie in what is missing. */
static uint32_t last_column(const Check *c)
{
    return c->spec->n_ops ? c->spec->ops[c->spec->n_ops - 1].column : c->spec->column;
}

static int fail_dtype(Check *c, int dtype, const char *what, const char *expected)
{
    return pen__spec_fail(c->reterr, c->tensor ? c->tensor->column : last_column(c),
                          "tensor: %s cannot be %s; expected %s", what, pen_dtype_name(dtype),
                          expected);
}

static int choose_dtype(Check *c)
{
    int dtype = c->tensor ? (int)c->tensor->values[0].word : 0;
    dtype = dtype ? dtype : PEN_U8;
    if (c->p->kind.kind == PEN_KIND_MASK && dtype != PEN_U8 && dtype != PEN_I64)
        return fail_dtype(c, dtype, "a mask", "u8 or i64");
    if (c->p->kind.kind != PEN_KIND_MASK && dtype > PEN_F32)
        return fail_dtype(c, dtype, field_noun(c), "u8, f16, bf16 or f32");
    if (c->normalize && dtype == PEN_U8)
        return fail_dtype(c, dtype, "a normalized image", "f32, f16 or bf16");
    return dtype;
}

static void set_tensor(PenProgram *p, int dtype, uint32_t n_dims, const int64_t *dims)
{
    p->tensor = (PenTensor){.dtype = dtype, .n_dims = n_dims};
    p->elements = 1;
    for (uint32_t i = 0; i < n_dims; i++) {
        p->tensor.shape[i] = dims[i];
        p->elements *= (uint64_t)dims[i];
    }
    p->bytes = p->elements * pen_dtype_bytes(dtype);
}

static void set_shape(Check *c, int dtype)
{
    PenProgram *p = c->p;
    p->width = c->size.width;
    p->height = c->size.height;
    int64_t w = p->width, h = p->height, n = p->channels;
    if (!w)
        w = h = -1;
    uint32_t layout = c->tensor ? c->tensor->values[1].word : 0;
    if (c->patches) {
        int64_t side = p->patches.side;
        set_tensor(p, dtype, 2, (int64_t[]){p->patches.length, side * side * n});
    } else if (p->kind.kind == PEN_KIND_CLIP) {
        PenTensor one = pen__program_clip_tensor(p, layout);
        set_tensor(p, dtype, one.n_dims, one.shape);
        p->tensor.channels_last = one.channels_last;
    } else if (p->kind.kind == PEN_KIND_MASK) {
        set_tensor(p, dtype, 2, (int64_t[]){h, w});
    } else if (layout) {
        p->planes = 1;
        p->plane = (uint64_t)p->width * p->height;
        set_tensor(p, dtype, 3, (int64_t[]){n, h, w});
    } else {
        set_tensor(p, dtype, 3, (int64_t[]){h, w, n});
        p->tensor.channels_last = 1;
    }
}

/* Results of different sizes. A padded one can be as large as a square of the longest side. */
static void set_bounds(Check *c)
{
    PenProgram *p = c->p;
    uint64_t a = c->size.most_short, b = c->size.most_long;
    if (p->width)
        return;
    p->most = c->size;
    if (c->patches)
        return;
    if (p->pads)
        a = b = (b + p->pads - 1) / p->pads * p->pads;
    p->bytes = a * b * p->channels * pen_dtype_bytes(p->tensor.dtype);
}

/* The results of one image lie one after another. */
static void add_repeats(PenProgram *p)
{
    PenTensor one = p->tensor;
    int64_t dims[PEN_TENSOR_DIMS] = {p->repeats};
    if (!p->repeats)
        return;
    memcpy(dims + 1, one.shape, one.n_dims * sizeof *dims);
    set_tensor(p, one.dtype, one.n_dims + 1, dims);
    p->tensor.channels_last = one.channels_last;
}

static void spread(const PenParamValue *v, float sign, float ret[4])
{
    for (uint32_t i = 0; i < 4; i++)
        ret[i] = sign * (float)v->v[v->n == 1 ? 0 : i];
}

/* A value as an element of the result: what a table whose only purpose it is gives for 0. */
static void set_elements(PenProgram *p, const PenParamValue *value, uint32_t ret[4])
{
    static const float one[4] = {1, 1, 1, 1};
    float minus[4];
    PenStoreTable *t = &p->table;
    spread(value, -1, minus);
    pen__store_table_init(t, p->tensor.dtype, p->channels, minus, one);
    for (uint32_t i = 0; i < p->channels; i++) {
        if (p->tensor.dtype == PEN_F32)
            memcpy(&ret[i], &t->f32[i][0], 4);
        else
            ret[i] = t->u16[i][0];
    }
}

static int set_pad_value(Check *c)
{
    const PenParamValue *value = &c->pad->values[1];
    double v = value->v[0];
    int dtype = c->p->tensor.dtype;
    bool is_integer = dtype == PEN_U8 || dtype == PEN_I64;
    uint32_t elements[4];
    if (is_integer && (v != (double)(int64_t)v || (dtype == PEN_U8 && (v < 0 || v > 255))))
        return pen__spec_fail(c->reterr, c->pad->column, "pad_batch: value: expected an integer%s",
                              dtype == PEN_U8 ? " from 0 to 255" : "");
    if (is_integer) {
        c->p->pad_value = (uint64_t)(int64_t)v;
        return PEN_OK;
    }
    set_elements(c->p, value, elements);
    c->p->pad_value = elements[0];
    return PEN_OK;
}

static void set_values(Check *c)
{
    PenProgram *p = c->p;
    float mean[4], std[4];
    uint32_t n = 0, i = 0;
    while (c->normalize && &c->spec->ops[i] != c->normalize)
        i++;
    for (; c->normalize && i < c->spec->n_ops; i++)
        if (pen__op_work(c->spec->ops[i].op)->does == PEN_DOES_ERASE)
            set_elements(p, &c->spec->ops[i].values[3], p->erase_value[n++]);
    if (c->normalize) {
        spread(&c->normalize->values[0], 1, mean);
        spread(&c->normalize->values[1], 1, std);
    }
    if (p->kind.kind != PEN_KIND_MASK)
        pen__store_table_init(&p->table, p->tensor.dtype, p->channels, c->normalize ? mean : NULL,
                              c->normalize ? std : NULL);
}

/* Results whose size differs from image to image. */
static int check_sizes(Check *c)
{
    if (c->p->kind.kind == PEN_KIND_CLIP)
        return pen__spec_fail(c->reterr, last_column(c),
                              "clips of different sizes do not fit into one batch; add "
                              "'center_crop H,W' or 'resize H,W'");
    if (c->mix)
        return pen__spec_fail(c->reterr, c->mix->column,
                              "%s: images of different sizes cannot be mixed; add 'center_crop "
                              "H,W' or 'resize H,W'",
                              c->mix->op->name);
    if (!c->size.most_long)
        return pen__spec_fail(c->reterr, last_column(c),
                              "the size of the images has no bound; add 'center_crop H,W' or "
                              "'resize H,W', or for images of different sizes 'resize "
                              "min_side=800 max_side=1333'");
    const PenSpecOp *several = c->repeat ? c->repeat : c->several;
    if (several)
        return pen__spec_fail(c->reterr, several->column,
                              "%s needs results of one size; add 'center_crop H,W' or 'resize "
                              "H,W', or use several views",
                              several->op->name);
    return PEN_OK;
}

static int check_size(Check *c)
{
    if (c->patches)
        return check_sequence(c);
    if (!c->size.width || !c->size.height)
        return check_sizes(c);
    if (c->size.width > PEN_SIZE_LIMIT || c->size.height > PEN_SIZE_LIMIT)
        return pen__spec_fail(
            c->reterr, last_column(c),
            "the result would have %u x %u pixels; at most %d per side are allowed", c->size.width,
            c->size.height, PEN_SIZE_LIMIT);
    if (c->pad)
        return pen__spec_fail(c->reterr, c->pad->column,
                              "pad_batch: all results have %u x %u pixels; remove it",
                              c->size.width, c->size.height);
    return PEN_OK;
}

static int check_image(Check *c)
{
    PenProgram *p = c->p;
    const PenSpecField *spec = c->spec;
    int r = PEN_OK;
    if (spec->n_ops == 0)
        return pen__spec_fail(c->reterr, spec->column,
                              "%s needs operations that start with 'decode'", field_noun(c));
    /* Where 'decode' is missing the check below says so. */
    p->colour = spec->ops[0].values[0].word ? PEN_COLOUR_GREY : PEN_COLOUR_RGB;
    p->channels = p->colour == PEN_COLOUR_RGB ? 3 : 1;
    p->shrinks = spec->ops[0].values[1].word != 0;
    if (p->kind.kind == PEN_KIND_MASK) {
        p->colour = PEN_COLOUR_MASK;
        p->channels = 1;
        p->shrinks = 0;
    }
    c->steps = 1;
    for (uint32_t i = 0; r == PEN_OK && i < spec->n_ops; i++)
        r = check_op(c, &spec->ops[i], i);
    if (r < 0)
        return r;
    if (p->kind.kind == PEN_KIND_CLIP && spec->n_ops == 1)
        return pen__spec_fail(c->reterr, last_column(c),
                              "select frames of the clip: 'decode | clip 16 | ...'");
    if (c->tensor && c->tensor->values[1].word > 1 && p->kind.kind != PEN_KIND_CLIP)
        return pen__spec_fail(c->reterr, c->tensor->column,
                              "tensor: this layout is for clips, and the field holds %s; "
                              "expected nhwc or nchw",
                              field_noun(c));
    r = check_size(c);
    if (r == PEN_OK)
        r = count_results(c);
    if (r < 0)
        return r;
    int dtype = choose_dtype(c);
    if (dtype < 0)
        return dtype;
    set_shape(c, dtype);
    set_bounds(c);
    add_repeats(p);
    r = c->pad ? set_pad_value(c) : PEN_OK;
    set_values(c);
    return r;
}

static int set_classes(Check *c, int dtype)
{
    const PenSpecOp *op = &c->spec->ops[0];
    if (c->p->kind.dtype != PEN_I64 || c->p->kind.n_dims)
        return pen__spec_fail(
            c->reterr, op->column, "one_hot: expected a field with one class number, found %s%s",
            c->p->kind.n_dims ? "several of " : "", pen_dtype_name(c->p->kind.dtype));
    if (dtype != PEN_F16 && dtype != PEN_BF16 && dtype != PEN_F32)
        return fail_dtype(c, dtype, "a target of one_hot", "f32, f16 or bf16");
    set_tensor(c->p, dtype, 1, (int64_t[]){(int64_t)op->values[0].v[0]});
    pen__program_set_classes(c->p, op);
    return PEN_OK;
}

static int check_number(Check *c)
{
    PenProgram *p = c->p;
    int64_t dims[4];
    int dtype = p->kind.dtype;
    for (uint32_t i = 0; i < c->spec->n_ops; i++) {
        const PenSpecOp *op = &c->spec->ops[i];
        if (i == 0 && pen__op_number(op->op) == PEN_OP_one_hot)
            continue;
        if (pen__op_work(op->op)->does == PEN_DOES_CLASSES)
            return pen__spec_fail(c->reterr, op->column,
                                  "one_hot must be the first operation of its field");
        if (pen__op_work(op->op)->does != PEN_DOES_STORE)
            return pen__spec_fail(
                c->reterr, op->column,
                "%s: the field holds numbers; only one_hot and tensor can be used "
                "on them",
                op->op->name);
        if (c->tensor)
            return pen__spec_fail(c->reterr, op->column, "tensor is given twice");
        c->tensor = op;
    }
    if (c->tensor && c->tensor->values[0].word)
        dtype = (int)c->tensor->values[0].word;
    if (c->spec->n_ops && pen__op_number(c->spec->ops[0].op) == PEN_OP_one_hot)
        return set_classes(c, c->tensor ? dtype : PEN_F32);
    if (dtype != p->kind.dtype && !(p->kind.dtype == PEN_F64 && dtype == PEN_F32))
        return pen__spec_fail(
            c->reterr, c->tensor->column,
            "tensor: the field holds %s, which cannot be converted to %s; expected "
            "%s%s",
            pen_dtype_name(p->kind.dtype), pen_dtype_name(dtype), pen_dtype_name(p->kind.dtype),
            p->kind.dtype == PEN_F64 ? " or f32" : "");
    for (uint32_t i = 0; i < p->kind.n_dims; i++)
        dims[i] = p->kind.dims[i];
    set_tensor(p, dtype, p->kind.n_dims, dims);
    return PEN_OK;
}

/* The compositions that a mask has too are counted by themselves: their draws are the same in the
 * image and in the mask, which lacks those that change colours alone. */
static uint32_t draw_id_of(const PenSpecOp *op)
{
    bool moves = op->inside && pen__compose_moves(op);
    switch (moves ? pen__op_number(op->op) : PEN_N_OPS) {
#define XX(name, draw_id)                                                                          \
    case PEN_OP_##name:                                                                            \
        return draw_id;
        PEN_MOVES_MAP(XX)
#undef XX
    default:
        return pen__op_work(op->op)->draw_id;
    }
}

static void copy_ops(PenProgram *p, const PenSpecField *spec)
{
    p->n_ops = spec->n_ops;
    for (uint32_t i = 0; i < spec->n_ops; i++) {
        PenProgramOp *op = &p->ops[i];
        op->op = spec->ops[i].op;
        op->inside = spec->ops[i].inside;
        op->bracket = spec->ops[i].bracket;
        op->draw_id = draw_id_of(&spec->ops[i]);
        memcpy(op->values, spec->ops[i].values, sizeof op->values);
        for (uint32_t k = 0; k < i; k++)
            op->occurrence += p->ops[k].draw_id == op->draw_id;
    }
}

int pen__program_new(const PenSpecField *spec, const PenFieldKind *kind, PenProgram **ret,
                     PenError *reterr)
{
    PenProgram *p = pen__zalloc(sizeof *p + spec->n_ops * sizeof p->ops[0]);
    if (!p)
        return pen__fail_memory(reterr, where, "a program");
    p->kind = *kind;
    copy_ops(p, spec);
    Check c = {.spec = spec, .p = p, .reterr = reterr};
    int r = kind->kind == PEN_KIND_NUMBER ? check_number(&c) : check_image(&c);
    if (r < 0) {
        pen__free(p);
        return r;
    }
    *ret = p;
    return PEN_OK;
}

void pen__program_free(PenProgram **p)
{
    if (!p)
        return;
    pen__free(*p);
    *p = NULL;
}

PenTensor pen__program_result(const PenProgram *p)
{
    return p->tensor;
}

uint64_t pen__program_bytes(const PenProgram *p)
{
    return p->bytes;
}

bool pen__program_sizes(const PenProgram *p, PenSizesRule *ret)
{
    if (p->kind.kind == PEN_KIND_NUMBER || p->width || p->patches.side)
        return false;
    *ret = (PenSizesRule){.channels = p->channels,
                          .planes = p->planes,
                          .element = (uint32_t)pen_dtype_bytes(p->tensor.dtype),
                          .pads = p->pads,
                          .pad_value = p->pad_value};
    return true;
}

bool pen__program_patches(const PenProgram *p, PenPatches *ret)
{
    *ret = p->patches;
    return p->patches.side;
}

uint32_t pen__program_repeats(const PenProgram *p)
{
    return PEN_MAX(p->repeats, 1u);
}

int pen__program_colour(const PenProgram *p)
{
    return p->colour;
}

int pen__program_store_number(const PenProgram *p, const uint8_t *number, void *dst,
                              PenError *reterr)
{
    if (p->classes.n)
        return pen__program_store_class(p, number, dst, reterr);
    if (p->tensor.dtype == p->kind.dtype) {
        memcpy(dst, number, p->bytes);
        return PEN_OK;
    }
    for (uint64_t i = 0; i < p->elements; i++) {
        double wide;
        memcpy(&wide, number + 8 * i, 8);
        float narrow = (float)wide;
        memcpy((uint8_t *)dst + 4 * i, &narrow, 4);
    }
    return PEN_OK;
}
