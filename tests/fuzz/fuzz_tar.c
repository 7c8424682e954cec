/* SPDX-License-Identifier: Apache-2.0 */
/* A tar file, plain or compressed. Members of a plain one lie where they are said to lie. The
 * mutator puts the checksums of headers right again. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "help.h"
#include "ingest/source/input.h"
#include "ingest/tar/tar.h"

enum { RECORD = 512, MAX_MEMBER = 1 << 20, MAX_UNPACKED = 32 << 20, MAX_MEMBERS = 256 };

/* A member's data, to be compared with the bytes of the file when the next member has been found:
 * only then is it certain that they are the same. */
typedef struct Member {
    PenBuf data;
    uint64_t offset;
} Member;

static void read_member(PenTar *tar, const PenMember *m, Member *ret)
{
    PenError err;
    ret->offset = m->offset;
    if (!GOES(pen__tar_read(tar, &ret->data, &err))) {
        ret->data.bytes = 0;
        return;
    }
    REQUIRE(ret->data.bytes == m->bytes);
    PenBuf more = {0};
    REQUIRE(CALL(pen__tar_read(tar, &more, &err)) == PEN_E_INVALID);
    pen__buf_free(&more);
}

static void require_member(const Member *m, const uint8_t *data, size_t bytes)
{
    REQUIRE(pen__range_ok(m->offset, m->data.bytes, bytes));
    if (m->data.bytes)
        REQUIRE(memcmp(data + m->offset, m->data.data, m->data.bytes) == 0);
}

static void read_members(PenSource *source, const uint8_t *data, size_t bytes, uint64_t *ret_end)
{
    PenError err;
    PenTar *tar = NULL;
    PenMember m = {.name = NULL};
    Member last = {.offset = 0};
    int r = CALL(pen__tar_open(source, &tar, &err));
    for (uint32_t i = 0; r == PEN_OK && i < MAX_MEMBERS && m.offset < MAX_UNPACKED; i++) {
        r = CALL(pen__tar_next(tar, &m, &err));
        if (r >= 0 && !pen__tar_compressed(tar))
            require_member(&last, data, bytes);
        last.data.bytes = 0;
        if (r != PEN_OK)
            break;
        REQUIRE(m.name && *m.name);
        *ret_end = PEN_MAX(*ret_end, m.offset + m.bytes);
        if (i % 3 != 1 && m.bytes <= MAX_MEMBER) /* not all are read: the rest is skipped */
            read_member(tar, &m, &last);
        REQUIRE(pen__tar_taken(tar) <= bytes);
    }
    pen__buf_free(&last.data);
    pen__tar_close(&tar);
}

static void scan(PenSource *source, size_t bytes)
{
    PenError err;
    PenIngestSettings settings;
    pen_ingest_settings_init(&settings);
    settings.order = PEN_PACK_SOURCE;
    PenInputs *in = calloc(1, sizeof *in);
    in->settings = &settings;
    in->kind = PEN_ROOT_TAR;
    int r = CALL(pen__scan_tar_from(in, source, &err));
    for (uint64_t i = 0; r == PEN_OK && i < in->n; i++) {
        PenInput input;
        PenCell cell;
        char name[64];
        pen__inputs_get(in, i, &input);
        REQUIRE(input.key_bytes && input.key_bytes <= PEN_KEY_LIMIT);
        const uint8_t *at = input.cells;
        for (uint32_t c = 0; c < input.n_cells; c++) {
            pen__cell_next(&at, &cell);
            REQUIRE(cell.column < in->n_columns && cell.source < in->n_roots);
            if (cell.kind == PEN_PART_RANGE)
                REQUIRE(pen__range_ok(cell.offset, cell.bytes, bytes));
        }
        pen__input_name(in, &input, name, sizeof name);
    }
    pen__inputs_free(in);
    free(in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    PenError err;
    PenSource *source = NULL;
    uint64_t end = 0;
    uint8_t *exact = copy_of(data, bytes);
    MUST(pen__source_open_memory("fuzz.tar", exact, bytes, &source, &err));
    read_members(source, exact, bytes, &end);
    if (end < MAX_UNPACKED) /* else unpacking all of it takes too long here */
        scan(source, bytes);
    pen__source_close(&source);
    free(exact);
    return 0;
}

/* The checksum of a header counts itself as eight spaces. */
static void repair_header(uint8_t *h)
{
    unsigned sum = 8 * ' ';
    for (size_t i = 0; i < RECORD; i++)
        sum += i < 148 || i >= 156 ? h[i] : 0u;
    for (int i = 5; i >= 0; i--, sum >>= 3)
        h[148 + i] = (uint8_t)('0' + (sum & 7));
    h[154] = 0;
    h[155] = ' ';
}

/* Records that look like headers: a text begins them and "ustar" is at its place. */
static void repair_tar(uint8_t *data, size_t bytes)
{
    for (size_t at = 0; at + RECORD <= bytes; at += RECORD)
        if (memcmp(data + at + 257, "ustar", 5) == 0)
            repair_header(data + at);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t max_bytes, unsigned seed)
{
    static const uint8_t types[] = "01234567LKxgSDVX";
    Dice dice = {seed};
    size_t records = bytes / RECORD;
    uint8_t *h = data + (size_t)roll(&dice, records) * RECORD;
    switch (records ? roll(&dice, 6) : 0) {
    case 0:
        bytes = LLVMFuzzerMutate(data, bytes, max_bytes);
        break;
    case 1:
        h[156] = types[roll(&dice, sizeof types)];
        break;
    case 2: /* the size, as octal digits */
        h[124 + roll(&dice, 12)] = (uint8_t)(' ' + roll(&dice, 32));
        break;
    case 3: { /* a record over another */
        const uint8_t *from = data + (size_t)roll(&dice, records) * RECORD;
        memmove(h, from, RECORD);
        break;
    }
    default:
        LLVMFuzzerMutate(h, RECORD, RECORD);
    }
    if (roll(&dice, 8))
        repair_tar(data, bytes);
    return bytes;
}
