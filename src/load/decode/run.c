/* SPDX-License-Identifier: Apache-2.0 */
#include "load/decode/run.h"

#include <inttypes.h>

#include "base/sys.h"
#include "load/decode/replacement.h"
#include "load/decode/sample.h"

/* The message gets the sample's number and key. */
static void name_sample(PenPack *pack, PenTask *t)
{
    char key[96];
    size_t bytes = 0;
    uint64_t sample = t->to.sample;
    int r = pen_pack_key(pack, sample, NULL, 0, &bytes, NULL);
    t->error.sample = (int64_t)sample;
    if (r == PEN_OK && bytes < sizeof key)
        r = pen_pack_key(pack, sample, key, sizeof key, &bytes, NULL);
    if (r == PEN_OK && bytes < sizeof key)
        pen__error_prefix(&t->error, "sample %" PRIu64 " '%.*s'", sample, (int)bytes, key);
    else
        pen__error_prefix(&t->error, "sample %" PRIu64, sample);
}

static int decode(PenTasks *tasks, const PenImageDecoder *decoder, PenTask *t)
{
    PenStageClock *clock = pen__task_clock(t);
    uint64_t begin = pen__stage_begin(clock), cpu = clock ? pen__sys->thread_ns() : 0;
    pen__decode_context_time(decoder->context, clock);
    int r = pen__sample_decode(tasks, decoder, t);
    pen__decode_context_time(decoder->context, NULL);
    if (clock)
        clock->decode_cpu_ns += pen__sys->thread_ns() - cpu;
    pen__stage_end(clock, PEN_TIMED_DECODE, begin);
    return r;
}

void pen__task_run(PenTasks *tasks, const PenImageDecoder *decoder, PenTask *t)
{
    const PenLoadPlan *plan = tasks->plan;
    if (t->status == PEN_OK && !plan->no_decode)
        t->status = decode(tasks, decoder, t);
    if (t->status < 0) {
        name_sample(t->to.pack, t);
        if (plan->sources)
            pen__error_prefix(&t->error, "%.100s", pen__pack_path(t->to.pack));
        if (plan->set.on_bad == PEN_BAD_SUBSTITUTE)
            t->status = pen__sample_replace(tasks, decoder, t);
    }
}
