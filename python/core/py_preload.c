/* SPDX-License-Identifier: Apache-2.0 */
/* Bringing a pack into memory: it takes a while, so Ctrl-C is heard and others run meanwhile. */
#include "py_core.h"

typedef struct Telling {
    CoreWait *wait;
    PyObject *call; /* NULL: nobody wants to know */
} Telling;

/* By the thread that called us; an exception of the function's ends it as Ctrl-C does. */
static int tell(void *ctx, uint64_t done, uint64_t total)
{
    Telling *t = ctx;
    if (core_is_ending())
        return 1;
    PyEval_RestoreThread(t->wait->thread);
    t->wait->raised = PyErr_CheckSignals() < 0;
    if (!t->wait->raised && t->call) {
        PyObject *answer = PyObject_CallFunction(t->call, "KK", (unsigned long long)done,
                                                 (unsigned long long)total);
        t->wait->raised = !answer;
        Py_XDECREF(answer);
    }
    t->wait->thread = PyEval_SaveThread();
    return t->wait->raised;
}

int core_preload(CoreState *state, PenPack *pack, CoreRemote *remote, PyObject *how,
                 PenPreloadResult *ret)
{
    PenError error = {0};
    PenPreloadSettings s;
    CoreWait w;
    Telling t = {.wait = &w, .call = PyCallable_Check(how) ? how : NULL};
    pen_preload_settings_init(&s);
    s.progress = tell;
    s.ctx = &t;
    core_wait_begin(&w);
    int r = pen_pack_preload(pack, &s, ret, &error);
    core_wait_end(&w);
    if (r < 0)
        core_remote_raise(state, remote, &w, &error);
    return r < 0 || w.raised ? -1 : 0;
}
