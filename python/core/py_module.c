/* SPDX-License-Identifier: Apache-2.0 */
/* The module penstock._core: its types, its table of operations, and the program. */
#include "py_core.h"

/* cli/main.c, whose main has this name here. */
int penstock_main(int argc, char **argv);

static char **copy_args(PyObject *list, Py_ssize_t n)
{
    char **args = PyMem_Calloc((size_t)n + 1, sizeof *args);
    for (Py_ssize_t i = 0; args && i < n; i++) {
        args[i] = PyBytes_AsString(PyList_GetItem(list, i));
        if (!args[i]) {
            PyMem_Free(args);
            return NULL;
        }
    }
    if (!args)
        PyErr_NoMemory();
    return args;
}

/* main(list of bytes): the program, once in a process. */
static PyObject *run_main(PyObject *module, PyObject *list)
{
    (void)module;
    if (!PyList_Check(list))
        return PyErr_Format(PyExc_TypeError, "args: expected a list of bytes");
    Py_ssize_t n = PyList_Size(list);
    char **args = copy_args(list, n);
    if (!args)
        return NULL;
    int code;
    Py_BEGIN_ALLOW_THREADS code = penstock_main((int)n, args);
    Py_END_ALLOW_THREADS PyMem_Free(args);
    return PyLong_FromLong(code);
}

static PyObject *is_remote(PyObject *module, PyObject *text)
{
    Py_ssize_t bytes;
    (void)module;
    const char *utf8 = PyUnicode_AsUTF8AndSize(text, &bytes);
    if (!utf8 && PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) {
        PyErr_Clear(); /* a file's name of bytes that are no text */
        utf8 = "";
    }
    return utf8 ? PyBool_FromLong(pen_is_remote(utf8)) : NULL;
}

/* The plug-in of kept videos, by its path in bytes. */
static PyObject *video_use(PyObject *module, PyObject *path)
{
    const char *text = PyBytes_AsString(path);
    PenError error;
    if (!text)
        return NULL;
    if (pen_video_use(text, &error) < 0)
        return core_raise(PyModule_GetState(module), &error);
    Py_RETURN_NONE;
}

static PyObject *video_check(PyObject *module, PyObject *none)
{
    PenError error;
    (void)none;
    if (pen_video_available(NULL, &error) < 0)
        return core_raise(PyModule_GetState(module), &error);
    Py_RETURN_NONE;
}

static int add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **ret)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    *ret = (PyTypeObject *)type;
    return type ? PyModule_AddType(module, *ret) : -1;
}

static int exec_module(PyObject *module)
{
    CoreState *state = PyModule_GetState(module);
    PyObject *errors = PyImport_ImportModule("penstock._error");
    if (!errors)
        return -1;
    state->make_error = PyObject_GetAttrString(errors, "make");
    Py_DECREF(errors);
    if (!state->make_error || core_add_statuses(module) < 0)
        return -1;
    if (PyModule_AddStringConstant(module, "version", pen_version()) < 0)
        return -1;
    if (add_type(module, &core_pack_spec, &state->pack) < 0 ||
        add_type(module, &core_writer_spec, &state->writer) < 0 ||
        add_type(module, &core_loader_spec, &state->loader) < 0 ||
        add_type(module, &core_batch_spec, &state->batch) < 0 ||
        add_type(module, &core_tensor_spec, &state->tensor) < 0 ||
        add_type(module, &core_trace_spec, &state->trace) < 0 ||
        add_type(module, &core_pass_spec, &state->pass) < 0)
        return -1;
    return 0;
}

static int traverse_module(PyObject *module, visitproc visit, void *arg)
{
    CoreState *state = PyModule_GetState(module);
    Py_VISIT(state->make_error);
    Py_VISIT(state->pack);
    Py_VISIT(state->writer);
    Py_VISIT(state->loader);
    Py_VISIT(state->batch);
    Py_VISIT(state->tensor);
    Py_VISIT(state->trace);
    Py_VISIT(state->pass);
    return 0;
}

static int clear_module(PyObject *module)
{
    CoreState *state = PyModule_GetState(module);
    Py_CLEAR(state->make_error);
    Py_CLEAR(state->pack);
    Py_CLEAR(state->writer);
    Py_CLEAR(state->loader);
    Py_CLEAR(state->batch);
    Py_CLEAR(state->tensor);
    Py_CLEAR(state->trace);
    Py_CLEAR(state->pass);
    return 0;
}

static PyMethodDef methods[] = {
    {"ops", core_ops, METH_NOARGS, "The table of operations."},
    {"pipeline_check", core_pipeline_check, METH_O, "The text of a pipeline with every parameter."},
    {"decode", core_decode, METH_VARARGS, "Decode files to memory; a size or an error of each."},
    {"finalise", core_finalise, METH_VARARGS, "Join the tasks of writers to a pack."},
    {"is_remote", is_remote, METH_O, "True if the text is a URL of an object store or a server."},
    {"remote_list", core_remote_list, METH_VARARGS, "Names and sizes of objects below a prefix."},
    {"remote_read", core_remote_read, METH_VARARGS, "The bytes of an object."},
    {"end", core_end, METH_NOARGS, "The interpreter exits: stop waiting for servers."},
    {"end_wait", core_end_wait, METH_NOARGS,
     "Wait until remaining threads have released their resources."},
    {"video_use", video_use, METH_O, "Choose the decoder of kept videos by its path."},
    {"video_check", video_check, METH_NOARGS, "Raise if the decoder of kept videos is missing."},
    {"main", run_main, METH_O, "Run the command line with these arguments."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, exec_module},
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "penstock._core",
    .m_doc = "Internal interface of the Python modules to libpenstock.",
    .m_size = sizeof(CoreState),
    .m_methods = methods,
    .m_slots = slots,
    .m_traverse = traverse_module,
    .m_clear = clear_module,
};

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&definition);
}
