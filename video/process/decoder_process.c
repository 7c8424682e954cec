/* SPDX-License-Identifier: Apache-2.0 */
/* penstock-video-decoder: the process that decodes videos when PENSTOCK_VIDEO is "process". The
 * library starts it confined, with the plug-in as its argument; src/video/messages.h describes what
 * both send. It is trusted with nothing: what goes wrong here ends it. */
#include <penstock/video.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "video/messages.h"

enum { REQUESTS = 0, REPLIES = 1, MEMORY = 3, MAX_BYTES = INT32_MAX };

typedef struct Server {
    const PenVideoPlugin *plugin;
    PenVideoDecoder *decoder; /* NULL: not open */
    uint8_t *memory;
    uint64_t memory_bytes;
    uint8_t *data; /* of the last request */
    uint64_t cap;
    const PenVideoPicture *next; /* if `status` is PEN_OK */
    int status;                  /* of `receive`, which is called before its result is needed */
    PenError error;
} Server;

/* The library has ended, or has closed the decoder. */
static _Noreturn void end(void)
{
    _exit(0);
}

static void read_all(void *ret, uint64_t bytes)
{
    uint8_t *at = ret;
    while (bytes) {
        ssize_t n = read(REQUESTS, at, bytes);
        if (n == 0 || (n < 0 && errno != EINTR))
            end();
        if (n > 0) {
            at += n;
            bytes -= (uint64_t)n;
        }
    }
}

static void write_all(const void *data, size_t bytes)
{
    const uint8_t *at = data;
    while (bytes) {
        ssize_t n = write(REPLIES, at, bytes);
        if (n < 0 && errno != EINTR)
            end();
        if (n > 0) {
            at += n;
            bytes -= (size_t)n;
        }
    }
}

static void reply_status(int status, const PenError *error)
{
    PenChildReply reply = {.version = PEN_CHILD_VERSION, .status = status};
    if (status < 0 && error)
        snprintf(reply.text, sizeof reply.text, "%.*s", PEN_CHILD_TEXT - 1, error->message);
    write_all(&reply, sizeof reply);
}

/* ---- pictures ---- */

static void look_ahead(Server *s)
{
    s->status = s->plugin->receive(s->decoder, &s->next, &s->error);
}

static void copy_planes(Server *s, const PenChildReply *reply)
{
    PenChildPlanes planes;
    if (!pen__child_planes(reply, &planes) || planes.bytes > s->memory_bytes)
        return; /* a picture of another size, which the library refuses */
    for (uint32_t i = 0; i < reply->n_planes; i++) {
        const uint8_t *from = s->next->planes[i];
        uint8_t *to = s->memory + planes.at[i];
        for (uint64_t y = 0; y < planes.rows[i]; y++)
            memcpy(to + y * planes.stride[i], from + (int64_t)y * s->next->strides[i],
                   planes.row_bytes[i]);
    }
}

/* The picture that was received before, if there is one. */
static void reply_next(Server *s)
{
    if (s->status != PEN_OK) {
        reply_status(s->status, &s->error);
        return;
    }
    const PenVideoPicture *p = s->next;
    PenChildReply reply = {.version = PEN_CHILD_VERSION,
                           .status = PEN_OK,
                           .width = p->width,
                           .height = p->height,
                           .n_planes = p->n_planes,
                           .depth = p->depth,
                           .shift_x = p->shift_x,
                           .shift_y = p->shift_y,
                           .range = p->range,
                           .matrix = p->matrix,
                           .time = p->time};
    copy_planes(s, &reply);
    look_ahead(s);
    reply.has_more = s->status != PEN_END;
    write_all(&reply, sizeof reply);
}

/* ---- requests ---- */

/* Bytes that there is no memory for are read all the same, as the library waits for that. */
static _Noreturn void refuse_data(uint64_t bytes)
{
    uint8_t some[4096];
    while (bytes) {
        uint64_t n = bytes < sizeof some ? bytes : sizeof some;
        read_all(some, n);
        bytes -= n;
    }
    reply_status(PEN_E_NO_MEMORY, NULL);
    end();
}

static void take_data(Server *s, uint64_t bytes)
{
    if (bytes > MAX_BYTES)
        end();
    if (bytes > s->cap) {
        free(s->data);
        s->cap = bytes + bytes / 2;
        s->data = malloc(s->cap);
        if (!s->data)
            refuse_data(bytes);
    }
    read_all(s->data, bytes);
}

static void open_decoder(Server *s, const PenChildRequest *request)
{
    PenVideoDecoderConfig config = {.codec = request->codec,
                                    .width = request->width,
                                    .height = request->height,
                                    .max_pixels = request->max_size,
                                    .extra = s->data,
                                    .extra_bytes = request->bytes};
    if (s->decoder)
        s->plugin->close(s->decoder);
    s->decoder = NULL;
    int r = s->plugin->open(&config, &s->decoder, &s->error);
    if (r < 0)
        s->decoder = NULL;
    s->status = PEN_END;
    reply_status(r, &s->error);
}

static void feed(Server *s, const PenChildRequest *request)
{
    PenCodedPacket packet = {
        .flags = request->flags, .time = request->time, .data = s->data, .bytes = request->bytes};
    s->status = request->call == PEN_CHILD_SEND ? s->plugin->send(s->decoder, &packet, &s->error)
                                                : s->plugin->drain(s->decoder, &s->error);
    if (s->status == PEN_OK)
        look_ahead(s);
    reply_next(s);
}

static void serve(Server *s)
{
    PenChildRequest request;
    read_all(&request, sizeof request);
    take_data(s, request.bytes);
    if (request.flushes && s->decoder)
        s->plugin->flush(s->decoder);
    if (request.call == PEN_CHILD_OPEN)
        open_decoder(s, &request);
    else if (!s->decoder)
        end();
    else if (request.call == PEN_CHILD_SEND || request.call == PEN_CHILD_DRAIN)
        feed(s, &request);
    else
        reply_next(s);
}

/* ---- starting ---- */

static int open_plugin(Server *s, const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL), *symbol = NULL;
    if (!library) {
        const char *why = dlerror();
        snprintf(s->error.message, sizeof s->error.message, "cannot open the video decoder: %s",
                 why ? why : path);
        return PEN_E_UNSUPPORTED;
    }
    symbol = dlsym(library, "pen_video_plugin");
    PenVideoPluginFunction get = NULL;
    memcpy(&get, &symbol, sizeof get); /* ISO C has no cast from an object to a function */
    s->plugin = get ? get() : NULL;
    if (s->plugin && s->plugin->abi == PEN_VIDEO_ABI)
        return PEN_OK;
    snprintf(s->error.message, sizeof s->error.message,
             "%s: expected a video decoder with interface %d", path, PEN_VIDEO_ABI);
    return PEN_E_UNSUPPORTED;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "penstock-video-decoder is started by penstock\n");
        return 2;
    }
    Server s = {.memory_bytes = strtoull(argv[2], NULL, 10), .status = PEN_END};
    void *memory = mmap(NULL, s.memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, MEMORY, 0);
    if (memory == MAP_FAILED) {
        fprintf(stderr, "cannot map the memory for pictures\n");
        return 2;
    }
    s.memory = memory;
    int r = open_plugin(&s, argv[1]);
    reply_status(r, &s.error);
    if (r < 0)
        return 1;
    for (;;)
        serve(&s);
}
