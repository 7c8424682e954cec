/* SPDX-License-Identifier: Apache-2.0 */
/* penstock._core.Batch, a lease, and penstock._core.Tensor, memory that keeps one: given out by the
 * buffer protocol and by DLPack. Giving a lease back needs no GIL, so a tensor may die anywhere. */
#include "py_core.h"

#include <stdlib.h>
#include <string.h>

#include "py_dlpack.h"

/* ---- the lease ------------------------------------------------------------------------------ */

typedef struct CoreBatch {
    PyObject_HEAD PenBatch *batch;
    pid_t pid;
} CoreBatch;

/* Memory of a child process is its own copy, but the loader's lock may be held for ever there. */
static void give_back(PenBatch *batch, pid_t pid)
{
    if (batch && pid == getpid())
        pen_batch_unref(&batch);
}

PyObject *core_batch_new(CoreState *state, PenBatch *batch)
{
    CoreBatch *self = (CoreBatch *)core_alloc(state->batch);
    if (!self) {
        pen_batch_unref(&batch);
        return NULL;
    }
    self->batch = batch;
    self->pid = getpid();
    return (PyObject *)self;
}

static void batch_dealloc(CoreBatch *self)
{
    give_back(self->batch, self->pid);
    core_free((PyObject *)self);
}

/* ---- tensors -------------------------------------------------------------------------------- */

typedef struct Kind {
    const char *name;
    const char *format; /* of the buffer protocol; NULL = it has none */
    DLDataType type;
    Py_ssize_t bytes;
} Kind;

