/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for whole blocks. Blocks come and go at the speed of the network, each some megabytes: a
 * fresh piece of memory for each would cost more than receiving it. So pieces that fit the largest
 * block are used again. */
#include <string.h>

#include "base/attr.h"
#include "pack/reader/reader_impl.h"

/* A piece that is not in use begins with where the next one is. */
typedef struct Spare {
    struct Spare *next;
} Spare;

static size_t full_size(const PenPack *p)
{
    return (size_t)p->info.largest_block_bytes + PEN_SLACK;
}

int pen__block_room(PenPack *p, PenBlock *b, uint64_t bytes)
{
    size_t cap = full_size(p);
    Spare *spare = NULL;
    if (bytes > SIZE_MAX / 4)
        return -1;
    if (bytes < cap / 2 || bytes + PEN_SLACK > cap) {
        cap = (size_t)bytes + PEN_SLACK;
    } else {
        pthread_mutex_lock(&p->mutex);
        spare = p->spare;
        if (spare)
            p->spare = spare->next;
        pthread_mutex_unlock(&p->mutex);
    }
    b->data = spare ? (uint8_t *)spare : pen__alloc(cap);
    if (!b->data)
        return -1;
    if (!spare)
        pen__ask_huge(b->data, cap);
    b->cap = cap;
    memset(b->data + bytes, 0, PEN_SLACK);
    return 0;
}

void pen__block_room_free(PenPack *p, PenBlock *b)
{
    Spare *spare = (Spare *)(void *)b->data;
    if (!spare || b->cap != full_size(p) || b->cap < sizeof *spare) {
        pen__free_large(b->data, b->cap);
    } else {
        pthread_mutex_lock(&p->mutex);
        spare->next = p->spare;
        p->spare = spare;
        pthread_mutex_unlock(&p->mutex);
    }
    b->data = NULL;
}

void pen__pack_trim(PenPack *p)
{
    pthread_mutex_lock(&p->mutex);
    Spare *spare = p->spare;
    p->spare = NULL;
    pthread_mutex_unlock(&p->mutex);
    for (Spare *next; spare; spare = next) {
        next = spare->next;
        pen__free_large(spare, full_size(p));
    }
}
