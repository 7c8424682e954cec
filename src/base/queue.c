/* SPDX-License-Identifier: Apache-2.0 */
#include "base/queue.h"

#include <pthread.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/thread.h"

struct PenQueue {
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t not_full;
    pthread_cond_t not_empty;
    bool closed;
    size_t capacity;
    size_t head; /* the oldest item */
    size_t n_items;
    void **items; /* a ring of `capacity` */
};

int pen__queue_new(size_t capacity, PenQueue **ret, PenError *reterr)
{
    if (capacity == 0)
        return pen__fail(reterr, PEN_E_INVALID, "base/queue", "queue: expected room for 1 or more");
    PenQueue *q = pen__zalloc(sizeof *q);
    if (!q)
        return pen__fail_memory(reterr, "base/queue", "queue");
    int r = PEN_E_NO_MEMORY;
    q->capacity = capacity;
    q->items = pen__alloc_array(capacity, sizeof *q->items);
    if (!q->items)
        goto out;
    r = pen__cond_init(&q->not_full);
    if (r < 0)
        goto out;
    r = pen__cond_init(&q->not_empty);
    if (r < 0) {
        pthread_cond_destroy(&q->not_full);
        goto out;
    }
    pthread_mutex_init(&q->lock, NULL);
    *ret = q;
    return PEN_OK;
out:
    pen__free(q->items);
    pen__free(q);
    return pen__fail(reterr, r, "base/queue", "queue of %zu: out of memory", capacity);
}

void pen__queue_free(PenQueue **q)
{
    if (!q || !*q)
        return;
    pthread_cond_destroy(&(*q)->not_full);
    pthread_cond_destroy(&(*q)->not_empty);
    pthread_mutex_destroy(&(*q)->lock);
    pen__free((*q)->items);
    pen__free(*q);
    *q = NULL;
}

int pen__queue_push(PenQueue *q, void *item, uint64_t deadline_ns)
{
    int r = PEN_OK;
    pthread_mutex_lock(&q->lock);
    while (!q->closed && q->n_items == q->capacity && r == PEN_OK)
        r = pen__cond_wait(&q->not_full, &q->lock, deadline_ns);
    if (q->closed) {
        r = PEN_END;
    } else if (q->n_items < q->capacity) {
        q->items[(q->head + q->n_items) % q->capacity] = item;
        q->n_items++;
        r = PEN_OK;
        pthread_cond_signal(&q->not_empty);
    }
    pthread_mutex_unlock(&q->lock);
    return r;
}

int pen__queue_pop(PenQueue *q, void **ret, uint64_t deadline_ns)
{
    int r = PEN_OK;
    pthread_mutex_lock(&q->lock);
    while (!q->closed && q->n_items == 0 && r == PEN_OK)
        r = pen__cond_wait(&q->not_empty, &q->lock, deadline_ns);
    if (q->n_items) {
        *ret = q->items[q->head];
        q->head = (q->head + 1) % q->capacity;
        q->n_items--;
        r = PEN_OK;
        pthread_cond_signal(&q->not_full);
    } else if (q->closed) {
        r = PEN_END;
    }
    pthread_mutex_unlock(&q->lock);
    return r;
}

void pen__queue_close(PenQueue *q)
{
    pthread_mutex_lock(&q->lock);
    q->closed = true;
    pthread_cond_broadcast(&q->not_full);
    pthread_cond_broadcast(&q->not_empty);
    pthread_mutex_unlock(&q->lock);
}
