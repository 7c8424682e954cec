/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/language/value.h"

#include <stdio.h>
#include <string.h>

#include "ops/language/decimal.h"
#include "ops/language/near.h"

static void count_allowed(int type, uint32_t *ret_min, uint32_t *ret_max)
{
    *ret_min = type == PEN_PARAM_RANGE ? 2 : 1;
    *ret_max = 1;
    if (type == PEN_PARAM_FLOATS)
        *ret_max = PEN_MAX_FLOATS;
    else if (type == PEN_PARAM_INTS || type == PEN_PARAM_WEIGHTS || type == PEN_PARAM_NUMBERS)
        *ret_max = PEN_MAX_NUMBERS;
    else if (type != PEN_PARAM_INT && type != PEN_PARAM_FLOAT && type != PEN_PARAM_WORD &&
             type != PEN_PARAM_NAME)
        *ret_max = 2;
}

static int check_count(const PenOp *op, const PenParam *param, const PenWords *words,
                       PenError *reterr)
{
    uint32_t min, max;
    char range[32];
    count_allowed(param->type, &min, &max);
    if (words->n >= min && words->n <= max)
        return PEN_OK;
    snprintf(range, sizeof range, min == max ? "%u" : max == 2 ? "%u or %u" : "%u to %u", min, max);
    return pen__spec_fail(reterr, words->token[0].column, "%s: %s: expected %s value%s, found %s%u",
                          op->name, param->name, range, max == 1 ? "" : "s",
                          words->n == PEN_MAX_NUMBERS + 1 ? "more than " : "",
                          PEN_MIN(words->n, (uint32_t)PEN_MAX_NUMBERS));
}

static int read_word(const PenOp *op, const PenParam *param, const PenToken *t, PenParamValue *v,
                     PenError *reterr)
{
    char text[PEN_TOKEN_TEXT], hint[200];
    int i = pen__word_find(param->words, t->text, t->bytes);
    if (i < 0 || t->kind != PEN_TOKEN_WORD) {
        PenNear near = {.typed = t->text, .bytes = t->bytes};
        pen__near_offer_list(&near, param->words);
        pen__near_text(&near, param->words, hint, sizeof hint);
        return pen__spec_fail(reterr, t->column, "%s: no %s %s%s", op->name, param->name,
                              pen__token_text(t, text), hint);
    }
    v->word = (uint32_t)i;
    return PEN_OK;
}

/* A word of the parameter is a name when it is quoted. */
static int read_name(const PenOp *op, const PenParam *param, const PenToken *t, PenParamValue *v,
                     PenError *reterr)
{
    char text[PEN_TOKEN_TEXT];
    int i = t->kind == PEN_TOKEN_WORD && param->words
                ? pen__word_find(param->words, t->text, t->bytes)
                : -1;
    if (i >= 0) {
        v->word = (uint32_t)i;
        return PEN_OK;
    }
    if (t->bytes < 1 || t->bytes > PEN_MAX_NAME)
        return pen__spec_fail(reterr, t->column,
                              "%s: %s: expected a name of 1 to %d bytes, found %s", op->name,
                              param->name, PEN_MAX_NAME, pen__token_text(t, text));
    memcpy(v->name, t->text, t->bytes);
    v->name[t->bytes] = '\0';
    return PEN_OK;
}

static int is_whole_type(int type)
{
    return type == PEN_PARAM_INT || type == PEN_PARAM_SIZE || type == PEN_PARAM_SIDES ||
           type == PEN_PARAM_INTS;
}

static int fail_range(const PenOp *op, const PenParam *param, const PenToken *t, PenError *reterr)
{
    char text[PEN_TOKEN_TEXT], low[PEN_DECIMAL_TEXT], high[PEN_DECIMAL_TEXT];
    pen__decimal_write(param->min, low);
    pen__decimal_write(param->max, high);
    return pen__spec_fail(reterr, t->column, "%s: %s: expected %s to %s, found %s", op->name,
                          param->name, low, high, pen__token_text(t, text));
}

static int read_number(const PenOp *op, const PenParam *param, const PenToken *t, double *ret,
                       PenError *reterr)
{
    char text[PEN_TOKEN_TEXT];
    double v = 0;
    if (t->kind != PEN_TOKEN_WORD || pen__decimal_parse(t->text, t->bytes, &v) < 0)
        return pen__spec_fail(reterr, t->column, "%s: %s: expected a number, found %s", op->name,
                              param->name, pen__token_text(t, text));
    if (!(v >= param->min && v <= param->max))
        return fail_range(op, param, t, reterr);
    if (is_whole_type(param->type) && v != (double)(int64_t)v)
        return pen__spec_fail(reterr, t->column, "%s: %s: expected an integer, found %s", op->name,
                              param->name, pen__token_text(t, text));
    *ret = v;
    return PEN_OK;
}

