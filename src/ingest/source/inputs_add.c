/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "ingest/source/input.h"

#define WHERE "ingest/plan"
#define PROGRESS_EVERY 1024

static int reserve_item(PenInputs *in, uint64_t bytes)
{
    if (in->n_items == in->cap) {
        uint64_t cap = in->cap ? in->cap * 2 : 64;
        struct PenInputAt *grown = pen__resize(in->items, (size_t)cap * sizeof *grown);
        if (!grown)
            return PEN_E_NO_MEMORY;
        in->items = grown;
        in->cap = cap;
    }
    return pen__buf_reserve(&in->arena, (size_t)bytes);
}

int pen__inputs_add(PenInputs *in, const char *key, size_t key_bytes, const char *label,
                    const PenCell *cells, uint32_t n_cells, PenError *reterr)
{
    if (key_bytes < 1 || key_bytes > PEN_KEY_LIMIT)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "%.200s: expected a key of 1 to %d bytes, found %zu", key, PEN_KEY_LIMIT,
                         key_bytes);
    uint32_t number = PEN_NO_LABEL;
    if (label) {
        int r = pen__name_set_add(&in->labels, label, strlen(label), &number, NULL, reterr);
        if (r < 0)
            return r;
        in->has_label = true;
    }
    uint64_t bytes = PEN_INPUT_HEAD + key_bytes;
    for (uint32_t i = 0; i < n_cells; i++)
        bytes += pen__cell_bytes(&cells[i]);
    if (reserve_item(in, bytes) < 0)
        return pen__fail_memory(reterr, WHERE, "list of inputs");
    uint8_t *p = in->arena.data + in->arena.bytes;
    pen__store32(p, (uint32_t)key_bytes);
    pen__store32(p + 4, n_cells);
    memcpy(p + PEN_INPUT_HEAD, key, key_bytes);
    p += PEN_INPUT_HEAD + key_bytes;
    for (uint32_t i = 0; i < n_cells; i++)
        p = pen__cell_store(p, &cells[i]);
    in->items[in->n_items].at = in->arena.bytes;
    in->items[in->n_items++].label = number;
    in->arena.bytes += (size_t)bytes;
    in->n_unlabelled += number == PEN_NO_LABEL;
    in->n++;
    int r = in->is_quiet || in->n % PROGRESS_EVERY
                ? PEN_OK
                : pen__inputs_report(in, "list", in->n, 0, reterr);
    return r < 0 ? r : pen__inputs_spill(in, false, reterr);
}

/* ---- files that are no inputs ---------------------------------------------------------------- */

int pen__inputs_ignore(PenInputs *in, const char *name, PenError *reterr)
{
    in->n_ignored++;
    if (!*in->first_ignored || strncmp(name, in->first_ignored, 255) < 0)
        snprintf(in->first_ignored, sizeof in->first_ignored, "%s", name);
    if (in->tars.n < PEN_TARS_NOTED && pen__name_is_tar(name) &&
        pen__names_add(&in->tars, name) < 0)
        return pen__fail_memory(reterr, WHERE, "names of tar files");
    return 0;
}

int pen__inputs_takes(PenInputs *in, const char *root, const char *name, PenError *reterr)
{
    bool is_image = pen__name_is_image(name), is_video = pen__name_is_video(name);
    if (in->what == PEN_INPUT_AUTO     ? is_image || is_video
        : in->what == PEN_INPUT_VIDEOS ? is_video
                                       : is_image)
        return 1;
    if (in->settings->kind == PEN_INPUT_AUTO && (is_image || is_video))
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%.200s: expected images or videos, found both, such as %.100s; choose "
                         "with --kind images or --kind videos: the others are then ignored",
                         root, name);
    return pen__inputs_ignore(in, name, reterr);
}
