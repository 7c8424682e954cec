/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/language/lex.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char signs[] = "|;:=,";

int pen__spec_fail(PenError *reterr, uint32_t column, const char *fmt, ...)
{
    char text[sizeof reterr->message];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return pen__fail(reterr, PEN_E_INVALID, "ops/spec", "pipeline: column %u: %s", column, text);
}

static int is_sign(const PenLexer *l, char c)
{
    return strchr(signs, c) || (l->brackets && (c == '[' || c == ']'));
}

static int is_word_byte(char c)
{
    return (unsigned char)c > ' ' && c != 0x7f && c != '"' && !strchr(signs, c);
}

/* Bytes that go on with a character of UTF-8 are no columns. */
static uint32_t columns(const char *text, size_t bytes)
{
    uint32_t n = 0;
    for (size_t i = 0; i < bytes; i++)
        n += ((unsigned char)text[i] & 0xc0) != 0x80;
    return n;
}

static void take(PenLexer *l, int kind, size_t bytes, PenToken *ret)
{
    *ret = (PenToken){.kind = kind, .text = l->at, .bytes = bytes, .column = l->column};
    l->at += bytes;
    l->column += columns(ret->text, bytes);
}

static int take_quoted(PenLexer *l, PenToken *ret, PenError *reterr)
{
    size_t n = 1;
    while ((unsigned char)l->at[n] >= ' ' && l->at[n] != 0x7f && l->at[n] != '"')
        n++;
    if (l->at[n] != '"')
        return pen__spec_fail(reterr, l->column, "the name has no closing quote");
    take(l, PEN_TOKEN_QUOTED, n + 1, ret);
    ret->text++;
    ret->bytes -= 2;
    return PEN_OK;
}

int pen__lex_next(PenLexer *l, PenToken *ret, PenError *reterr)
{
    while (*l->at == ' ' || *l->at == '\t') {
        l->at++;
        l->column++;
    }
    char c = *l->at;
    size_t n = 0;
    if (c == '\0') {
        take(l, PEN_TOKEN_END, 0, ret);
        return PEN_OK;
    }
    if (c == '"')
        return take_quoted(l, ret, reterr);
    if (is_sign(l, c)) {
        take(l, c, 1, ret);
        return PEN_OK;
    }
    while (is_word_byte(l->at[n]) && !is_sign(l, l->at[n]))
        n++;
    if (n == 0)
        return pen__spec_fail(reterr, l->column,
                              "unexpected byte 0x%02x; a pipeline is one line of text",
                              (unsigned char)c);
    take(l, PEN_TOKEN_WORD, n, ret);
    return PEN_OK;
}

int pen__token_is(const PenToken *t, const char *word)
{
    return t->kind == PEN_TOKEN_WORD && strlen(word) == t->bytes &&
           memcmp(word, t->text, t->bytes) == 0;
}

/* What Python writes for numbers that no parameter takes. */
static int is_not_finite(const PenToken *t)
{
    return pen__token_is(t, "nan") || pen__token_is(t, "inf");
}

int pen__token_is_number(const PenToken *t)
{
    char c = t->text[0];
    return (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+' || is_not_finite(t);
}

const char *pen__token_text(const PenToken *t, char buf[PEN_TOKEN_TEXT])
{
    size_t n = PEN_MIN(t->bytes, (size_t)48);
    if (t->kind == PEN_TOKEN_END)
        return "the end";
    /* Not in the middle of a character. */
    while (n && n < t->bytes && ((unsigned char)t->text[n] & 0xc0) == 0x80)
        n--;
    snprintf(buf, PEN_TOKEN_TEXT, "'%.*s%s'", (int)n, t->text, n < t->bytes ? "..." : "");
    return buf;
}

int pen__name_needs_quotes(const char *name)
{
    for (const char *s = name; *s; s++)
        if (!is_word_byte(*s))
            return 1;
    return *name == '\0';
}
