/* SPDX-License-Identifier: Apache-2.0 */
/* penstock._core.Loader: the calls of penstock/loader.h. The library wants one thread at a time, so
 * each call here holds a lock; those that wait give it up ten times a second, for Ctrl-C and for
 * other threads that close the loader or look at its figures. */
#include "py_core.h"

#include <string.h>
#include <time.h>

enum { SLICE_MS = 100 };

typedef struct CoreLoader {
    PyObject_HEAD PenLoader *loader; /* NULL = closed; under the lock */
    pthread_mutex_t lock;
    pid_t pid;
    uint32_t stall_ms;
    uint64_t pass;      /* counts passes that were begun or ended */
    uint64_t ended;     /* the last pass whose end was reached; 0 = none */
    int is_used;        /* the pass has delivered a batch or an error */
    int is_peeked;      /* next() has returned a batch that was not delivered */
    uint32_t queued;    /* threads that wait for the lock; guarded by the GIL */
    uint32_t users;     /* threads that load single samples; guarded by the GIL */
    CoreRemote *remote; /* the pack's */
} CoreLoader;

/* ---- opening and closing -------------------------------------------------------------------- */

typedef struct Given { /* of the arguments, in the types that the parser wants */
    CorePack *pack;
    PyObject *mix; /* NULL or None: of this pack alone */
    Py_buffer subset, weights, buckets, lengths, frames;
    unsigned long long seed, shuffle_buffer, memory, max_bad, first, count;
} Given;

static int parse(CoreState *state, PyObject *args, PyObject *kwargs, Given *g, PenLoaderSettings *s)
{
    static char *names[] = {
        "pack",     "pipeline", "batch_size", "order",    "last_batch",     "seed",       "rank",
        "world",    "threads",  "io_threads", "prefetch", "shuffle_buffer", "memory",     "on_bad",
        "stall_ms", "max_bad",  "subset",     "first",    "count",          "keep_slots", "weights",
        "mix",      "buckets",  "tokens",     "lengths",  "frames",         NULL};
    PyObject *subset, *weights = Py_None, *buckets = Py_None, *lengths = Py_None;
    PyObject *frames = Py_None;
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "O!zIiiKIIiiIKKiIKOKKp|OOOIOO", names, state->pack, &g->pack,
            &s->pipeline, &s->batch_size, &s->order, &s->last_batch, &g->seed, &s->rank, &s->world,
            &s->threads, &s->io_threads, &s->prefetch, &g->shuffle_buffer, &g->memory, &s->on_bad,
            &s->stall_ms, &g->max_bad, &subset, &g->first, &g->count, &s->keep_slots, &weights,
            &g->mix, &buckets, &s->tokens, &lengths, &frames))
        return -1;
    s->seed = g->seed;
    s->shuffle_buffer = g->shuffle_buffer;
    s->memory_bytes = g->memory;
    s->max_bad = g->max_bad;
    s->first = g->first;
    s->count = g->count;
    if (subset != Py_None && PyObject_GetBuffer(subset, &g->subset, PyBUF_SIMPLE) < 0)
        return -1;
    if (weights != Py_None && PyObject_GetBuffer(weights, &g->weights, PyBUF_SIMPLE) < 0)
        return -1;
    if (buckets != Py_None && PyObject_GetBuffer(buckets, &g->buckets, PyBUF_SIMPLE) < 0)
        return -1;
    if (lengths != Py_None && PyObject_GetBuffer(lengths, &g->lengths, PyBUF_SIMPLE) < 0)
        return -1;
    if (frames != Py_None && PyObject_GetBuffer(frames, &g->frames, PyBUF_SIMPLE) < 0)
        return -1;
    s->subset = g->subset.buf;
    s->n_subset = (uint64_t)g->subset.len / sizeof *s->subset;
    s->weights = g->weights.buf;
    s->n_weights = (uint64_t)g->weights.len / sizeof *s->weights;
    s->buckets = g->buckets.buf;
    s->n_buckets = (uint32_t)((size_t)g->buckets.len / sizeof *s->buckets);
    s->lengths = g->lengths.buf;
    s->n_lengths = (uint32_t)((size_t)g->lengths.len / sizeof *s->lengths);
    s->frames = g->frames.buf;
    s->n_frames = (uint64_t)g->frames.len / sizeof *s->frames;
    return 0;
}

