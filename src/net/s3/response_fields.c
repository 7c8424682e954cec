/* SPDX-License-Identifier: Apache-2.0 */
#include "net/s3/response_fields.h"
#include "net/http/date.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/mem.h"
#include "net/s3/xml.h"

#define WHERE "net/s3"

typedef struct Filling {
    const PenS3Shape *shape;
    char *ret;
    PenS3Error *refused;
    int is_error;       /* the root is that of an error */
    size_t root_bytes;  /* of its name; 0 before it */
    uint64_t seen;      /* leaves found, by number */
    uint64_t item_seen; /* of the item at hand */
} Filling;

static const PenS3Leaf error_leaves[] = {
#define CUT(path, field)                                                                           \
    {                                                                                              \
        path, PEN_S3_CUT, offsetof(PenS3Error, field), sizeof((PenS3Error *)0)->field, 0           \
    }
    CUT("Code", code),
    CUT("Message", message),
    CUT("Region", region),
    CUT("Endpoint", endpoint),
    CUT("RequestId", request_id),
    CUT("Error/Code", code), /* STS wraps it */
    CUT("Error/Message", message),
#undef CUT
    {0},
};

static int wrong(const char *path, const char *expected, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_CORRUPT, WHERE, "response: %s: expected %s", path, expected);
}

/* The last character may have been cut in two. */
static void drop_half(char *text, size_t bytes)
{
    size_t n = bytes;
    while (n && ((unsigned char)text[n - 1] & 0xC0) == 0x80)
        n--;
    if (!n || (unsigned char)text[n - 1] < 0xC0)
        return;
    unsigned char lead = (unsigned char)text[n - 1];
    size_t whole = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (bytes - (n - 1) < whole)
        text[n - 1] = 0;
}

static void put_cut(char *to, size_t capacity, const char *text, size_t bytes)
{
    size_t n = bytes < capacity ? bytes : capacity - 1;
    for (size_t i = 0; i < n; i++)
        to[i] = (unsigned char)text[i] < ' ' || text[i] == 0x7F ? ' ' : text[i];
    to[n] = 0;
    if (n < bytes)
        drop_half(to, n);
}

static int put_text(const PenS3Leaf *leaf, char *to, const char *text, size_t bytes,
                    PenError *reterr)
{
    int bare = leaf->kind == PEN_S3_ETAG && bytes && text[0] != '"' && strncmp(text, "W/", 2) != 0;
    if (bytes + (bare ? 3 : 1) > leaf->capacity)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "response: %s: expected at most %zu bytes, found %zu", leaf->path,
                         leaf->capacity - 1, bytes);
    for (size_t i = 0; i < bytes; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7F)
            return wrong(leaf->path, "text without control characters", reterr);
    snprintf(to, leaf->capacity, bare ? "\"%s\"" : "%s", text);
    return PEN_OK;
}

static int put_string(const PenS3Leaf *leaf, char *to, const char *text, size_t bytes,
                      PenError *reterr)
{
    char *copy;
    if (!bytes) /* an empty mark is none */
        return leaf->needed ? wrong(leaf->path, "some text", reterr) : PEN_OK;
    copy = pen__strndup(text, bytes);
    if (!copy)
        return pen__fail_memory(reterr, WHERE, "answer");
    memcpy(to, &copy, sizeof copy);
    return PEN_OK;
}

static int put_number(const PenS3Leaf *leaf, char *to, const char *text, size_t bytes,
                      PenError *reterr)
{
    uint64_t v = 0;
    int good = bytes > 0;
    for (size_t i = 0; good && i < bytes; i++) {
        unsigned digit = (unsigned)text[i] - '0';
        good = digit <= 9 && !__builtin_mul_overflow(v, 10u, &v) &&
               !__builtin_add_overflow(v, digit, &v);
    }
    if (!good)
        return wrong(leaf->path, "a number", reterr);
    memcpy(to, &v, sizeof v);
    return PEN_OK;
}

