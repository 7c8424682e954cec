/* SPDX-License-Identifier: Apache-2.0 */
/* A pipeline, a 0 byte and a pack (see pack_parts.h): every sample that can be loaded makes a batch
 * that holds together, and every other one an error. Views, texts, ragged fields and boxes have the
 * values of a pack that anybody may have written. Samples are loaded by number; those that are
 * mixed with others, or that share a token budget, in steps. */
#include <stdlib.h>
#include <string.h>

#include <penstock/loader.h>

#include "base/attr.h"
#include "help.h"
#include "mutate_pack.h"
#include "pack/reader/reader.h"
#include "pack_parts.h"

enum { MAX_SAMPLES = 8, MAX_STEPS = 4, MEMORY = 48 << 20 };

static const uint32_t lengths[] = {4, 12, 9};

static void check_list(const PenList *list, int kind, uint32_t n, int64_t length)
{
    REQUIRE(list->kind == kind && list->offsets[0] == 0);
    for (uint32_t i = 0; i < n; i++) {
        int64_t bytes = list->offsets[i + 1] - list->offsets[i];
        REQUIRE(bytes >= 0 && (list->validity[i / 8] >> i % 8 & 1 || bytes == 0));
    }
    REQUIRE(kind == PEN_LIST_IMAGES || list->offsets[n] == length);
}

/* Elements of a tensor; of images of different sizes, whose sizes are in the next field, those of
 * the first. */
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
    return n_sizes ? n / b->n_samples : n;
}

/* All values lie in the memory of the batch, and have been written. */
static void check_batch(const PenLoader *l, const PenBatch *b)
{
    const uint8_t *first = b->memory, *end = first + b->memory_bytes;
    REQUIRE(b->n_samples >= b->n_valid && b->n_valid >= 1 && b->n_fields == pen_loader_fields(l));
    for (uint32_t i = 0; i < b->n_fields; i++) {
        const PenTensor *t = &b->fields[i];
        const uint8_t *data = t->data;
        int kind = pen_loader_field_list(l, i);
        size_t bytes = count(b, i) * pen_dtype_bytes(t->dtype);
        if (kind)
            check_list(&b->lists[i], kind, b->n_samples, t->shape[0]);
        REQUIRE(kind || t->shape[0] == b->n_samples);
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

static void get_samples(PenLoader *l, uint64_t n)
{
    PenError err;
    for (uint64_t i = 0; i < n && i < MAX_SAMPLES; i++) {
        PenBatch *b = NULL;
        if (GOES(pen_loader_get(l, i, i, &b, &err))) {
            REQUIRE(b->n_samples == 1);
            check_batch(l, b);
        } else {
            REQUIRE(!b);
        }
        pen_batch_unref(&b);
    }
}

static void take_steps(PenLoader *l)
{
    PenError err;
    for (uint32_t i = 0; i < MAX_STEPS; i++) {
        PenBatch *b = NULL;
        int r = pen_loader_next(l, -1, &b, &err);
        REQUIRE(r == PEN_OK ? b != NULL : !b);
        if (r == PEN_OK)
            check_batch(l, b);
        pen_batch_unref(&b);
        if (r == PEN_END)
            break;
    }
}

static void load(PenPack *pack, const char *pipeline)
{
    PenError err;
    PenLoader *l = NULL;
    PenLoaderSettings s;
    uint64_t n = pen_pack_info(pack)->n_samples;
    bool mixes = strstr(pipeline, "mixup") || strstr(pipeline, "cutmix");
    bool has_budget = strstr(pipeline, "patches");
    pen_loader_settings_init(&s);
    s.pipeline = pipeline;
    s.batch_size = mixes ? 2 : 1;
    s.tokens = has_budget ? 26 : 0;
    s.lengths = has_budget ? lengths : NULL;
    s.n_lengths = has_budget ? PEN_LEN(lengths) : 0;
    s.threads = 1;
    s.memory_bytes = MEMORY;
    s.on_bad = strlen(pipeline) % 2 ? PEN_BAD_SUBSTITUTE : PEN_BAD_RAISE;
    if (!GOES(pen_loader_open(pack, &s, &l, &err)))
        return;
    if (mixes || has_budget)
        take_steps(l);
    else
        get_samples(l, n);
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
