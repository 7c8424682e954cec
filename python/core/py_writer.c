/* SPDX-License-Identifier: Apache-2.0 */
/* penstock._core.Writer: values come as objects with a buffer; penstock/_writer.py makes them so.
 */
#include "py_core.h"

#include <string.h>

typedef struct CoreWriter {
    PyObject_HEAD PenWriter *writer; /* NULL = closed; under the lock */
    pthread_mutex_t lock;
    pid_t pid;
    uint32_t n_fields;
    CoreRemote *remote;
    int interrupted; /* by a signal: closing waits for no server */
} CoreWriter;

/* ---- opening -------------------------------------------------------------------------------- */

/* What the settings point to; the objects they were taken from outlive it. */
typedef struct Fields {
    PenField *fields;
    const char **classes;
} Fields;

static void fields_free(Fields *f)
{
    PyMem_Free(f->fields);
    PyMem_Free((void *)f->classes);
}

static int read_dims(PyObject *dims, PenField *field)
{
    Py_ssize_t n = PyTuple_Size(dims);
    if (n < 0 || n > (Py_ssize_t)(sizeof field->dims / sizeof *field->dims)) {
        PyErr_SetString(PyExc_ValueError, "shape: expected at most 4 dimensions");
        return -1;
    }
    field->n_dims = (uint32_t)n;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PyTuple_GetItem(dims, i);
        unsigned long dim = item == Py_None ? PEN_DIM_ANY : PyLong_AsUnsignedLong(item);
        if (PyErr_Occurred())
            return -1;
        if (dim > UINT32_MAX) {
            PyErr_SetString(PyExc_OverflowError, "shape: expected dimensions below 2^32");
            return -1;
        }
        field->dims[i] = (uint32_t)dim;
    }
    return 0;
}

/* [(name, type, flags, dims), ...]; a dim of None is PEN_DIM_ANY. */
static int read_fields(PyObject *list, Fields *ret, PenWriterSettings *s)
{
    Py_ssize_t n = PyList_Size(list);
    ret->fields = PyMem_Calloc((size_t)n + 1, sizeof *ret->fields);
    if (!ret->fields) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PenField *field = &ret->fields[i];
        PyObject *dims;
        if (!PyArg_ParseTuple(PyList_GetItem(list, i), "siIO!", &field->name, &field->type,
                              &field->flags, &PyTuple_Type, &dims) ||
            read_dims(dims, field) < 0)
            return -1;
    }
    s->fields = ret->fields;
    s->n_fields = (uint32_t)n;
    return 0;
}

static int read_classes(PyObject *list, Fields *ret, PenWriterSettings *s)
{
    Py_ssize_t n = PyList_Size(list);
    ret->classes = PyMem_Calloc((size_t)n + 1, sizeof *ret->classes);
    if (!ret->classes) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        ret->classes[i] = PyBytes_AsString(PyList_GetItem(list, i));
        if (!ret->classes[i])
            return -1;
    }
    s->classes = ret->classes;
    s->n_classes = (uint32_t)n;
    return 0;
}

/* 0, or -1 with what was raised. */
static int end_call(CoreWriter *self, const CoreWait *w, int r, const PenError *error)
{
    if (r < 0)
        core_remote_raise(core_state((PyObject *)self), self->remote, w, error);
    self->interrupted |= w->raised;
    return r < 0 || w->raised ? -1 : 0;
}

/* Without a server that answers, what was begun there is left to `penstock gc`. */
static int close_writer(CoreWriter *self)
{
    CoreWait w;
    core_wait_begin(&w);
    w.give_up = self->interrupted || core_is_ending();
    pen_writer_close(&self->writer);
    core_wait_end(&w);
    return w.raised ? -1 : 0;
}

static int open_writer(CoreWriter *self, const char *path, const PenWriterSettings *s)
{
    PenError error = {0};
    CoreWait w;
    core_wait_begin(&w);
    int r = pen_writer_open(path, s, &self->writer, &error);
    core_wait_end(&w);
    self->n_fields = s->n_fields;
    return end_call(self, &w, r, &error);
}

