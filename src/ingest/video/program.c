/* SPDX-License-Identifier: Apache-2.0 */
/* Where ffmpeg and ffprobe are, and what they may read beside the video. */
#include <stdio.h>
#include <string.h>

#include <penstock/ingest.h>

#include "ingest/video/video_impl.h"

/* Where systems have their libraries; what does not exist is no harm. */
static const char *const system_libraries[] = {
    "/lib",       "/lib32",           "/lib64",          "/usr/lib",
    "/usr/lib32", "/usr/lib64",       "/usr/local/lib",  "/nix/store",
    "/gnu/store", "/usr/local/lib64", "/usr/local/cuda", "/etc/ld.so.cache"};

/* As execvp searches, with the same default. */
static bool search(const char *name, char *ret, size_t cap)
{
    const char *path = pen__sys->environment("PATH");
    for (const char *p = path ? path : "/bin:/usr/bin"; p; p = strchr(p, ':')) {
        p += *p == ':';
        int n = (int)strcspn(p, ":");
        PenFileStat st;
        int bytes = snprintf(ret, cap, "%.*s/%s", n ? n : 1, n ? p : ".", name);
        if (bytes > 0 && (size_t)bytes < cap && pen__sys->stat_path(ret, &st) == 0 && st.is_file &&
            (st.mode & 0111))
            return true;
    }
    return false;
}

int pen_has_ffmpeg(void)
{
    char path[PEN_VIDEO_PATH];
    return search("ffmpeg", path, sizeof path) && search("ffprobe", path, sizeof path);
}

static void add_library(PenVideoProgram *p, const char *path)
{
    if (p->n_libraries < PEN_LEN(p->libraries) - 1)
        p->libraries[p->n_libraries++] = path;
}

/* bin/ffmpeg: lib and lib64 beside bin, where conda and the like have them. */
static void add_beside(PenVideoProgram *p)
{
    static const char *const names[] = {"lib", "lib64"};
    char real[PEN_VIDEO_PATH];
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
            add_library(p, p->beside[i]);
    }
}

/* The user's own list goes to the program too. */
static void add_listed(PenVideoProgram *p)
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
            add_library(p, at);
        at = end;
    }
}

bool pen__video_program_find(const char *name, PenVideoProgram *ret)
{
    static const char *const fixed[] = {"LC_ALL=C", "MALLOC_ARENA_MAX=2", "AV_LOG_FORCE_NOCOLOR=1"};
    memset(ret, 0, sizeof *ret);
    if (!search(name, ret->path, sizeof ret->path))
        return false;
    for (size_t i = 0; i < PEN_LEN(fixed); i++)
        ret->environment[ret->n_environment++] = fixed[i];
    for (size_t i = 0; i < PEN_LEN(system_libraries); i++)
        add_library(ret, system_libraries[i]);
    add_beside(ret);
    add_listed(ret);
    return true;
}

bool pen__video_program_is_script(const PenVideoProgram *program)
{
    char head[2] = "";
    int fd = pen__sys->open(program->path, PEN_OPEN_READ);
    if (fd < 0)
        return false;
    int64_t n = pen__sys->pread(fd, head, sizeof head, 0);
    pen__sys->close(fd);
    return n == 2 && memcmp(head, "#!", 2) == 0;
}
