/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of the library as exceptions: the classes are Python's (penstock/_error.py). */
#include "py_core.h"

#include <stdarg.h>
#include <stdio.h>

PyObject *core_error(CoreState *state, const PenError *error)
{
    PyObject *where = core_text(error->where);
    PyObject *message = core_text(error->message);
    PyObject *made = NULL;
    if (where && message)
        made =
            PyObject_CallFunction(state->make_error, "iiLOO", (int)error->status,
                                  (int)error->os_errno, (long long)error->sample, where, message);
    Py_XDECREF(where);
    Py_XDECREF(message);
    return made;
}

PyObject *core_raise(CoreState *state, const PenError *error)
{
    PyObject *made = core_error(state, error);
    if (made) {
        PyErr_SetObject((PyObject *)Py_TYPE(made), made);
        Py_DECREF(made);
    }
    return NULL;
}

PyObject *core_raise_text(CoreState *state, int status, const char *format, ...)
{
    PenError error = {.status = status, .sample = -1, .where = CORE_WHERE};
    va_list args;
    va_start(args, format);
    vsnprintf(error.message, sizeof error.message, format, args);
    va_end(args);
    return core_raise(state, &error);
}

/* STATUS = {"E_INVALID": -1, ...}, so that the classes are checked against the library's list. */
int core_add_statuses(PyObject *module)
{
    static const struct {
        const char *name;
        int value;
    } statuses[] = {
#define XX(name, value, text) {#name, value},
        PEN_STATUS_MAP(XX)
#undef XX
    };
    PyObject *dict = PyDict_New();
    int r = dict ? 0 : -1;
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses && r == 0; i++)
        r = core_set(dict, statuses[i].name, PyLong_FromLong(statuses[i].value));
    if (r == 0)
        r = PyModule_AddObjectRef(module, "STATUS", dict);
    Py_XDECREF(dict);
    return r;
}
