/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the caller, by the buffer protocol (NumPy) or by DLPack (torch, which has no other). */
#include "py_core.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "py_dlpack.h"

/* What an object says of its memory. */
typedef struct Found {
    void *data;
    int n_dims;
    int64_t shape[PEN_TENSOR_DIMS];
    bool is_u8, is_dense, is_host, is_read_only;
} Found;

/* "ndarray"; NULL if that fails. The text lives as long as *ret_name. */
static const char *type_name(PyObject *object, PyObject **ret_name)
{
    *ret_name = PyType_GetName(Py_TYPE(object));
    const char *text = *ret_name ? PyUnicode_AsUTF8AndSize(*ret_name, NULL) : NULL;
    PyErr_Clear();
    return text ? text : "object";
}

/* Raises with the reason that the object itself gave. */
static int refuse(CoreState *state, PyObject *object)
{
    PyObject *type, *value, *trace, *name;
    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return -1;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject *text = value ? PyObject_Str(value) : NULL;
    const char *reason = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    PyErr_Clear();
    core_raise_text(state, PEN_E_INVALID, "out: cannot write to this %s: %s",
                    type_name(object, &name), reason ? reason : "unknown reason");
    Py_XDECREF(name);
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return -1;
}

static int refuse_type(PyObject *object)
{
    PyObject *name;
    PyErr_Format(PyExc_TypeError, "out: expected a NumPy array or a torch tensor, found %s",
                 type_name(object, &name));
    Py_XDECREF(name);
    return -1;
}

/* ---- the buffer protocol -------------------------------------------------------------------- */

static int open_buffer(CoreState *state, PyObject *object, CoreMemory *memory, Found *ret)
{
    Py_buffer *view = &memory->view;
    if (PyObject_GetBuffer(object, view, PyBUF_FULL_RO) < 0)
        return refuse(state, object);
    const char *format = view->format && *view->format ? view->format : "B";
    ret->data = view->buf;
    ret->n_dims = view->ndim;
    for (int i = 0; i < view->ndim && i < PEN_TENSOR_DIMS; i++)
        ret->shape[i] = view->shape[i];
    ret->is_u8 = view->itemsize == 1 && strlen(format) <= 2 && format[strlen(format) - 1] == 'B';
    ret->is_dense = PyBuffer_IsContiguous(view, 'C') != 0;
    ret->is_host = true;
    ret->is_read_only = view->readonly != 0;
    return 0;
}

/* ---- DLPack --------------------------------------------------------------------------------- */

/* Producers of older versions do not know the parameter. */
static PyObject *call_dlpack(PyObject *object)
{
    PyObject *method = PyObject_GetAttrString(object, "__dlpack__");
    PyObject *none = PyTuple_New(0);
    PyObject *version = Py_BuildValue("{s:(ii)}", "max_version", DLPACK_MAJOR, DLPACK_MINOR);
    PyObject *capsule = NULL;
    if (method && none && version) {
        capsule = PyObject_Call(method, none, version);
        if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {
            PyErr_Clear();
            capsule = PyObject_Call(method, none, NULL);
        }
    }
    Py_XDECREF(method);
    Py_XDECREF(none);
    Py_XDECREF(version);
    return capsule;
}

static bool is_dense(const DLTensor *t)
{
    int64_t stride = 1;
    for (int i = t->ndim - 1; t->strides && i >= 0; i--) {
        if (t->strides[i] != stride && t->shape[i] > 1)
            return false;
        stride *= t->shape[i];
    }
    return true;
}

static void read_tensor(const DLTensor *t, Found *ret)
{
    int device = t->device.device_type;
    ret->data = t->data ? (uint8_t *)t->data + t->byte_offset : NULL;
    ret->n_dims = t->ndim;
    for (int i = 0; i < t->ndim && i < PEN_TENSOR_DIMS; i++)
        ret->shape[i] = t->shape[i];
    ret->is_u8 = t->dtype.code == kDLUInt && t->dtype.bits == 8 && t->dtype.lanes == 1;
    ret->is_dense = is_dense(t);
    ret->is_host = device == kDLCPU || device == kDLCUDAHost || device == kDLROCMHost;
}

