/* SPDX-License-Identifier: Apache-2.0 */
/* Queries, in the one form that URL and signature share. */
#include <string.h>

#include "base/mem.h"
#include "net/address/uri.h"
#include "net/aws/sign.h"

#define QUERY_PAIRS 64

/* Where an encoded pair lies in the text that is being put together. */
typedef struct Pair {
    size_t name, name_bytes, value, value_bytes;
} Pair;

static int compare_slices(const uint8_t *a, size_t a_bytes, const uint8_t *b, size_t b_bytes)
{
    size_t common = a_bytes < b_bytes ? a_bytes : b_bytes;
    int c = common ? memcmp(a, b, common) : 0;
    return c ? c : (a_bytes > b_bytes) - (a_bytes < b_bytes);
}

/* By name and then by value. Not by "name=value": '=' comes behind '-', '.', '%' and the digits. */
static int compare_pairs(const uint8_t *text, const Pair *a, const Pair *b)
{
    int c = compare_slices(text + a->name, a->name_bytes, text + b->name, b->name_bytes);
    return c ? c : compare_slices(text + a->value, a->value_bytes, text + b->value, b->value_bytes);
}

static int encode_pairs(const PenHttpHeader *pairs, size_t n, PenBuf *text, Pair *ret)
{
    for (size_t i = 0; i < n; i++) {
        const char *value = pairs[i].value ? pairs[i].value : "";
        Pair p = {.name = text->bytes};
        int r = pen__uri_encode(text, pairs[i].name, strlen(pairs[i].name), 0);
        if (r < 0)
            return r;
        p.name_bytes = text->bytes - p.name;
        p.value = text->bytes;
        r = pen__uri_encode(text, value, strlen(value), 0);
        if (r < 0)
            return r;
        p.value_bytes = text->bytes - p.value;
        size_t at = i;
        for (; at > 0 && compare_pairs(text->data, &p, &ret[at - 1]) < 0; at--)
            ret[at] = ret[at - 1];
        ret[at] = p;
    }
    return PEN_OK;
}

int pen__query_make(const PenHttpHeader *pairs, size_t n, PenBuf *ret)
{
    Pair sorted[QUERY_PAIRS];
    PenBuf text = {0};
    if (n > QUERY_PAIRS)
        return PEN_E_LIMIT;
    int r = encode_pairs(pairs, n, &text, sorted);
    if (r < 0)
        goto out;
    r = pen__buf_reserve(ret, text.bytes + 2 * n + 1);
    if (r < 0)
        goto out;
    for (size_t i = 0; i < n; i++) { /* memory is reserved: none of these fails */
        if (i)
            (void)pen__buf_add(ret, "&", 1);
        (void)pen__buf_add(ret, text.data + sorted[i].name, sorted[i].name_bytes);
        (void)pen__buf_add(ret, "=", 1);
        (void)pen__buf_add(ret, text.data + sorted[i].value, sorted[i].value_bytes);
    }
    ret->data[ret->bytes] = 0;
out:
    pen__buf_free(&text);
    return r;
}