static int open_loader(CoreLoader *self, CorePack *from, PyObject *mix, const PenLoaderSettings *s)
{
    CoreState *state = core_state((PyObject *)self);
    self->remote = core_remote_ref(core_pack_remote(from));
    if (mix && mix != Py_None)
        return core_mix_open(state, self->remote, mix, s, &self->loader);
    PenError error = {0};
    CoreWait wait; /* sizes of images may be read */
    PenPack *pack = core_pack_enter(from);
    if (!pack)
        return -1;
    core_wait_begin(&wait);
    int r = pen_loader_open(pack, s, &self->loader, &error);
    core_wait_end(&wait);
    if (r < 0)
        core_remote_raise(state, self->remote, &wait, &error);
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace); /* leaving may run other code */
    core_pack_leave(from);
    PyErr_Restore(type, value, trace);
    return r < 0 || wait.raised ? -1 : 0;
}

static PyObject *loader_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    Given g = {0};
    PenLoaderSettings s;
    CoreLoader *self = NULL;
    pen_loader_settings_init(&s);
    if (parse(PyType_GetModuleState(type), args, kwargs, &g, &s) == 0) {
        self = (CoreLoader *)core_alloc(type);
    }
    if (self) {
        pthread_mutex_init(&self->lock, NULL);
        self->pid = getpid();
        self->stall_ms = s.stall_ms;
        /* What the library waits in one call; here it is called again. */
        s.stall_ms = s.stall_ms < SLICE_MS ? s.stall_ms : SLICE_MS;
        if (open_loader(self, g.pack, g.mix, &s) < 0)
            Py_CLEAR(self);
    }
    PyBuffer_Release(&g.subset);
    PyBuffer_Release(&g.weights);
    PyBuffer_Release(&g.buckets);
    PyBuffer_Release(&g.lengths);
    PyBuffer_Release(&g.frames);
    return (PyObject *)self;
}

static void take_lock(CoreLoader *self)
{
    self->queued++;
    core_lock(&self->lock);
    self->queued--;
}

/* Holds the lock when it gives a loader. */
static PenLoader *enter(CoreLoader *self)
{
    int here = self->pid == getpid();
    if (here)
        take_lock(self);
    if (here && self->loader)
        return self->loader;
    if (here)
        pthread_mutex_unlock(&self->lock);
    core_raise_text(core_state((PyObject *)self), PEN_E_CLOSED,
                    here ? "the loader is closed"
                         : "the loader belongs to the parent process; create one in this process");
    return NULL;
}

static void leave(CoreLoader *self)
{
    pthread_mutex_unlock(&self->lock);
}

static void sleep_a_little(void)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    Py_BEGIN_ALLOW_THREADS nanosleep(&moment, NULL);
    Py_END_ALLOW_THREADS
}

/* Between two slices of a wait: those who queue go first, which a lock alone does not see to. -1
 * with an exception. */
static int pause_wait(CoreLoader *self)
{
    for (int i = 0; i < SLICE_MS && self->queued; i++)
        sleep_a_little();
    return PyErr_CheckSignals();
}

static PyObject *loader_close(CoreLoader *self, PyObject *unused)
{
    (void)unused;
    if (self->pid == getpid()) {
        take_lock(self);
        while (self->users)
            sleep_a_little();
        Py_BEGIN_ALLOW_THREADS pen_loader_close(&self->loader);
        Py_END_ALLOW_THREADS leave(self);
    }
    Py_RETURN_NONE;
}

static void loader_dealloc(CoreLoader *self)
{
    if (self->pid == getpid()) {
        Py_BEGIN_ALLOW_THREADS pen_loader_close(&self->loader);
        Py_END_ALLOW_THREADS pthread_mutex_destroy(&self->lock);
    }
    core_remote_unref(self->remote);
    core_free((PyObject *)self);
}

/* ---- what it is ----------------------------------------------------------------------------- */

static PyObject *loader_len(CoreLoader *self, PyObject *unused)
{
    (void)unused;
    PenLoader *loader = enter(self);
    if (!loader)
        return NULL;
    uint64_t n = pen_loader_len(loader);
    leave(self);
    return PyLong_FromUnsignedLongLong(n);
}

static PyObject *loader_samples(CoreLoader *self, PyObject *unused)
{
    (void)unused;
    PenLoader *loader = enter(self);
    if (!loader)
        return NULL;
    uint64_t n = pen_loader_samples(loader);
    leave(self);
    return PyLong_FromUnsignedLongLong(n);
}

