/* SPDX-License-Identifier: Apache-2.0 */
#include "video/plugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/sys.h"

#define WHERE "video/plugin"
#define LIBRARY "libpenstock-video.so.0"
#define VARIABLE "PENSTOCK_VIDEO_LIBRARY"
#define MODE_VARIABLE "PENSTOCK_VIDEO"

typedef struct Chosen {
    pthread_mutex_t mutex;
    char path[PATH_MAX];
} Chosen;

static Chosen chosen = {.mutex = PTHREAD_MUTEX_INITIALIZER};
static _Atomic(const PenVideoPlugin *) opened;

static const PenVideoPlugin *get_opened(void)
{
    return atomic_load_explicit(&opened, memory_order_acquire);
}

int pen_video_use(const char *path, PenError *reterr)
{
    if (get_opened())
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s: a video decoder is open already in this process; choose another one "
                         "before the first video is decoded",
                         path ? path : LIBRARY);
    if (path && (!*path || strlen(path) >= sizeof chosen.path))
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "path of the video decoder: expected 1 to %zu bytes, found %zu",
                         sizeof chosen.path - 1, strlen(path));
    pthread_mutex_lock(&chosen.mutex);
    snprintf(chosen.path, sizeof chosen.path, "%s", path ? path : "");
    pthread_mutex_unlock(&chosen.mutex);
    return PEN_OK;
}

static void get_path(char ret[PATH_MAX])
{
    pthread_mutex_lock(&chosen.mutex);
    snprintf(ret, PATH_MAX, "%s", chosen.path);
    pthread_mutex_unlock(&chosen.mutex);
    if (*ret)
        return;
    const char *path = pen__sys->environment(VARIABLE);
    snprintf(ret, PATH_MAX, "%s", path && *path ? path : LIBRARY);
}

static int fail_open(const char *why, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                     "cannot open the video decoder: %s. In a clone of penstock, './dev setup' and "
                     "'./dev build' make build/video/libpenstock-video.so.0; set "
                     "PENSTOCK_VIDEO_LIBRARY to its path. Or install the wheel that './dev wheel "
                     "video' writes to build/wheels",
                     why ? why : LIBRARY);
}

/* A table of functions that this release can call. */
static int check(const char *path, const PenVideoPlugin *p, PenError *reterr)
{
    if (!p || p->abi != PEN_VIDEO_ABI)
        return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                         "%s: expected a video decoder with interface %d, found %u; install the "
                         "video decoder of the same release as penstock",
                         path, PEN_VIDEO_ABI, p ? p->abi : 0);
    return PEN_OK;
}

/* Threads may open it at the same time: the dynamic linker gives all of them the same library,
 * unless the path changes meanwhile; then the first one wins. It is never closed: threads may run
 * in it until the process ends. */
static int open_plugin(PenError *reterr)
{
    char path[PATH_MAX];
    get_path(path);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return fail_open(dlerror(), reterr);
    void *symbol = dlsym(library, "pen_video_plugin");
    PenVideoPluginFunction get = NULL;
    memcpy(&get, &symbol, sizeof get); /* ISO C has no cast from an object to a function */
    int r = get ? PEN_OK
                : pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                            "%s: expected a video decoder of penstock, found a library without "
                            "the function pen_video_plugin",
                            path);
    const PenVideoPlugin *p = r < 0 ? NULL : get(), *none = NULL;
    if (r == PEN_OK)
        r = check(path, p, reterr);
    if (r == PEN_OK)
        atomic_compare_exchange_strong(&opened, &none, p);
    else
        dlclose(library);
    return r;
}

int pen__video_plugin(const PenVideoPlugin **ret, PenError *reterr)
{
    if (!get_opened()) {
        int r = open_plugin(reterr);
        if (r < 0)
            return r;
    }
    *ret = get_opened();
    return PEN_OK;
}

int pen__video_library(char ret[PATH_MAX], PenError *reterr)
{
    const PenVideoPlugin *p = NULL;
    Dl_info info;
    int r = pen__video_plugin(&p, reterr);
    if (r < 0)
        return r;
    if (!dladdr(p, &info) || !info.dli_fname)
        return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                         "cannot find the file of the video decoder; set " VARIABLE " to its path");
    int e = pen__sys->real_path(info.dli_fname, ret, PATH_MAX);
    return e < 0 ? pen__fail_os(reterr, -e, WHERE, "%s: cannot find it", info.dli_fname) : PEN_OK;
}

int pen__video_in_process(bool *ret, PenError *reterr)
{
    const char *value = pen__sys->environment(MODE_VARIABLE);
    *ret = value && strcmp(value, "process") == 0;
    if (!value || !*value || *ret || strcmp(value, "inline") == 0)
        return PEN_OK;
    return pen__fail(reterr, PEN_E_INVALID, WHERE,
                     MODE_VARIABLE ": expected inline or process, found '%.64s'", value);
}

int pen_video_available(const char **ret_name, PenError *reterr)
{
    const PenVideoPlugin *p = NULL;
    int r = pen__video_plugin(&p, reterr);
    if (r == PEN_OK && ret_name)
        *ret_name = p->name;
    return r;
}