/* By PenDtype. */
static const Kind kinds[] = {
    {NULL, NULL, {0, 0, 0}, 0},         {"u8", "B", {kDLUInt, 8, 1}, 1},
    {"f16", "e", {kDLFloat, 16, 1}, 2}, {"bf16", NULL, {kDLBfloat, 16, 1}, 2},
    {"f32", "f", {kDLFloat, 32, 1}, 4}, {"f64", "d", {kDLFloat, 64, 1}, 8},
    {"i64", "q", {kDLInt, 64, 1}, 8},   {"bool", "?", {kDLBool, 8, 1}, 1},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

typedef struct CoreTensor {
    PyObject_HEAD PenBatch *batch;
    pid_t pid;
    const Kind *kind;
    void *data;
    int n_dims;
    int channels_last;
    Py_ssize_t shape[PEN_TENSOR_DIMS];
    Py_ssize_t strides[PEN_TENSOR_DIMS]; /* in bytes */
} CoreTensor;

static CoreTensor *tensor_alloc(CoreState *state, PenBatch *batch)
{
    CoreTensor *self = (CoreTensor *)core_alloc(state->tensor);
    if (self) {
        self->batch = pen_batch_ref(batch);
        self->pid = getpid();
    }
    return self;
}

static PyObject *tensor_new(CoreState *state, PenBatch *batch, const PenTensor *from)
{
    if (from->dtype < PEN_U8 || from->dtype >= N_KINDS || from->n_dims > PEN_TENSOR_DIMS)
        return core_raise_text(state, PEN_E_UNSUPPORTED,
                               "a tensor of dtype %d with %u dimensions is not supported",
                               (int)from->dtype, (unsigned)from->n_dims);
    CoreTensor *self = tensor_alloc(state, batch);
    if (!self)
        return NULL;
    self->kind = &kinds[from->dtype];
    self->data = from->data;
    self->n_dims = (int)from->n_dims;
    self->channels_last = from->channels_last;
    Py_ssize_t stride = self->kind->bytes;
    for (int i = self->n_dims - 1; i >= 0; i--) {
        self->shape[i] = (Py_ssize_t)from->shape[i];
        self->strides[i] = stride;
        stride *= self->shape[i];
    }
    return (PyObject *)self;
}

static void tensor_dealloc(CoreTensor *self)
{
    give_back(self->batch, self->pid);
    core_free((PyObject *)self);
}

/* The same memory with the channels before height and width, of clips before time, as torch names
 * its dimensions. */
static PyObject *tensor_channels_first(CoreTensor *self, PyObject *unused)
{
    (void)unused;
    int moved = self->channels_last + 1; /* dimensions that come behind the channels */
    if (!self->channels_last || self->n_dims <= moved)
        return Py_NewRef((PyObject *)self);
    CoreTensor *view = tensor_alloc(core_state((PyObject *)self), self->batch);
    if (!view)
        return NULL;
    int last = self->n_dims - 1;
    view->kind = self->kind;
    view->data = self->data;
    view->n_dims = self->n_dims;
    for (int i = 0; i <= last; i++) {
        int from = i < last - moved ? i : i == last - moved ? last : i - 1;
        view->shape[i] = self->shape[from];
        view->strides[i] = self->strides[from];
    }
    return (PyObject *)view;
}

static Py_ssize_t n_elements(const CoreTensor *self)
{
    Py_ssize_t n = 1;
    for (int i = 0; i < self->n_dims; i++)
        n *= self->shape[i];
    return n;
}

static int is_dense(const CoreTensor *self)
{
    Py_ssize_t stride = self->kind->bytes;
    for (int i = self->n_dims - 1; i >= 0; i--) {
        if (self->strides[i] != stride && self->shape[i] > 1)
            return 0;
        stride *= self->shape[i];
    }
    return 1;
}

static PyObject *size_tuple(const Py_ssize_t *sizes, int n, Py_ssize_t divisor)
{
    PyObject *tuple = PyTuple_New(n);
    for (int i = 0; tuple && i < n; i++) {
        PyObject *size = PyLong_FromSsize_t(sizes[i] / divisor);
        if (!size || PyTuple_SetItem(tuple, i, size) < 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *get_shape(CoreTensor *self, void *unused)
{
    (void)unused;
    return size_tuple(self->shape, self->n_dims, 1);
}

static PyObject *get_strides(CoreTensor *self, void *unused)
{
    (void)unused;
    return size_tuple(self->strides, self->n_dims, 1);
}

static PyObject *get_dtype(CoreTensor *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(self->kind->name);
}

static PyObject *get_nbytes(CoreTensor *self, void *unused)
{
    (void)unused;
    return PyLong_FromSsize_t(n_elements(self) * self->kind->bytes);
}

/* ---- the buffer protocol -------------------------------------------------------------------- */

static int tensor_getbuffer(CoreTensor *self, Py_buffer *view, int flags)
{
    view->obj = NULL;
    if (!self->kind->format) {
        PyErr_SetString(PyExc_BufferError,
                        "the buffer protocol and NumPy have no bf16: use output='torch' or "
                        "'dlpack', or 'tensor f16' or 'tensor f32' in the pipeline");
        return -1;
    }
    if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES && !is_dense(self)) {
        PyErr_SetString(PyExc_BufferError, "the tensor is not contiguous");
        return -1;
    }
    view->buf = self->data;
    view->len = n_elements(self) * self->kind->bytes;
    view->itemsize = self->kind->bytes;
    view->readonly = 0;
    view->ndim = flags & PyBUF_ND ? self->n_dims : 1;
    view->format = flags & PyBUF_FORMAT ? (char *)self->kind->format : NULL;
    view->shape = flags & PyBUF_ND ? self->shape : NULL;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? self->strides : NULL;
    view->suboffsets = NULL;
    view->internal = NULL;
    view->obj = Py_NewRef((PyObject *)self);
    return 0;
}

/* ---- DLPack --------------------------------------------------------------------------------- */

/* Owned by whoever takes the capsule. Plain malloc: the deleter may run without the GIL. */
typedef struct Export {
    union {
        DLManagedTensor old;
        DLManagedTensorVersioned versioned;
    } managed;
    PenBatch *batch;
    pid_t pid;
    int64_t shape[PEN_TENSOR_DIMS];
    int64_t strides[PEN_TENSOR_DIMS];
} Export;

static void export_free(Export *e)
{
    give_back(e->batch, e->pid);
    free(e);
}

static void delete_old(DLManagedTensor *managed)
{
    export_free(managed->manager_ctx);
}

static void delete_versioned(DLManagedTensorVersioned *managed)
{
    export_free(managed->manager_ctx);
}

static void fill_tensor(const CoreTensor *self, Export *e, DLTensor *to)
{
    for (int i = 0; i < self->n_dims; i++) {
        e->shape[i] = self->shape[i];
        e->strides[i] = self->strides[i] / self->kind->bytes;
    }
    to->data = self->data;
    to->device = (DLDevice){.device_type = kDLCPU, .device_id = 0};
    to->ndim = self->n_dims;
    to->dtype = self->kind->type;
    to->shape = e->shape;
    to->strides = e->strides;
    to->byte_offset = 0;
}

/* A capsule nobody took still has its first name. */
static void drop_capsule(PyObject *capsule)
{
    DLManagedTensor *old;
    DLManagedTensorVersioned *versioned;
    if (PyCapsule_IsValid(capsule, "dltensor")) {
        old = PyCapsule_GetPointer(capsule, "dltensor");
        old->deleter(old);
    } else if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        versioned = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        versioned->deleter(versioned);
    }
}

static PyObject *export_tensor(CoreTensor *self, int versioned)
{
    Export *e = calloc(1, sizeof *e);
    PyObject *capsule;
    if (!e)
        return PyErr_NoMemory();
    e->batch = pen_batch_ref(self->batch);
    e->pid = self->pid;
    if (versioned) {
        DLManagedTensorVersioned *m = &e->managed.versioned;
        m->version = (DLPackVersion){DLPACK_MAJOR, DLPACK_MINOR};
        m->manager_ctx = e;
        m->deleter = delete_versioned;
        fill_tensor(self, e, &m->dl_tensor);
        capsule = PyCapsule_New(m, "dltensor_versioned", drop_capsule);
    } else {
        DLManagedTensor *m = &e->managed.old;
        m->manager_ctx = e;
        m->deleter = delete_old;
        fill_tensor(self, e, &m->dl_tensor);
        capsule = PyCapsule_New(m, "dltensor", drop_capsule);
    }
    if (!capsule)
        export_free(e);
    return capsule;
}

static int read_pair(PyObject *pair, int *ret_a, int *ret_b)
{
    if (PyTuple_Check(pair))
        return PyArg_ParseTuple(pair, "ii", ret_a, ret_b);
    PyErr_SetString(PyExc_TypeError, "max_version and dl_device: expected a tuple of two integers");
    return 0;
}

static int wants_this_device(PyObject *device)
{
    int type, number;
    if (device == Py_None)
        return 1;
    if (!read_pair(device, &type, &number))
        return 0;
    if (type == kDLCPU && number == 0)
        return 1;
    PyErr_SetString(PyExc_BufferError,
                    "the tensor is in host memory; copy the tensor to the device");
    return 0;
}

static PyObject *tensor_dlpack(CoreTensor *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
    int major = 0, minor = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO", names, &stream, &version, &device,
                                     &copy))
        return NULL;
    if (stream != Py_None)
        return PyErr_Format(PyExc_BufferError, "stream: expected None for host memory");
    if (copy == Py_True)
        return PyErr_Format(PyExc_BufferError,
                            "copy=True is not supported; clone the imported tensor");
    if (!wants_this_device(device))
        return NULL;
    if (version != Py_None && !read_pair(version, &major, &minor))
        return NULL;
    return export_tensor(self, major >= DLPACK_MAJOR);
}

