/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of penstock._core share. It stands on the stable ABI of CPython 3.11 and on the
 * public headers, and needs neither NumPy nor torch.
 *
 * Objects remember the process that made them: after fork() a pack opens itself again, all others
 * answer ClosedError, and none of them is torn down in the child, where locks may be held by
 * threads that are not there. */
#ifndef PEN_PY_CORE_H
#define PEN_PY_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <pthread.h>
#include <unistd.h>

#include <penstock/penstock.h>

#include "tools.h"

/* Names that every error here has as its `where`. */
#define CORE_WHERE "python"
#define CORE_CREDENTIALS "python/credentials" /* of those from a callback for credentials */

typedef struct CoreState {
    PyObject *make_error; /* penstock._error.make */
    PyTypeObject *pack, *writer, *loader, *batch, *tensor, *trace, *pass;
} CoreState;

/* py_error.c: an exception for an error, or NULL with another one. */
PyObject *core_error(CoreState *state, const PenError *error);
/* Both raise and return NULL. */
PyObject *core_raise(CoreState *state, const PenError *error);
PyObject *core_raise_text(CoreState *state, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int core_add_statuses(PyObject *module);

/* py_object.c */
CoreState *core_state(PyObject *self); /* of an object of one of our types */
/* A zeroed object of one of our types, and the last step of its dealloc. */
PyObject *core_alloc(PyTypeObject *type);
void core_free(PyObject *self);
/* A lock that lets other Python threads run while it waits. */
void core_lock(pthread_mutex_t *lock);
/* Text that may be bytes of any kind, as file names and class names may. */
PyObject *core_text(const char *text);
/* dict[key] = value, and gives up the reference to value; accepts a NULL value. -1 on failure. */
int core_set(PyObject *dict, const char *key, PyObject *value);

/* py_stats.c: the counters of a loader as a dict; times are in seconds. */
PyObject *core_loader_stats(const PenLoaderStats *stats, double transform_seconds);
/* 16 hexadecimal digits. */
PyObject *core_hash(uint64_t hash);
/* What limits the speed, as a dict. */
PyObject *core_loader_diagnosis(const PenLoaderStats *stats, PenRunFacts *facts,
                                double transform_seconds);

/* py_remote.c: how packs in object stores are asked for; counted, and used by the library's threads
 * too. NULL stands for a path, or for what the environment says. */
typedef struct CoreRemote CoreRemote;
CoreRemote *core_remote_new(PyObject *options); /* a tuple; NULL with an exception */
CoreRemote *core_remote_ref(CoreRemote *self);
void core_remote_unref(CoreRemote *self); /* with the GIL or without */
const PenRemoteSettings *core_remote_settings(const CoreRemote *self);
PyObject *core_end(PyObject *module, PyObject *unused);
PyObject *core_end_wait(PyObject *module, PyObject *unused);
int core_is_ending(void);

/* Around calls that may wait for a server: other Python threads run meanwhile, and Ctrl-C ends the
 * wait. */
typedef struct CoreWait {
    PyThreadState *thread;
    struct CoreWait *outer; /* a signal's handler may wait too */
    int raised;             /* an exception is set */
    int give_up;            /* wait for nothing: the user has interrupted before */
} CoreWait;
void core_wait_begin(CoreWait *w);
void core_wait_end(CoreWait *w);
/* For the `progress` of calls in such a wait, by the thread that called. What the function raises
 * ends the call as Ctrl-C does. */
typedef struct CoreProgress {
    CoreWait wait;
    PyObject *call; /* a function of what is done and in total, or NULL */
} CoreProgress;
int core_progress_tell(void *ctx, uint64_t done, uint64_t total);
/* As core_raise; what a signal or a callback for credentials has raised comes first, or is the
 * cause. */
PyObject *core_remote_raise(CoreState *state, CoreRemote *self, const CoreWait *w,
                            const PenError *error);

/* py_open.c: a pack, or NULL with an exception; other Python threads run meanwhile. */
typedef struct CorePlace {
    const char *path;
    const char *cache; /* a directory, or NULL */
    unsigned long long cache_bytes;
    CoreRemote *remote;
    const char *files; /* texts, each with its end: roots, then old and new directories in turn */
    size_t files_bytes;
    unsigned n_roots;
} CorePlace;
PenPack *core_open(CoreState *state, const CorePlace *place);

/* py_preload.c: `how` may be a function to be told of progress. -1 with an exception. */
int core_preload(CoreState *state, PenPack *pack, CoreRemote *remote, PyObject *how,
                 PenPreloadResult *ret);

/* py_pack.c: the pack for a call that is about to begin, or NULL; every enter has its leave. */
typedef struct CorePack CorePack;
PenPack *core_pack_enter(CorePack *self);
void core_pack_leave(CorePack *self);
CoreRemote *core_pack_remote(CorePack *self);

/* py_mix.c: the loader of a mixture, from a tuple; -1 with an exception. */
int core_mix_open(CoreState *state, CoreRemote *remote, PyObject *mix,
                  const PenLoaderSettings *settings, PenLoader **ret);

/* py_batch.c: takes over the lease, also when it fails. */
PyObject *core_batch_new(CoreState *state, PenBatch *batch);

/* py_trace.c: NULL = closed. */
PenTrace *core_trace_of(PyObject *self);

/* py_memory.c: memory of the caller that results are written to: uint8, without gaps, of the
 * expected shape. */
typedef struct CoreMemory {
    Py_buffer view;    /* of an object with the buffer protocol */
    PyObject *capsule; /* of one with DLPack */
    uint8_t *data;
    size_t bytes;
} CoreMemory;
/* -1 with an exception that names `out`. Every open memory has its close. */
int core_memory_open(CoreState *state, PyObject *object, PyObject *shape, CoreMemory *ret);
void core_memory_close(CoreMemory *memory); /* zeroed, it is closed already */

/* py_writer.c */
PyObject *core_finalise(PyObject *module, PyObject *args);

/* py_objects.c */
PyObject *core_remote_list(PyObject *module, PyObject *args);
PyObject *core_remote_read(PyObject *module, PyObject *args);

/* py_decode.c */
PyObject *core_decode(PyObject *module, PyObject *args);

/* py_ops.c */
PyObject *core_ops(PyObject *module, PyObject *unused);
PyObject *core_pipeline_check(PyObject *module, PyObject *text);

extern PyType_Spec core_pack_spec, core_writer_spec, core_loader_spec, core_batch_spec,
    core_tensor_spec, core_trace_spec, core_pass_spec;

#endif
