/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pool.h"

#include <pthread.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/queue.h"
#include "base/thread.h"

typedef struct Job {
    void (*run)(void *arg);
    void *arg;
} Job;

struct PenPool {
    Job *jobs;       /* each is in `idle`, in `ready`, or run by a thread */
    PenQueue *idle;  /* room for a job */
    PenQueue *ready; /* jobs to run */
    pthread_mutex_t lock;
    pthread_cond_t done;
    size_t n_open; /* jobs handed in and not finished, guarded by lock */
    unsigned n_threads;
    pthread_t threads[];
};

static void finish_job(PenPool *pool)
{
    pthread_mutex_lock(&pool->lock);
    if (--pool->n_open == 0)
        pthread_cond_broadcast(&pool->done);
    pthread_mutex_unlock(&pool->lock);
}

static void *work(void *arg)
{
    PenPool *pool = arg;
    for (;;) {
        void *item;
        int r = pen__queue_pop(pool->ready, &item, UINT64_MAX);
        if (r == PEN_END)
            return NULL;
        if (r < 0)
            continue;
        Job job = *(Job *)item;
        /* There is always room: the queue holds as many as there are jobs. */
        pen__queue_push(pool->idle, item, 0);
        job.run(job.arg);
        finish_job(pool);
    }
}

static int start_threads(PenPool *pool, unsigned n_threads, PenError *reterr)
{
    int r = PEN_OK;
    while (r == PEN_OK && pool->n_threads < n_threads) {
        r = pen__thread_start(&pool->threads[pool->n_threads], work, pool, reterr);
        if (r == PEN_OK)
            pool->n_threads++;
    }
    if (r < 0)
        pen__error_prefix(reterr, "thread %u of %u", pool->n_threads + 1, n_threads);
    return r;
}

static int make_queues(PenPool *pool, size_t capacity, PenError *reterr)
{
    pool->jobs = pen__alloc_array(capacity, sizeof *pool->jobs);
    if (!pool->jobs)
        return pen__fail_memory(reterr, "base/pool", "jobs of a thread pool");
    int r = pen__queue_new(capacity, &pool->idle, reterr);
    if (r == PEN_OK)
        r = pen__queue_new(capacity, &pool->ready, reterr);
    for (size_t i = 0; r == PEN_OK && i < capacity; i++)
        r = pen__queue_push(pool->idle, &pool->jobs[i], 0);
    return r;
}

int pen__pool_start(unsigned n_threads, size_t capacity, PenPool **ret, PenError *reterr)
{
    if (n_threads == 0 || n_threads > 65536)
        return pen__fail(reterr, PEN_E_INVALID, "base/pool",
                         "thread pool: expected 1 to 65536 threads, found %u", n_threads);
    PenPool *pool = pen__zalloc(sizeof *pool + n_threads * sizeof pool->threads[0]);
    if (!pool)
        return pen__fail_memory(reterr, "base/pool", "thread pool");
    pthread_mutex_init(&pool->lock, NULL);
    int r = pen__cond_init(&pool->done);
    if (r < 0) {
        pen__free(pool);
        return pen__fail(reterr, r, "base/pool", "thread pool: out of memory");
    }
    r = make_queues(pool, capacity, reterr);
    if (r == PEN_OK)
        r = start_threads(pool, n_threads, reterr);
    if (r < 0) {
        pen__pool_stop(&pool);
        return r;
    }
    *ret = pool;
    return PEN_OK;
}

int pen__pool_submit(PenPool *pool, void (*run)(void *arg), void *arg, uint64_t deadline_ns)
{
    void *item;
    int r = pen__queue_pop(pool->idle, &item, deadline_ns);
    if (r != PEN_OK)
        return r;
    *(Job *)item = (Job){.run = run, .arg = arg};
    pthread_mutex_lock(&pool->lock);
    pool->n_open++;
    pthread_mutex_unlock(&pool->lock);
    r = pen__queue_push(pool->ready, item, 0);
    if (r != PEN_OK) { /* being stopped */
        pen__queue_push(pool->idle, item, 0);
        finish_job(pool);
    }
    return r;
}

int pen__pool_wait(PenPool *pool, uint64_t deadline_ns)
{
    int r = PEN_OK;
    pthread_mutex_lock(&pool->lock);
    while (pool->n_open && r == PEN_OK)
        r = pen__cond_wait(&pool->done, &pool->lock, deadline_ns);
    r = pool->n_open ? r : PEN_OK;
    pthread_mutex_unlock(&pool->lock);
    return r;
}

void pen__pool_stop(PenPool **pool)
{
    if (!pool || !*pool)
        return;
    PenPool *p = *pool;
    if (p->ready)
        pen__queue_close(p->ready);
    for (unsigned i = 0; i < p->n_threads; i++)
        pen__thread_join(p->threads[i]);
    pen__queue_free(&p->idle);
    pen__queue_free(&p->ready);
    pthread_cond_destroy(&p->done);
    pthread_mutex_destroy(&p->lock);
    pen__free(p->jobs);
    pen__free(p);
    *pool = NULL;
}
