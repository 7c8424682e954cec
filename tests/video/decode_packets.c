/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes packets of video files with src/video, as a script on stdin says.
 *
 *     decode_packets PIXELS <script
 *
 * Lines of the script:
 *     file PATH                           packets that follow are in this file
 *     stream CODEC WIDTH HEIGHT EXTRA     a new video; EXTRA is hexadecimal, or - for none
 *     packet OFFSET BYTES TIME FLAGS
 *     drain
 *     damage SEED                         damages some of the packets that follow; 0 = none
 *     use PATH                            pen_video_use
 *
 * The planes of each picture go to the file PIXELS without gaps, and a line about it to stdout. An
 * error is a line, too; lines up to the next stream are ignored then. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "video/decoder.h"

typedef struct Driver {
    PenFrameDecoder decoder;
    uint8_t *video;
    size_t bytes;
    FILE *pixels;
    uint64_t seed;
    bool failed; /* until the next stream */
} Driver;

static void die(const char *what)
{
    fprintf(stderr, "decode_packets: %s\n", what);
    exit(2);
}

static void *need(size_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);
    if (!p)
        die("out of memory");
    return p;
}

static void read_file(Driver *d, const char *path)
{
    free(d->video);
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END))
        die("cannot open the video");
    d->bytes = (size_t)ftell(f);
    d->video = need(d->bytes);
    rewind(f);
    if (fread(d->video, 1, d->bytes, f) != d->bytes)
        die("cannot read the video");
    fclose(f);
}

static void write_plane(Driver *d, const PenVideoPicture *p, uint32_t plane)
{
    uint32_t w = p->width, h = p->height;
    if (plane) {
        w = (w + (1u << p->shift_x) - 1) >> p->shift_x;
        h = (h + (1u << p->shift_y) - 1) >> p->shift_y;
    }
    size_t row_bytes = (size_t)w * (p->depth > 8 ? 2 : 1);
    const uint8_t *row = p->planes[plane];
    for (uint32_t y = 0; y < h; y++, row += p->strides[plane])
        if (fwrite(row, 1, row_bytes, d->pixels) != row_bytes)
            die("cannot write");
}

static void report(Driver *d, int r, const PenError *err)
{
    if (r < 0) {
        d->failed = true;
        printf("error %d %s\n", r, err->message);
    }
}

static void receive(Driver *d)
{
    const PenVideoPicture *p = NULL;
    PenError err;
    int r;
    while ((r = pen__video_decoder_receive(&d->decoder, &p, &err)) == PEN_OK) {
        printf("picture %" PRId64 " %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32
               " %" PRIu32 " %" PRIu32 " %" PRIu32 "\n",
               p->time, p->width, p->height, p->n_planes, p->depth, p->shift_x, p->shift_y,
               p->range, p->matrix);
        for (uint32_t i = 0; i < p->n_planes; i++)
            write_plane(d, p, i);
    }
    report(d, r, &err);
}

static uint64_t draw(Driver *d)
{
    d->seed = d->seed * 6364136223846793005u + 1442695040888963407u;
    return d->seed >> 33;
}

/* One packet in eight: changes up to four bits, or cuts off its end. */
static size_t damage(Driver *d, uint8_t *data, size_t bytes)
{
    if (draw(d) % 8)
        return bytes;
    uint64_t n = draw(d) % 5;
    for (uint64_t i = 0; i < n; i++)
        data[draw(d) % bytes] ^= (uint8_t)(1u << draw(d) % 8);
    return n ? bytes : 1 + draw(d) % bytes;
}

/* The next number of a line. */
static int64_t number(const char **line)
{
    char *end = NULL;
    int64_t value = strtoll(*line, &end, 10);
    if (end == *line)
        die("expected a number");
    *line = end;
    return value;
}

static void send_packet(Driver *d, const char *line)
{
    PenCodedPacket packet = {.flags = 0};
    uint64_t offset = (uint64_t)number(&line), bytes = (uint64_t)number(&line);
    packet.time = number(&line);
    packet.flags = (uint32_t)number(&line);
    if (offset > d->bytes || bytes > d->bytes - offset)
        die("not a packet of the video");
    uint8_t *data = need(bytes); /* of exactly this size, for the address sanitizer */
    memcpy(data, d->video + offset, bytes);
    packet.data = data;
    packet.bytes = d->seed ? damage(d, data, bytes) : bytes;
    PenError err;
    report(d, pen__video_decoder_send(&d->decoder, packet, &err), &err);
    free(data);
    if (!d->failed)
        receive(d);
}

static void start(Driver *d, const char *line)
{
    static uint8_t extra[1 << 16];
    PenVideoParams params = {.extra = extra};
    params.codec = (uint32_t)number(&line);
    params.width = (uint32_t)number(&line);
    params.height = (uint32_t)number(&line);
    for (line++; pen__hex_value(line[0]) >= 0 && params.extra_bytes < sizeof extra; line += 2)
        extra[params.extra_bytes++] =
            (uint8_t)(pen__hex_value(line[0]) << 4 | pen__hex_value(line[1]));
    PenError err;
    d->failed = false;
    report(d, pen__video_decoder_prepare(&d->decoder, &params, &err), &err);
}

static void run_line(Driver *d, const char *line)
{
    PenError err;
    if (strncmp(line, "file ", 5) == 0)
        read_file(d, line + 5);
    else if (strncmp(line, "stream ", 7) == 0)
        start(d, line + 7);
    else if (strncmp(line, "damage ", 7) == 0)
        d->seed = strtoull(line + 7, NULL, 10);
    else if (strncmp(line, "use ", 4) == 0)
        report(d, pen_video_use(line + 4, &err), &err);
    else if (strncmp(line, "packet ", 7) == 0 && !d->failed)
        send_packet(d, line + 7);
    else if (strcmp(line, "drain") == 0 && !d->failed) {
        report(d, pen__video_decoder_drain(&d->decoder, &err), &err);
        if (!d->failed)
            receive(d);
    }
}

int main(int argc, char **argv)
{
    static char line[1 << 17];
    Driver d = {.failed = false};
    d.pixels = argc == 2 ? fopen(argv[1], "wb") : NULL;
    if (!d.pixels)
        die("expected a file to write to");
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        run_line(&d, line);
    }
    pen__video_decoder_free(&d.decoder);
    free(d.video);
    return fclose(d.pixels) || fflush(stdout) ? 2 : 0;
}
