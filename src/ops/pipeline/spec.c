/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline = field { ";" field }
 * field    = [ name [ "=" name [ "of" "=" name ] ] ":" ] operation { "|" operation }
 * operation = word { [ word "=" ] value { "," value } | bracket }
 * bracket  = "[" operation { "|" operation } "]"
 * A bracket is read as one only behind the name of a composition; elsewhere it is part of a word.
 */
#include "ops/pipeline/spec.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "ops/language/near.h"
#include "ops/language/value.h"
#include "ops/operations/op.h"

static const char where[] = "ops/spec";

typedef struct Parser {
    PenLexer lexer;
    PenToken now, next;
    PenLexer before; /* `next` was read */
    uint32_t depth;  /* of brackets */
    PenSpec spec;
    PenError *reterr;
} Parser;

static int advance(Parser *p)
{
    p->now = p->next;
    if (p->now.kind == PEN_TOKEN_END && p->now.text)
        return PEN_OK;
    p->before = p->lexer;
    return pen__lex_next(&p->lexer, &p->next, p->reterr);
}

/* From the next token on. */
static int set_brackets(Parser *p, int brackets)
{
    p->lexer = p->before;
    p->lexer.brackets = brackets;
    return pen__lex_next(&p->lexer, &p->next, p->reterr);
}

static int fail_expected(Parser *p, const char *what)
{
    char text[PEN_TOKEN_TEXT];
    return pen__spec_fail(p->reterr, p->now.column, "expected %s, found %s", what,
                          pen__token_text(&p->now, text));
}

/* All names of operations, or of an operation's parameters, divided by spaces. */
static void list_names(const PenOp *params_of, char *buf, size_t cap)
{
    uint32_t n;
    const PenOp *ops = pen_ops(&n);
    size_t used = 0;
    n = params_of ? params_of->n_params : n;
    buf[0] = '\0';
    for (uint32_t i = 0; i < n && used < cap; i++)
        if (!params_of || params_of->params[i].type != PEN_PARAM_OPS)
            used += (size_t)snprintf(buf + used, cap - used, "%s%s", used ? " " : "",
                                     params_of ? params_of->params[i].name : ops[i].name);
}

static int fail_name(Parser *p, const PenToken *t, const PenOp *op)
{
    char names[2000], hint[420], text[PEN_TOKEN_TEXT];
    PenNear near = {.typed = t->text, .bytes = t->bytes};
    list_names(op, names, sizeof names);
    pen__near_offer_list(&near, names);
    pen__near_text(&near, names, hint, sizeof hint);
    pen__token_text(t, text);
    if (op)
        return pen__spec_fail(p->reterr, t->column, "%s has no parameter %s%s", op->name, text,
                              hint);
    return pen__spec_fail(p->reterr, t->column, "no operation %s%s", text,
                          near.word ? hint : "; 'penstock ops' lists all operations");
}

/* "hflip(0.5)", as in Python; `value` is what follows the bracket. */
static int fail_call(Parser *p, const PenOp *op, const PenToken *t, size_t value)
{
    size_t n = 0;
    while (value + n < t->bytes && n < 48 && t->text[value + n] != ')')
        n++;
    return pen__spec_fail(p->reterr, t->column,
                          "%s: write values after the name, without parentheses: '%s%s%.*s'",
                          op->name, op->name, n ? " " : "", (int)n, t->text + value);
}

/* "random_apply[hflip]" */
static bool is_joined(const PenToken *t)
{
    const char *bracket = memchr(t->text, '[', t->bytes);
    const PenOp *op = bracket ? pen__op_find(t->text, (size_t)(bracket - t->text)) : NULL;
    return op && pen__is_composition(op);
}

static int fail_op(Parser *p, const PenToken *t)
{
    if (is_joined(t))
        return pen__spec_fail(p->reterr, t->column, "write a space before '['");
    const char *bracket = memchr(t->text, '(', t->bytes);
    size_t bytes = bracket ? (size_t)(bracket - t->text) : 0;
    const PenOp *op = bytes ? pen__op_find(t->text, bytes) : NULL;
    return op ? fail_call(p, op, t, bytes + 1) : fail_name(p, t, NULL);
}

