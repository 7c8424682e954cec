/* SPDX-License-Identifier: Apache-2.0 */
/* How a pack in an object store is asked for: options, a callback for credentials, and Ctrl-C.
 *
 * Secrets are copied to pages of their own, which are left out of core dumps and wiped. The
 * library's threads call Python for credentials only, and not any more once the interpreter ends:
 * who asks for the lock of an interpreter that is gone never comes back. */
#include "py_core.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { N_TEXTS = 8, END_MS = 500, LAST_MS = 2000 };

struct CoreRemote {
    atomic_uint refs;
    PenRemoteSettings settings;
    PyObject *credentials; /* NULL: none */
    PyObject *raised;      /* by it, the last time; under the GIL */
    char *texts;           /* what the settings point to */
    size_t texts_bytes;
};

/* ---- the end of the interpreter ------------------------------------------------------------- */

/* Of this process: set once, when Python's exit begins. */
static atomic_int is_ending;
static pthread_t ending_in; /* set before it */
static atomic_int counts_pid;
static atomic_int n_inside; /* calls from the library's threads */
static atomic_int n_held;   /* by what the library has open */

/* In a forked child they begin anew: its parent's threads are not here. */
static void own_counts(void)
{
    int pid = (int)getpid();
    if (atomic_exchange(&counts_pid, pid) == pid)
        return;
    atomic_store(&n_inside, 0);
    atomic_store(&n_held, 0);
}

static int enter_python(PyGILState_STATE *ret)
{
    own_counts();
    atomic_fetch_add(&n_inside, 1);
    if (atomic_load(&is_ending)) {
        atomic_fetch_sub(&n_inside, 1);
        return -1;
    }
    *ret = PyGILState_Ensure();
    return 0;
}

static void leave_python(PyGILState_STATE state)
{
    PyGILState_Release(state);
    atomic_fetch_sub(&n_inside, 1);
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Until no more than `least` are counted. The clock decides and not the number of pauses: a pause
 * of 1 ms takes several on a busy machine. */
static void wait_for(atomic_int *count, const atomic_int *least, int ms)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    own_counts();
    Py_BEGIN_ALLOW_THREADS const int64_t end = now_ms() + ms;
    while (atomic_load(count) > (least ? atomic_load(least) : 0) && now_ms() < end)
        nanosleep(&moment, NULL);
    Py_END_ALLOW_THREADS
}

/* Nothing is asked for from now on, and all waits for servers end. Those who are in Python get a
 * moment to leave it. */
PyObject *core_end(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    if (!atomic_load(&is_ending))
        ending_in = pthread_self();
    atomic_store(&is_ending, 1);
    wait_for(&n_inside, NULL, END_MS);
    Py_RETURN_NONE;
}

/* Behind it, when all was closed: until threads that were left behind have closed their share.
 * Libraries that they use are torn down at the very end of the process. A callback that hangs in
 * Python keeps one hold, and uses none of these: it is not waited for a second time. */
PyObject *core_end_wait(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    wait_for(&n_held, &n_inside, LAST_MS);
    Py_RETURN_NONE;
}

int core_is_ending(void)
{
    return atomic_load(&is_ending);
}

/* By another thread than this one. */
static int ends_elsewhere(void)
{
    return atomic_load(&is_ending) && !pthread_equal(pthread_self(), ending_in);
}

/* ---- Ctrl-C --------------------------------------------------------------------------------- */

static _Thread_local CoreWait *waiting;

void core_wait_begin(CoreWait *w)
{
    *w = (CoreWait){.outer = waiting};
    waiting = w;
    w->thread = PyEval_SaveThread();
}

void core_wait_end(CoreWait *w)
{
    PyEval_RestoreThread(w->thread);
    waiting = w->outer;
}

/* By threads that wait for a server: those of Python look for signals, the others go on. */
static int interrupted(void *ctx)
{
    CoreWait *w = waiting;
    (void)ctx;
    if (ends_elsewhere())
        return 1;
    if (!w || w->give_up)
        return w != NULL;
    if (!w->raised) {
        PyEval_RestoreThread(w->thread);
        w->raised = PyErr_CheckSignals() < 0;
        w->thread = PyEval_SaveThread();
    }
    return w->raised;
}

