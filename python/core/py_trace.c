/* SPDX-License-Identifier: Apache-2.0 */
/* penstock._core.Trace: the calls of penstock/trace.h. */
#include "py_core.h"

typedef struct CoreTrace {
    PyObject_HEAD PenTrace *trace; /* NULL = closed; guarded by the GIL */
} CoreTrace;

static PyObject *trace_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"path", "rank", "world", NULL};
    CoreState *state = PyType_GetModuleState(type);
    PenTraceSettings s;
    PenError error = {0};
    PyObject *path;
    int r;
    pen_trace_settings_init(&s);
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&II", names, PyUnicode_FSConverter, &path,
                                     &s.rank, &s.world))
        return NULL;
    CoreTrace *self = (CoreTrace *)core_alloc(type);
    if (self) {
        Py_BEGIN_ALLOW_THREADS r = pen_trace_open(PyBytes_AsString(path), &s, &self->trace, &error);
        Py_END_ALLOW_THREADS;
        if (r < 0) {
            core_raise(state, &error);
            Py_CLEAR(self);
        }
    }
    Py_DECREF(path);
    return (PyObject *)self;
}

PenTrace *core_trace_of(PyObject *self)
{
    return ((CoreTrace *)self)->trace;
}

/* (events, dropped, bytes, what went wrong or None). */
static PyObject *trace_close(CoreTrace *self, PyObject *unused)
{
    PenTraceStats stats = {0};
    PenError error = {0};
    PenTrace *trace = self->trace;
    int r;
    (void)unused;
    self->trace = NULL;
    Py_BEGIN_ALLOW_THREADS r = pen_trace_close(&trace, &stats, &error);
    Py_END_ALLOW_THREADS;
    return Py_BuildValue("(KKKN)", (unsigned long long)stats.events,
                         (unsigned long long)stats.dropped, (unsigned long long)stats.bytes,
                         r < 0 ? core_text(error.message) : Py_NewRef(Py_None));
}

/* The calls below are short, and keep the GIL, so that nobody closes the trace meanwhile. */
static PyObject *trace_span(CoreTrace *self, PyObject *args)
{
    const char *name;
    unsigned long long begin_ns, end_ns;
    if (!PyArg_ParseTuple(args, "yKK", &name, &begin_ns, &end_ns))
        return NULL;
    pen_trace_span(self->trace, name, begin_ns, end_ns);
    Py_RETURN_NONE;
}

static PyObject *trace_counter(CoreTrace *self, PyObject *args)
{
    const char *name, *series;
    double value;
    if (!PyArg_ParseTuple(args, "yyd", &name, &series, &value))
        return NULL;
    pen_trace_counter(self->trace, name, series, value);
    Py_RETURN_NONE;
}

static PyObject *trace_thread(CoreTrace *self, PyObject *args)
{
    const char *name;
    if (!PyArg_ParseTuple(args, "y", &name))
        return NULL;
    pen_trace_thread(self->trace, name);
    Py_RETURN_NONE;
}

static void trace_dealloc(CoreTrace *self)
{
    Py_BEGIN_ALLOW_THREADS(void) pen_trace_close(&self->trace, NULL, NULL);
    Py_END_ALLOW_THREADS;
    core_free((PyObject *)self);
}

static PyMethodDef methods[] = {
    {"close", (PyCFunction)trace_close, METH_NOARGS, NULL},
    {"span", (PyCFunction)trace_span, METH_VARARGS, NULL},
    {"counter", (PyCFunction)trace_counter, METH_VARARGS, NULL},
    {"thread", (PyCFunction)trace_thread, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A trace that is being written."},
    {Py_tp_new, trace_new},
    {Py_tp_dealloc, trace_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec core_trace_spec = {
    .name = "penstock._core.Trace",
    .basicsize = sizeof(CoreTrace),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
