/* SPDX-License-Identifier: Apache-2.0 */
/* The words and signs of a pipeline's text. */
#ifndef PEN_OPS_LANGUAGE_LEX_H
#define PEN_OPS_LANGUAGE_LEX_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Signs stand for themselves: '|' ';' ':' '=' ','; where there are brackets, '[' and ']' too. */
enum { PEN_TOKEN_END = 0, PEN_TOKEN_WORD = 1, PEN_TOKEN_QUOTED = 2 };

typedef struct PenToken {
    int kind;
    const char *text; /* in the text that is read; of a quoted one, without the quotes */
    size_t bytes;
    uint32_t column; /* in characters, from 1 */
} PenToken;

typedef struct PenLexer {
    const char *at;
    uint32_t column;
    int brackets; /* '[' and ']' are signs; they are parts of words otherwise */
} PenLexer;

/* The next one. Fails at control characters and at a quote that does not end. */
int pen__lex_next(PenLexer *lexer, PenToken *ret, PenError *reterr);

int pen__token_is(const PenToken *t, const char *word);
int pen__token_is_number(const PenToken *t); /* it begins like one, or is nan or inf */

/* For messages: 'word', or the end. Without control characters, and cut when it is long. */
enum { PEN_TOKEN_TEXT = 56 };
const char *pen__token_text(const PenToken *t, char buf[PEN_TOKEN_TEXT]);

/* "pipeline: column 10: ..." as PEN_E_INVALID. */
int pen__spec_fail(PenError *reterr, uint32_t column, const char *fmt, ...) PEN_PRINTF(3, 4);

/* Does a name have to be quoted to be read as one word? */
int pen__name_needs_quotes(const char *name);

#endif