static PyObject *loader_dropped(CoreLoader *self, PyObject *unused)
{
    (void)unused;
    PenLoader *loader = enter(self);
    if (!loader)
        return NULL;
    uint64_t n = pen_loader_dropped(loader);
    leave(self);
    return PyLong_FromUnsignedLongLong(n);
}

static PyObject *loader_last_batch(CoreLoader *self, PyObject *unused)
{
    (void)unused;
    PenLoader *loader = enter(self);
    if (!loader)
        return NULL;
    int last_batch = pen_loader_last_batch(loader);
    leave(self);
    return PyLong_FromLong(last_batch);
}

static PyObject *loader_epoch(CoreLoader *self, PyObject *unused)
{
    (void)unused;
    PenLoader *loader = enter(self);
    if (!loader)
        return NULL;
    uint64_t n = pen_loader_epoch(loader);
    leave(self);
    return PyLong_FromUnsignedLongLong(n);
}

static PyObject *loader_pipeline(CoreLoader *self, PyObject *unused)
{
    (void)unused;
    PenLoader *loader = enter(self);
    if (!loader)
        return NULL;
    PyObject *text = core_text(pen_loader_pipeline(loader));
    leave(self);
    return text;
}

static PyObject *loader_warning(CoreLoader *self, PyObject *unused)
{
    (void)unused;
    PenLoader *loader = enter(self);
    if (!loader)
        return NULL;
    const char *text = pen_loader_warning(loader);
    PyObject *warning = text ? core_text(text) : Py_NewRef(Py_None);
    leave(self);
    return warning;
}

/* How many samples of each source were delivered; empty without a mixture. */
static PyObject *loader_source_counts(CoreLoader *self, PyObject *unused)
{
    (void)unused;
    PenLoader *loader = enter(self);
    if (!loader)
        return NULL;
    uint32_t n = pen_loader_sources(loader);
    uint64_t *counts = PyMem_Calloc((size_t)n + 1, sizeof *counts);
    PyObject *list = counts ? PyList_New(0) : PyErr_NoMemory();
    if (counts)
        pen_loader_source_counts(loader, counts);
    leave(self);
    for (uint32_t i = 0; list && i < n; i++) {
        PyObject *count = PyLong_FromUnsignedLongLong(counts[i]);
        if (!count || PyList_Append(list, count) < 0)
            Py_CLEAR(list);
        Py_XDECREF(count);
    }
    PyMem_Free(counts);
    return list;
}

/* (name, type, shape, channels_last, kind of list or None) */
static PyObject *field_tuple(const char *name, const PenTensor *t, int list)
{
    static const char *const kinds[] = {NULL, "text", "json", "bytes", "key", "ragged", "images"};
    PyObject *shape = PyTuple_New((Py_ssize_t)t->n_dims);
    for (uint32_t i = 0; shape && i < t->n_dims; i++) {
        PyObject *dim = PyLong_FromLongLong(t->shape[i]);
        if (!dim || PyTuple_SetItem(shape, (Py_ssize_t)i, dim) < 0)
            Py_CLEAR(shape);
    }
    return shape ? Py_BuildValue("(ssNOz)", name, pen_dtype_name(t->dtype), shape,
                                 t->channels_last ? Py_True : Py_False, kinds[list])
                 : NULL;
}

static PyObject *loader_fields(CoreLoader *self, PyObject *unused)
{
    (void)unused;
    PenLoader *loader = enter(self);
    if (!loader)
        return NULL;
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < pen_loader_fields(loader); i++) {
        PenTensor t = pen_loader_field_tensor(loader, i);
        int kind = pen_loader_field_list(loader, i);
        PyObject *field = field_tuple(pen_loader_field_name(loader, i), &t, kind);
        if (!field || PyList_Append(list, field) < 0)
            Py_CLEAR(list);
        Py_XDECREF(field);
    }
    leave(self);
    return list;
}

/* ---- going through it ----------------------------------------------------------------------- */

static PyObject *none_or_error(CoreLoader *self, int r, const PenError *error)
{
    leave(self);
    if (r < 0)
        return core_raise(core_state((PyObject *)self), error);
    Py_RETURN_NONE;
}