static PyObject *tensor_dlpack_device(CoreTensor *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    return Py_BuildValue("(ii)", kDLCPU, 0);
}

/* ---- what a batch gives --------------------------------------------------------------------- */

/* -1 with an exception when there is no such field. */
static int field_number(const CoreBatch *self, PyObject *number, unsigned long *ret)
{
    *ret = PyLong_AsUnsignedLong(number);
    if (PyErr_Occurred())
        return -1;
    if (*ret < self->batch->n_fields)
        return 0;
    PyErr_Format(PyExc_IndexError, "field: expected a number below %u, found %lu",
                 (unsigned)self->batch->n_fields, *ret);
    return -1;
}

static PyObject *batch_field(CoreBatch *self, PyObject *number)
{
    unsigned long i;
    if (field_number(self, number, &i) < 0)
        return NULL;
    return tensor_new(core_state((PyObject *)self), self->batch, &self->batch->fields[i]);
}

/* (offsets, validity) of a list. */
static PyObject *batch_list(CoreBatch *self, PyObject *number)
{
    CoreState *state = core_state((PyObject *)self);
    const PenBatch *b = self->batch;
    unsigned long i;
    if (field_number(self, number, &i) < 0)
        return NULL;
    if (!b->lists || b->lists[i].kind == PEN_LIST_NONE)
        return PyErr_Format(PyExc_TypeError, "field %lu is a tensor", i);
    PenTensor offsets = {.data = (void *)(uintptr_t)b->lists[i].offsets,
                         .dtype = PEN_I64,
                         .n_dims = 1,
                         .shape = {(int64_t)b->n_samples + 1}};
    PenTensor validity = {.data = (void *)(uintptr_t)b->lists[i].validity,
                          .dtype = PEN_U8,
                          .n_dims = 1,
                          .shape = {((int64_t)b->n_samples + 7) / 8}};
    PyObject *first = tensor_new(state, self->batch, &offsets);
    PyObject *second = first ? tensor_new(state, self->batch, &validity) : NULL;
    PyObject *both = second ? PyTuple_Pack(2, first, second) : NULL;
    Py_XDECREF(first);
    Py_XDECREF(second);
    return both;
}

