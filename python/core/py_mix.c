/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the loader of a mixture: from a tuple that penstock._mix makes. */
#include "py_core.h"

typedef struct Mixture {
    PyObject *packs; /* a tuple of Pack */
    Py_buffer weights, starts;
    PenPack **entered; /* packs of the first ones, as many as are in the settings */
    PenMixSettings settings;
} Mixture;

static int parse(PyObject *mix, Mixture *m)
{
    unsigned long long steps;
    PenMixSettings *s = &m->settings;
    pen_mix_settings_init(s);
    if (!PyArg_ParseTuple(mix, "O!y*Iy*iiKs", &PyTuple_Type, &m->packs, &m->weights, &s->n_stages,
                          &m->starts, &s->unit, &s->stop, &steps, &s->field))
        return -1;
    s->steps = steps;
    s->weights = m->weights.buf;
    s->starts = m->starts.buf;
    m->entered = PyMem_Calloc((size_t)PyTuple_Size(m->packs) + 1, sizeof *m->entered);
    if (!m->entered)
        PyErr_NoMemory();
    s->packs = m->entered;
    return m->entered ? 0 : -1;
}

static int enter_all(CoreState *state, Mixture *m)
{
    for (Py_ssize_t i = 0; i < PyTuple_Size(m->packs); i++) {
        PyObject *pack = PyTuple_GetItem(m->packs, i);
        if (!PyObject_TypeCheck(pack, state->pack)) {
            PyErr_Format(PyExc_TypeError, "mix: expected a Pack");
            return -1;
        }
        m->entered[i] = core_pack_enter((CorePack *)pack);
        if (!m->entered[i])
            return -1;
        m->settings.n_sources++;
    }
    return 0;
}

static void leave_all(Mixture *m)
{
    for (uint32_t i = 0; i < m->settings.n_sources; i++)
        core_pack_leave((CorePack *)PyTuple_GetItem(m->packs, (Py_ssize_t)i));
    PyMem_Free(m->entered);
    PyBuffer_Release(&m->weights);
    PyBuffer_Release(&m->starts);
}

int core_mix_open(CoreState *state, CoreRemote *remote, PyObject *mix,
                  const PenLoaderSettings *settings, PenLoader **ret)
{
    PenError error = {0};
    CoreWait wait = {.raised = 0}; /* sizes of images may be read */
    Mixture m = {0};
    int r = parse(mix, &m);
    if (r == 0)
        r = enter_all(state, &m);
    if (r == 0) {
        core_wait_begin(&wait);
        r = pen_loader_open_mix(&m.settings, settings, ret, &error);
        core_wait_end(&wait);
        if (r < 0)
            core_remote_raise(state, remote, &wait, &error);
    }
    leave_all(&m);
    return r < 0 || wait.raised ? -1 : 0;
}
