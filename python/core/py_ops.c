/* SPDX-License-Identifier: Apache-2.0 */
/* The table of operations as plain tuples, and the check of a pipeline's text. */
#include "py_core.h"

#include <string.h>

static PyObject *param_tuple(const PenParam *p)
{
    return Py_BuildValue("(siddzzs)", p->name, (int)p->type, p->min, p->max, p->initial, p->words,
                         p->help ? p->help : "");
}

static PyObject *op_tuple(const PenOp *op)
{
    PyObject *params = PyList_New(0);
    for (uint32_t i = 0; params && i < op->n_params; i++) {
        PyObject *param = param_tuple(&op->params[i]);
        if (!param || PyList_Append(params, param) < 0)
            Py_CLEAR(params);
        Py_XDECREF(param);
    }
    return params ? Py_BuildValue("(ssN)", op->name, op->help ? op->help : "", params) : NULL;
}

PyObject *core_ops(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    uint32_t n = 0;
    const PenOp *ops = pen_ops(&n);
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < n; i++) {
        PyObject *op = op_tuple(&ops[i]);
        if (!op || PyList_Append(list, op) < 0)
            Py_CLEAR(list);
        Py_XDECREF(op);
    }
    return list;
}

PyObject *core_pipeline_check(PyObject *module, PyObject *text)
{
    PenError error = {0};
    size_t bytes = 0;
    Py_ssize_t n = 0;
    const char *utf8 = PyUnicode_AsUTF8AndSize(text, &n);
    if (!utf8)
        return NULL;
    if (strlen(utf8) != (size_t)n)
        return PyErr_Format(PyExc_ValueError, "pipeline: expected a text without null bytes");
    int r = pen_pipeline_check(utf8, NULL, 0, &bytes, &error);
    if (r < 0)
        return core_raise(PyModule_GetState(module), &error);
    char *full = PyMem_Malloc(bytes + 1);
    if (!full)
        return PyErr_NoMemory();
    r = pen_pipeline_check(utf8, full, bytes + 1, &bytes, &error);
    PyObject *made = r < 0 ? core_raise(PyModule_GetState(module), &error)
                           : PyUnicode_FromStringAndSize(full, (Py_ssize_t)bytes);
    PyMem_Free(full);
    return made;
}