/* Image `i` of a list of images, whose sizes the next field has. */
static PenTensor image_of(const PenBatch *b, unsigned long field, uint32_t i)
{
    const PenTensor *all = &b->fields[field];
    const int64_t *size = (const int64_t *)b->fields[field + 1].data + 2 * (size_t)i;
    PenTensor one = {
        .dtype = all->dtype, .n_dims = all->n_dims - 1, .channels_last = all->channels_last};
    one.data = (uint8_t *)all->data + b->lists[field].offsets[i] * kinds[all->dtype].bytes;
    for (uint32_t k = 0, side = 0; k < one.n_dims; k++)
        one.shape[k] = all->shape[k + 1] < 0 ? size[side++] : all->shape[k + 1];
    return one;
}

/* A list of tensors, one for each image of a list of images. */
static PyObject *batch_images(CoreBatch *self, PyObject *number)
{
    const PenBatch *b = self->batch;
    unsigned long i;
    if (field_number(self, number, &i) < 0)
        return NULL;
    if (!b->lists || b->lists[i].kind != PEN_LIST_IMAGES)
        return PyErr_Format(PyExc_TypeError, "field %lu is no list of images", i);
    PyObject *list = PyList_New(b->n_samples);
    for (uint32_t k = 0; list && k < b->n_samples; k++) {
        PenTensor one = image_of(b, i, k);
        PyObject *image = tensor_new(core_state((PyObject *)self), self->batch, &one);
        if (!image || PyList_SetItem(list, (Py_ssize_t)k, image) < 0)
            Py_CLEAR(list);
    }
    return list;
}

/* The numbers of the samples; they are below 2^63, so that a signed type does for all libraries. */
static PyObject *batch_samples(CoreBatch *self, PyObject *unused)
{
    (void)unused;
    PenTensor from = {.data = (void *)(uintptr_t)self->batch->samples,
                      .dtype = PEN_I64,
                      .n_dims = 1,
                      .shape = {self->batch->n_samples}};
    return tensor_new(core_state((PyObject *)self), self->batch, &from);
}