static PyObject *loader_set_epoch(CoreLoader *self, PyObject *args)
{
    PenError error = {0};
    unsigned long long epoch;
    int r;
    if (!PyArg_ParseTuple(args, "K", &epoch))
        return NULL;
    PenLoader *loader = enter(self);
    if (!loader)
        return NULL;
    if (epoch != pen_loader_epoch(loader))
        self->is_peeked = 0;
    Py_BEGIN_ALLOW_THREADS r = pen_loader_set_epoch(loader, epoch, &error);
    Py_END_ALLOW_THREADS;
    if (self->is_used) /* else it becomes a pass of this epoch */
        self->pass++;
    return none_or_error(self, r, &error);
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* A call that waits for the threads of the pass before, a slice at a time. */
typedef int (*Attempt)(PenLoader *loader, const void *arg, PenError *reterr);

static PyObject *attempt(CoreLoader *self, Attempt call, const void *arg)
{
    int64_t deadline = now_ms() + self->stall_ms;
    for (;;) {
        PenError error = {0};
        int r;
        PenLoader *loader = enter(self);
        if (!loader)
            return NULL;
        Py_BEGIN_ALLOW_THREADS r = call(loader, arg, &error);
        Py_END_ALLOW_THREADS;
        if (r != PEN_E_INVALID) /* a state that is refused leaves the pass as it is */
            self->pass++;
        if (r != PEN_E_TIMEOUT || now_ms() >= deadline)
            return none_or_error(self, r, &error);
        leave(self);
        if (pause_wait(self) < 0)
            return NULL;
    }
}

static int begin(PenLoader *loader, const void *arg, PenError *reterr)
{
    (void)arg;
    return pen_loader_begin(loader, reterr);
}

/* The number of the pass. */
static PyObject *loader_begin(CoreLoader *self, PyObject *unused)
{
    (void)unused;
    PyObject *done = attempt(self, begin, NULL);
    if (!done)
        return NULL;
    Py_DECREF(done);
    self->is_used = self->is_peeked = 0;
    return PyLong_FromUnsignedLongLong(self->pass);
}

/* The loader, when this pass is still the one under way. */
static PenLoader *enter_pass(CoreLoader *self, uint64_t pass)
{
    PenLoader *loader = enter(self);
    if (!loader || self->pass == pass)
        return loader;
    leave(self);
    core_raise_text(core_state((PyObject *)self), PEN_OK,
                    "this iterator has ended: the loader started another pass, or its state or "
                    "epoch was set; a loader runs one pass at a time: use a second Loader");
    return NULL;
}

/* One slice of waiting; -1 with an exception when there is nothing to wait on. */
static int wait_slice(CoreLoader *self, uint64_t pass, int64_t left_ms, PenBatch **ret_batch,
                      int *ret_r, PenError *error)
{
    int slice = left_ms < SLICE_MS ? (int)left_ms : SLICE_MS;
    PenLoader *loader = enter_pass(self, pass);
    if (!loader)
        return -1;
    *ret_r = PEN_END;
    if (self->ended != pass) { /* else the library would begin the next epoch */
        Py_BEGIN_ALLOW_THREADS *ret_r = pen_loader_peek(loader, slice, ret_batch, error);
        Py_END_ALLOW_THREADS;
    }
    if (*ret_r == PEN_END)
        self->ended = pass;
    self->is_peeked = *ret_r == PEN_OK;
    self->is_used |= *ret_r != PEN_E_TIMEOUT && *ret_r != PEN_OK;
    leave(self);
    return 0;
}

/* A batch of this pass, or None at its end. It is the same one until deliver() is called. */
static PyObject *loader_next(CoreLoader *self, PyObject *args)
{
    PenError error = {0};
    PenBatch *batch = NULL;
    int64_t deadline = now_ms() + self->stall_ms;
    unsigned long long pass;
    if (!PyArg_ParseTuple(args, "K", &pass))
        return NULL;
    for (;;) {
        int r = PEN_OK;
        int64_t left = deadline - now_ms();
        if (wait_slice(self, pass, left > 0 ? left : 0, &batch, &r, &error) < 0)
            return NULL;
        if (r == PEN_OK)
            return core_batch_new(core_state((PyObject *)self), batch);
        if (r == PEN_END)
            Py_RETURN_NONE;
        if (r != PEN_E_TIMEOUT || left <= SLICE_MS)
            return core_remote_raise(core_state((PyObject *)self), self->remote, NULL, &error);
        if (pause_wait(self) < 0)
            return NULL;
    }
}

/* The batch of next() is delivered. After another pass has begun, or the loader was closed, there
 * is none. */
static int count_batch(CoreLoader *self, uint64_t pass, PenError *reterr)
{
    PenBatch *batch = NULL;
    int r = PEN_OK;
    if (self->pid != getpid())
        return PEN_OK;
    take_lock(self);
    if (self->loader && self->pass == pass && self->is_peeked) {
        r = pen_loader_next(self->loader, 0, &batch, reterr); /* it does not wait */
        pen_batch_unref(&batch);
        self->is_peeked = 0;
        self->is_used = 1;
    }
    leave(self);
    return r;
}

/* deliver(pass[, function, argument]): the function is called afterwards. It is one of C, so that
 * no handler of a signal is called in between. */
static PyObject *loader_deliver(CoreLoader *self, PyObject *args)
{
    unsigned long long pass;
    PyObject *function = NULL, *argument = NULL;
    PenError error = {0};
    if (!PyArg_ParseTuple(args, "K|OO", &pass, &function, &argument))
        return NULL;
    if (count_batch(self, pass, &error) < 0)
        return core_raise(core_state((PyObject *)self), &error);
    return function ? PyObject_CallFunctionObjArgs(function, argument, NULL) : Py_NewRef(Py_None);
}

/* Raises if the pass has ended or the loader was closed. */
static PyObject *loader_check(CoreLoader *self, PyObject *args)
{
    unsigned long long pass;
    if (!PyArg_ParseTuple(args, "K", &pass) || !enter_pass(self, pass))
        return NULL;
    leave(self);
    Py_RETURN_NONE;
}

/* A batch of one sample, by number. Threads that call it do not wait for each other. */
static PyObject *loader_get(CoreLoader *self, PyObject *args)
{
    CoreState *state = core_state((PyObject *)self);
    PenError error = {0};
    PenBatch *batch = NULL;
    CoreWait wait;
    unsigned long long epoch, index;
    if (!PyArg_ParseTuple(args, "KK", &epoch, &index))
        return NULL;
    PenLoader *loader = enter(self);
    if (!loader)
        return NULL;
    self->users++;
    leave(self);
    core_wait_begin(&wait);
    int r = pen_loader_get(loader, epoch, index, &batch, &error);
    core_wait_end(&wait);
    self->users--;
    if (r < 0)
        return core_remote_raise(state, self->remote, &wait, &error);
    if (wait.raised) { /* the signal came with the sample */
        pen_batch_unref(&batch);
        return NULL;
    }
    return core_batch_new(state, batch);
}

/* ---- state and figures ---------------------------------------------------------------------- */

static PyObject *loader_save(CoreLoader *self, PyObject *unused)
{
    PenError error = {0};
    char buf[PEN_STATE_BYTES] = "";
    (void)unused;
    PenLoader *loader = enter(self);
    if (!loader)
        return NULL;
    int r = pen_loader_save(loader, buf, &error);
    leave(self);
    return r < 0 ? core_raise(core_state((PyObject *)self), &error) : core_text(buf);
}

/* 16 hexadecimal digits, as a state has them. */
static PyObject *loader_order_hash(CoreLoader *self, PyObject *unused)
{
    PenLoaderStats stats;
    (void)unused;
    PenLoader *loader = enter(self);
    if (!loader)
        return NULL;
    pen_loader_stats(loader, &stats);
    leave(self);
    return core_hash(stats.order_hash);
}

typedef struct Saved {
    const char *text;
    int strict;
} Saved;

static int restore(PenLoader *loader, const void *arg, PenError *reterr)
{
    const Saved *saved = arg;
    return pen_loader_restore(loader, saved->text, saved->strict, reterr);
}

static PyObject *loader_restore(CoreLoader *self, PyObject *args)
{
    Saved saved;
    if (!PyArg_ParseTuple(args, "sp", &saved.text, &saved.strict))
        return NULL;
    return attempt(self, restore, &saved);
}

static PyObject *loader_stats(CoreLoader *self, PyObject *args)
{
    PenLoaderStats stats;
    double transform_seconds;
    int epoch;
    if (!PyArg_ParseTuple(args, "pd", &epoch, &transform_seconds))
        return NULL;
    PenLoader *loader = enter(self);
    if (!loader)
        return NULL;
    if (epoch)
        pen_loader_epoch_stats(loader, &stats);
    else
        pen_loader_stats(loader, &stats);
    leave(self);
    return core_loader_stats(&stats, transform_seconds);
}

/* Of the current epoch. */
static PyObject *loader_diagnosis(CoreLoader *self, PyObject *args)
{
    PenLoaderStats stats;
    PenRunFacts facts;
    double transform_seconds;
    if (!PyArg_ParseTuple(args, "d", &transform_seconds))
        return NULL;
    PenLoader *loader = enter(self);
    if (!loader)
        return NULL;
    pen_loader_epoch_stats(loader, &stats);
    pen_run_facts_of(loader, &facts);
    leave(self);
    return core_loader_diagnosis(&stats, &facts, transform_seconds);
}

/* A Trace, or None to end it. It keeps the GIL, so that nobody closes the trace meanwhile. */
static PyObject *loader_trace(CoreLoader *self, PyObject *trace)
{
    CoreState *state = core_state((PyObject *)self);
    PenError error = {0};
    if (trace != Py_None && !PyObject_TypeCheck(trace, state->trace))
        return PyErr_Format(PyExc_TypeError, "trace: expected a Trace or None");
    PenLoader *loader = enter(self);
    if (!loader)
        return NULL;
    int r = pen_loader_trace(loader, trace == Py_None ? NULL : core_trace_of(trace), &error);
    return none_or_error(self, r, &error);
}

/* (epoch, sample, instead, status, message), or None behind the last. */
static PyObject *loader_bad_sample(CoreLoader *self, PyObject *args)
{
    PenBadSample bad = {0};
    unsigned long long i;
    if (!PyArg_ParseTuple(args, "K", &i))
        return NULL;
    PenLoader *loader = enter(self);
    if (!loader)
        return NULL;
    int r = pen_loader_bad_sample(loader, i, &bad);
    leave(self);
    if (r != PEN_OK)
        Py_RETURN_NONE;
    return Py_BuildValue("(KKKiN)", (unsigned long long)bad.epoch, (unsigned long long)bad.sample,
                         (unsigned long long)bad.instead, (int)bad.status, core_text(bad.message));
}

/* ---- the type ------------------------------------------------------------------------------- */

static PyMethodDef methods[] = {
    {"close", (PyCFunction)loader_close, METH_NOARGS, NULL},
    {"len", (PyCFunction)loader_len, METH_NOARGS, NULL},
    {"samples", (PyCFunction)loader_samples, METH_NOARGS, NULL},
    {"dropped", (PyCFunction)loader_dropped, METH_NOARGS, NULL},
    {"last_batch", (PyCFunction)loader_last_batch, METH_NOARGS, NULL},
    {"epoch", (PyCFunction)loader_epoch, METH_NOARGS, NULL},
    {"pipeline", (PyCFunction)loader_pipeline, METH_NOARGS, NULL},
    {"warning", (PyCFunction)loader_warning, METH_NOARGS, NULL},
    {"fields", (PyCFunction)loader_fields, METH_NOARGS, NULL},
    {"source_counts", (PyCFunction)loader_source_counts, METH_NOARGS, NULL},
    {"set_epoch", (PyCFunction)loader_set_epoch, METH_VARARGS, NULL},
    {"begin", (PyCFunction)loader_begin, METH_NOARGS, NULL},
    {"next", (PyCFunction)loader_next, METH_VARARGS, NULL},
    {"deliver", (PyCFunction)loader_deliver, METH_VARARGS, NULL},
    {"check", (PyCFunction)loader_check, METH_VARARGS, NULL},
    {"get", (PyCFunction)loader_get, METH_VARARGS, NULL},
    {"save", (PyCFunction)loader_save, METH_NOARGS, NULL},
    {"order_hash", (PyCFunction)loader_order_hash, METH_NOARGS, NULL},
    {"restore", (PyCFunction)loader_restore, METH_VARARGS, NULL},
    {"stats", (PyCFunction)loader_stats, METH_VARARGS, NULL},
    {"diagnosis", (PyCFunction)loader_diagnosis, METH_VARARGS, NULL},
    {"trace", (PyCFunction)loader_trace, METH_O, NULL},
    {"bad_sample", (PyCFunction)loader_bad_sample, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, loader_new},
    {Py_tp_dealloc, loader_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_doc, "An open loader."},
    {0, NULL},
};

PyType_Spec core_loader_spec = {
    .name = "penstock._core.Loader",
    .basicsize = sizeof(CoreLoader),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
