/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <string.h>

#include "base/attr.h"

#include "ops/language/lex.h"
#include "ops/language/value.h"
#include "ops/pipeline/spec.h"

static int add_text(PenBuf *out, const char *text)
{
    return pen__buf_add(out, text, strlen(text));
}

/* The full text is part of a saved state, and a state of an earlier build lacks parameters that
 * came later: these are written only where they are not at their initial value. */
static bool is_left_out(const PenSpecOp *op, uint32_t param)
{
    static const struct {
        const char *op, *param;
    } later[] = {{"decode", "shrink"},
                 {"resize", "size"},
                 {"resize", "min_side"},
                 {"resize", "max_side"},
                 {"resize", "to_multiple_of"},
                 {"resize", "enlarge"},
                 {"clip", "at"},
                 {"ragged", "at"},
                 {"ragged", "stride"}};
    bool found = false;
    for (size_t i = 0; i < PEN_LEN(later); i++)
        found |= strcmp(later[i].op, op->op->name) == 0 &&
                 strcmp(later[i].param, op->op->params[param].name) == 0;
    return found && !op->values[param].n && !op->values[param].word;
}

static int write_brackets(const PenSpecOp *op, PenBuf *out)
{
    int r = PEN_OK;
    uint32_t bracket = UINT32_MAX;
    for (uint32_t i = 1; r == PEN_OK && i <= op->inside; i += 1 + op[i].inside) {
        bool opens = op[i].bracket != bracket;
        if (i > 1)
            r = add_text(out, opens ? "]" : " | ");
        if (r == PEN_OK && opens)
            r = add_text(out, " [");
        if (r == PEN_OK)
            r = pen__spec_write_op(&op[i], out);
        bracket = op[i].bracket;
    }
    return r == PEN_OK && op->inside ? add_text(out, "]") : r;
}

int pen__spec_write_op(const PenSpecOp *op, PenBuf *out)
{
    int r = add_text(out, op->op->name);
    for (uint32_t i = 0; r == PEN_OK && i < op->op->n_params; i++) {
        const PenParam *param = &op->op->params[i];
        if (is_left_out(op, i) || param->type == PEN_PARAM_OPS)
            continue;
        r = add_text(out, " ");
        if (r == PEN_OK)
            r = add_text(out, param->name);
        if (r == PEN_OK)
            r = add_text(out, "=");
        if (r == PEN_OK)
            r = pen__value_write(param, &op->values[i], out);
    }
    return r < 0 ? r : write_brackets(op, out);
}

static int write_name(const char *name, PenBuf *out)
{
    const char *quote = pen__name_needs_quotes(name) ? "\"" : "";
    int r = add_text(out, quote);
    if (r == PEN_OK)
        r = add_text(out, name);
    return r < 0 ? r : add_text(out, quote);
}

static int write_head(const PenSpecField *f, PenBuf *out)
{
    int r = write_name(f->name, out);
    if (r == PEN_OK && f->source)
        r = add_text(out, " = ");
    if (r == PEN_OK && f->source)
        r = write_name(f->source, out);
    if (r == PEN_OK && f->of)
        r = add_text(out, " of=");
    if (r == PEN_OK && f->of)
        r = write_name(f->of, out);
    return r < 0 ? r : add_text(out, ": ");
}

int pen__spec_write(const PenSpec *s, PenBuf *out)
{
    size_t before = out->bytes;
    int r = PEN_OK;
    for (uint32_t i = 0; r == PEN_OK && i < s->n_fields; i++) {
        const PenSpecField *f = &s->fields[i];
        r = add_text(out, i ? "; " : "");
        if (r == PEN_OK && f->name)
            r = write_head(f, out);
        for (uint32_t k = 0; r == PEN_OK && k < f->n_ops; k += 1 + f->ops[k].inside) {
            r = add_text(out, k ? " | " : "");
            if (r == PEN_OK)
                r = pen__spec_write_op(&f->ops[k], out);
        }
    }
    if (r < 0)
        out->bytes = before;
    return r;
}
