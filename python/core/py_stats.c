/* SPDX-License-Identifier: Apache-2.0 */
/* The counters of a loader, by the names of docs/reference/counters.md. */
#include "py_core.h"

#include <inttypes.h>
#include <stdio.h>

static int add_all(PyObject *dict, const PenLoaderStats *stats)
{
    for (int i = 0; pen_stat_name(i); i++) {
        double value = pen_stat_value(stats, i);
        PyObject *number =
            pen_stat_is_count(i) ? PyLong_FromDouble(value) : PyFloat_FromDouble(value);
        if (core_set(dict, pen_stat_name(i), number) < 0)
            return -1;
    }
    return 0;
}

/* Counts of waits; bucket i ends at 2^i microseconds. */
static PyObject *list_buckets(const PenLoaderStats *s)
{
    PyObject *list = PyList_New(PEN_WAIT_BUCKETS);
    for (Py_ssize_t i = 0; list && i < PEN_WAIT_BUCKETS; i++) {
        PyObject *count = PyLong_FromUnsignedLongLong(s->wait_buckets[i]);
        if (!count || PyList_SetItem(list, i, count) < 0)
            Py_CLEAR(list);
    }
    return list;
}

PyObject *core_hash(uint64_t hash)
{
    char digits[17];
    snprintf(digits, sizeof digits, "%016" PRIx64, hash);
    return PyUnicode_FromString(digits);
}

/* "blocks", "runs" or "samples", or None. */
static PyObject *fetch_unit(uint32_t unit)
{
    static const char *const names[] = {
        [PEN_FETCH_BLOCKS] = "blocks", [PEN_FETCH_RUNS] = "runs", [PEN_FETCH_SAMPLES] = "samples"};
    return Py_BuildValue("z", unit < sizeof names / sizeof *names ? names[unit] : NULL);
}

PyObject *core_loader_stats(const PenLoaderStats *stats, double transform_seconds)
{
    const PenRunFacts facts = {.transform_seconds = transform_seconds};
    PenDiagnosis found;
    pen_diagnose(stats, &facts, &found);
    PyObject *dict = PyDict_New();
    if (dict &&
        (add_all(dict, stats) < 0 || core_set(dict, "wait_buckets", list_buckets(stats)) < 0 ||
         core_set(dict, "bottleneck", PyUnicode_FromString(found.bottleneck)) < 0 ||
         core_set(dict, "order_hash", core_hash(stats->order_hash)) < 0 ||
         core_set(dict, "fetch_unit", fetch_unit(stats->fetch_unit)) < 0))
        Py_CLEAR(dict);
    return dict;
}

/* Gives up the reference to item; accepts a NULL item. */
static int append(PyObject *list, PyObject *item)
{
    int r = item ? PyList_Append(list, item) : -1;
    Py_XDECREF(item);
    return r;
}

/* (name, samples per second, ratio) of each stage. */
static PyObject *list_stages(const PenDiagnosis *d)
{
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < d->n_stages; i++) {
        const PenDiagnosisStage *s = &d->stages[i];
        if (append(list, Py_BuildValue("sdd", s->name, s->per_second, s->ratio)) < 0)
            Py_CLEAR(list);
    }
    return list;
}

/* (change, samples per second, gain, text) of each advice. */
static PyObject *list_advice(const PenDiagnosis *d)
{
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < d->n_advices; i++) {
        const PenAdvice *a = &d->advices[i];
        if (append(list, Py_BuildValue("sdds", a->change, a->per_second, a->gain, a->text)) < 0)
            Py_CLEAR(list);
    }
    return list;
}

PyObject *core_loader_diagnosis(const PenLoaderStats *stats, PenRunFacts *facts,
                                double transform_seconds)
{
    PenDiagnosis d;
    facts->transform_seconds = transform_seconds;
    pen_diagnose(stats, facts, &d);
    return Py_BuildValue("{szszszsdsdsNsN}", "bottleneck", d.bottleneck, "second", d.second, "note",
                         d.note, "samples_per_second", d.per_second, "wait_share", d.wait_share,
                         "stages", list_stages(&d), "advice", list_advice(&d));
}
