/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that runs out: a call is made again and again, each time with one allocation more before
 * the one that fails, until it succeeds; nothing may stay behind. */
#ifndef PEN_TESTS_UNIT_NET_MEMORY_H
#define PEN_TESTS_UNIT_NET_MEMORY_H

#include "base/sys.h"

static int memory_left, memory_held;

static void *memory_alloc(size_t bytes)
{
    void *p = memory_left-- > 0 ? pen__sys_real.alloc(bytes) : NULL;
    memory_held += p != NULL;
    return p;
}

static void *memory_resize(void *p, size_t bytes)
{
    void *q = memory_left-- > 0 ? pen__sys_real.resize(p, bytes) : NULL;
    memory_held += !p && q;
    return q;
}

static void memory_release(void *p)
{
    memory_held--;
    pen__sys_real.release(p);
}

/* `call` frees what it got. The number of allocations it takes, or -1: it left something behind,
 * or failed otherwise. */
static int memory_sweep(int (*call)(void))
{
    PenSys sys = pen__sys_real;
    sys.alloc = memory_alloc;
    sys.resize = memory_resize;
    sys.release = memory_release;
    pen__sys = &sys;
    int r = -2, n = 0; /* PEN_E_NO_MEMORY */
    for (; r == -2 && n < 1000; n++) {
        memory_left = n;
        memory_held = 0;
        r = call();
        if (memory_held)
            r = -1;
    }
    pen__sys = &pen__sys_real;
    return r >= 0 ? n - 1 : -1;
}

#endif
