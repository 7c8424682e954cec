/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the right words was meant by a wrong one. */
#ifndef PEN_OPS_LANGUAGE_NEAR_H
#define PEN_OPS_LANGUAGE_NEAR_H

#include <stddef.h>

typedef struct PenNear { /* set typed and bytes; word is NULL while nothing is near */
    const char *typed;
    size_t bytes;
    const char *word;
    size_t word_bytes, distance;
} PenNear;

void pen__near_offer(PenNear *n, const char *word, size_t bytes);
/* All of a list divided by spaces. */
void pen__near_offer_list(PenNear *n, const char *words);

/* "; did you mean 'x'?" when one is near, or else "; expected " and the list, comma by comma. */
void pen__near_text(const PenNear *n, const char *words, char *buf, size_t cap);

/* The place of the word in a list divided by spaces; -1 when it is not there. */
int pen__word_find(const char *words, const char *word, size_t bytes);
/* The i-th word; NULL behind the last. */
const char *pen__word_at(const char *words, unsigned i, size_t *ret_bytes);

#endif
