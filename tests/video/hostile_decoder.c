/* SPDX-License-Identifier: Apache-2.0 */
/* A program in place of penstock-video-decoder. The name of its library, which does not exist, says
 * what it does wrong. Its pictures have the time of their packet in every byte. */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "video/messages.h"

static const char *mode;
static uint8_t *memory;
static PenChildRequest opened;

static bool is(const char *name)
{
    return strcmp(mode, name) == 0;
}

static void put(const void *data, size_t bytes)
{
    if (write(1, data, bytes) != (ssize_t)bytes)
        _exit(0);
}

static void wait_for_ever(void)
{
    for (;;)
        sleep(1);
}

/* What it does in place of a reply to a packet. */
static void misbehave(void)
{
    static const char zeros[64];
    if (is("hang"))
        wait_for_ever();
    if (is("crash"))
        abort();
    if (is("kill"))
        raise(SIGKILL);
    if (is("exit")) {
        fprintf(stderr, "no \001 reply\nmore");
        exit(7);
    }
    if (is("close")) {
        close(0);
        close(1);
        wait_for_ever();
    }
    if (is("half")) {
        put(zeros, sizeof zeros);
        exit(0);
    }
    for (int i = 0; is("trickle") && i < 200; i++) {
        put(zeros, 1);
        usleep(50000);
    }
    for (int i = 0; is("noise") && i < 100000; i++)
        fprintf(stderr, "noise that nobody reads\n");
}

static PenChildReply picture_of(const PenChildRequest *request)
{
    PenChildReply reply = {.version = PEN_CHILD_VERSION,
                           .width = opened.width,
                           .height = opened.height,
                           .n_planes = 3,
                           .depth = 8,
                           .shift_x = 1,
                           .shift_y = 1,
                           .time = request->time};
    PenChildPlanes planes;
    if (pen__child_planes(&reply, &planes))
        memset(memory, (int)request->time, planes.bytes);
    return reply;
}

static void spoil(PenChildReply *reply)
{
    if (is("version"))
        reply->version = 7;
    if (is("status"))
        reply->status = -77;
    if (is("outcome"))
        reply->status = 5;
    if (is("planes"))
        reply->n_planes = 2;
    if (is("many"))
        reply->n_planes = 4000000000u;
    if (is("depth"))
        reply->depth = 64;
    if (is("shift"))
        reply->shift_y = 31;
    if (is("size"))
        reply->width = 16384;
    if (is("time"))
        reply->time = 12345;
    if (is("more") || is("time"))
        reply->has_more = 1;
    if (is("memory"))
        reply->status = PEN_E_NO_MEMORY;
    if (is("text")) {
        reply->status = PEN_E_DECODE;
        memset(reply->text, '\n', sizeof reply->text);
        memcpy(reply->text, "lines", 5);
    }
    if (is("random")) {
        for (size_t i = 0; i < sizeof *reply; i++)
            ((uint8_t *)reply)[i] = (uint8_t)(rand() >> 7);
        reply->version = PEN_CHILD_VERSION;
        reply->status = PEN_OK;
    }
}

static void serve(void)
{
    static char data[1 << 20];
    PenChildRequest request;
    if (read(0, &request, sizeof request) != sizeof request)
        _exit(0);
    if (is("deaf") && request.call == PEN_CHILD_SEND)
        wait_for_ever();
    for (uint64_t at = 0; at < request.bytes;) {
        uint64_t n = request.bytes - at < sizeof data ? request.bytes - at : sizeof data;
        ssize_t got = read(0, data, n);
        if (got <= 0)
            _exit(0);
        at += (uint64_t)got;
    }
    PenChildReply reply = {.version = PEN_CHILD_VERSION, .status = PEN_END};
    if (request.call == PEN_CHILD_OPEN) {
        opened = request;
        reply.status = is("refuse") ? PEN_E_UNSUPPORTED : is("end") ? PEN_END : PEN_OK;
        memcpy(reply.text, "no such codec", sizeof "no such codec");
    } else if (request.call != PEN_CHILD_DRAIN) {
        misbehave();
        reply = picture_of(&request);
        spoil(&reply);
    }
    put(&reply, sizeof reply);
    if (is("leave") && request.call == PEN_CHILD_OPEN)
        _exit(0);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    const char *slash = strrchr(argv[1], '/');
    mode = slash ? slash + 1 : argv[1];
    memory = mmap(NULL, strtoull(argv[2], NULL, 10), PROT_READ | PROT_WRITE, MAP_SHARED, 3, 0);
    if (memory == MAP_FAILED)
        return 3;
    if (is("silent"))
        wait_for_ever();
    if (is("die"))
        return 9;
    PenChildReply hello = {.version = is("old") ? 0 : PEN_CHILD_VERSION};
    put(&hello, sizeof hello);
    for (;;)
        serve();
}
