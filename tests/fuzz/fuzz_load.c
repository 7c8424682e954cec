/* SPDX-License-Identifier: Apache-2.0 */
/* A pipeline, a 0 byte and a pack (see pack_parts.h): every sample that can be loaded makes a batch
 * that holds together, and every other one an error. Views, texts, ragged fields and boxes have the
 * values of a pack that anybody may have written. */
#include <stdlib.h>
#include <string.h>

#include <penstock/loader.h>

#include "help.h"
#include "mutate_pack.h"
#include "pack/reader/reader.h"
#include "pack_parts.h"

enum { MAX_SAMPLES = 8, MEMORY = 48 << 20 };

static void check_list(const PenList *list, int kind, int64_t length)
{
    REQUIRE(list->kind == kind && list->offsets[0] == 0 && list->validity[0] <= 1);
    REQUIRE(list->offsets[1] >= 0 && (list->validity[0] || list->offsets[1] == 0));
    REQUIRE(kind == PEN_LIST_IMAGES || list->offsets[1] == length);
}

/* Elements of a tensor. Height and width that differ are in the next field. */
static size_t count(const PenBatch *b, uint32_t field)
{
    const PenTensor *t = &b->fields[field];
    size_t n = 1;
    uint32_t n_sizes = 0;
    REQUIRE(t->n_dims >= 1 && t->n_dims <= PEN_TENSOR_DIMS);
    for (uint32_t d = 0; d < t->n_dims; d++) {
        int64_t side = t->shape[d];
        if (side < 0) {
            REQUIRE(n_sizes < 2 && field + 1 < b->n_fields);
            side = ((const int64_t *)b->fields[field + 1].data)[n_sizes++];
            REQUIRE(side > 0);
        }
        n *= (size_t)side;
    }
    return n;
}

/* Of one sample. All values lie in the memory of the batch, and have been written. */
static void check_batch(const PenLoader *l, const PenBatch *b)
{
    const uint8_t *first = b->memory, *end = first + b->memory_bytes;
    REQUIRE(b->n_samples == 1 && b->n_valid == 1 && b->n_fields == pen_loader_fields(l));
    for (uint32_t i = 0; i < b->n_fields; i++) {
        const PenTensor *t = &b->fields[i];
        const uint8_t *data = t->data;
        int kind = pen_loader_field_list(l, i);
        size_t bytes = count(b, i) * pen_dtype_bytes(t->dtype);
        if (kind)
            check_list(&b->lists[i], kind, t->shape[0]);
        REQUIRE(kind || t->shape[0] == 1);
        REQUIRE(!bytes || (data >= first && data <= end && bytes <= (size_t)(end - data)));
        require_written(data, bytes);
    }
}

/* A state that was written can be restored. */
static void check_state(PenLoader *l)
{
    char text[PEN_STATE_BYTES], again[PEN_STATE_BYTES];
    PenError err;
    MUST(pen_loader_save(l, text, &err));
    MUST(pen_loader_restore(l, text, 1, &err));
    MUST(pen_loader_save(l, again, &err));
    REQUIRE(strcmp(text, again) == 0);
}

static void load(PenPack *pack, const char *pipeline)
{
    PenError err;
    PenLoader *l = NULL;
    PenLoaderSettings s;
    uint64_t n = pen_pack_info(pack)->n_samples;
    pen_loader_settings_init(&s);
    s.pipeline = pipeline;
    s.batch_size = 1;
    s.threads = 1;
    s.memory_bytes = MEMORY;
    s.on_bad = strlen(pipeline) % 2 ? PEN_BAD_SUBSTITUTE : PEN_BAD_RAISE;
    if (!GOES(pen_loader_open(pack, &s, &l, &err)))
        return;
    for (uint64_t i = 0; i < n && i < MAX_SAMPLES; i++) {
        PenBatch *b = NULL;
        if (GOES(pen_loader_get(l, i, i, &b, &err)))
            check_batch(l, b);
        else
            REQUIRE(!b);
        pen_batch_unref(&b);
    }
    if (n)
        check_state(l);
    pen_loader_close(&l);
}

/* Bytes of the pipeline and its 0. */
static size_t text_bytes(const uint8_t *data, size_t bytes)
{
    const uint8_t *end = bytes ? memchr(data, 0, bytes) : NULL;
    return end ? (size_t)(end - data) + 1 : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    size_t n = text_bytes(data, bytes);
    PackParts parts;
    PenPack *pack = NULL;
    PenError err;
    if (!n)
        return 0;
    char *pipeline = copy_of(data, n);
    parts_split(data + n, bytes - n, &parts);
    if (GOES(pen__pack_open_with("fuzz", parts_open, &parts, &pack, &err))) {
        load(pack, pipeline);
        pen_pack_close(&pack);
    }
    parts_free(&parts);
    free(pipeline);
    return 0;
}

/* The text keeps its length when it changes, so that the pack stays where it is. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t max_bytes, unsigned seed)
{
    Dice dice = {seed};
    size_t n = text_bytes(data, bytes);
    if (n > 1 && !roll(&dice, 3)) {
        LLVMFuzzerMutate(data, n - 1, n - 1);
        for (size_t i = 0; i + 1 < n; i++)
            data[i] = data[i] ? data[i] : ' ';
        return bytes;
    }
    return n + mutate_pack(data + n, bytes - n, max_bytes - n, seed);
}
