/* SPDX-License-Identifier: Apache-2.0 */
#include "video/child.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/mem.h"
#include "base/process.h"
#include "base/program/confined.h"
#include "base/thread.h"
#include "video/plugin.h"
#include "video/talk.h"

#define WHERE "video/process"
#define NAME "video decoder process"
#define PROGRAM "penstock-video-decoder"
#define REPLY_NS (UINT64_C(60) * 1000000000) /* that only a hang takes, on any machine */

/* Of its address space: libraries, and 32 pictures of 6 bytes per pixel with a third more. */
#define MEMORY_BYTES ((uint64_t)512 << 20)
#define MEMORY_PER_PIXEL UINT64_C(256)
/* Of the memory for a picture. */
#define PICTURE_BYTES ((uint64_t)4 << 20) /* by which rows may be padded */
#define PICTURE_PER_PIXEL UINT64_C(6)
/* Most videos have fewer, and then share a process. */
#define LEAST_PIXELS ((uint64_t)1 << 20)

struct PenVideoDecoder {
    PenTalk talk;
    int memory_fd;
    const uint8_t *memory; /* NULL: not mapped */
    uint64_t memory_bytes;
    uint64_t pixels; /* for which memory was reserved */
    uint64_t limit_bytes;
    uint32_t thread;
    uint32_t width, height;
    uint32_t n_wanted; /* pictures that may still come */
    bool flushes;      /* with the next request */
    bool has_reply;    /* that `receive` has not returned yet */
    bool has_more;
    PenChildReply reply;
    PenVideoPicture picture;
};

/* ---- replies ---- */

static int fail_reply(const char *what, uint64_t expected, uint64_t found, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_DECODE, WHERE, NAME ": %s: expected %llu, found %llu", what,
                     (unsigned long long)expected, (unsigned long long)found);
}

/* A failure that the process reports. What it lacks is memory of its own. */
static int fail_reported(const PenVideoDecoder *d, PenError *reterr)
{
    char text[PEN_CHILD_TEXT];
    int status = d->reply.status;
    if (status == PEN_E_NO_MEMORY)
        return pen__fail(reterr, PEN_E_DECODE, WHERE,
                         NAME ": expected it to take at most %llu MiB, found that it needs more",
                         (unsigned long long)d->limit_bytes >> 20);
    if (status != PEN_E_DECODE && status != PEN_E_UNSUPPORTED && status != PEN_E_LIMIT &&
        status != PEN_E_INVALID)
        return pen__fail(reterr, PEN_E_DECODE, WHERE, NAME ": expected a status, found %d", status);
    memcpy(text, d->reply.text, sizeof text);
    text[sizeof text - 1] = 0;
    for (char *p = text; *p; p++)
        if (*p < ' ' || *p > '~')
            *p = '?';
    return pen__fail(reterr, status, WHERE, "%s", text);
}

static int check_reply(const PenVideoDecoder *d, PenError *reterr)
{
    if (d->reply.version != PEN_CHILD_VERSION)
        return fail_reply("version", PEN_CHILD_VERSION, d->reply.version, reterr);
    return d->reply.status < 0 ? fail_reported(d, reterr) : PEN_OK;
}

/* One without a picture. */
static int check_done(const PenVideoDecoder *d, PenError *reterr)
{
    int r = check_reply(d, reterr);
    return r == PEN_OK && d->reply.status != PEN_OK
               ? fail_reply("status", PEN_OK, (uint64_t)d->reply.status, reterr)
               : r;
}

/* ---- starting ---- */

static uint64_t reserved_pixels(const PenVideoDecoderConfig *config)
{
    uint64_t n = LEAST_PIXELS;
    while (n < (uint64_t)config->width * config->height)
        n *= 2;
    return n;
}

static int make_memory(PenVideoDecoder *d, PenError *reterr)
{
    d->memory_bytes = PICTURE_BYTES + d->pixels * PICTURE_PER_PIXEL;
    d->memory_fd = pen__sys->memory_make("penstock-video", d->memory_bytes);
    if (d->memory_fd < 0)
        return pen__fail_os(reterr, -d->memory_fd, WHERE, NAME ": cannot make shared memory");
    d->memory = pen__sys->memory_map(d->memory_fd, d->memory_bytes);
    return d->memory ? PEN_OK : pen__fail_memory(reterr, WHERE, "shared memory");
}