static int put_leaf(const PenS3Leaf *leaf, char *to, const char *text, size_t bytes,
                    PenError *reterr)
{
    uint64_t time;
    switch (leaf->kind) {
    case PEN_S3_CUT:
        put_cut(to, leaf->capacity, text, bytes);
        return PEN_OK;
    case PEN_S3_TEXT:
    case PEN_S3_ETAG:
        return put_text(leaf, to, text, bytes, reterr);
    case PEN_S3_STRING:
    case PEN_S3_KEY:
        return put_string(leaf, to, text, bytes, reterr);
    case PEN_S3_NUMBER:
        return put_number(leaf, to, text, bytes, reterr);
    case PEN_S3_FLAG:
        if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
            return wrong(leaf->path, "true or false", reterr);
        *(uint8_t *)to = text[0] == 't';
        return PEN_OK;
    case PEN_S3_URL:
        *(uint8_t *)to = strcmp(text, "url") == 0;
        return PEN_OK;
    case PEN_S3_TIME:
        if (!pen__iso_date(text, &time))
            return wrong(leaf->path, "a time like 2026-01-31T12:00:00Z", reterr);
        memcpy(to, &time, sizeof time);
        return PEN_OK;
    }
    return PEN_OK;
}

/* The rest of `path` behind "head/", NULL when it does not begin so. */
static const char *below(const char *path, const char *head)
{
    size_t n = strlen(head);
    return strncmp(path, head, n) == 0 && path[n] == '/' ? path + n + 1 : NULL;
}

/* Where leaves of one kind are put, and which of them were. */
typedef struct Place {
    const PenS3Leaf *leaves;
    char *base;
    uint64_t *seen;
} Place;

static int put_at(Place place, const char *path, const char *text, size_t bytes, PenError *reterr)
{
    for (size_t i = 0; place.leaves[i].path; i++) {
        const PenS3Leaf *leaf = &place.leaves[i];
        if (strcmp(leaf->path, path) != 0)
            continue;
        if (*place.seen >> i & 1)
            return wrong(leaf->path, "only one", reterr);
        int r = put_leaf(leaf, place.base + leaf->offset, text, bytes, reterr);
        *place.seen |= (uint64_t)(r == PEN_OK) << i;
        return r;
    }
    return PEN_OK; /* what is not known is left alone: servers add to their answers */
}

static int check_needed(const PenS3Leaf *leaves, uint64_t seen, PenError *reterr)
{
    for (size_t i = 0; leaves[i].path; i++)
        if (leaves[i].needed && !(seen >> i & 1))
            return wrong(leaves[i].path, "a value, found none", reterr);
    return PEN_OK;
}

/* The item before has ended: nothing begins in between that is not its own. */
static int add_item(Filling *f, PenError *reterr)
{
    PenS3List *list = (PenS3List *)(void *)f->ret;
    size_t each = f->shape->item_bytes;
    if (list->n && check_needed(f->shape->item_leaves, f->item_seen, reterr) < 0)
        return PEN_E_CORRUPT;
    if (list->n == PEN_S3_ITEMS)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "response: %s: expected at most %d, found more", f->shape->item,
                         PEN_S3_ITEMS);
    if ((list->n & (list->n - 1)) == 0) { /* memory for a power of two */
        size_t n = list->n ? 2 * list->n : 1;
        void *p = pen__resize(list->items, n * each);
        if (!p)
            return pen__fail_memory(reterr, WHERE, "answer");
        list->items = p;
    }
    memset((char *)list->items + list->n++ * each, 0, each);
    f->item_seen = 0;
    return PEN_OK;
}

static int take_root(Filling *f, const char *name, PenError *reterr)
{
    f->root_bytes = strlen(name);
    f->is_error = strcmp(name, "Error") == 0 || strcmp(name, "ErrorResponse") == 0;
    if (f->is_error)
        return PEN_OK;
    for (size_t i = 0; f->shape && i < 3 && f->shape->roots[i]; i++)
        if (strcmp(name, f->shape->roots[i]) == 0)
            return PEN_OK;
    return pen__fail(reterr, PEN_E_CORRUPT, WHERE, "response: expected %s, found another element",
                     f->shape ? f->shape->roots[0] : "an error");
}

static int on_begin(void *ctx, const char *path, PenError *reterr)
{
    Filling *f = ctx;
    if (!f->root_bytes)
        return take_root(f, path, reterr);
    if (!f->is_error && f->shape->item && strcmp(path + f->root_bytes + 1, f->shape->item) == 0)
        return add_item(f, reterr);
    return PEN_OK;
}

