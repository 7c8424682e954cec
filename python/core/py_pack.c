/* SPDX-License-Identifier: Apache-2.0 */
/* penstock._core.Pack: the calls of penstock/pack.h. Several threads may read at once. */
#include "py_core.h"

#include <stdlib.h>
#include <string.h>

struct CorePack {
    PyObject_HEAD PenPack *pack;
    PyObject *path;  /* bytes, for opening again in a child process */
    PyObject *cache; /* bytes; NULL: none */
    unsigned long long cache_bytes;
    PyObject *files; /* bytes, as in CorePlace */
    unsigned n_roots;
    CoreRemote *remote;
    PyObject *preload; /* NULL: it is read where it lies; True, or a function to be told */
    PenPreloadResult preloaded;
    pid_t pid;
    uint8_t id[16];
    uint32_t users; /* calls under way; guarded by the GIL, as is all here */
    int closed;
};

/* ---- opening and closing -------------------------------------------------------------------- */

/* Threads that end with it may want the interpreter first. */
static void close_pack(PenPack **pack)
{
    PenPack *old = *pack;
    *pack = NULL;
    if (!old)
        return;
    Py_BEGIN_ALLOW_THREADS pen_pack_close(&old);
    Py_END_ALLOW_THREADS
}

/* In a child process several threads may open it again at once: the first one's is kept. */
static int open_pack(CorePack *self)
{
    CorePlace place = {.path = PyBytes_AsString(self->path),
                       .cache = self->cache ? PyBytes_AsString(self->cache) : NULL,
                       .cache_bytes = self->cache_bytes,
                       .remote = self->remote,
                       .files = PyBytes_AsString(self->files),
                       .files_bytes = (size_t)PyBytes_Size(self->files),
                       .n_roots = self->n_roots};
    PenPack *pack = core_open(core_state((PyObject *)self), &place);
    if (!pack)
        return -1;
    PenPreloadResult preloaded = {0};
    if (self->preload && core_preload(core_state((PyObject *)self), pack, self->remote,
                                      self->preload, &preloaded) < 0) {
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        close_pack(&pack);
        PyErr_Restore(type, value, trace);
        return -1;
    }
    if (self->pack && self->pid == getpid()) {
        close_pack(&pack);
        return 0;
    }
    self->pack = pack;
    self->preloaded = preloaded;
    self->pid = getpid();
    self->users = 0;
    return 0;
}

static PyObject *pack_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"path",    "remote", "cache",   "cache_bytes",
                            "preload", "files",  "n_roots", NULL};
    PyObject *path = NULL, *remote, *cache, *preload, *files;
    unsigned long long cache_bytes = 0;
    unsigned n_roots = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&OOKOSI", names, PyUnicode_FSConverter, &path,
                                     &remote, &cache, &cache_bytes, &preload, &files, &n_roots)) {
        Py_XDECREF(path);
        return NULL;
    }
    CorePack *self = (CorePack *)core_alloc(type);
    if (!self) {
        Py_DECREF(path);
        return NULL;
    }
    self->path = path;
    self->cache_bytes = cache_bytes;
    self->files = Py_NewRef(files);
    self->n_roots = n_roots;
    if (cache != Py_None && !PyUnicode_FSConverter(cache, &self->cache)) {
        Py_DECREF(self);
        return NULL;
    }
    if (preload != Py_False)
        self->preload = Py_NewRef(preload);
    if (remote != Py_None)
        self->remote = core_remote_new(remote);
    if ((remote != Py_None && !self->remote) || open_pack(self) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    if (self->preload) { /* a function is not called again, in a child */
        Py_DECREF(self->preload);
        self->preload = Py_NewRef(Py_True);
    }
    memcpy(self->id, pen_pack_info(self->pack)->id, sizeof self->id);
    return (PyObject *)self;
}

