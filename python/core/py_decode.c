/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding files without a pack. The interpreter lock is released meanwhile, and Ctrl-C stops it.
 */
#include "py_core.h"

#include <string.h>

typedef struct Call {
    size_t n, n_memories;
    PenDecodeItem *items;
    PenError *errors;
    CoreMemory *memories; /* one for all images, or one for each */
    PenDecodeSettings settings;
    PenError error; /* not of one image: no threads, interrupted */
    CoreProgress progress;
} Call;

static int read_items(Call *c, PyObject *datas, PyObject *boxes)
{
    for (size_t i = 0; i < c->n; i++) {
        PenDecodeItem *item = &c->items[i];
        PyObject *box = PyList_GetItem(boxes, (Py_ssize_t)i);
        char *data;
        Py_ssize_t bytes;
        if (PyBytes_AsStringAndSize(PyList_GetItem(datas, (Py_ssize_t)i), &data, &bytes) < 0 ||
            !box)
            return -1;
        item->data = data;
        item->bytes = (size_t)bytes;
        item->error = &c->errors[i];
        if (box != Py_None &&
            !PyArg_ParseTuple(box, "IIII", &item->box.x, &item->box.y, &item->box.w, &item->box.h))
            return -1;
    }
    return 0;
}

/* (object, shape) of the memory of all images, or of each; None for an image without any. */
static int open_memories(CoreState *state, Call *c, PyObject *outs)
{
    for (size_t i = 0; i < c->n_memories; i++) {
        PyObject *pair = PyList_GetItem(outs, (Py_ssize_t)i), *object, *shape;
        if (pair == Py_None)
            continue;
        if (!PyArg_ParseTuple(pair, "OO!", &object, &PyTuple_Type, &shape) ||
            core_memory_open(state, object, shape, &c->memories[i]) < 0)
            return -1;
    }
    size_t shared = c->n_memories == 1 ? c->n : 1; /* images in one memory */
    for (size_t i = 0; c->n_memories && i < c->n; i++) {
        const CoreMemory *m = &c->memories[i / shared];
        c->items[i].cap = m->bytes / shared;
        c->items[i].pixels = m->data ? m->data + i % shared * c->items[i].cap : NULL;
    }
    return 0;
}

/* What cannot be decoded is black. */
static int run(Call *c, int is_single)
{
    int r = PEN_OK;
    core_wait_begin(&c->progress.wait);
    if (is_single)
        c->items[0].status = pen_decode(&c->items[0], &c->settings, &c->errors[0]);
    else
        r = pen_decode_batch(c->items, c->n, &c->settings, &c->error);
    for (size_t i = 0; i < c->n; i++)
        if (c->items[i].status < 0 && c->items[i].pixels)
            memset(c->items[i].pixels, 0, c->items[i].cap);
    core_wait_end(&c->progress.wait);
    return r < 0 && c->error.sample >= 0 ? PEN_OK : r;
}

/* (height, width) or an exception of each image. */
static PyObject *results(CoreState *state, const Call *c)
{
    PyObject *list = PyList_New((Py_ssize_t)c->n);
    for (size_t i = 0; list && i < c->n; i++) {
        const PenDecodeItem *item = &c->items[i];
        PyObject *one = item->status < 0 ? core_error(state, item->error)
                                         : Py_BuildValue("(II)", item->size[0], item->size[1]);
        if (!one || PyList_SetItem(list, (Py_ssize_t)i, one) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static int allocate(Call *c)
{
    c->items = PyMem_Calloc(c->n + 1, sizeof *c->items);
    c->errors = PyMem_Calloc(c->n + 1, sizeof *c->errors);
    c->memories = PyMem_Calloc(c->n_memories + 1, sizeof *c->memories);
    if (c->items && c->errors && c->memories)
        return 0;
    PyErr_NoMemory();
    return -1;
}

static void release(Call *c)
{
    for (size_t i = 0; c->memories && i < c->n_memories; i++)
        core_memory_close(&c->memories[i]);
    PyMem_Free(c->items);
    PyMem_Free(c->errors);
    PyMem_Free(c->memories);
}

/* decode(datas, boxes, outs, height, width, mode, filter, threads, is_single): lists of the same
 * length, but that `outs` may be empty (only sizes are read) or have one element for all. */
PyObject *core_decode(PyObject *module, PyObject *args)
{
    CoreState *state = PyModule_GetState(module);
    PyObject *datas, *boxes, *outs, *made = NULL;
    int is_single;
    Call c = {0};
    PenDecodeSettings *s = &c.settings;
    pen_decode_settings_init(s);
    if (!PyArg_ParseTuple(args, "O!O!O!IIiiip", &PyList_Type, &datas, &PyList_Type, &boxes,
                          &PyList_Type, &outs, &s->height, &s->width, &s->mode, &s->filter,
                          &s->threads, &is_single))
        return NULL;
    s->progress = core_progress_tell;
    s->ctx = &c.progress;
    c.n = (size_t)PyList_Size(datas);
    c.n_memories = (size_t)PyList_Size(outs);
    if (allocate(&c) == 0 && read_items(&c, datas, boxes) == 0 &&
        open_memories(state, &c, outs) == 0) {
        int r = run(&c, is_single);
        if (r < 0)
            core_remote_raise(state, NULL, &c.progress.wait, &c.error);
        else if (!c.progress.wait.raised)
            made = results(state, &c);
    }
    release(&c);
    return made;
}
