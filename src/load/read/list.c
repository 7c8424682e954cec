/* SPDX-License-Identifier: Apache-2.0 */
#include "load/read/list.h"

#include <inttypes.h>
#include <string.h>

#include "base/text/utf8.h"
#include "load/read/values.h"
#include "pack/format/format.h"

#define WHERE "load/read"

static int check_length(const PenOutField *f, uint64_t bytes, PenError *reterr)
{
    if (bytes <= f->bytes)
        return PEN_OK;
    if (f->list == PEN_LIST_RAGGED)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "field '%s': expected at most %u rows (max_rows), found %" PRIu64
                         "; increase max_rows in the pipeline, or leave the sample out with a "
                         "subset",
                         f->name, f->max_rows, bytes / f->row_bytes);
    return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                     "field '%s': expected at most %" PRIu64 " bytes (max_bytes), found %" PRIu64
                     "; increase max_bytes in the pipeline, or leave the sample out with a subset",
                     f->name, f->bytes, bytes);
}

static int read_key(PenTask *task, const PenOutField *f, const PenLocation *at, PenError *reterr)
{
    const uint8_t *key;
    uint32_t bytes;
    pen__block_key(&at->block->view, at->in_block, &key, &bytes);
    int r = check_length(f, bytes, reterr);
    if (r < 0)
        return r;
    memcpy(pen__task_place(task, f), key, bytes);
    *pen__task_length(task, f) = bytes;
    return PEN_OK;
}

int pen__list_read(PenTask *task, const PenOutField *f, const PenLocation *at, PenError *reterr)
{
    if (f->list == PEN_LIST_KEY)
        return read_key(task, f, at, reterr);
    PenBlobEntry e = pen__block_blob(&at->block->view, at->in_block, f->field);
    uint8_t *to = pen__task_place(task, f);
    int r = check_length(f, e.bytes, reterr);
    if (r < 0)
        return r;
    r = pen__values_read(task, f, at, &e, to, reterr);
    if (r < 0)
        return r;
    bool is_text = f->list == PEN_LIST_TEXT || f->list == PEN_LIST_JSON;
    if (is_text && !pen__text_is_utf8(to, (size_t)e.bytes))
        return pen__fail(reterr, PEN_E_DECODE, WHERE,
                         "field '%s': expected UTF-8, found other bytes; use 'bytes' to load them",
                         f->name);
    *pen__task_length(task, f) = e.flags & PEN_BLOB_MISSING ? -1 : (int64_t)e.bytes;
    task->bytes_read += e.bytes;
    return PEN_OK;
}