/* The parent's pack is left alone: its locks may be held by threads that are not here. */
static int open_again(CorePack *self)
{
    if (open_pack(self) < 0)
        return -1;
    if (memcmp(self->id, pen_pack_info(self->pack)->id, sizeof self->id) == 0)
        return 0;
    close_pack(&self->pack);
    self->closed = 1;
    core_raise_text(core_state((PyObject *)self), PEN_E_CLOSED,
                    "%s: the pack was replaced after the parent process opened it; open it again",
                    PyBytes_AsString(self->path));
    return -1;
}

PenPack *core_pack_enter(CorePack *self)
{
    if (self->closed) {
        core_raise_text(core_state((PyObject *)self), PEN_E_CLOSED, "%s: the pack is closed",
                        PyBytes_AsString(self->path));
        return NULL;
    }
    if (self->pid != getpid() && open_again(self) < 0)
        return NULL;
    self->users++;
    return self->pack;
}

void core_pack_leave(CorePack *self)
{
    self->users--;
    if (self->closed && self->users == 0)
        close_pack(&self->pack);
}

CoreRemote *core_pack_remote(CorePack *self)
{
    return self->remote;
}

static PyObject *pack_close(CorePack *self, PyObject *unused)
{
    (void)unused;
    if (!self->closed) {
        self->closed = 1;
        if (self->users == 0 && self->pid == getpid())
            close_pack(&self->pack);
    }
    Py_RETURN_NONE;
}

static PyObject *pack_preloaded(CorePack *self, PyObject *unused)
{
    (void)unused;
    const PenPreloadResult *p = &self->preloaded;
    if (!self->preload)
        Py_RETURN_NONE;
    return Py_BuildValue("(KKOO)", (unsigned long long)p->bytes, (unsigned long long)p->read_bytes,
                         p->was_there ? Py_True : Py_False, p->is_sealed ? Py_True : Py_False);
}

static void pack_dealloc(CorePack *self)
{
    if (self->pid == getpid())
        close_pack(&self->pack);
    core_remote_unref(self->remote);
    Py_XDECREF(self->preload);
    Py_XDECREF(self->path);
    Py_XDECREF(self->cache);
    Py_XDECREF(self->files);
    core_free((PyObject *)self);
}

/* ---- bytes ---------------------------------------------------------------------------------- */

typedef struct Request {
    unsigned long long sample;
    unsigned int field, frame;
} Request;

typedef int (*GiveBytes)(PenPack *pack, const Request *q, void *buf, size_t cap, size_t *ret_bytes,
                         PenError *reterr);

static int give_key(PenPack *pack, const Request *q, void *buf, size_t cap, size_t *ret_bytes,
                    PenError *reterr)
{
    return pen_pack_key(pack, q->sample, buf, cap, ret_bytes, reterr);
}

static int give_value(PenPack *pack, const Request *q, void *buf, size_t cap, size_t *ret_bytes,
                      PenError *reterr)
{
    return pen_pack_read(pack, q->sample, q->field, buf, cap, ret_bytes, reterr);
}

static int give_metadata(PenPack *pack, const Request *q, void *buf, size_t cap, size_t *ret_bytes,
                         PenError *reterr)
{
    return pen_pack_metadata(pack, q->sample, q->field, q->frame, buf, cap, ret_bytes, reterr);
}

/* The start of a call for a field of a sample: the pack, or NULL with what was raised. */
static PenPack *enter_field(CorePack *self, PyObject *args, Request *q)
{
    return PyArg_ParseTuple(args, "KI", &q->sample, &q->field) ? core_pack_enter(self) : NULL;
}

/* The same for a frame of a field. */
static PenPack *enter_frame(CorePack *self, PyObject *args, Request *q)
{
    return PyArg_ParseTuple(args, "KII", &q->sample, &q->field, &q->frame) ? core_pack_enter(self)
                                                                           : NULL;
}

