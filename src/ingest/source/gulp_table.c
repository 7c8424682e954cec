/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/source/gulp_table.h"

static int add_number(PenBuf *out, uint64_t v)
{
    uint8_t bytes[10];
    size_t n = 0;
    do {
        bytes[n] = (uint8_t)((v & 127) | (v > 127 ? 128 : 0));
        v >>= 7;
        n++;
    } while (v);
    return pen__buf_add(out, bytes, n);
}

static bool next_number(PenGulpTable *t, uint64_t *ret)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (t->p == t->end)
            return false;
        uint8_t byte = *t->p++;
        if (shift == 63 && byte > 1)
            return false;
        v |= (uint64_t)(byte & 127) << shift;
        if (!(byte & 128)) {
            *ret = v;
            return true;
        }
    }
    return false;
}

/* Offsets are below 2^62: who adds a frame has seen that it lies inside a file. */
int pen__gulp_table_add(PenBuf *out, uint64_t *at, const PenGulpFrame *frame)
{
    bool back = frame->offset < *at;
    uint64_t gap = back ? *at - frame->offset : frame->offset - *at;
    size_t before = out->bytes;
    int r = add_number(out, gap << 1 | back);
    if (r == 0)
        r = add_number(out, frame->bytes);
    if (r < 0)
        out->bytes = before;
    else
        *at = frame->offset + frame->bytes;
    return r;
}

bool pen__gulp_table_next(PenGulpTable *t, PenGulpFrame *ret)
{
    uint64_t gap, bytes;
    if (!next_number(t, &gap) || !next_number(t, &bytes))
        return false;
    uint64_t offset = gap & 1 ? t->at - (gap >> 1) : t->at + (gap >> 1);
    if (offset >> 62 || bytes >> 62)
        return false;
    t->at = offset + bytes;
    *ret = (PenGulpFrame){offset, bytes};
    return true;
}
