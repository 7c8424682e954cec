/* SPDX-License-Identifier: Apache-2.0 */
#include "base/program/confined.h"

#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/sys.h"

/* Where systems have their libraries; what does not exist is no harm. */
static const char *const system_libraries[] = {
    "/lib",       "/lib32",           "/lib64",          "/usr/lib",
    "/usr/lib32", "/usr/lib64",       "/usr/local/lib",  "/nix/store",
    "/gnu/store", "/usr/local/lib64", "/usr/local/cuda", "/etc/ld.so.cache"};

void pen__confined_program_allow(PenConfinedProgram *p, const char *path)
{
    if (p->n_libraries < PEN_LEN(p->libraries) - 1)
        p->libraries[p->n_libraries++] = path;
}

/* bin/ffmpeg: lib and lib64 beside bin, where conda and the like have them. */
static void add_beside(PenConfinedProgram *p)
{
    static const char *const names[] = {"lib", "lib64"};
    char real[PEN_PROGRAM_PATH];
    if (pen__sys->real_path(p->path, real, sizeof real) < 0)
        return;
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(real, '/');
        if (slash)
            *slash = 0;
    }
    for (size_t i = 0; i < PEN_LEN(names); i++) {
        int n = snprintf(p->beside[i], sizeof p->beside[i], "%s/%s", real, names[i]);
        if (n > 0 && (size_t)n < sizeof p->beside[i])
            pen__confined_program_allow(p, p->beside[i]);
    }
}

/* The user's own list goes to the program too. */
static void add_listed(PenConfinedProgram *p)
{
    const char *value = pen__sys->environment("LD_LIBRARY_PATH");
    int n = value ? snprintf(p->listed, sizeof p->listed, "%s", value) : -1;
    if (n <= 0 || (size_t)n >= sizeof p->listed ||
        (size_t)snprintf(p->variable, sizeof p->variable, "LD_LIBRARY_PATH=%s", value) >=
            sizeof p->variable)
        return;
    p->environment[p->n_environment++] = p->variable;
    for (char *at = p->listed; at;) {
        char *end = strpbrk(at, ":;");
        if (end)
            *end++ = 0;
        if (*at)
            pen__confined_program_allow(p, at);
        at = end;
    }
}

void pen__confined_program_fill(PenConfinedProgram *p)
{
    static const char *const fixed[] = {"LC_ALL=C", "MALLOC_ARENA_MAX=2", "AV_LOG_FORCE_NOCOLOR=1"};
    p->n_libraries = p->n_environment = 0;
    memset(p->libraries, 0, sizeof p->libraries);
    memset(p->environment, 0, sizeof p->environment);
    for (size_t i = 0; i < PEN_LEN(fixed); i++)
        p->environment[p->n_environment++] = fixed[i];
    for (size_t i = 0; i < PEN_LEN(system_libraries); i++)
        pen__confined_program_allow(p, system_libraries[i]);
    add_beside(p);
    add_listed(p);
}