/* The end of a call that may have waited: the object, or NULL with what was raised. */
static PyObject *finish(CorePack *self, const CoreWait *w, int r, const PenError *error,
                        PyObject *made)
{
    if (r < 0) {
        Py_CLEAR(made);
        core_remote_raise(core_state((PyObject *)self), self->remote, w, error);
    } else if (w->raised) {
        Py_CLEAR(made); /* the signal came with the answer */
    }
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace); /* leaving may run other code */
    core_pack_leave(self);
    PyErr_Restore(type, value, trace);
    return made;
}

/* Asks for the size, then for the bytes. */
static PyObject *bytes_of(CorePack *self, const Request *q, GiveBytes give)
{
    PenError error = {0};
    PyObject *made = NULL;
    size_t bytes = 0;
    int r;
    CoreWait w;
    PenPack *pack = core_pack_enter(self);
    if (!pack)
        return NULL;
    core_wait_begin(&w);
    r = give(pack, q, NULL, 0, &bytes, &error);
    core_wait_end(&w);
    if (r == PEN_OK && !w.raised)
        made = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)bytes);
    if (made) {
        char *buf = PyBytes_AsString(made);
        core_wait_begin(&w);
        r = give(pack, q, buf, bytes, &bytes, &error);
        core_wait_end(&w);
    }
    return finish(self, &w, r, &error, made);
}

static PyObject *pack_key(CorePack *self, PyObject *args)
{
    Request q = {0};
    if (!PyArg_ParseTuple(args, "K", &q.sample))
        return NULL;
    return bytes_of(self, &q, give_key);
}

static PyObject *pack_read(CorePack *self, PyObject *args)
{
    Request q = {0};
    if (!PyArg_ParseTuple(args, "KI", &q.sample, &q.field))
        return NULL;
    return bytes_of(self, &q, give_value);
}

static PyObject *pack_metadata(CorePack *self, PyObject *args)
{
    Request q = {0};
    if (!PyArg_ParseTuple(args, "KII", &q.sample, &q.field, &q.frame))
        return NULL;
    return bytes_of(self, &q, give_metadata);
}

static PyObject *pack_find(CorePack *self, PyObject *args)
{
    PenError error = {0};
    const char *key;
    Py_ssize_t bytes;
    uint64_t sample = 0;
    int r;
    CoreWait w;
    if (!PyArg_ParseTuple(args, "y#", &key, &bytes))
        return NULL;
    PenPack *pack = core_pack_enter(self);
    if (!pack)
        return NULL;
    core_wait_begin(&w);
    r = pen_pack_find(pack, key, (size_t)bytes, &sample, &error);
    core_wait_end(&w);
    return finish(self, &w, r, &error, r < 0 ? NULL : PyLong_FromUnsignedLongLong(sample));
}

static PyObject *pack_extract(CorePack *self, PyObject *args)
{
    PenError error = {0};
    Request q = {0};
    void *data = NULL;
    size_t bytes = 0;
    const char *suffix = "";
    int r;
    CoreWait w;
    PenPack *pack = enter_frame(self, args, &q);
    if (!pack)
        return NULL;
    core_wait_begin(&w);
    r = pen_pack_extract(pack, q.sample, q.field, q.frame, &data, &bytes, &suffix, &error);
    core_wait_end(&w);
    PyObject *made = r < 0 ? NULL : Py_BuildValue("(y#s)", data, (Py_ssize_t)bytes, suffix);
    pen_free(data);
    return finish(self, &w, r, &error, made);
}

/* ---- images and clips ----------------------------------------------------------------------- */

static PyObject *pack_image(CorePack *self, PyObject *args)
{
    PenError error = {0};
    PenImage i = {0};
    Request q = {0};
    int r;
    PenPack *pack = enter_frame(self, args, &q);
    if (!pack)
        return NULL;
    CoreWait w;
    core_wait_begin(&w);
    r = pen_pack_image(pack, q.sample, q.field, q.frame, &i, &error);
    core_wait_end(&w);
    PyObject *made =
        r < 0 ? NULL
              : Py_BuildValue("(IIssiiKKL)", i.width, i.height, pen_stored_name(i.codec),
                              pen_how_name(i.how), (int)i.orientation, (int)i.channels,
                              (unsigned long long)i.bytes, (unsigned long long)i.source_bytes,
                              (long long)i.timestamp_ns);
    return finish(self, &w, r, &error, made);
}