/* One for each sample, or None: all are 0. */
static PyObject *batch_ordinals(CoreBatch *self, PyObject *unused)
{
    (void)unused;
    PenTensor from = {.data = (void *)(uintptr_t)self->batch->ordinals,
                      .dtype = PEN_I64,
                      .n_dims = 1,
                      .shape = {self->batch->n_samples}};
    if (!from.data)
        Py_RETURN_NONE;
    return tensor_new(core_state((PyObject *)self), self->batch, &from);
}

static PyObject *batch_valid(CoreBatch *self, PyObject *unused)
{
    (void)unused;
    PenTensor from = {.data = (void *)(uintptr_t)self->batch->valid,
                      .dtype = PEN_BOOL,
                      .n_dims = 1,
                      .shape = {self->batch->n_samples}};
    return tensor_new(core_state((PyObject *)self), self->batch, &from);
}

/* (epoch, position, n_samples, n_valid, n_substituted) */
static PyObject *batch_counts(CoreBatch *self, PyObject *unused)
{
    (void)unused;
    const PenBatch *b = self->batch;
    return Py_BuildValue("(KKIII)", (unsigned long long)b->epoch, (unsigned long long)b->position,
                         b->n_samples, b->n_valid, b->n_substituted);
}

static PyObject *batch_bucket(CoreBatch *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLong(self->batch->bucket);
}

/* (address, bytes) of the slot, for pinning. */
static PyObject *batch_memory(CoreBatch *self, PyObject *unused)
{
    (void)unused;
    return Py_BuildValue("(KK)", (unsigned long long)(uintptr_t)self->batch->memory,
                         (unsigned long long)self->batch->memory_bytes);
}

/* ---- the types ------------------------------------------------------------------------------ */

static PyMethodDef batch_methods[] = {
    {"field", (PyCFunction)batch_field, METH_O, NULL},
    {"list", (PyCFunction)batch_list, METH_O, NULL},
    {"images", (PyCFunction)batch_images, METH_O, NULL},
    {"samples", (PyCFunction)batch_samples, METH_NOARGS, NULL},
    {"ordinals", (PyCFunction)batch_ordinals, METH_NOARGS, NULL},
    {"valid", (PyCFunction)batch_valid, METH_NOARGS, NULL},
    {"counts", (PyCFunction)batch_counts, METH_NOARGS, NULL},
    {"bucket", (PyCFunction)batch_bucket, METH_NOARGS, NULL},
    {"memory", (PyCFunction)batch_memory, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot batch_slots[] = {
    {Py_tp_dealloc, batch_dealloc},
    {Py_tp_methods, batch_methods},
    {Py_tp_doc, "A batch in the memory of the loader."},
    {0, NULL},
};

PyType_Spec core_batch_spec = {
    .name = "penstock._core.Batch",
    .basicsize = sizeof(CoreBatch),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = batch_slots,
};

static PyMethodDef tensor_methods[] = {
    {"channels_first", (PyCFunction)tensor_channels_first, METH_NOARGS,
     "The same memory with the channels before height and width."},
    {"__dlpack__", (PyCFunction)(void (*)(void))tensor_dlpack, METH_VARARGS | METH_KEYWORDS, NULL},
    {"__dlpack_device__", (PyCFunction)tensor_dlpack_device, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef tensor_getset[] = {
    {"shape", (getter)get_shape, NULL, NULL, NULL},
    {"strides", (getter)get_strides, NULL, "in bytes", NULL},
    {"dtype", (getter)get_dtype, NULL, "u8, f16, bf16, f32, f64, i64 or bool", NULL},
    {"nbytes", (getter)get_nbytes, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot tensor_slots[] = {
    {Py_tp_dealloc, tensor_dealloc},
    {Py_tp_methods, tensor_methods},
    {Py_tp_getset, tensor_getset},
    {Py_bf_getbuffer, tensor_getbuffer},
    {Py_tp_doc, "Memory of a batch, for the buffer protocol and DLPack. It keeps the batch alive."},
    {0, NULL},
};

PyType_Spec core_tensor_spec = {
    .name = "penstock._core.Tensor",
    .basicsize = sizeof(CoreTensor),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = tensor_slots,
};