/* The capsule is not renamed: it releases what it holds when it is dropped. */
static int open_dlpack(CoreState *state, PyObject *object, CoreMemory *memory, Found *ret)
{
    PyObject *capsule = memory->capsule = call_dlpack(object);
    if (!capsule)
        return refuse(state, object);
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        const DLManagedTensorVersioned *m = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        if (m->version.major != DLPACK_MAJOR) {
            core_raise_text(state, PEN_E_INVALID, "out: expected DLPack version %d, found %u",
                            DLPACK_MAJOR, (unsigned)m->version.major);
            return -1;
        }
        ret->is_read_only = m->flags & DLPACK_FLAG_BITMASK_READ_ONLY;
        read_tensor(&m->dl_tensor, ret);
    } else if (PyCapsule_IsValid(capsule, "dltensor")) {
        const DLManagedTensor *m = PyCapsule_GetPointer(capsule, "dltensor");
        read_tensor(&m->dl_tensor, ret);
    } else {
        core_raise_text(state, PEN_E_INVALID, "out: expected a DLPack capsule from __dlpack__");
        return -1;
    }
    return 0;
}

/* ---- both ----------------------------------------------------------------------------------- */

/* Of all dimensions, each a comma, a space and 20 characters at most. */
enum { SHAPE_TEXT = 8 + PEN_TENSOR_DIMS * 22 };

/* "(2, 3)" */
static const char *shape_text(const Found *f, char text[SHAPE_TEXT])
{
    size_t at = 1;
    memcpy(text, "(", 2);
    for (int i = 0; i < f->n_dims && i < PEN_TENSOR_DIMS; i++)
        at += (size_t)snprintf(text + at, SHAPE_TEXT - at, i ? ", %lld" : "%lld",
                               (long long)f->shape[i]);
    snprintf(text + at, SHAPE_TEXT - at,
             f->n_dims == 1                ? ",)"
             : f->n_dims > PEN_TENSOR_DIMS ? ", ...)"
                                           : ")");
    return text;
}

static bool is_same_shape(const Found *a, const Found *b)
{
    return a->n_dims == b->n_dims &&
           memcmp(a->shape, b->shape, (size_t)b->n_dims * sizeof b->shape[0]) == 0;
}

static int check(CoreState *state, const Found *found, const Found *expected, size_t bytes)
{
    char a[SHAPE_TEXT], b[SHAPE_TEXT];
    if (!found->is_u8)
        core_raise_text(state, PEN_E_INVALID, "out: expected uint8, found another dtype");
    else if (!is_same_shape(found, expected))
        core_raise_text(state, PEN_E_INVALID, "out: expected the shape %s, found %s",
                        shape_text(expected, a), shape_text(found, b));
    else if (!found->is_host)
        core_raise_text(state, PEN_E_INVALID, "out: expected host memory, found another device");
    else if (!found->is_dense)
        core_raise_text(state, PEN_E_INVALID,
                        "out: expected contiguous memory in row-major order, found gaps");
    else if (found->is_read_only)
        core_raise_text(state, PEN_E_INVALID, "out: expected writable memory, found read-only");
    else if (!found->data && bytes)
        core_raise_text(state, PEN_E_INVALID, "out: expected memory, found the address 0");
    else
        return 0;
    return -1;
}

static int read_shape(PyObject *shape, Found *ret, size_t *ret_bytes)
{
    ret->n_dims = (int)PyTuple_Size(shape);
    *ret_bytes = 1;
    for (int i = 0; i < ret->n_dims && i < PEN_TENSOR_DIMS; i++) {
        ret->shape[i] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
        *ret_bytes *= (size_t)ret->shape[i];
    }
    return PyErr_Occurred() || ret->n_dims > PEN_TENSOR_DIMS ? -1 : 0;
}

int core_memory_open(CoreState *state, PyObject *object, PyObject *shape, CoreMemory *ret)
{
    Found found = {0}, expected = {0};
    CoreMemory memory = {0};
    int r = read_shape(shape, &expected, &memory.bytes);
    if (r == 0 && PyObject_CheckBuffer(object))
        r = open_buffer(state, object, &memory, &found);
    else if (r == 0)
        r = PyObject_HasAttrString(object, "__dlpack__")
                ? open_dlpack(state, object, &memory, &found)
                : refuse_type(object);
    if (r == 0)
        r = check(state, &found, &expected, memory.bytes);
    memory.data = found.data;
    if (r < 0)
        core_memory_close(&memory);
    else
        *ret = memory;
    return r;
}

void core_memory_close(CoreMemory *memory)
{
    PyBuffer_Release(&memory->view);
    Py_CLEAR(memory->capsule);
}