static PyObject *pack_frame_count(CorePack *self, PyObject *args)
{
    PenError error = {0};
    Request q = {0};
    uint32_t n = 0;
    int r;
    PenPack *pack = enter_field(self, args, &q);
    if (!pack)
        return NULL;
    CoreWait w;
    core_wait_begin(&w);
    r = pen_pack_frame_count(pack, q.sample, q.field, &n, &error);
    core_wait_end(&w);
    return finish(self, &w, r, &error, r < 0 ? NULL : PyLong_FromUnsignedLong(n));
}

static PyObject *number_list(const int64_t *numbers, uint32_t n)
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (uint32_t i = 0; list && i < n; i++) {
        PyObject *number = PyLong_FromLongLong(numbers[i]);
        if (!number || PyList_SetItem(list, (Py_ssize_t)i, number) < 0)
            Py_CLEAR(list);
    }
    return list;
}

/* Of all frames of a clip. */
static PyObject *pack_frame_times(CorePack *self, PyObject *args)
{
    PenError error = {0};
    Request q = {0};
    int64_t *times = NULL;
    uint32_t n = 0;
    int r;
    PenPack *pack = enter_field(self, args, &q);
    if (!pack)
        return NULL;
    CoreWait w;
    core_wait_begin(&w);
    r = pen_pack_frame_times(pack, q.sample, q.field, NULL, 0, &n, &error);
    if (r == PEN_OK) {
        times = calloc((size_t)n + 1, sizeof *times);
        if (times)
            r = pen_pack_frame_times(pack, q.sample, q.field, times, n, &n, &error);
    }
    core_wait_end(&w);
    PyObject *made = NULL;
    if (r == PEN_OK && !w.raised)
        made = times ? number_list(times, n) : PyErr_NoMemory();
    free(times);
    return finish(self, &w, r, &error, made);
}

static PyObject *pack_missing(CorePack *self, PyObject *args)
{
    PenError error = {0};
    Request q = {0};
    int32_t missing = 0;
    PenPack *pack = enter_field(self, args, &q);
    if (!pack)
        return NULL;
    CoreWait w;
    core_wait_begin(&w);
    int r = pen_pack_missing(pack, q.sample, q.field, &missing, &error);
    core_wait_end(&w);
    return finish(self, &w, r, &error, r < 0 ? NULL : PyBool_FromLong(missing));
}

/* Fills memory of the caller: all of the object's buffer. */
static PyObject *pack_column(CorePack *self, PyObject *args)
{
    PenError error = {0};
    unsigned long long first, n;
    PenColumnRange range = {0};
    PyObject *object;
    Py_buffer to;
    size_t bytes = 0;
    if (!PyArg_ParseTuple(args, "IiKKO", &range.field, &range.what, &first, &n, &object) ||
        PyObject_GetBuffer(object, &to, PyBUF_WRITABLE) < 0)
        return NULL;
    PenPack *pack = core_pack_enter(self);
    if (!pack) {
        PyBuffer_Release(&to);
        return NULL;
    }
    CoreWait w;
    range.first = first;
    range.n = n;
    core_wait_begin(&w);
    int r = pen_pack_column(pack, &range, to.buf, (size_t)to.len, &bytes, &error);
    core_wait_end(&w);
    PyBuffer_Release(&to);
    return finish(self, &w, r, &error, r < 0 ? NULL : Py_NewRef(Py_None));
}