/* One number that stands for two. */
static int spread(const PenOp *op, const PenParam *param, const PenToken *t, PenParamValue *v,
                  PenError *reterr)
{
    double x = v->v[0];
    if (param->type == PEN_PARAM_SIZE || param->type == PEN_PARAM_DRAWN) {
        v->v[1] = x;
        v->n = 2;
    } else if (param->type == PEN_PARAM_FACTOR) {
        double middle = param->min < 0 ? 0 : 1;
        if (x < 0 || middle + x > param->max)
            return fail_range(op, param, t, reterr);
        v->v[0] = PEN_MAX(middle - x, param->min) + 0.0;
        v->v[1] = middle + x;
        v->n = 2;
    }
    return PEN_OK;
}

int pen__value_read(const PenOp *op, const PenParam *param, const PenWords *words,
                    PenParamValue *ret, PenError *reterr)
{
    PenParamValue v = {.n = 0};
    int is_name = param->type == PEN_PARAM_NAME;
    int is_word = param->type == PEN_PARAM_WORD ||
                  (param->words && words->n == 1 && !pen__token_is_number(&words->token[0]));
    int r = check_count(op, param, words, reterr);
    if (r == PEN_OK && is_name)
        r = read_name(op, param, &words->token[0], &v, reterr);
    else if (r == PEN_OK && is_word)
        r = read_word(op, param, &words->token[0], &v, reterr);
    for (uint32_t i = 0; r == PEN_OK && !is_name && !is_word && i < words->n; i++) {
        r = read_number(op, param, &words->token[i], &v.v[i], reterr);
        v.n = i + 1;
    }
    if (r == PEN_OK && v.n == 1)
        r = spread(op, param, &words->token[0], &v, reterr);
    if (r < 0)
        return r;
    int is_range = param->type == PEN_PARAM_RANGE || param->type == PEN_PARAM_FACTOR ||
                   param->type == PEN_PARAM_DRAWN;
    if (is_range && v.v[0] > v.v[1])
        return pen__spec_fail(reterr, words->token[0].column,
                              "%s: %s: expected the lower number first", op->name, param->name);
    *ret = v;
    return PEN_OK;
}

int pen__value_initial(const PenOp *op, const PenParam *param, PenParamValue *ret, PenError *reterr)
{
    PenLexer lexer = {.at = param->initial, .column = 1};
    PenWords words = {.n = 0};
    PenToken t;
    int r;
    while ((r = pen__lex_next(&lexer, &t, reterr)) == PEN_OK && t.kind != PEN_TOKEN_END)
        if (t.kind == PEN_TOKEN_WORD && words.n < PEN_MAX_NUMBERS)
            words.token[words.n++] = t;
    return r < 0 ? r : pen__value_read(op, param, &words, ret, reterr);
}

static int write_name(const PenParam *param, const char *name, PenBuf *out)
{
    size_t n = strlen(name);
    int is_word = param->words && pen__word_find(param->words, name, n) >= 0;
    int quoted = is_word || pen__name_needs_quotes(name);
    int r = quoted ? pen__buf_add(out, "\"", 1) : PEN_OK;
    if (r == PEN_OK)
        r = pen__buf_add(out, name, n);
    return r == PEN_OK && quoted ? pen__buf_add(out, "\"", 1) : r;
}

int pen__value_write(const PenParam *param, const PenParamValue *v, PenBuf *out)
{
    char text[PEN_DECIMAL_TEXT];
    size_t n;
    int r = PEN_OK;
    if (param->type == PEN_PARAM_NAME && v->name[0])
        return write_name(param, v->name, out);
    if (param->words && v->n == 0) {
        const char *word = pen__word_at(param->words, v->word, &n);
        return word ? pen__buf_add(out, word, n) : PEN_E_INVALID;
    }
    for (uint32_t i = 0; r == PEN_OK && i < v->n; i++) {
        pen__decimal_write(v->v[i], text);
        r = i ? pen__buf_add(out, ",", 1) : PEN_OK;
        if (r == PEN_OK)
            r = pen__buf_add(out, text, strlen(text));
    }
    return r;
}