int core_progress_tell(void *ctx, uint64_t done, uint64_t total)
{
    CoreProgress *p = ctx;
    if (core_is_ending())
        return 1;
    PyEval_RestoreThread(p->wait.thread);
    p->wait.raised = PyErr_CheckSignals() < 0;
    if (!p->wait.raised && p->call) {
        PyObject *answer = PyObject_CallFunction(p->call, "KK", (unsigned long long)done,
                                                 (unsigned long long)total);
        p->wait.raised = !answer;
        Py_XDECREF(answer);
    }
    p->wait.thread = PyEval_SaveThread();
    return p->wait.raised;
}

/* ---- credentials ---------------------------------------------------------------------------- */

/* What a callback gave, until the library has copied it: one call at a time in a thread. */
static _Thread_local char given[8192];

static int refuse(PenError *error, const char *text, const char *what)
{
    *error = (PenError){.status = PEN_E_ACCESS, .sample = -1, .where = CORE_CREDENTIALS};
    snprintf(error->message, sizeof error->message, "credentials: %s%s", text, what);
    return PEN_E_ACCESS;
}

/* The exception is kept, to be the cause of the error; its text may hold anything. */
static int refuse_exception(CoreRemote *self, PenError *error)
{
    PyObject *type, *value, *trace;
    char what[120] = "an exception";
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (value && trace)
        PyException_SetTraceback(value, trace);
    PyObject *name = type ? PyObject_GetAttrString(type, "__name__") : NULL;
    Py_ssize_t bytes;
    const char *text = name ? PyUnicode_AsUTF8AndSize(name, &bytes) : NULL;
    if (text)
        snprintf(what, sizeof what, "%.100s", text);
    PyErr_Clear();
    Py_XDECREF(name);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    Py_XDECREF(self->raised);
    self->raised = value;
    return refuse(error, "the callback raised ", what);
}

static int copy_text(PyObject *value, size_t *used, const char **ret)
{
    Py_ssize_t bytes;
    const char *text = PyUnicode_AsUTF8AndSize(value, &bytes);
    if (!text)
        return -1;
    if ((size_t)bytes >= sizeof given - *used || strlen(text) != (size_t)bytes) {
        PyErr_SetString(PyExc_ValueError, "expected shorter text without null bytes");
        return -1;
    }
    memcpy(given + *used, text, (size_t)bytes + 1);
    *ret = given + *used;
    *used += (size_t)bytes + 1;
    return 0;
}

/* (key_id, secret, token or None, seconds since 1970), as penstock/_remote.py makes it. */
static int take(PyObject *made, PenCredentials *ret)
{
    PyObject *key, *secret, *token;
    unsigned long long expires;
    size_t used = 0;
    if (!PyArg_ParseTuple(made, "UUOK", &key, &secret, &token, &expires) ||
        copy_text(key, &used, &ret->key_id) < 0 || copy_text(secret, &used, &ret->secret) < 0 ||
        (token != Py_None && copy_text(token, &used, &ret->token) < 0))
        return -1;
    ret->expires_s = expires;
    return 0;
}

static int ask(void *ctx, PenCredentials *ret, PenError *reterr)
{
    CoreRemote *self = ctx;
    PyGILState_STATE state;
    PenError error;
    int r = PEN_OK;
    if (enter_python(&state) < 0)
        r = refuse(&error, "the program is exiting", "");
    else {
        PyObject *made = PyObject_CallNoArgs(self->credentials);
        if (!made || take(made, ret) < 0)
            r = refuse_exception(self, &error);
        else
            Py_CLEAR(self->raised);
        Py_XDECREF(made);
        leave_python(state);
    }
    if (r < 0 && reterr)
        *reterr = error;
    return r;
}

static void taken(void *ctx)
{
    (void)ctx;
    explicit_bzero(given, sizeof given);
}

/* ---- its life ------------------------------------------------------------------------------- */

CoreRemote *core_remote_ref(CoreRemote *self)
{
    if (self)
        atomic_fetch_add(&self->refs, 1);
    return self;
}

