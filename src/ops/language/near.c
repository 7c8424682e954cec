/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/language/near.h"

#include <stdio.h>
#include <string.h>

#include "base/attr.h"

enum { LONGEST = 31 };

/* Letters put in, left out, changed, or swapped with the next one. */
static size_t distance(const char *a, size_t na, const char *b, size_t nb)
{
    size_t row[3][LONGEST + 1]; /* of i, i - 1, i - 2, all modulo 3 */
    for (size_t j = 0; j <= nb; j++)
        row[0][j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t *now = row[i % 3];
        const size_t *one = row[(i + 2) % 3], *two = row[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t d = one[j - 1] + (a[i - 1] != b[j - 1]);
            d = PEN_MIN(d, one[j] + 1);
            d = PEN_MIN(d, now[j - 1] + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d = PEN_MIN(d, two[j - 2] + 1);
            now[j] = d;
        }
    }
    return row[na % 3][nb];
}

/* How wrong a word may be: short ones are all near each other. */
static size_t tolerance(size_t bytes)
{
    return bytes < 3 ? 0 : bytes < 6 ? 1 : bytes < 10 ? 2 : 4;
}

void pen__near_offer(PenNear *n, const char *word, size_t bytes)
{
    if (n->bytes > LONGEST || bytes > LONGEST || n->bytes == 0)
        return;
    size_t allowed = tolerance(bytes), d = distance(n->typed, n->bytes, word, bytes);
    /* A word cut short, or the end of one ("crop", "erasing"), but a wrong letter is nearer. */
    if (d > allowed && n->bytes >= 3 && n->bytes < bytes &&
        (memcmp(n->typed, word, n->bytes) == 0 ||
         memcmp(n->typed, word + bytes - n->bytes, n->bytes) == 0))
        d = allowed;
    if (d > allowed || (n->word && d >= n->distance))
        return;
    n->word = word;
    n->word_bytes = bytes;
    n->distance = d;
}

const char *pen__word_at(const char *words, unsigned i, size_t *ret_bytes)
{
    for (; i && *words; i--) {
        words += strcspn(words, " ");
        words += *words == ' ';
    }
    *ret_bytes = strcspn(words, " ");
    return *words ? words : NULL;
}

int pen__word_find(const char *words, const char *word, size_t bytes)
{
    const char *s;
    size_t n;
    for (unsigned i = 0; (s = pen__word_at(words, i, &n)); i++)
        if (n == bytes && memcmp(s, word, n) == 0)
            return (int)i;
    return -1;
}

void pen__near_offer_list(PenNear *near, const char *words)
{
    const char *s;
    size_t n;
    for (unsigned i = 0; (s = pen__word_at(words, i, &n)); i++)
        pen__near_offer(near, s, n);
}

void pen__near_text(const PenNear *near, const char *words, char *buf, size_t cap)
{
    const char *s;
    size_t n, used;
    if (near->word) {
        snprintf(buf, cap, "; did you mean '%.*s'?", (int)near->word_bytes, near->word);
        return;
    }
    used = (size_t)snprintf(buf, cap, "; expected ");
    for (unsigned i = 0; used < cap && (s = pen__word_at(words, i, &n)); i++)
        used += (size_t)snprintf(buf + used, cap - used, "%s%.*s", i ? ", " : "", (int)n, s);
}