static PyObject *writer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"path",        "fields",
                            "class_field", "classes",
                            "mode",        "quality",
                            "max_side",    "short_side",
                            "raw_share",   "check_decode",
                            "sixteen_bit", "no_index",
                            "progressive", "block_samples",
                            "shard_bytes", "name",
                            "remote",      "work",
                            "task",        "n_tasks",
                            "codec",       "smart_threshold",
                            "in_place",    NULL};
    PenWriterSettings s;
    Fields f = {0};
    PyObject *path = NULL, *fields, *classes, *remote;
    unsigned long long block_samples, shard_bytes, smart_threshold;
    pen_writer_settings_init(&s);
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "O&O!zO!iiIIdpipiKKsOzIIiKp", names, PyUnicode_FSConverter, &path,
            &PyList_Type, &fields, &s.class_field, &PyList_Type, &classes, &s.mode, &s.quality,
            &s.max_side, &s.short_side, &s.raw_share, &s.check_decode, &s.sixteen_bit, &s.no_index,
            &s.progressive, &block_samples, &shard_bytes, &s.name, &remote, &s.work, &s.task,
            &s.n_tasks, &s.codec, &smart_threshold, &s.in_place))
        return NULL;
    s.block_samples = block_samples;
    s.shard_bytes = shard_bytes;
    s.smart_threshold = smart_threshold;
    CoreWriter *self = (CoreWriter *)core_alloc(type);
    if (self) {
        pthread_mutex_init(&self->lock, NULL);
        self->pid = getpid();
        if (remote != Py_None)
            self->remote = core_remote_new(remote);
        s.remote = core_remote_settings(self->remote);
        if ((remote != Py_None && !self->remote) || read_fields(fields, &f, &s) < 0 ||
            read_classes(classes, &f, &s) < 0 || open_writer(self, PyBytes_AsString(path), &s) < 0)
            Py_CLEAR(self);
    }
    fields_free(&f);
    Py_DECREF(path);
    return (PyObject *)self;
}

/* ---- adding --------------------------------------------------------------------------------- */

/* All that one sample holds while it is added. */
typedef struct Row {
    PenValue *values; /* one for each field, then the frames of all clips */
    int64_t *times;
    Py_buffer *buffers;
    size_t n_buffers, n_parts, n_times;
} Row;

static void row_free(Row *row)
{
    for (size_t i = 0; i < row->n_buffers; i++)
        PyBuffer_Release(&row->buffers[i]);
    PyMem_Free(row->values);
    PyMem_Free(row->times);
    PyMem_Free(row->buffers);
}

static int is_clip(PyObject *value)
{
    return PyTuple_Check(value);
}

/* Frames of a video: (path, times). */
static int is_video(PyObject *clip)
{
    return PyTuple_Size(clip) == 2 && PyBytes_Check(PyTuple_GetItem(clip, 0));
}

/* Of a video there are times alone. */
static Py_ssize_t n_frames(PyObject *clip)
{
    PyObject *frames = PyTuple_GetItem(clip, is_video(clip));
    return frames ? PyList_Size(frames) : -1;
}

static int row_alloc(Row *row, PyObject *values, uint32_t n_fields)
{
    size_t n = 0;
    for (Py_ssize_t i = 0; i < (Py_ssize_t)n_fields; i++) {
        PyObject *value = PyList_GetItem(values, i);
        Py_ssize_t frames = is_clip(value) ? n_frames(value) : 0;
        if (frames < 0)
            return -1;
        n += (size_t)frames;
    }
    row->values = PyMem_Calloc(n_fields + n + 1, sizeof *row->values);
    row->times = PyMem_Calloc(n + 1, sizeof *row->times);
    row->buffers = PyMem_Calloc(n_fields + n + 1, sizeof *row->buffers);
    if (!row->values || !row->times || !row->buffers) {
        PyErr_NoMemory();
        return -1;
    }
    row->n_parts = n_fields;
    return 0;
}

