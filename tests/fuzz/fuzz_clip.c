/* SPDX-License-Identifier: Apache-2.0 */
/* Which frames of a clip. Input: the parameters of the operation as text, a zero byte, two bytes
 * for the number of frames, one that says how their times come, the times (8 bytes each, or 2 as
 * distances). What is chosen is there, is the same when it is chosen again, goes forward unless it
 * begins again, and is all that is written. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "help.h"
#include "ops/run/program.h"

static PenProgram *program_of(const char *params)
{
    PenError err;
    PenSpec spec = {0};
    PenProgram *p = NULL;
    PenFieldKind kind = {.kind = PEN_KIND_CLIP};
    char text[PEN_MAX_TEXT + 100];
    snprintf(text, sizeof text, "decode | clip %.*s | center_crop 4", (int)PEN_MAX_TEXT, params);
    if (GOES(pen__spec_parse(text, &spec, &err)) && spec.n_fields == 1)
        (void)CALL(pen__program_new(&spec.fields[0], &kind, &p, &err));
    pen__spec_free(&spec);
    return p;
}

static int64_t *times_of(Input *in, uint32_t n, bool rising)
{
    int64_t *times = malloc(n * sizeof *times + 1);
    REQUIRE(times);
    for (uint32_t i = 0; i < n; i++) {
        uint8_t wide[8] = {0};
        size_t bytes;
        const uint8_t *from = take_bytes(in, rising ? 2 : 8, &bytes);
        memcpy(wide, from, bytes);
        memcpy(&times[i], wide, sizeof wide);
        if (rising)
            times[i] = times[i] * 1000000 + (i ? times[i - 1] : -5);
    }
    return times;
}

static void check(const PenProgram *p, const PenClipFrames *frames, uint64_t sample)
{
    PenError err;
    const PenClipRule *rule = pen__program_clip(p, NULL);
    size_t n = (size_t)rule->n * rule->frames;
    uint32_t *got = malloc(n * sizeof *got), *again = malloc(n * sizeof *got);
    REQUIRE(got && again);
    PenDrawKey key = pen__draw_key(1, sample);
    int r = CALL(pen__program_choose(p, frames, key, sample, got, &err));
    REQUIRE(r == PEN_OK || r == PEN_E_INVALID || r == PEN_E_NOT_FOUND || r == PEN_E_LIMIT);
    REQUIRE((r == PEN_E_NOT_FOUND) == !frames->n);
    for (size_t i = 0; r == PEN_OK && i < n; i++) {
        REQUIRE(got[i] < frames->n);
        if (i % rule->frames && rule->pad != PEN_PAD_LOOP && !rule->n_indices)
            REQUIRE(got[i] >= got[i - 1]);
    }
    if (r == PEN_OK) {
        MUST(pen__program_choose(p, frames, key, sample, again, &err));
        REQUIRE(memcmp(got, again, n * sizeof *got) == 0);
    }
    free(got);
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char *text = copy_of(data, bytes);
    const char *end = bytes ? memchr(text, 0, bytes) : NULL;
    PenProgram *p = end ? program_of(text) : NULL;
    if (p) {
        size_t used = (size_t)(end - text) + 1;
        Input in = {data + used, bytes - used};
        uint32_t n = take_below(&in, 3000);
        bool rising = take_byte(&in) & 1;
        int64_t *times = times_of(&in, n, rising);
        for (uint64_t sample = 0; sample < 3; sample++)
            check(p, &(PenClipFrames){.n = n, .times_ns = times}, sample);
        pen__program_free(&p);
        free(times);
    }
    free(text);
    return 0;
}