/* Only names may be quoted. */
static int take_words(Parser *p, const PenParam *param, PenWords *ret)
{
    int quoted = param->type == PEN_PARAM_NAME;
    int r = PEN_OK;
    ret->n = 0;
    for (;;) {
        if (p->now.kind != PEN_TOKEN_WORD && !(quoted && p->now.kind == PEN_TOKEN_QUOTED))
            return fail_expected(p, quoted ? "a name" : "a value");
        if (ret->n < PEN_MAX_NUMBERS)
            ret->token[ret->n] = p->now;
        ret->n += ret->n <= PEN_MAX_NUMBERS;
        r = advance(p);
        if (r < 0 || p->now.kind != ',')
            return r;
        r = advance(p);
        if (r < 0)
            return r;
    }
}

static int fail_too_many(Parser *p, const PenOp *op, const PenToken *t)
{
    char names[200], text[PEN_TOKEN_TEXT];
    list_names(op, names, sizeof names);
    pen__token_text(t, text);
    if (!names[0])
        return pen__spec_fail(p->reterr, t->column, "%s takes no parameter, found %s", op->name,
                              text);
    return pen__spec_fail(p->reterr, t->column, "%s: unexpected value %s; its parameters are: %s",
                          op->name, text, names);
}

static int takes_numbers(const PenParam *param)
{
    return param->type != PEN_PARAM_WORD && param->type != PEN_PARAM_NAME &&
           param->type != PEN_PARAM_OPS;
}

/* The field that an operation cannot do without comes first, and needs no 'of='. */
static int is_needed_name(const PenParam *param)
{
    return param->type == PEN_PARAM_NAME && !param->initial;
}

/* A value without a name: a number is the next one that has not been given; a word belongs to the
 * parameter that knows it. */
static int find_place(Parser *p, const PenOp *op, uint32_t given, const PenToken *t,
                      uint32_t *ret_param)
{
    int is_number = t->kind == PEN_TOKEN_WORD && pen__token_is_number(t);
    char hint[200], text[PEN_TOKEN_TEXT], words[200] = "";
    PenNear near = {.typed = t->text, .bytes = t->bytes};
    if (t->text[0] == '(')
        return fail_call(p, op, t, 1);
    if (pen__is_composition(op) && pen__op_find(t->text, t->bytes))
        return pen__spec_fail(p->reterr, t->column,
                              "%s: put its operations in brackets: '%s [%.*s]'", op->name, op->name,
                              (int)t->bytes, t->text);
    if (op->n_params && is_needed_name(&op->params[0]) && !(given & 1)) {
        *ret_param = 0;
        return PEN_OK;
    }
    for (uint32_t i = 0; i < op->n_params; i++) {
        const PenParam *param = &op->params[i];
        if (given >> i & 1 || !(is_number ? takes_numbers(param) : param->words != NULL))
            continue;
        if (is_number || pen__word_find(param->words, t->text, t->bytes) >= 0) {
            *ret_param = i;
            return PEN_OK;
        }
        pen__near_offer_list(&near, param->words);
        size_t used = strlen(words);
        snprintf(words + used, sizeof words - used, "%s%s", used ? " " : "", param->words);
    }
    if (is_number)
        return fail_too_many(p, op, t);
    /* Perhaps a parameter's name with its sign forgotten. */
    for (uint32_t i = 0; i < op->n_params; i++)
        if (pen__token_is(t, op->params[i].name))
            return pen__spec_fail(p->reterr, t->column, "%s: write %s=... to pass it by name",
                                  op->name, op->params[i].name);
    if (!words[0])
        return fail_too_many(p, op, t);
    pen__near_text(&near, words, hint, sizeof hint);
    return pen__spec_fail(p->reterr, t->column, "%s: unknown value %s%s", op->name,
                          pen__token_text(t, text), hint);
}

static int find_param(Parser *p, const PenOp *op, uint32_t *ret_param)
{
    for (uint32_t i = 0; i < op->n_params; i++) {
        if (op->params[i].type == PEN_PARAM_OPS || !pen__token_is(&p->now, op->params[i].name))
            continue;
        *ret_param = i;
        return PEN_OK;
    }
    return fail_name(p, &p->now, op);
}

