/* SPDX-License-Identifier: Apache-2.0 */
/* penstock._core.Pass: the iterator that loaders return. A subclass makes each item; here it is
 * counted as delivered and returned. Python calls the handlers of signals between its bytecodes,
 * so none is called between these two steps: if one raises before, the item is the next one again,
 * and after them a `for` loop has it. */
#include "py_core.h"

#include <pythread.h>

typedef struct CorePass {
    PyObject_HEAD PyThread_type_lock lock; /* one thread at a time makes an item */
    unsigned long owner;                   /* the thread with the lock; 0 = none */
    pid_t pid;
} CorePass;

static PyObject *pass_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)args;
    (void)kwargs;
    CorePass *self = (CorePass *)core_alloc(type);
    if (!self)
        return NULL;
    self->pid = getpid();
    self->lock = PyThread_allocate_lock();
    if (!self->lock) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void pass_dealloc(CorePass *self)
{
    if (self->lock)
        PyThread_free_lock(self->lock);
    core_free((PyObject *)self);
}

static int lock_pass(CorePass *self)
{
    PyLockStatus status;
    if (self->owner == PyThread_get_thread_ident()) {
        PyErr_SetString(PyExc_RuntimeError,
                        "the loader already prepares a batch in this thread: transform= and "
                        "handlers of signals cannot request another batch of the same iterator");
        return -1;
    }
    do {
        Py_BEGIN_ALLOW_THREADS status = PyThread_acquire_lock_timed(self->lock, -1, 1);
        Py_END_ALLOW_THREADS if (status == PY_LOCK_INTR && PyErr_CheckSignals() < 0) return -1;
    } while (status != PY_LOCK_ACQUIRED);
    self->owner = PyThread_get_thread_ident();
    return 0;
}

/* `loaded` is (item, function, argument). */
static PyObject *deliver(PyObject *loaded)
{
    PyObject *item, *function, *argument;
    if (!PyArg_ParseTuple(loaded, "OOO", &item, &function, &argument))
        return NULL;
    PyObject *done = PyObject_CallFunctionObjArgs(function, argument, NULL);
    if (!done)
        return NULL;
    Py_DECREF(done);
    return Py_NewRef(item);
}

static PyObject *pass_next(CorePass *self)
{
    /* In the child of a fork, a thread that does not exist there may hold the lock. Loading fails
     * there. */
    int here = self->pid == getpid();
    if (here && lock_pass(self) < 0)
        return NULL;
    PyObject *loaded = PyObject_CallMethod((PyObject *)self, "_load", NULL);
    PyObject *item = loaded ? deliver(loaded) : NULL;
    if (here) {
        self->owner = 0;
        PyThread_release_lock(self->lock);
    }
    Py_XDECREF(loaded);
    return item;
}

static PyType_Slot slots[] = {
    {Py_tp_new, pass_new},
    {Py_tp_dealloc, pass_dealloc},
    {Py_tp_iter, PyObject_SelfIter},
    {Py_tp_iternext, pass_next},
    {Py_tp_doc, "An iterator whose items count as delivered when it returns them."},
    {0, NULL},
};

PyType_Spec core_pass_spec = {
    .name = "penstock._core.Pass",
    .basicsize = sizeof(CorePass),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