static int fail_start(const PenChildSettings *settings, int e, PenError *reterr)
{
    if (e == ENOSYS)
        return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                         "PENSTOCK_VIDEO=process: expected a kernel with seccomp filters, found "
                         "none. Set PENSTOCK_VIDEO=inline if you trust the videos");
    if (e == ENOENT || e == EACCES)
        return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                         "%s: cannot run the video decoder (%s). %s, or set PENSTOCK_VIDEO=inline "
                         "if you trust the videos",
                         settings->program, strerror(e),
                         e == ENOENT ? "Install it beside its library"
                                     : "Make it executable, on a file system without noexec");
    return pen__fail_os(reterr, e, WHERE, "%s: cannot run it", settings->program);
}

static int spawn(PenVideoDecoder *d, const PenChildSettings *settings, PenConfinedProgram *program,
                 PenError *reterr)
{
    char folder[PEN_PROGRAM_PATH], bytes[24];
    const char *argv[] = {PROGRAM, settings->library, bytes, NULL};
    const char *no_inputs[] = {NULL};
    snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)d->memory_bytes);
    snprintf(folder, sizeof folder, "%s", settings->library);
    snprintf(program->path, sizeof program->path, "%s", settings->program);
    pen__confined_program_fill(program);
    char *slash = strrchr(folder, '/');
    if (slash) {
        *slash = 0;
        pen__confined_program_allow(program, folder);
    }
    PenConfine confine = {
        .program = program->path, .libraries = program->libraries, .inputs = no_inputs};
    PenSpawn what = {.argv = argv,
                     .env = program->environment,
                     .memory_bytes = d->limit_bytes,
                     .confine = &confine,
                     .has_socket = 1,
                     .has_shared = 1,
                     .shared_fd = d->memory_fd};
    int e = pen__sys->spawn(&what, &d->talk.process);
    if (e == 0)
        return PEN_OK;
    d->talk.process.pid = 0;
    return fail_start(settings, -e, reterr);
}

static int start(PenVideoDecoder *d, const PenChildSettings *settings, PenError *reterr)
{
    PenConfinedProgram *program = pen__alloc(sizeof *program);
    if (!program)
        return pen__fail_memory(reterr, WHERE, PROGRAM);
    int r = make_memory(d, reterr);
    if (r == PEN_OK)
        r = spawn(d, settings, program, reterr);
    pen__free(program);
    if (r == PEN_OK)
        r = pen__talk_hear(&d->talk, &d->reply, reterr);
    return r == PEN_OK ? check_done(d, reterr) : r;
}

static void close_decoder(PenVideoDecoder *d)
{
    if (d->talk.process.pid) {
        pen__process_end(d->talk.process.pid);
        pen__sys->close(d->talk.process.out_fd);
        pen__sys->close(d->talk.process.err_fd);
    }
    if (d->memory)
        pen__sys->memory_unmap(d->memory, d->memory_bytes);
    if (d->memory_fd >= 0)
        pen__sys->close(d->memory_fd);
    pen__free(d);
}

/* ---- requests ---- */

int pen__child_open_again(PenVideoDecoder *d, const PenVideoDecoderConfig *config, PenError *reterr)
{
    PenChildRequest request = {.call = PEN_CHILD_OPEN,
                               .codec = config->codec,
                               .width = config->width,
                               .height = config->height,
                               .max_size = config->max_pixels,
                               .bytes = config->extra_bytes};
    d->width = config->width;
    d->height = config->height;
    d->n_wanted = 0;
    d->flushes = d->has_reply = d->has_more = false;
    int r = pen__talk_ask(&d->talk, &request, config->extra, &d->reply, reterr);
    return r == PEN_OK ? check_done(d, reterr) : r;
}

static int ask(PenVideoDecoder *d, PenChildRequest request, const void *data, PenError *reterr)
{
    request.flushes = d->flushes;
    d->flushes = d->has_reply = d->has_more = false;
    int r = pen__talk_ask(&d->talk, &request, data, &d->reply, reterr);
    if (r == PEN_OK)
        r = check_reply(d, reterr);
    if (r == PEN_OK && d->reply.status != PEN_OK && d->reply.status != PEN_END)
        r = fail_reply("status", PEN_END, (uint64_t)d->reply.status, reterr);
    d->has_reply = r == PEN_OK;
    return r;
}

static int send_packet(PenVideoDecoder *d, const PenCodedPacket *packet, PenError *reterr)
{
    PenChildRequest request = {.call = PEN_CHILD_SEND,
                               .flags = packet->flags,
                               .time = packet->time,
                               .bytes = packet->bytes};
    d->n_wanted += packet->flags & PEN_VIDEO_WANTED ? 1 : 0;
    return ask(d, request, packet->data, reterr);
}