static int parse_param(Parser *p, PenSpecOp *op, uint32_t *given)
{
    PenToken first = p->now;
    PenWords words;
    uint32_t i = 0;
    int named = p->next.kind == '=';
    int r = named ? find_param(p, op->op, &i) : find_place(p, op->op, *given, &p->now, &i);
    for (int skip = 0; r == PEN_OK && named && skip < 2; skip++)
        r = advance(p);
    if (r == PEN_OK)
        r = take_words(p, &op->op->params[i], &words);
    if (r < 0)
        return r;
    if (*given >> i & 1)
        return pen__spec_fail(p->reterr, first.column, "%s: %s is given twice", op->op->name,
                              op->op->params[i].name);
    *given |= 1u << i;
    return pen__value_read(op->op, &op->op->params[i], &words, &op->values[i], p->reterr);
}

static int check_values(Parser *p, const PenSpecOp *op)
{
    switch (pen__op_number(op->op)) {
    case PEN_OP_resize:
        return pen__check_resize(op->values, op->column, p->reterr);
    case PEN_OP_gaussian_blur:
        return pen__check_gaussian_blur(op->values, op->column, p->reterr);
    case PEN_OP_jpeg:
        return pen__check_jpeg(op->values, op->column, p->reterr);
    case PEN_OP_random_rotation:
        return pen__check_rotation(op->values, op->column, p->reterr);
    case PEN_OP_random_affine:
        return pen__check_affine(op->values, op->column, p->reterr);
    case PEN_OP_rand_augment:
        return pen__check_rand_augment(op->values, op->column, p->reterr);
    case PEN_OP_pad:
        return pen__check_pad(op->values, op->column, p->reterr);
    default:
        return PEN_OK;
    }
}

static int fill_in(Parser *p, PenSpecOp *op, uint32_t given)
{
    int r = PEN_OK;
    for (uint32_t i = 0; r == PEN_OK && i < op->op->n_params; i++) {
        const PenParam *param = &op->op->params[i];
        if (given >> i & 1)
            continue;
        if (!param->initial)
            return pen__spec_fail(p->reterr, op->column, "%s needs %s: %s", op->op->name,
                                  param->name, param->help);
        r = pen__value_initial(op->op, param, &op->values[i], p->reterr);
    }
    return r == PEN_OK ? check_values(p, op) : r;
}

static int begins_value(const Parser *p, const PenOp *op)
{
    return p->now.kind == PEN_TOKEN_WORD ||
           (p->now.kind == PEN_TOKEN_QUOTED && op->n_params && is_needed_name(&op->params[0]));
}

static int parse_chain(Parser *p, PenSpecField *f, uint32_t bracket);

/* Of the composition at place `at`; it may move when operations are added. */
static int parse_bracket(Parser *p, PenSpecField *f, uint32_t at, uint32_t bracket)
{
    if (p->depth == PEN_MAX_NESTING)
        return pen__spec_fail(p->reterr, p->now.column, "more than %d brackets inside each other",
                              PEN_MAX_NESTING);
    p->depth++;
    int r = advance(p);
    if (r == PEN_OK)
        r = parse_chain(p, f, bracket);
    p->depth--;
    f->ops[at].inside = f->n_ops - at - 1;
    return r < 0 ? r : advance(p);
}

static int fail_end(Parser *p, const PenOp *op)
{
    if (pen__is_composition(op))
        return fail_expected(p, p->depth ? "a value, '[', '|' or ']'"
                                         : "a value, '[', '|', ';' or the end");
    return fail_expected(p, p->depth ? "a value, '|' or ']'" : "a value, '|', ';' or the end");
}

static bool is_end(const Parser *p)
{
    int kind = p->now.kind;
    return kind == '|' || (p->depth ? kind == ']' : kind == ';' || kind == PEN_TOKEN_END);
}

/* What follows the name of the operation at place `at`. */
static int parse_rest(Parser *p, PenSpecField *f, uint32_t at)
{
    const PenOp *op = f->ops[at].op;
    bool composes = pen__is_composition(op);
    uint32_t given = 0, brackets = 0;
    int r = PEN_OK;
    while (r == PEN_OK) {
        if (composes && p->now.kind == '[')
            r = parse_bracket(p, f, at, brackets++);
        else if (begins_value(p, op))
            r = parse_param(p, &f->ops[at], &given);
        else
            break;
    }
    if (r == PEN_OK && !is_end(p))
        return fail_end(p, op);
    if (r == PEN_OK && composes) {
        f->ops[at].values[0].n = brackets;
        given |= 1;
    }
    if (r == PEN_OK)
        r = fill_in(p, &f->ops[at], given);
    return r == PEN_OK && composes ? pen__compose_check(&f->ops[at], p->reterr) : r;
}

