/* SPDX-License-Identifier: Apache-2.0 */
#include "video_help.h"

int keep_frame(void *ctx, const PenPixels *p, PenError *reterr)
{
    Got *got = ctx;
    (void)reterr;
    got->width = p->width;
    got->height = p->height;
    got->n++;
    return pen__buf_add(&got->pixels, p->data, (size_t)p->width * p->height * p->channels);
}

void read_video(Got *got, const char *path, double fps, uint64_t start, uint64_t end)
{
    PenVideoSettings s = {.fps = fps, .seconds = 20};
    PenVideoPart part = {path, start, end};
    *got = (Got){.n = 0};
    got->r = pen__video_read(&s, &part, keep_frame, got, &got->times, &got->err);
}

int64_t time_of(const Got *got, uint64_t frame)
{
    int64_t ns = -1;
    if ((frame + 1) * 8 <= got->times.bytes)
        memcpy(&ns, got->times.data + frame * 8, 8);
    return ns;
}

void free_got(Got *got)
{
    pen__buf_free(&got->pixels);
    pen__buf_free(&got->times);
}

int run_shell(const char *command)
{
    const char *argv[] = {"/bin/sh", "-c", command, NULL};
    PenProcessSettings s = {.argv = argv, .deadline_ns = pen__sys->now_ns() + 60000000000};
    PenProcessResult result;
    PenError e = {0};
    return pen__process_run(&s, &result, &e) < 0 ? -1 : result.exit.code;
}

void shell(const char *fmt, ...)
{
    char command[8192];
    __builtin_va_list args;
    __builtin_va_start(args, fmt);
    vsnprintf(command, sizeof command, fmt, args);
    __builtin_va_end(args);
    if (run_shell(command) != 0)
        test__fail(__FILE__, __LINE__, "%s", command);
}

bool can_encode(const char *codec)
{
    char command[4600];
    if (access(at("encoders"), F_OK) != 0)
        shell("ffmpeg -hide_banner -encoders >'%s'", at("encoders"));
    snprintf(command, sizeof command, "grep -q ' %s ' '%s'", codec, at("encoders"));
    return run_shell(command) == 0;
}

void stub(const char *name, const char *script)
{
    static char path[9000], text[9000];
    static const char *before;
    char file[64];
    if (!before) {
        before = getenv("PATH");
        snprintf(path, sizeof path, "%s:%s", at("bin"), before ? before : "/usr/bin:/bin");
        setenv("PATH", path, 1);
    }
    snprintf(text, sizeof text, "#!/bin/sh\n%s\n", script);
    snprintf(file, sizeof file, "bin/%s", name);
    help_text(file, text);
    CHECK_INT(chmod(at(file), 0755), 0);
}