static PyObject *split(const char *data, const size_t *sizes, uint32_t n)
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (uint32_t i = 0; list && i < n; i++) {
        PyObject *part = PyBytes_FromStringAndSize(data, (Py_ssize_t)sizes[i]);
        if (!part || PyList_SetItem(list, (Py_ssize_t)i, part) < 0)
            Py_CLEAR(list);
        data += sizes[i];
    }
    return list;
}

/* One read for all frames asked for; `range` has room for their sizes. */
static PyObject *read_range(CorePack *self, const Request *q, const PenFrameRange *range)
{
    PenError error = {0};
    size_t bytes = 0;
    char *data = NULL;
    int r;
    PenPack *pack = core_pack_enter(self);
    if (!pack)
        return NULL;
    CoreWait w;
    core_wait_begin(&w);
    r = pen_pack_read_frames(pack, q->sample, q->field, range, NULL, 0, &bytes, &error);
    if (r == PEN_OK) {
        data = malloc(bytes + 1);
        if (data)
            r = pen_pack_read_frames(pack, q->sample, q->field, range, data, bytes, &bytes, &error);
    }
    core_wait_end(&w);
    PyObject *made = NULL;
    if (r == PEN_OK && !w.raised)
        made = data ? split(data, range->ret_frame_bytes, range->n) : PyErr_NoMemory();
    free(data);
    return finish(self, &w, r, &error, made);
}

static PyObject *pack_frames(CorePack *self, PyObject *args)
{
    Request q = {0};
    unsigned int first, step, n;
    if (!PyArg_ParseTuple(args, "KIIII", &q.sample, &q.field, &first, &step, &n))
        return NULL;
    if (n == 0)
        return PyList_New(0);
    size_t *sizes = PyMem_Calloc(n, sizeof *sizes);
    if (!sizes)
        return PyErr_NoMemory();
    PenFrameRange range = {.first = first, .step = step, .n = n, .ret_frame_bytes = sizes};
    PyObject *made = read_range(self, &q, &range);
    PyMem_Free(sizes);
    return made;
}

/* (pixels, height, width); first the size alone, to know how much room they take. */
static PyObject *pack_pixels(CorePack *self, PyObject *args)
{
    PenError error = {0};
    unsigned long long sample;
    unsigned int field, first, step, n, channels;
    uint32_t size[2] = {0, 0};
    PyObject *data = NULL, *made = NULL;
    int r;
    CoreWait w;
    if (!PyArg_ParseTuple(args, "KIIIII", &sample, &field, &first, &step, &n, &channels))
        return NULL;
    PenPixelRange what = {sample, field, first, step, n, channels};
    PenPack *pack = core_pack_enter(self);
    if (!pack)
        return NULL;
    core_wait_begin(&w);
    r = pen_pack_pixels(pack, &what, NULL, 0, size, &error);
    core_wait_end(&w);
    if (r == PEN_OK && !w.raised) {
        size_t bytes = (size_t)size[0] * size[1] * channels * n;
        data = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)bytes);
        if (data) {
            char *buf = PyByteArray_AsString(data);
            core_wait_begin(&w);
            r = pen_pack_pixels(pack, &what, buf, bytes, size, &error);
            core_wait_end(&w);
        }
    }
    if (data && r == PEN_OK)
        made = Py_BuildValue("(OII)", data, size[0], size[1]);
    Py_XDECREF(data);
    return finish(self, &w, r, &error, made);
}

/* ---- info ----------------------------------------------------------------------------------- */

/* (name, type, flags, dims); a dim of PEN_DIM_ANY is None. */
static PyObject *field_tuple(const PenField *f)
{
    PyObject *dims = PyTuple_New((Py_ssize_t)f->n_dims);
    for (uint32_t i = 0; dims && i < f->n_dims; i++) {
        PyObject *dim =
            f->dims[i] == PEN_DIM_ANY ? Py_BuildValue("") : PyLong_FromUnsignedLong(f->dims[i]);
        if (!dim || PyTuple_SetItem(dims, (Py_ssize_t)i, dim) < 0)
            Py_CLEAR(dims);
    }
    return dims ? Py_BuildValue("(ssIN)", f->name, pen_type_name(f->type), f->flags, dims) : NULL;
}