static int on_text(void *ctx, const char *path, const char *text, size_t bytes, PenError *reterr)
{
    Filling *f = ctx;
    if (!path[f->root_bytes]) /* the root itself */
        return PEN_OK;
    path += f->root_bytes + 1;
    Place place = {error_leaves, (char *)f->refused, &f->seen};
    if (f->is_error)
        return put_at(place, path, text, bytes, reterr);
    const PenS3Shape *shape = f->shape;
    const char *of_item = shape->item ? below(path, shape->item) : NULL;
    if (of_item) {
        const PenS3List *list = (const PenS3List *)(void *)f->ret;
        char *last = (char *)list->items + (list->n - 1) * shape->item_bytes;
        place = (Place){shape->item_leaves, last, &f->item_seen};
        return put_at(place, of_item, text, bytes, reterr);
    }
    place = (Place){shape->leaves, f->ret, &f->seen};
    return put_at(place, path, text, bytes, reterr);
}

/* As forms are encoded, with '+' for a space. In place. */
static int decode(char *s, PenError *reterr)
{
    char *to = s;
    for (; *s; s++) {
        if (*s != '%') {
            *to++ = *s == '+' ? ' ' : *s;
            continue;
        }
        int high = pen__hex_value(s[1]), low = high < 0 ? -1 : pen__hex_value(s[2]);
        if (low < 0 || high + low == 0)
            return wrong("Key", "two hex digits after every '%'", reterr);
        *to++ = (char)(high << 4 | low);
        s += 2;
    }
    *to = 0;
    return PEN_OK;
}

static int decode_keys(const PenS3Leaf *leaves, char *base, PenError *reterr)
{
    int r = PEN_OK;
    for (size_t i = 0; leaves[i].path && r == PEN_OK; i++) {
        char *key = NULL;
        if (leaves[i].kind == PEN_S3_KEY)
            memcpy(&key, base + leaves[i].offset, sizeof key);
        if (key)
            r = decode(key, reterr);
    }
    return r;
}

static int finish(Filling *f, PenError *reterr)
{
    const PenS3Shape *shape = f->shape;
    const PenS3List *list = (const PenS3List *)(void *)f->ret;
    int r = check_needed(shape->leaves, f->seen, reterr);
    if (r == PEN_OK && shape->item && list->n)
        r = check_needed(shape->item_leaves, f->item_seen, reterr);
    if (r < 0 || !shape->encoded || !f->ret[shape->encoded])
        return r;
    r = decode_keys(shape->leaves, f->ret, reterr);
    for (size_t i = 0; r == PEN_OK && i < list->n; i++)
        r = decode_keys(shape->item_leaves, (char *)list->items + i * shape->item_bytes, reterr);
    return r;
}

static const PenXmlCalls calls = {on_begin, on_text};

int pen__s3_shape_read(const PenS3Shape *shape, const void *body, size_t bytes, void *ret,
                       PenS3Error *ret_refused, PenError *reterr)
{
    PenS3Error refused = {.code = ""};
    Filling f = {.shape = shape, .ret = ret, .refused = &refused};
    int r = pen__xml_read(body, bytes, &calls, &f, reterr);
    if (r < 0)
        return r;
    if (!f.is_error)
        return finish(&f, reterr);
    *ret_refused = refused;
    return 1;
}

int pen__s3_error(const void *body, size_t bytes, PenS3Error *ret)
{
    PenS3Error found = {.code = ""};
    Filling f = {.refused = &found};
    (void)pen__xml_read(body, bytes, &calls, &f, NULL);
    if (!found.code[0])
        return 0;
    *ret = found;
    return 1;
}

static void free_strings(const PenS3Leaf *leaves, char *base)
{
    for (size_t i = 0; leaves[i].path; i++) {
        char *text = NULL;
        if (leaves[i].kind == PEN_S3_STRING || leaves[i].kind == PEN_S3_KEY)
            memcpy(&text, base + leaves[i].offset, sizeof text);
        pen__free(text);
    }
}

void pen__s3_shape_free(const PenS3Shape *shape, void *of)
{
    PenS3List *list = of;
    for (size_t i = 0; shape->item && i < list->n; i++)
        free_strings(shape->item_leaves, (char *)list->items + i * shape->item_bytes);
    if (shape->item)
        pen__free(list->items);
    free_strings(shape->leaves, of);
}