static int add_buffer(Row *row, PyObject *object, PenValue *value)
{
    Py_buffer *buffer = &row->buffers[row->n_buffers];
    if (PyObject_GetBuffer(object, buffer, PyBUF_SIMPLE) < 0)
        return -1;
    row->n_buffers++;
    value->data = buffer->buf ? buffer->buf : ""; /* NULL would be a missing value */
    value->bytes = (size_t)buffer->len;
    return 0;
}

static int add_times(Row *row, PyObject *times, PenValue *value)
{
    Py_ssize_t n = PyList_Size(times);
    value->timestamps_ns = &row->times[row->n_times];
    for (Py_ssize_t i = 0; i < n; i++) {
        row->times[row->n_times] = PyLong_AsLongLong(PyList_GetItem(times, i));
        if (row->times[row->n_times++] == -1 && PyErr_Occurred())
            return -1;
    }
    return 0;
}

static int add_video(Row *row, PyObject *clip, PenValue *value)
{
    PyObject *path, *times;
    if (!PyArg_ParseTuple(clip, "SO!", &path, &PyList_Type, &times))
        return -1;
    value->n_frames = (uint32_t)PyList_Size(times);
    return add_buffer(row, path, value) < 0 ? -1 : add_times(row, times, value);
}

/* (frames, times): two lists; times is empty or as long as frames. */
static int add_clip(Row *row, PyObject *clip, PenValue *value)
{
    PyObject *frames, *times;
    if (!PyArg_ParseTuple(clip, "O!O!", &PyList_Type, &frames, &PyList_Type, &times))
        return -1;
    Py_ssize_t n = PyList_Size(frames);
    Py_ssize_t n_given = PyList_Size(times);
    value->frames = &row->values[row->n_parts];
    value->n_frames = (uint32_t)n;
    for (Py_ssize_t i = 0; i < n; i++)
        if (add_buffer(row, PyList_GetItem(frames, i), &row->values[row->n_parts++]) < 0)
            return -1;
    return n_given == n ? add_times(row, times, value) : 0;
}

static int fill_row(Row *row, PyObject *values, uint32_t n_fields)
{
    if (row_alloc(row, values, n_fields) < 0)
        return -1;
    for (uint32_t i = 0; i < n_fields; i++) {
        PyObject *value = PyList_GetItem(values, (Py_ssize_t)i);
        if (value == Py_None) /* missing: data stays NULL */
            continue;
        int r = !is_clip(value)   ? add_buffer(row, value, &row->values[i])
                : is_video(value) ? add_video(row, value, &row->values[i])
                                  : add_clip(row, value, &row->values[i]);
        if (r < 0)
            return -1;
    }
    return 0;
}

/* Holds the lock when it returns 0. */
static int enter(CoreWriter *self)
{
    int here = self->pid == getpid();
    if (here)
        core_lock(&self->lock);
    if (here && self->writer)
        return 0;
    if (here)
        pthread_mutex_unlock(&self->lock);
    core_raise_text(core_state((PyObject *)self), PEN_E_CLOSED,
                    here ? "the writer is closed"
                         : "the writer belongs to the parent process; create one in this process");
    return -1;
}

