/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/job/bad.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/utf8.h"
#include "io/dir.h"
#include "io/sink.h"
#include "io/source.h"

#define WHERE "ingest/bad"
#define MAX_LIST_BYTES (1ull << 30)
static const char prefix[] = "{\"position\":";

/* As the inside of a JSON text; bytes of what is not UTF-8 are taken as Latin-1. */
static int add_escaped(PenBuf *out, const uint8_t *text, size_t bytes)
{
    int r = PEN_OK;
    bool utf8 = pen__text_is_utf8(text, bytes);
    for (size_t i = 0; i < bytes && r == PEN_OK; i++) {
        char c[8];
        int n = 1;
        if (text[i] == '"' || text[i] == '\\' || text[i] < 0x20 || text[i] == 0x7F ||
            (text[i] > 0x7F && !utf8))
            n = snprintf(c, sizeof c, "\\u%04x", text[i]);
        else
            c[0] = (char)text[i];
        r = pen__buf_add(out, c, (size_t)n);
    }
    return r;
}

static int add_text(PenBuf *out, const char *text)
{
    return pen__buf_add(out, text, strlen(text));
}

/* The exact bytes of a key that is not UTF-8, as 'penstock info --json' has them. */
static int add_hex(PenBuf *out, const uint8_t *key, size_t bytes)
{
    if (pen__text_is_utf8(key, bytes))
        return PEN_OK;
    int r = add_text(out, "\",\"key_hex\":\"");
    for (size_t i = 0; i < bytes && r == PEN_OK; i++) {
        char c[4];
        snprintf(c, sizeof c, "%02x", key[i]);
        r = pen__buf_add(out, c, 2);
    }
    return r;
}

int pen__bad_add(PenBadList *list, uint64_t position, const void *key, size_t key_bytes,
                 const PenError *why, PenError *reterr)
{
    char number[64];
    size_t before = list->lines.bytes;
    snprintf(number, sizeof number, "%s%" PRIu64 ",\"key\":\"", prefix, position);
    int r = add_text(&list->lines, number);
    if (r == PEN_OK)
        r = add_escaped(&list->lines, key, key_bytes);
    if (r == PEN_OK)
        r = add_hex(&list->lines, key, key_bytes);
    if (r == PEN_OK)
        r = add_text(&list->lines, "\",\"why\":\"");
    if (r == PEN_OK)
        r = add_escaped(&list->lines, (const uint8_t *)why->message, strlen(why->message));
    if (r == PEN_OK)
        r = add_text(&list->lines, "\"}\n");
    if (r < 0) {
        list->lines.bytes = before;
        return pen__fail_memory(reterr, WHERE, "list of broken inputs");
    }
    list->n++;
    return PEN_OK;
}

int pen__bad_parse(PenBadList *list, const void *data, size_t bytes, uint64_t position,
                   const char *path, PenError *reterr)
{
    const char *at = data;
    const char *end = at ? at + bytes : at;
    int r = PEN_OK;
    while (r == PEN_OK && at < end) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        if (!line_end || (size_t)(line_end - at) < sizeof prefix ||
            memcmp(at, prefix, sizeof prefix - 1) != 0 || at[sizeof prefix - 1] < '0' ||
            at[sizeof prefix - 1] > '9') {
            r = pen__fail(reterr, PEN_E_CORRUPT, WHERE,
                          "%s: expected a list of broken inputs, found something else; discard "
                          "it with 'penstock gc --abandon' and start again",
                          path);
            break;
        }
        line_end++;
        if (strtoull(at + sizeof prefix - 1, NULL, 10) < position) {
            if (pen__buf_add(&list->lines, at, (size_t)(line_end - at)) < 0)
                r = pen__fail_memory(reterr, WHERE, path);
            list->n++;
        }
        at = line_end;
    }
    return r;
}

int pen__bad_load(PenBadList *list, const char *path, uint64_t position, PenError *reterr)
{
    PenBuf all = {0};
    int r = pen__file_exists(path, reterr);
    if (r <= 0)
        return r;
    r = pen__file_load(path, MAX_LIST_BYTES, &all, reterr);
    if (r == PEN_OK)
        r = pen__bad_parse(list, all.data, all.bytes, position, path, reterr);
    pen__buf_free(&all);
    return r;
}

int pen__bad_store(const PenBadList *list, const char *part_path, const char *path,
                   PenError *reterr)
{
    return pen__file_store(part_path, path, list->lines.data, list->lines.bytes, reterr);
}

void pen__bad_free(PenBadList *list)
{
    pen__buf_free(&list->lines);
    list->n = 0;
}
