/* SPDX-License-Identifier: Apache-2.0 */
/* Where ffmpeg and ffprobe are. */
#include <stdio.h>
#include <string.h>

#include <penstock/ingest.h>

#include "ingest/video/video_impl.h"

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
    char path[PEN_PROGRAM_PATH];
    return search("ffmpeg", path, sizeof path) && search("ffprobe", path, sizeof path);
}

bool pen__video_program_find(const char *name, PenConfinedProgram *ret)
{
    if (!search(name, ret->path, sizeof ret->path))
        return false;
    pen__confined_program_fill(ret);
    return true;
}

bool pen__video_program_is_script(const PenConfinedProgram *program)
{
    char head[2] = "";
    int fd = pen__sys->open(program->path, PEN_OPEN_READ);
    if (fd < 0)
        return false;
    int64_t n = pen__sys->pread(fd, head, sizeof head, 0);
    pen__sys->close(fd);
    return n == 2 && memcmp(head, "#!", 2) == 0;
}