static PyObject *writer_add(CoreWriter *self, PyObject *args)
{
    PenError error = {0};
    Row row = {0};
    const char *key;
    Py_ssize_t key_bytes;
    PyObject *values;
    CoreWait w = {0};
    int r = 0;
    if (!PyArg_ParseTuple(args, "y#O!", &key, &key_bytes, &PyList_Type, &values))
        return NULL;
    if (PyList_Size(values) != (Py_ssize_t)self->n_fields)
        return PyErr_Format(PyExc_ValueError, "expected %u values", (unsigned)self->n_fields);
    if (enter(self) < 0)
        return NULL;
    int ready = fill_row(&row, values, self->n_fields) == 0;
    if (ready) {
        core_wait_begin(&w);
        r = pen_writer_add(self->writer, key, (size_t)key_bytes, row.values, self->n_fields,
                           &error);
        core_wait_end(&w);
    }
    pthread_mutex_unlock(&self->lock);
    row_free(&row);
    if (!ready || end_call(self, &w, r, &error) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* ---- ending --------------------------------------------------------------------------------- */

static PyObject *writer_finish(CoreWriter *self, PyObject *unused)
{
    PenError error = {0};
    uint64_t n = 0;
    CoreWait w;
    (void)unused;
    if (enter(self) < 0)
        return NULL;
    core_wait_begin(&w);
    int r = pen_writer_finish(self->writer, &n, &error);
    pen_writer_close(&self->writer);
    core_wait_end(&w);
    pthread_mutex_unlock(&self->lock);
    if (end_call(self, &w, r, &error) < 0)
        return NULL;
    return PyLong_FromUnsignedLongLong(n);
}

static PyObject *writer_close(CoreWriter *self, PyObject *unused)
{
    (void)unused;
    if (self->pid == getpid()) {
        core_lock(&self->lock);
        int r = close_writer(self);
        pthread_mutex_unlock(&self->lock);
        if (r < 0)
            return NULL;
    }
    Py_RETURN_NONE;
}

/* In a child process nothing is done: closing would remove the parent's unfinished files. */
static void writer_dealloc(CoreWriter *self)
{
    if (self->pid == getpid()) {
        if (close_writer(self) < 0)
            PyErr_WriteUnraisable(NULL);
        pthread_mutex_destroy(&self->lock);
    }
    core_remote_unref(self->remote);
    core_free((PyObject *)self);
}

/* ---- joining tasks -------------------------------------------------------------------------- */

static int tell(void *ctx, const PenIngestProgress *progress)
{
    return core_progress_tell(ctx, progress->done, progress->total);
}

/* finalise(path, n_tasks, remote, work): the number of samples, and why what the tasks left could
 * not be removed, or "". */
PyObject *core_finalise(PyObject *module, PyObject *args)
{
    PenIngestSettings s;
    PenIngestResult result = {0};
    PenError error = {0};
    CoreProgress p = {.call = NULL};
    PyObject *path = NULL, *options;
    CoreRemote *remote = NULL;
    pen_ingest_settings_init(&s);
    if (!PyArg_ParseTuple(args, "O&IOz", PyUnicode_FSConverter, &path, &s.n_tasks, &options,
                          &s.work))
        return NULL;
    if (options != Py_None)
        remote = core_remote_new(options);
    if (options != Py_None && !remote) {
        Py_DECREF(path);
        return NULL;
    }
    s.out = PyBytes_AsString(path);
    s.remote = core_remote_settings(remote);
    s.progress = tell;
    s.ctx = &p;
    core_wait_begin(&p.wait);
    int r = pen_ingest_finalise(&s, &result, &error);
    core_wait_end(&p.wait);
    if (r < 0)
        core_remote_raise(PyModule_GetState(module), remote, &p.wait, &error);
    core_remote_unref(remote);
    Py_DECREF(path);
    if (r < 0 || p.wait.raised)
        return NULL;
    return Py_BuildValue("KN", (unsigned long long)result.n_samples,
                         PyUnicode_DecodeUTF8(result.not_removed,
                                              (Py_ssize_t)strlen(result.not_removed), "replace"));
}

static PyMethodDef methods[] = {
    {"add", (PyCFunction)writer_add, METH_VARARGS, NULL},
    {"finish", (PyCFunction)writer_finish, METH_NOARGS, NULL},
    {"close", (PyCFunction)writer_close, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, writer_new},
    {Py_tp_dealloc, writer_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_doc, "A pack that is being written."},
    {0, NULL},
};

PyType_Spec core_writer_spec = {
    .name = "penstock._core.Writer",
    .basicsize = sizeof(CoreWriter),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