static int drain(PenVideoDecoder *d, PenError *reterr)
{
    return ask(d, (PenChildRequest){.call = PEN_CHILD_DRAIN}, NULL, reterr);
}

/* A picture of another size is refused by the caller, and its planes are not needed. */
static int set_picture(PenVideoDecoder *d, PenError *reterr)
{
    const PenChildReply *p = &d->reply;
    PenChildPlanes planes;
    bool has_size = p->width == d->width && p->height == d->height;
    if (!d->n_wanted)
        return pen__fail(reterr, PEN_E_DECODE, WHERE,
                         NAME ": expected a picture for each packet that is wanted, found more");
    d->n_wanted--;
    d->picture = (PenVideoPicture){.width = p->width,
                                   .height = p->height,
                                   .n_planes = p->n_planes,
                                   .depth = p->depth,
                                   .shift_x = p->shift_x,
                                   .shift_y = p->shift_y,
                                   .range = p->range,
                                   .matrix = p->matrix,
                                   .time = p->time};
    if (!has_size)
        return PEN_OK;
    if (!pen__child_planes(p, &planes) || planes.bytes > d->memory_bytes)
        return pen__fail(reterr, PEN_E_DECODE, WHERE,
                         NAME ": expected a picture of 1 or 3 planes of 8 to 16 bits, found %u of "
                              "%u",
                         p->n_planes, p->depth);
    for (uint32_t i = 0; i < p->n_planes; i++) {
        d->picture.planes[i] = d->memory + planes.at[i];
        d->picture.strides[i] = (int64_t)planes.stride[i];
    }
    return PEN_OK;
}

static int receive(PenVideoDecoder *d, const PenVideoPicture **ret, PenError *reterr)
{
    if (!d->has_reply && !d->has_more)
        return PEN_END;
    int r =
        d->has_reply ? PEN_OK : ask(d, (PenChildRequest){.call = PEN_CHILD_RECEIVE}, NULL, reterr);
    d->has_reply = false;
    if (r == PEN_OK && d->reply.status == PEN_END)
        return PEN_END;
    if (r == PEN_OK)
        r = set_picture(d, reterr);
    if (r < 0)
        return r;
    d->has_more = d->reply.has_more != 0;
    *ret = &d->picture;
    return PEN_OK;
}

static void flush(PenVideoDecoder *d)
{
    d->n_wanted = 0;
    d->has_reply = d->has_more = false;
    d->flushes = true;
}

/* ---- decoders ---- */

bool pen__child_is_alive(const PenVideoDecoder *d)
{
    PenExit how;
    return d->thread == pen__thread_id() && !pen__sys->process_ended(d->talk.process.pid, &how);
}

bool pen__child_has_room(const PenVideoDecoder *d, const PenVideoDecoderConfig *config)
{
    return reserved_pixels(config) <= d->pixels;
}

int pen__child_open(const PenChildSettings *settings, const PenVideoDecoderConfig *config,
                    PenVideoDecoder **ret, PenError *reterr)
{
    PenVideoDecoder *d = pen__zalloc(sizeof *d);
    if (!d)
        return pen__fail_memory(reterr, WHERE, PROGRAM);
    d->memory_fd = -1;
    d->thread = pen__thread_id();
    d->pixels = reserved_pixels(config);
    d->limit_bytes = PEN_MIN(MEMORY_BYTES + d->pixels * MEMORY_PER_PIXEL, PEN_CONFINE_MEMORY);
    d->talk.reply_ns = settings->reply_ns;
    int r = start(d, settings, reterr);
    if (r == PEN_OK)
        r = pen__child_open_again(d, config, reterr);
    if (r < 0) {
        close_decoder(d);
        return r;
    }
    *ret = d;
    return PEN_OK;
}

/* Beside the plug-in. */
static int open_installed(const PenVideoDecoderConfig *config, PenVideoDecoder **ret,
                          PenError *reterr)
{
    char library[PATH_MAX], program[PATH_MAX + sizeof PROGRAM];
    int r = pen__video_library(library, reterr);
    if (r < 0)
        return r;
    const char *slash = strrchr(library, '/');
    int n = slash ? (int)(slash - library) + 1 : 0;
    snprintf(program, sizeof program, "%.*s" PROGRAM, n, library);
    return pen__child_open(
        &(PenChildSettings){.program = program, .library = library, .reply_ns = REPLY_NS}, config,
        ret, reterr);
}

const PenVideoPlugin pen__child_plugin = {
    .abi = PEN_VIDEO_ABI,
    .name = NAME,
    .open = open_installed,
    .send = send_packet,
    .drain = drain,
    .receive = receive,
    .flush = flush,
    .close = close_decoder,
};
