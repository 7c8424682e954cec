/* SPDX-License-Identifier: Apache-2.0 */
/* The coefficients of an image with several scans are the only large thing libjpeg asks for. They
 * come from our memory: a small one is kept for the next image, and all of a large one goes back to
 * the system. What libjpeg frees by itself stays with malloc, as much as the largest image took,
 * once for each thread. */
#include <string.h>

#include "codec/jpeg/turbo/session.h"

/* libjpeg knows only pointers to it. */
struct jvirt_barray_control {
    struct jvirt_barray_control *next;
    JDIMENSION blocks, rows; /* of each row, and of them */
    JBLOCKARRAY array;       /* NULL until it is realised */
};

static jvirt_barray_ptr request(j_common_ptr cinfo, int pool, boolean pre_zero, JDIMENSION blocks,
                                JDIMENSION rows, JDIMENSION max_access)
{
    PenTurbo *t = cinfo->client_data;
    jvirt_barray_ptr p = cinfo->mem->alloc_small(cinfo, pool, sizeof *p);
    (void)pre_zero; /* always */
    (void)max_access;
    *p = (struct jvirt_barray_control){.next = t->coefs.list, .blocks = blocks, .rows = rows};
    t->coefs.list = p;
    return p;
}

enum { ALIGN = 64 }; /* of the first block, for vector code */

/* The blocks of all arrays lie before the pointers to their rows. */
static void lay_out(PenTurbo *t, uint64_t n_blocks)
{
    JBLOCKROW block =
        (JBLOCKROW)(((uintptr_t)t->coefs.block + ALIGN - 1) & ~(uintptr_t)(ALIGN - 1));
    JBLOCKARRAY rows = (JBLOCKARRAY)(void *)(block + n_blocks);
    memset(block, 0, (size_t)n_blocks * sizeof *block);
    for (jvirt_barray_ptr p = t->coefs.list; p; p = p->next) {
        p->array = rows;
        for (JDIMENSION y = 0; y < p->rows; y++, block += p->blocks)
            *rows++ = block;
    }
}

static void realise(j_common_ptr cinfo)
{
    PenTurbo *t = cinfo->client_data;
    uint64_t n_blocks = 0, n_rows = 0;
    for (jvirt_barray_ptr p = t->coefs.list; p; p = p->next) {
        n_blocks += (uint64_t)p->blocks * p->rows;
        n_rows += p->rows;
    }
    uint64_t bytes = n_blocks * sizeof(JBLOCK) + n_rows * sizeof(JBLOCKROW) + ALIGN;
    if (bytes > (uint64_t)cinfo->mem->max_memory_to_use)
        ERREXIT(cinfo, JERR_NO_BACKING_STORE);
    if (bytes > t->coefs.bytes) {
        pen__turbo_free_coefs(t);
        t->coefs.block = pen__alloc_array(bytes, 1);
        if (!t->coefs.block)
            ERREXIT1(cinfo, JERR_OUT_OF_MEMORY, 0);
        t->coefs.bytes = (size_t)bytes;
    }
    if (t->coefs.list)
        lay_out(t, n_blocks);
    t->coefs.realise(cinfo);
}

static JBLOCKARRAY look(j_common_ptr cinfo, jvirt_barray_ptr p, JDIMENSION first, JDIMENSION n,
                        boolean writable)
{
    (void)writable;
    if (!p->array || first > p->rows || n > p->rows - first)
        ERREXIT(cinfo, JERR_BAD_VIRTUAL_ACCESS);
    return p->array + first;
}

static void let_go(PenTurbo *t)
{
    t->coefs.list = NULL;
    if (t->coefs.bytes > PEN_TURBO_KEEP_BYTES)
        pen__turbo_free_coefs(t);
}

static void free_pool(j_common_ptr cinfo, int pool)
{
    PenTurbo *t = cinfo->client_data;
    let_go(t);
    t->coefs.free_pool(cinfo, pool);
}

static void self_destruct(j_common_ptr cinfo)
{
    PenTurbo *t = cinfo->client_data;
    let_go(t);
    t->coefs.self_destruct(cinfo);
}

void pen__turbo_own_coefs(PenTurbo *t)
{
    struct jpeg_memory_mgr *mem = t->d.mem;
    t->coefs.realise = mem->realize_virt_arrays;
    t->coefs.free_pool = mem->free_pool;
    t->coefs.self_destruct = mem->self_destruct;
    mem->request_virt_barray = request;
    mem->realize_virt_arrays = realise;
    mem->access_virt_barray = look;
    mem->free_pool = free_pool;
    mem->self_destruct = self_destruct;
}

void pen__turbo_free_coefs(PenTurbo *t)
{
    pen__free_large(t->coefs.block, t->coefs.bytes);
    t->coefs.block = NULL;
    t->coefs.bytes = 0;
}
