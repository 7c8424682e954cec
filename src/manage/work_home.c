/* SPDX-License-Identifier: Apache-2.0 */
#include "manage/work_home.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/sha256.h"
#include "base/sys.h"
#include "io/dir.h"
#include "manage/work.h"
#include "net/remote/remote.h"

#define WHERE "ingest/home"

/* "BASE/penstock/0123456789abcdef" for an address. */
static char *in_cache(const char *base, const char *below, const char *out)
{
    uint8_t hash[32];
    char name[64];
    size_t at = (size_t)snprintf(name, sizeof name, "%s", below);
    size_t n = strlen(out);
    while (n > 1 && out[n - 1] == '/') /* means the same place */
        n--;
    pen__sha256(out, n, hash);
    for (int i = 0; i < 8; i++)
        at += (size_t)snprintf(name + at, sizeof name - at, "%02x", hash[i]);
    return pen__path_join(base, name);
}

int pen__home_find(const char *out, const char *work, char **ret, PenError *reterr)
{
    char *home = NULL;
    if (!pen_is_remote(out)) {
        home = pen__strdup(out);
    } else if (work) {
        home = pen__strdup(work);
    } else {
        const char *cache = pen__sys->environment("XDG_CACHE_HOME");
        const char *user = pen__sys->environment("HOME");
        if (cache && *cache)
            home = in_cache(cache, "penstock/", out);
        else if (user && *user)
            home = in_cache(user, ".cache/penstock/", out);
        else
            return pen__fail(reterr, PEN_E_INVALID, WHERE,
                             "%s: no directory for the work files: neither HOME nor "
                             "XDG_CACHE_HOME is set; pass one with --work",
                             out);
    }
    if (!home)
        return pen__fail_memory(reterr, WHERE, out);
    *ret = home;
    return PEN_OK;
}

/* The directories above it, when they are not there. */
static int make_above(char *path, PenError *reterr)
{
    int r = PEN_OK;
    for (char *c = path + 1; *c && r >= 0; c++)
        if (*c == '/') {
            *c = 0;
            if (pen__file_exists(path, NULL) == 0)
                r = pen__dir_make(path, reterr);
            *c = '/';
        }
    return r;
}

int pen__home_make(const char *out, const char *home, PenError *reterr)
{
    int r = PEN_OK;
    if (pen_is_remote(out)) {
        char *path = pen__strdup(home);
        r = path ? make_above(path, reterr) : pen__fail_memory(reterr, WHERE, home);
        pen__free(path);
    }
    return r < 0 ? r : pen__work_make(home, reterr);
}

void pen__home_leave(const char *home)
{
    pen__work_remove(home, NULL, NULL, NULL);
    pen__dir_remove(home, NULL); /* only when it is empty */
}
