/* SPDX-License-Identifier: Apache-2.0 */
/* penstock._core.remote_list and remote_read: objects that are no packs. */
#include "py_core.h"

/* A call to a store that fills in a Python object, with the lock of the interpreter now and then.
 */
typedef struct Call {
    CoreWait wait; /* first */
    PyObject *result;
    PyObject *options; /* of the arguments */
    CoreRemote *remote;
} Call;

static int call_begin(Call *c)
{
    c->remote = core_remote_new(c->options);
    if (!c->remote)
        return -1;
    core_wait_begin(&c->wait);
    return 0;
}

/* The result, or NULL with what was raised. */
static PyObject *call_end(Call *c, PyObject *module, int r, const PenError *error)
{
    core_wait_end(&c->wait);
    if (r < 0) {
        if (!PyErr_Occurred())
            core_remote_raise(PyModule_GetState(module), c->remote, &c->wait, error);
        Py_CLEAR(c->result);
    } else if (c->wait.raised) {
        Py_CLEAR(c->result); /* the signal came with the answer */
    }
    core_remote_unref(c->remote);
    return c->result;
}

static int add_object(void *ctx, const char *name, uint64_t bytes)
{
    Call *c = ctx;
    PyEval_RestoreThread(c->wait.thread);
    PyObject *item = NULL;
    if (PyErr_CheckSignals() == 0)
        item = Py_BuildValue("NK", core_text(name), (unsigned long long)bytes);
    int r = item ? PyList_Append(c->result, item) : -1;
    Py_XDECREF(item);
    c->wait.thread = PyEval_SaveThread();
    return r;
}

/* remote_list(prefix, options): [(name below the prefix, bytes), ...] */
PyObject *core_remote_list(PyObject *module, PyObject *args)
{
    Call c = {.result = NULL};
    PenError error = {0};
    const char *prefix;
    if (!PyArg_ParseTuple(args, "sO", &prefix, &c.options))
        return NULL;
    c.result = PyList_New(0);
    if (!c.result || call_begin(&c) < 0) {
        Py_XDECREF(c.result);
        return NULL;
    }
    int r = pen_remote_list(prefix, core_remote_settings(c.remote), add_object, &c, &error);
    return call_end(&c, module, r, &error);
}

static void *make_bytes(void *ctx, uint64_t bytes)
{
    Call *c = ctx;
    PyEval_RestoreThread(c->wait.thread);
    c->result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)bytes);
    void *data = c->result ? PyBytes_AsString(c->result) : NULL;
    c->wait.thread = PyEval_SaveThread();
    return data;
}

/* remote_read(prefix, name, most bytes, options): the bytes of an object. */
PyObject *core_remote_read(PyObject *module, PyObject *args)
{
    Call c = {.result = NULL};
    PenError error = {0};
    const char *prefix, *name;
    unsigned long long most;
    if (!PyArg_ParseTuple(args, "ssKO", &prefix, &name, &most, &c.options) || call_begin(&c) < 0)
        return NULL;
    int r =
        pen_remote_read(prefix, name, core_remote_settings(c.remote), most, make_bytes, &c, &error);
    return call_end(&c, module, r, &error);
}
