/* SPDX-License-Identifier: Apache-2.0 */
/* What all types of the module need: making and freeing objects, locks, texts, dicts. */
#include "py_core.h"

#include <string.h>

CoreState *core_state(PyObject *self)
{
    return PyType_GetModuleState(Py_TYPE(self));
}

PyObject *core_alloc(PyTypeObject *type)
{
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    return alloc(type, 0);
}

void core_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

void core_lock(pthread_mutex_t *lock)
{
    if (pthread_mutex_trylock(lock) == 0)
        return;
    Py_BEGIN_ALLOW_THREADS pthread_mutex_lock(lock);
    Py_END_ALLOW_THREADS
}

PyObject *core_text(const char *text)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "surrogateescape");
}

int core_set(PyObject *dict, const char *key, PyObject *value)
{
    int r = value ? PyDict_SetItemString(dict, key, value) : -1;
    Py_XDECREF(value);
    return r;
}
