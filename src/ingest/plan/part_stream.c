/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/plan/part_stream.h"

#include <inttypes.h>
#include <string.h>

#include "ingest/source/input.h"
#include "ingest/source/object.h"
#include "ingest/tar/tar.h"

#define WHERE "ingest/stream"

typedef struct Kept {
    uint64_t offset;
    PenBuf data;
} Kept;

struct PenPartStream {
    PenSource *source;
    PenTar *tar;
    uint32_t number;  /* of the tar that is open */
    uint64_t next;    /* members below this offset have been passed */
    uint64_t counted; /* bytes of the file that have been told to a caller */
    PenBuf stem;      /* of the sample whose members are kept */
    Kept *kept;
    uint32_t n_kept, cap;
};

int pen__part_stream_new(PenPartStream **ret, PenError *reterr)
{
    PenPartStream *s = pen__zalloc(sizeof *s);
    if (!s)
        return pen__fail_memory(reterr, WHERE, "compressed tar");
    *ret = s;
    return PEN_OK;
}

static void stop(PenPartStream *s)
{
    pen__tar_close(&s->tar);
    pen__source_close(&s->source);
    s->n_kept = 0;
    s->stem.bytes = 0;
    s->next = 0;
    s->counted = 0;
}

void pen__part_stream_free(PenPartStream **stream)
{
    if (!stream || !*stream)
        return;
    PenPartStream *s = *stream;
    stop(s);
    for (uint32_t i = 0; i < s->cap; i++)
        pen__buf_free(&s->kept[i].data);
    pen__free(s->kept);
    pen__buf_free(&s->stem);
    pen__free(s);
    *stream = NULL;
}

static int open_source(const PenStreamFile *file, PenSource **ret, PenError *reterr)
{
    if (pen_is_remote(file->path))
        return pen__object_open(file->places, file->path, file->expected, ret, NULL, reterr);
    int r = pen__source_open_file(file->path, ret, reterr);
    return r < 0 ? r : pen__expected_check_path(file->path, file->expected, reterr);
}

static int start(PenPartStream *s, const PenStreamFile *file, uint32_t number, PenError *reterr)
{
    stop(s);
    int r = open_source(file, &s->source, reterr);
    if (r == PEN_OK)
        r = pen__tar_open(s->source, &s->tar, reterr);
    if (r < 0) {
        stop(s);
        return r;
    }
    s->number = number;
    return PEN_OK;
}

/* Room for one more; what was used before is used again. */
static Kept *keep_slot(PenPartStream *s)
{
    if (s->n_kept == s->cap) {
        uint32_t cap = s->cap ? s->cap * 2 : 8;
        Kept *grown = pen__resize(s->kept, cap * sizeof *grown);
        if (!grown)
            return NULL;
        memset(grown + s->cap, 0, (cap - s->cap) * sizeof *grown);
        s->kept = grown;
        s->cap = cap;
    }
    return &s->kept[s->n_kept];
}

/* Reads the member that the tar stands at, and keeps it. */
static int keep(PenPartStream *s, const PenMember *m, PenError *reterr)
{
    size_t stem = pen__member_stem(m->name);
    if (s->stem.bytes != stem || memcmp(s->stem.data, m->name, stem) != 0) {
        s->n_kept = 0;
        s->stem.bytes = 0;
        if (pen__buf_add(&s->stem, m->name, stem) < 0)
            return pen__fail_memory(reterr, WHERE, s->source->name);
    }
    Kept *k = keep_slot(s);
    if (!k)
        return pen__fail_memory(reterr, WHERE, s->source->name);
    int r = pen__tar_read(s->tar, &k->data, reterr);
    if (r < 0)
        return r;
    k->offset = m->offset;
    s->n_kept++;
    return PEN_OK;
}

/* Up to and with the member at `offset`, which is then the last one kept. */
static int advance(PenPartStream *s, uint64_t offset, const char *advice, PenError *reterr)
{
    PenMember m;
    do {
        int r = pen__tar_next(s->tar, &m, reterr);
        bool hidden = r == PEN_OK && pen__member_hidden(m.name); /* no plan has those */
        if (r == PEN_END || (r == PEN_OK && (m.offset > offset || (m.offset == offset && hidden))))
            r = pen__fail(
                reterr, PEN_E_INVALID, WHERE,
                "%s: changed since the plan was made: expected a member at offset %" PRIu64
                " of the decompressed tar, found none; %s",
                s->source->name, offset, advice);
        if (r == PEN_OK && !hidden)
            r = keep(s, &m, reterr);
        if (r < 0)
            return r;
        s->next = m.offset + 1;
    } while (m.offset < offset);
    return PEN_OK;
}

static const PenBuf *find(const PenPartStream *s, uint64_t offset)
{
    for (uint32_t i = 0; i < s->n_kept; i++)
        if (s->kept[i].offset == offset)
            return &s->kept[i].data;
    return NULL;
}

int pen__part_stream_read(PenPartStream *s, const PenStreamFile *file, const PenPart *part,
                          PenBuf *out, uint64_t *ret_disk_bytes, PenError *reterr)
{
    int r = PEN_OK;
    bool open = s->tar && s->number == part->source;
    const PenBuf *data = open ? find(s, part->offset) : NULL;
    if (!data) {
        if (!open || part->offset < s->next)
            r = start(s, file, part->source, reterr);
        if (r == PEN_OK)
            r = advance(s, part->offset, file->expected->advice, reterr);
        if (r < 0) {
            stop(s);
            return r;
        }
        data = &s->kept[s->n_kept - 1].data;
    }
    if (data->bytes != part->bytes)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s: %s: changed since the plan was made: expected %" PRIu64
                         " bytes, found %zu; %s",
                         file->path, part->path, part->bytes, data->bytes, file->expected->advice);
    out->bytes = 0;
    if (pen__buf_reserve(out, data->bytes + PEN_SLACK) < 0)
        return pen__fail_memory(reterr, WHERE, file->path);
    memcpy(out->data, data->data, data->bytes + PEN_SLACK);
    out->bytes = data->bytes;
    if (ret_disk_bytes)
        *ret_disk_bytes = pen__tar_taken(s->tar) - s->counted;
    s->counted = pen__tar_taken(s->tar);
    return PEN_OK;
}