static PyObject *field_list(const PenPackInfo *info)
{
    PyObject *list = PyList_New((Py_ssize_t)info->n_fields);
    for (uint32_t i = 0; list && i < info->n_fields; i++) {
        PyObject *field = field_tuple(&info->fields[i]);
        if (!field || PyList_SetItem(list, (Py_ssize_t)i, field) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *class_list(const PenPackInfo *info)
{
    PyObject *list = PyList_New((Py_ssize_t)info->n_classes);
    for (uint32_t i = 0; list && i < info->n_classes; i++) {
        PyObject *name = core_text(info->classes[i]);
        if (!name || PyList_SetItem(list, (Py_ssize_t)i, name) < 0)
            Py_CLEAR(list);
    }
    return list;
}

/* [("jpeg", "tiled", 977), ...], without those that do not occur. */
static PyObject *image_counts(const PenPackStats *stats)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < PEN_STORED_COUNT * PEN_HOW_COUNT; i++) {
        int codec = i / PEN_HOW_COUNT;
        int how = i % PEN_HOW_COUNT;
        uint64_t n = stats->images[codec][how];
        if (!n)
            continue;
        PyObject *row = Py_BuildValue("(ssK)", pen_stored_name(codec), pen_how_name(how),
                                      (unsigned long long)n);
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

/* {"text": 3, ...}: fields that some samples lack. */
static PyObject *missing_counts(const PenPackInfo *info)
{
    PyObject *dict = PyDict_New();
    for (uint32_t f = 0; dict && f < info->n_fields; f++)
        if (info->stats.missing[f] &&
            core_set(dict, info->fields[f].name,
                     PyLong_FromUnsignedLongLong(info->stats.missing[f])) < 0)
            Py_CLEAR(dict);
    return dict;
}

static int add_numbers(PyObject *dict, const PenPackInfo *info)
{
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {
        {"format_version", info->format_version},
        {"n_samples", info->n_samples},
        {"n_blocks", info->n_blocks},
        {"n_shards", info->n_shards},
        {"block_samples", info->block_samples},
        {"total_bytes", info->total_bytes},
        {"stored_bytes", info->stored_bytes},
        {"largest_block_bytes", info->largest_block_bytes},
        {"source_bytes", info->stats.source_bytes},
        {"payload_bytes", info->stats.payload_bytes},
        {"index_bytes", info->stats.index_bytes},
        {"section_bytes", info->stats.section_bytes},
        {"bad", info->stats.bad},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (core_set(dict, numbers[i].name, PyLong_FromUnsignedLongLong(numbers[i].value)) < 0)
            return -1;
    return 0;
}

typedef struct Number {
    const char *name;
    uint64_t value;
} Number;

static PyObject *number_dict(const Number *numbers, size_t n)
{
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict && i < n; i++)
        if (core_set(dict, numbers[i].name, PyLong_FromUnsignedLongLong(numbers[i].value)) < 0)
            Py_CLEAR(dict);
    return dict;
}

static PyObject *pack_cache_stats(CorePack *self, PyObject *unused)
{
    PenCacheStats c;
    (void)unused;
    PenPack *pack = core_pack_enter(self);
    if (!pack)
        return NULL;
    pen_pack_cache_stats(pack, &c);
    core_pack_leave(self);
    const Number numbers[] = {
        {"hits", c.hits},
        {"misses", c.misses},
        {"tail_hits", c.tail_hits},
        {"tail_misses", c.tail_misses},
        {"bytes_cache", c.bytes_cache},
        {"bytes_origin", c.bytes_origin},
        {"waited", c.waited},
        {"bad", c.bad},
        {"stored", c.stored},
        {"stored_bytes", c.stored_bytes},
        {"not_stored_full", c.not_stored_full},
        {"not_stored_disk", c.not_stored_disk},
        {"not_stored_error", c.not_stored_error},
        {"not_stored_busy", c.not_stored_busy},
        {"evicted_bytes", c.evicted_bytes},
    };
    return number_dict(numbers, sizeof numbers / sizeof *numbers);
}

static PyObject *pack_remote_stats(CorePack *self, PyObject *unused)
{
    PenRemoteStats s;
    (void)unused;
    PenPack *pack = core_pack_enter(self);
    if (!pack)
        return NULL;
    pen_pack_remote_stats(pack, &s);
    core_pack_leave(self);
    const Number numbers[] = {
        {"requests", s.requests},     {"retries", s.retries},     {"hedges", s.hedges},
        {"hedges_won", s.hedges_won}, {"throttles", s.throttles}, {"failures", s.failures},
        {"bytes", s.bytes},           {"in_flight", s.in_flight}, {"limit", s.limit},
    };
    return number_dict(numbers, sizeof numbers / sizeof *numbers);
}

static PyObject *pack_info(CorePack *self, PyObject *unused)
{
    (void)unused;
    PenPack *pack = core_pack_enter(self);
    if (!pack)
        return NULL;
    const PenPackInfo *info = pen_pack_info(pack);
    PyObject *dict = PyDict_New();
    if (dict && (add_numbers(dict, info) < 0 ||
                 core_set(dict, "id", PyBytes_FromStringAndSize((const char *)info->id, 16)) < 0 ||
                 core_set(dict, "fields", field_list(info)) < 0 ||
                 core_set(dict, "class_field", PyLong_FromLong(info->class_field)) < 0 ||
                 core_set(dict, "classes", class_list(info)) < 0 ||
                 core_set(dict, "settings", core_text(info->settings)) < 0 ||
                 core_set(dict, "images", image_counts(&info->stats)) < 0 ||
                 core_set(dict, "missing", missing_counts(info)) < 0))
        Py_CLEAR(dict);
    core_pack_leave(self);
    return dict;
}

/* ---- the type ------------------------------------------------------------------------------- */

static PyMethodDef methods[] = {
    {"close", (PyCFunction)pack_close, METH_NOARGS, NULL},
    {"preloaded", (PyCFunction)pack_preloaded, METH_NOARGS, NULL},
    {"info", (PyCFunction)pack_info, METH_NOARGS, NULL},
    {"cache_stats", (PyCFunction)pack_cache_stats, METH_NOARGS, NULL},
    {"remote_stats", (PyCFunction)pack_remote_stats, METH_NOARGS, NULL},
    {"key", (PyCFunction)pack_key, METH_VARARGS, NULL},
    {"find", (PyCFunction)pack_find, METH_VARARGS, NULL},
    {"read", (PyCFunction)pack_read, METH_VARARGS, NULL},
    {"missing", (PyCFunction)pack_missing, METH_VARARGS, NULL},
    {"metadata", (PyCFunction)pack_metadata, METH_VARARGS, NULL},
    {"extract", (PyCFunction)pack_extract, METH_VARARGS, NULL},
    {"image", (PyCFunction)pack_image, METH_VARARGS, NULL},
    {"frame_count", (PyCFunction)pack_frame_count, METH_VARARGS, NULL},
    {"frame_times", (PyCFunction)pack_frame_times, METH_VARARGS, NULL},
    {"frames", (PyCFunction)pack_frames, METH_VARARGS, NULL},
    {"column", (PyCFunction)pack_column, METH_VARARGS, NULL},
    {"pixels", (PyCFunction)pack_pixels, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, pack_new},
    {Py_tp_dealloc, pack_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_doc, "An open pack."},
    {0, NULL},
};

PyType_Spec core_pack_spec = {
    .name = "penstock._core.Pack",
    .basicsize = sizeof(CorePack),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
