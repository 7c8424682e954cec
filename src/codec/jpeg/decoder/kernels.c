/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernels the own decoder uses, and whether it is used at all. */
#include <stdatomic.h>
#include <string.h>

#include "base/machine/cpu.h"
#include "base/sys.h"
#include "codec/jpeg/decoder/decoder_impl.h"

static const char where[] = "codec/jpeg";

static const PenOwnEntropy *entropy_of(int tier)
{
    switch (tier) {
#ifdef __x86_64__
    case PEN_CPU_AVX2:
        return &pen__own_entropy_avx2;
    case PEN_CPU_AVX512:
        return &pen__own_entropy_avx512;
#endif
    default:
        return &pen__own_entropy_c;
    }
}

/* PENSTOCK_JPEG=turbo switches the own decoder off, =own switches it on; without a word it is on
 * where it has kernels for vectors: libjpeg has them for all machines. As it was at the first call.
 */
static bool is_on_for(int tier)
{
    static atomic_int known; /* 1: off, 2: on */
    int state = atomic_load_explicit(&known, memory_order_relaxed);
    if (!state) {
        const char *word = pen__sys->environment("PENSTOCK_JPEG");
        bool on = tier != PEN_CPU_C;
        if (word && strcmp(word, "turbo") == 0)
            on = false;
        if (word && strcmp(word, "own") == 0)
            on = true;
        state = 1 + on;
        atomic_store_explicit(&known, state, memory_order_relaxed);
    }
    return state == 2;
}

bool pen__own_is_on(void)
{
    return is_on_for(pen__cpu());
}

bool pen__own_decodes(const PenOwn *own)
{
    return own->entropy != NULL;
}

int pen__own_new(PenOwn **ret, PenError *reterr)
{
    PenOwn *own = pen__zalloc(sizeof *own);
    if (!own)
        return pen__fail_memory(reterr, where, "decoder");
    own->entropy = pen__own_is_on() ? entropy_of(pen__cpu()) : NULL;
    own->pixels = pen__jpeg_pixels();
    *ret = own;
    return PEN_OK;
}

static void free_steps(PenOwn *own)
{
    for (size_t i = 0; i < PEN_LEN(own->steps); i++) {
        pen__free(own->steps[i]);
        own->steps[i] = NULL;
    }
}

int pen__own_use(PenOwn *own, const char *tier, PenError *reterr)
{
    int cpu = pen__cpu_find(tier);
    bool turbo = strcmp(tier, "turbo") == 0;
    if (!turbo && (cpu < 0 || !pen__cpu_has(cpu) || !pen__jpeg_pixels_tier(tier)))
        return pen__fail(reterr, PEN_E_UNSUPPORTED, where,
                         "kernels: expected a tier that this CPU supports, found '%s'", tier);
    own->entropy = turbo ? NULL : entropy_of(cpu);
    if (!turbo)
        own->pixels = pen__jpeg_pixels_tier(tier);
    free_steps(own); /* they depend on the order of coefficients */
    return PEN_OK;
}

void pen__own_free(PenOwn **own)
{
    PenOwn *o = own ? *own : NULL;
    if (!o)
        return;
    free_steps(o);
    pen__buf_free(&o->coefs_buf);
    pen__buf_free(&o->lists_buf);
    pen__buf_free(&o->copies_buf);
    pen__buf_free(&o->planes_buf);
    pen__buf_free(&o->rows_buf);
    pen__free(o->tables);
    pen__free(o);
    *own = NULL;
}
