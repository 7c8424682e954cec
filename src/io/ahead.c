/* SPDX-License-Identifier: Apache-2.0 */
#include "io/ahead.h"

#include <pthread.h>
#include <string.h>

#include "base/team.h"
#include "base/thread.h"

#define WHERE "io/ahead"

/* One piece is kept behind the reader. */
enum { THREADS = 8, PIECES = THREADS + 1 };

enum { FREE, READING, READY, FAILED };

typedef struct Piece {
    int state;
    uint64_t number;
    uint8_t *data;
    PenError error;
} Piece;

typedef struct Ahead {
    PenSource base;
    PenSource *inner;
    PenRemote *remote;
    PenTeam *team;
    pthread_mutex_t reader; /* one at a time */
    pthread_mutex_t mutex;  /* of all below */
    pthread_cond_t changed;
    uint64_t n;           /* pieces of the object */
    uint64_t first, next; /* of the window; to be read next */
    Piece pieces[PIECES]; /* number k is at k % PIECES */
    bool stop, has_mutexes;
} Ahead;

static size_t piece_bytes(const Ahead *a, uint64_t number)
{
    uint64_t left = a->inner->bytes - number * PEN_AHEAD_PIECE;
    return (size_t)PEN_MIN(left, (uint64_t)PEN_AHEAD_PIECE);
}

static bool in_window(const Ahead *a, uint64_t number)
{
    return number >= a->first && number < a->first + PIECES;
}

static int fetch(Ahead *a, Piece *p, uint64_t number)
{
    if (!p->data)
        p->data = pen__alloc(PEN_AHEAD_PIECE);
    if (!p->data)
        return pen__fail_memory(&p->error, WHERE, a->base.name);
    return pen__source_read(a->inner, p->data, piece_bytes(a, number), number * PEN_AHEAD_PIECE,
                            &p->error);
}

static void work(void *ctx, unsigned number)
{
    Ahead *a = ctx;
    (void)number;
    pthread_mutex_lock(&a->mutex);
    while (!a->stop) {
        Piece *p = &a->pieces[a->next % PIECES];
        if (p->number == a->next && p->state != FREE) {
            a->next++; /* from before a jump */
            continue;
        }
        if (a->next >= a->n || !in_window(a, a->next) || p->state != FREE) {
            pen__cond_wait(&a->changed, &a->mutex, pen__deadline_after(1000000000));
            continue;
        }
        p->state = READING;
        p->number = a->next++;
        pthread_mutex_unlock(&a->mutex);
        int r = fetch(a, p, p->number);
        pthread_mutex_lock(&a->mutex);
        p->state = !in_window(a, p->number) ? FREE : r < 0 ? FAILED : READY;
        pthread_cond_broadcast(&a->changed);
    }
    pthread_mutex_unlock(&a->mutex);
}

/* The window so that it begins at `first`; what falls out of it is free. */
static void move_window(Ahead *a, uint64_t first, uint64_t next)
{
    a->first = first;
    a->next = next;
    for (int i = 0; i < PIECES; i++) {
        Piece *p = &a->pieces[i];
        if (p->state != READING && !in_window(a, p->number))
            p->state = FREE;
    }
    pthread_cond_broadcast(&a->changed);
}

/* Waits for a piece, which stays until the window moves. */
static const Piece *await_piece(Ahead *a, uint64_t number)
{
    pthread_mutex_lock(&a->mutex);
    const Piece *p = &a->pieces[number % PIECES];
    bool comes = number >= a->next || (p->number == number && p->state != FREE);
    if (!in_window(a, number) || !comes)
        move_window(a, number, number);
    else if (number > a->first + 1)
        move_window(a, number - 1, PEN_MAX(a->next, number));
    while (p->number != number || (p->state != READY && p->state != FAILED))
        pen__cond_wait(&a->changed, &a->mutex, pen__deadline_after(1000000000));
    pthread_mutex_unlock(&a->mutex);
    return p;
}

static int ahead_read(PenSource *source, void *buf, size_t bytes, uint64_t offset, int again,
                      PenError *reterr)
{
    Ahead *a = (Ahead *)source;
    uint8_t *to = buf;
    int r = PEN_OK;
    if (again)
        return pen__source_read_again(a->inner, buf, bytes, offset, reterr);
    pthread_mutex_lock(&a->reader);
    while (bytes && r == PEN_OK) {
        const Piece *p = await_piece(a, offset / PEN_AHEAD_PIECE);
        size_t at = (size_t)(offset % PEN_AHEAD_PIECE);
        size_t part = PEN_MIN(bytes, (size_t)PEN_AHEAD_PIECE - at);
        r = p->state == READY ? PEN_OK : p->error.status;
        if (r < 0 && reterr)
            *reterr = p->error;
        if (r == PEN_OK)
            memcpy(to, p->data + at, part);
        to += part;
        offset += part;
        bytes -= part;
    }
    pthread_mutex_unlock(&a->reader);
    return r;
}

static void ahead_close(PenSource *source)
{
    Ahead *a = (Ahead *)source;
    if (a->team) {
        pthread_mutex_lock(&a->mutex);
        a->stop = true;
        pthread_cond_broadcast(&a->changed);
        pthread_mutex_unlock(&a->mutex);
        pen__remote_stop(a->remote, 1); /* nobody needs what is still being read */
        pen__team_join(&a->team);
        pen__remote_stop(a->remote, 0);
    }
    for (int i = 0; i < PIECES; i++)
        pen__free(a->pieces[i].data);
    if (a->has_mutexes) {
        pthread_cond_destroy(&a->changed);
        pthread_mutex_destroy(&a->mutex);
        pthread_mutex_destroy(&a->reader);
    }
    pen__source_close(&a->inner);
    pen__remote_close(&a->remote);
    pen__free(a);
}

static const PenSourceClass ahead_class = {.read = ahead_read, .close = ahead_close};

int pen__source_ahead(PenRemote *remote, PenSource **source, PenError *reterr)
{
    PenTeamWork team_work = {.name = "pen-ahead", .run = work};
    Ahead *a = pen__zalloc(sizeof *a);
    if (!a) {
        pen__source_close(source);
        return pen__fail_memory(reterr, WHERE, "source");
    }
    a->inner = *source;
    a->remote = pen__remote_ref(remote);
    a->base = (PenSource){
        .class_ = &ahead_class, .name = a->inner->name, .bytes = a->inner->bytes, .is_remote = 1};
    a->n = (a->inner->bytes + PEN_AHEAD_PIECE - 1) / PEN_AHEAD_PIECE;
    *source = &a->base;
    team_work.ctx = a;
    int r = pen__cond_init(&a->changed);
    if (r == PEN_OK) {
        pthread_mutex_init(&a->mutex, NULL);
        pthread_mutex_init(&a->reader, NULL);
        a->has_mutexes = true;
        unsigned threads = (unsigned)PEN_MIN(PEN_MAX(a->n, 1u), (uint64_t)THREADS);
        r = pen__team_start(&team_work, threads, &a->team, reterr);
    } else {
        pen__fail_memory(reterr, WHERE, a->base.name);
    }
    if (r < 0)
        pen__source_close(source);
    return r;
}
