/* SPDX-License-Identifier: Apache-2.0 */
/* Bringing a pack into memory: it takes a while, so Ctrl-C is heard and others run meanwhile. */
#include "py_core.h"

int core_preload(CoreState *state, PenPack *pack, CoreRemote *remote, PyObject *how,
                 PenPreloadResult *ret)
{
    PenError error = {0};
    PenPreloadSettings s;
    CoreProgress p = {.call = PyCallable_Check(how) ? how : NULL};
    pen_preload_settings_init(&s);
    s.progress = core_progress_tell;
    s.ctx = &p;
    core_wait_begin(&p.wait);
    int r = pen_pack_preload(pack, &s, ret, &error);
    core_wait_end(&p.wait);
    if (r < 0)
        core_remote_raise(state, remote, &p.wait, &error);
    return r < 0 || p.wait.raised ? -1 : 0;
}
