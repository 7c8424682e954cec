/* SPDX-License-Identifier: Apache-2.0 */
#include "arguments/selection.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output/messages.h"

static int take_item(PenPack *pack, const CliItem *item, CliRange *ret, PenError *reterr)
{
    uint64_t n = pen_pack_info(pack)->n_samples, sample;
    if (item->opt == CLI_OPT_SAMPLE) {
        if (item->value.second >= n)
            return cli_fail(reterr, PEN_E_NOT_FOUND,
                            "-s %s: the pack has %" PRIu64 " samples, numbered from 0",
                            item->value.text, n);
        *ret = (CliRange){item->value.number, item->value.second + 1};
        return PEN_OK;
    }
    const char *key = item->value.text;
    int r = pen_pack_find(pack, key, strlen(key), &sample, reterr);
    if (r == PEN_E_NOT_FOUND)
        return cli_fail(reterr, r,
                        "-k %s: no sample has this key; 'penstock info --samples' lists the keys",
                        key);
    if (r == PEN_OK)
        *ret = (CliRange){sample, sample + 1};
    return r;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = ((const CliRange *)a)->first, y = ((const CliRange *)b)->first;
    return (x > y) - (x < y);
}

/* In order, each sample once. */
static void tidy(CliSelection *s)
{
    size_t kept = 0;
    qsort(s->ranges, s->n, sizeof *s->ranges, compare);
    for (size_t i = 0; i < s->n; i++) {
        CliRange *last = kept > 0 ? &s->ranges[kept - 1] : NULL;
        if (!last || s->ranges[i].first > last->end)
            s->ranges[kept++] = s->ranges[i];
        else if (s->ranges[i].end > last->end)
            last->end = s->ranges[i].end;
    }
    s->n = kept;
    s->n_samples = 0;
    for (size_t i = 0; i < kept; i++)
        s->n_samples += s->ranges[i].end - s->ranges[i].first;
}

int cli_selection_make(PenPack *pack, const CliArgs *args, CliSelection *ret, PenError *reterr)
{
    size_t n = args->n_items > 0 ? args->n_items : 1;
    CliSelection s = {.ranges = calloc(n, sizeof *s.ranges), .n = n};
    int r = PEN_OK;
    if (!s.ranges)
        return cli_fail_memory(reterr);
    if (args->n_items == 0)
        s.ranges[0].end = pen_pack_info(pack)->n_samples;
    for (size_t i = 0; r == PEN_OK && i < args->n_items; i++)
        r = take_item(pack, &args->items[i], &s.ranges[i], reterr);
    if (r < 0) {
        free(s.ranges);
        return r;
    }
    tidy(&s);
    *ret = s;
    return PEN_OK;
}

void cli_selection_fini(CliSelection *selection)
{
    free(selection->ranges);
    *selection = (CliSelection){0};
}