static int parse_op(Parser *p, PenSpecField *f, uint32_t bracket)
{
    uint32_t at = f->n_ops;
    PenSpecOp *to = &f->ops[at];
    if (p->now.kind != PEN_TOKEN_WORD)
        return fail_expected(p, "an operation");
    *to = (PenSpecOp){
        .op = pen__op_find(p->now.text, p->now.bytes), .column = p->now.column, .bracket = bracket};
    if (!to->op)
        return fail_op(p, &p->now);
    f->n_ops++;
    bool outermost = !p->depth && pen__is_composition(to->op);
    int r = outermost ? set_brackets(p, 1) : PEN_OK;
    if (r == PEN_OK)
        r = advance(p);
    if (r == PEN_OK)
        r = parse_rest(p, f, at);
    return r == PEN_OK && outermost ? set_brackets(p, 0) : r;
}

static int add_op(Parser *p, PenSpecField *f, uint32_t bracket)
{
    if (f->n_ops == PEN_MAX_OPS)
        return pen__spec_fail(p->reterr, p->now.column, "more than %d operations for one field",
                              PEN_MAX_OPS);
    PenSpecOp *ops = pen__resize(f->ops, (f->n_ops + 1) * sizeof *ops);
    if (!ops)
        return pen__fail_memory(p->reterr, where, "operations");
    f->ops = ops;
    return parse_op(p, f, bracket);
}

/* operation { "|" operation } */
static int parse_chain(Parser *p, PenSpecField *f, uint32_t bracket)
{
    int r;
    while ((r = add_op(p, f, bracket)) == PEN_OK && p->now.kind == '|') {
        r = advance(p);
        if (r < 0)
            return r;
    }
    return r;
}

static bool is_name(const PenToken *t)
{
    return t->kind == PEN_TOKEN_WORD || t->kind == PEN_TOKEN_QUOTED;
}

static int take_name(Parser *p, char **ret)
{
    if (!is_name(&p->now))
        return fail_expected(p, "a name");
    *ret = pen__strndup(p->now.text, p->now.bytes);
    return *ret ? advance(p) : pen__fail_memory(p->reterr, where, "a name");
}

/* Behind the name and its '=': the field of the pack, and the view that a mask follows. */
static int take_source(Parser *p, PenSpecField *f)
{
    f->source_column = p->now.column;
    int r = take_name(p, &f->source);
    if (r == PEN_OK && pen__token_is(&p->now, "of") && p->next.kind == '=') {
        for (int skip = 0; r == PEN_OK && skip < 2; skip++)
            r = advance(p);
        f->of_column = p->now.column;
        if (r == PEN_OK)
            r = take_name(p, &f->of);
    }
    if (r == PEN_OK && p->now.kind != ':')
        return fail_expected(p, f->of ? "':'" : "':' or 'of=NAME:' after the field of the pack");
    /* A view with the name of its field is the field itself. */
    if (r == PEN_OK && !f->of && strcmp(f->source, f->name) == 0) {
        pen__free(f->source);
        f->source = NULL;
    }
    return r;
}

/* [ name [ "=" name [ "of" "=" name ] ] ":" ] */
static int take_head(Parser *p, PenSpecField *f)
{
    char text[PEN_TOKEN_TEXT];
    PenToken name = p->now;
    if (!is_name(&name) || (p->next.kind != ':' && p->next.kind != '='))
        return PEN_OK;
    int r = take_name(p, &f->name);
    for (uint32_t i = 0; r == PEN_OK && i + 1 < p->spec.n_fields; i++)
        if (p->spec.fields[i].name && strcmp(p->spec.fields[i].name, f->name) == 0)
            return pen__spec_fail(p->reterr, f->column, "field %s is given twice",
                                  pen__token_text(&name, text));
    if (r == PEN_OK && p->now.kind == '=') {
        r = advance(p);
        if (r == PEN_OK)
            r = take_source(p, f);
    }
    return r < 0 ? r : advance(p);
}