static void destroy(CoreRemote *self)
{
    PyGILState_STATE state;
    if ((self->credentials || self->raised) && enter_python(&state) == 0) {
        Py_CLEAR(self->credentials);
        Py_CLEAR(self->raised);
        leave_python(state);
    }
    if (self->texts) {
        explicit_bzero(self->texts, self->texts_bytes);
        munmap(self->texts, self->texts_bytes);
    }
    free(self);
}

void core_remote_unref(CoreRemote *self)
{
    if (self && atomic_fetch_sub(&self->refs, 1) == 1)
        destroy(self);
}

static void hold(void *ctx)
{
    own_counts();
    atomic_fetch_add(&n_held, 1);
    core_remote_ref(ctx);
}

static void release(void *ctx)
{
    atomic_fetch_sub(&n_held, 1);
    core_remote_unref(ctx);
}

/* The texts, one behind the other, on pages that no core dump holds. */
static int copy_texts(CoreRemote *self, const char *const from[N_TEXTS], const char **to[N_TEXTS])
{
    size_t bytes = 1;
    for (int i = 0; i < N_TEXTS; i++)
        bytes += from[i] ? strlen(from[i]) + 1 : 0;
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        PyErr_NoMemory();
        return -1;
    }
    (void)madvise(at, bytes, MADV_DONTDUMP);
    self->texts = at;
    self->texts_bytes = bytes;
    for (int i = 0; i < N_TEXTS; i++) {
        if (!from[i])
            continue;
        size_t n = strlen(from[i]) + 1;
        *to[i] = memcpy(at, from[i], n);
        at += n;
    }
    return 0;
}

/* A tuple in the order of penstock/_remote.py. */
static int parse(CoreRemote *self, PyObject *options)
{
    PenRemoteSettings *s = &self->settings;
    const char *from[N_TEXTS];
    const char **to[N_TEXTS] = {&s->endpoint, &s->region, &s->profile, &s->key_id,
                                &s->secret,   &s->token,  &s->ca_file, &s->proxy};
    PyObject *credentials;
    int path_style, no_sign, requester_pays, allow_http;
    if (!PyArg_ParseTuple(options, "zzzzzzzzOipppIIII", &from[0], &from[1], &from[2], &from[3],
                          &from[4], &from[5], &from[6], &from[7], &credentials, &path_style,
                          &no_sign, &requester_pays, &allow_http, &s->deadline_ms, &s->outage_ms,
                          &s->in_flight, &s->node_ranks))
        return -1;
    s->path_style = (int8_t)path_style;
    s->no_sign = (uint8_t)no_sign;
    s->requester_pays = (uint8_t)requester_pays;
    s->allow_http = (uint8_t)allow_http;
    if (credentials != Py_None) {
        self->credentials = Py_NewRef(credentials);
        s->credentials = ask;
        s->credentials_taken = taken;
    }
    return copy_texts(self, from, to);
}

CoreRemote *core_remote_new(PyObject *options)
{
    CoreRemote *self = calloc(1, sizeof *self);
    if (!self) {
        PyErr_NoMemory();
        return NULL;
    }
    atomic_init(&self->refs, 1);
    PenRemoteSettings *s = &self->settings;
    pen_remote_settings_init(s);
    s->interrupted = interrupted;
    s->hold = hold;
    s->release = release;
    s->ctx = self;
    if (parse(self, options) < 0) {
        core_remote_unref(self);
        return NULL;
    }
    return self;
}

const PenRemoteSettings *core_remote_settings(const CoreRemote *self)
{
    return self ? &self->settings : NULL;
}

/* ---- what went wrong ------------------------------------------------------------------------ */

PyObject *core_remote_raise(CoreState *state, CoreRemote *self, const CoreWait *w,
                            const PenError *error)
{
    if (w && w->raised && PyErr_Occurred()) /* KeyboardInterrupt, mostly */
        return NULL;
    if (error->status == PEN_E_CANCELLED && ends_elsewhere()) {
        /* The thread ends too, quietly: an error would only be printed. */
        PyErr_SetNone(PyExc_SystemExit);
        return NULL;
    }
    core_raise(state, error);
    if (!self || !self->raised || strcmp(error->where, CORE_CREDENTIALS) != 0)
        return NULL;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (value)
        PyException_SetCause(value, Py_NewRef(self->raised));
    PyErr_Restore(type, value, trace);
    return NULL;
}