static int parse_field(Parser *p)
{
    PenSpec *s = &p->spec;
    int r = PEN_OK;
    if (s->n_fields == PEN_MAX_SPEC_FIELDS)
        return pen__spec_fail(p->reterr, p->now.column, "more than %d fields", PEN_MAX_SPEC_FIELDS);
    PenSpecField *fields = pen__resize(s->fields, (s->n_fields + 1) * sizeof *fields);
    if (!fields)
        return pen__fail_memory(p->reterr, where, "fields");
    s->fields = fields;
    PenSpecField *f = &fields[s->n_fields++];
    *f = (PenSpecField){.column = p->now.column};
    r = take_head(p, f);
    return r < 0 ? r : parse_chain(p, f, 0);
}

static int parse_all(Parser *p)
{
    int r = advance(p);
    if (r == PEN_OK)
        r = advance(p);
    while (r == PEN_OK && (r = parse_field(p)) == PEN_OK && p->now.kind == ';')
        r = advance(p);
    for (uint32_t i = 0; r == PEN_OK && p->spec.n_fields > 1 && i < p->spec.n_fields; i++)
        if (!p->spec.fields[i].name)
            return pen__spec_fail(p->reterr, p->spec.fields[i].column,
                                  "a pipeline of several fields names each field: 'image: ...'");
    return r;
}

/* What was read can be written down and read again: the limit holds for that text too. */
static int check_full_form(const PenSpec *s, PenError *reterr)
{
    PenBuf out = {.data = NULL};
    size_t bytes = 0;
    int r = pen__spec_write(s, &out);
    bytes = out.bytes;
    pen__buf_free(&out);
    if (r < 0)
        return pen__fail_memory(reterr, where, "the pipeline's full form");
    if (bytes > PEN_MAX_TEXT)
        return pen__fail(reterr, PEN_E_LIMIT, where,
                         "pipeline: with all parameters written out it has %zu bytes; the limit is "
                         "%d",
                         bytes, PEN_MAX_TEXT);
    return PEN_OK;
}

int pen__spec_parse(const char *text, PenSpec *ret, PenError *reterr)
{
    Parser p = {.lexer = {.at = text, .column = 1}, .reterr = reterr};
    size_t bytes = strnlen(text, PEN_MAX_TEXT + 1);
    if (bytes > PEN_MAX_TEXT)
        return pen__fail(reterr, PEN_E_LIMIT, where, "pipeline: longer than %d bytes",
                         PEN_MAX_TEXT);
    int r = parse_all(&p);
    if (r == PEN_OK)
        r = check_full_form(&p.spec, reterr);
    if (r < 0) {
        pen__spec_free(&p.spec);
        return r;
    }
    *ret = p.spec;
    return PEN_OK;
}

void pen__spec_free(PenSpec *s)
{
    for (uint32_t i = 0; i < s->n_fields; i++) {
        pen__free(s->fields[i].name);
        pen__free(s->fields[i].source);
        pen__free(s->fields[i].of);
        pen__free(s->fields[i].ops);
    }
    pen__free(s->fields);
    *s = (PenSpec){.n_fields = 0};
}

int pen_pipeline_check(const char *text, char *buf, size_t cap, size_t *ret_bytes, PenError *reterr)
{
    PenSpec spec = {.n_fields = 0};
    PenBuf out = {.data = NULL};
    if (!text)
        return pen__fail(reterr, PEN_E_INVALID, where, "pipeline: expected a text, found NULL");
    int r = pen__spec_parse(text, &spec, reterr);
    if (r < 0)
        return r;
    r = pen__spec_write(&spec, &out);
    if (r < 0) {
        r = pen__fail_memory(reterr, where, "the pipeline's full form");
        goto out;
    }
    if (buf && cap && out.data) {
        size_t n = PEN_MIN(out.bytes, cap - 1);
        memcpy(buf, out.data, n);
        buf[n] = '\0';
    }
    if (ret_bytes)
        *ret_bytes = out.bytes;
out:
    pen__spec_free(&spec);
    pen__buf_free(&out);
    return r;
}
