/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/sys.h"
#include "ingest/video/packets_impl.h"
#include "ingest/video/picture.h"
#include "ingest/video/video_impl.h"

#define WHERE "ingest/video"
#define MAX_TEXT ((uint64_t)8 << 20)        /* a configuration of 1 MiB takes 4.5 */
#define MAX_PACKET_TEXT ((uint64_t)8 << 30) /* 512 bytes for each of PEN_MAX_VIDEO_PACKETS */

#define STREAM_ENTRIES                                                                             \
    "format=format_name,start_time:stream=codec_name,width,height,pix_fmt,color_range,"            \
    "color_space,time_base,has_b_frames,extradata,extradata_size:stream_side_data=displaymatrix"
#define PACKET_ENTRIES "packet=pts,dts,size,pos,flags,data_hash:packet_side_data=side_data_type"

/* ffprobe dumps a codec's configuration as text only together with all packets, and that takes 30
 * times as long as hashing them: two runs, unless starting the program takes longer. */
#define MAX_DUMPED ((uint64_t)128 << 10)

enum { TRIES = 3 };

/* ---- ffprobe --------------------------------------------------------------------------------- */

/* `dump`: "-show_data", or NULL. */
static int run_ffprobe(const PenVideoSettings *settings, const char *path, const char *entries,
                       const char *dump, PenProcessSettings *s, PenProcessResult *result,
                       PenError *reterr)
{
    static const char formats[] = PEN_VIDEO_FORMATS;
    PenBuf url = {0};
    int r = pen__buf_add(&url, "file:", 5);
    if (r == PEN_OK)
        r = pen__buf_add(&url, path, strlen(path) + 1);
    const char *argv[] = {"ffprobe",
                          "-hide_banner",
                          "-loglevel",
                          "error",
                          "-protocol_whitelist",
                          "file",
                          "-format_whitelist",
                          formats,
                          "-select_streams",
                          "V:0",
                          "-show_entries",
                          entries,
                          "-show_data_hash",
                          "CRC32",
                          "-of",
                          "flat",
                          "-i",
                          (const char *)url.data,
                          dump,
                          NULL};
    s->argv = argv;
    r = r < 0 ? pen__fail_memory(reterr, WHERE, path)
              : pen__video_run(settings, path, s, result, reterr);
    if (r == PEN_OK && result->exit.code)
        r = pen__video_fail_exit("ffprobe", path, result, reterr);
    s->argv = NULL;
    pen__buf_free(&url);
    return r;
}

/* ffprobe lists what it can read of a damaged file, and ends well. */
static int check_damage(const char *path, const PenProcessResult *result, PenError *reterr)
{
    static const char *const texts[] = {"partial file", "ended prematurely"};
    for (size_t i = 0; i < PEN_LEN(texts); i++)
        if (strstr(result->tail, texts[i]))
            return pen__fail(reterr, PEN_E_DECODE, WHERE,
                             "%s: expected a complete video, found its end missing", path);
    return PEN_OK;
}

/* ---- packets --------------------------------------------------------------------------------- */

typedef struct Listing {
    const char *name;
    PenVideoList *list;
    PenPacketFile file;
    PenPictureParser pictures;
    PenPacketLog log;
    PenBuf discarded; /* int64_t: times of packets that the edit list leaves out */
    bool has_reordering;
    bool has_key;     /* there was a key packet */
    bool has_leading; /* that was the last one, apart from packets without a time */
} Listing;

static int refuse(const Listing *l, const char *found, PenError *reterr)
{
    return pen__fail(
        reterr, PEN_E_UNSUPPORTED, WHERE,
        "%s: expected a frame for each packet, found %s in packet %" PRIu64 PEN_VIDEO_INSTEAD,
        l->name, found, l->log.n - 1);
}

/* A packet without a presentation time. Matroska has none below 0, which leading pictures of a
 * video that was cut would need; they cannot be decoded either. */
static int find_time(const Listing *l, const PenListedPacket *listed, PenVideoPacket *p,
                     PenError *reterr)
{
    uint32_t n = l->list->n;
    if (!p->is_hidden && l->has_leading)
        p->is_hidden = true;
    if (p->is_hidden && n)
        p->time = l->list->packets[n - 1].time;
    if (p->is_hidden || (!l->has_reordering && listed->has_decoding_time))
        return PEN_OK;
    return pen__fail(
        reterr, PEN_E_UNSUPPORTED, WHERE,
        "%s: expected a time for each frame, found none in packet %" PRIu64 PEN_VIDEO_INSTEAD,
        l->name, l->log.n - 1);
}

static int add_packet(PenVideoList *list, const PenVideoPacket *p, PenError *reterr)
{
    if (pen__buf_add(&list->memory, p, sizeof *p) < 0)
        return pen__fail_memory(reterr, WHERE, "packets of a video");
    list->packets = (PenVideoPacket *)(void *)list->memory.data;
    list->n++;
    return PEN_OK;
}

static int take_packet(void *ctx, const PenListedPacket *listed, PenError *reterr)
{
    Listing *l = ctx;
    PenPicture picture;
    const uint8_t *data = NULL;
    PenVideoPacket p = {.time = listed->time, .bytes = listed->bytes};
    int r = pen__packet_file_read(&l->file, listed, l->log.n - 1, &p.offset, &data, reterr);
    if (r < 0)
        return r;
    const char *wrong = pen__picture_parse(&l->pictures, data, listed->bytes, &picture);
    if (!wrong && picture.shown > 1)
        wrong = "several frames";
    if (wrong)
        return refuse(l, wrong, reterr);
    p.is_key = listed->is_key && picture.is_key;
    p.is_hidden = listed->is_discarded || !picture.shown;
    if (!listed->has_time)
        r = find_time(l, listed, &p, reterr);
    else
        l->has_leading = p.is_key && !l->has_key && picture.may_have_leading;
    l->has_key |= p.is_key;
    if (r == PEN_OK && listed->is_discarded &&
        pen__buf_add(&l->discarded, &p.time, sizeof p.time) < 0)
        r = pen__fail_memory(reterr, WHERE, l->name);
    return r < 0 ? r : add_packet(l->list, &p, reterr);
}

static int take_text(void *ctx, const void *data, size_t bytes, PenError *reterr)
{
    Listing *l = ctx;
    return pen__packet_log_take(&l->log, data, bytes, reterr);
}

static int start_pictures(Listing *l, PenError *reterr)
{
    const PenVideoStream *s = &l->list->stream;
    const char *wrong = pen__picture_start(&l->pictures, s->codec, s->extra, s->extra_bytes);
    return wrong ? pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                             "%s: expected a stream that can be stored, found %s" PEN_VIDEO_INSTEAD,
                             l->name, wrong)
                 : PEN_OK;
}

/* The stream, and packets that come before it in the text of one run. */
static int take_stream(Listing *l, const PenBuf *output, PenError *reterr)
{
    PenStreamText stream = {0};
    const char *text = (const char *)output->data, *end = text;
    while (strncmp(end, "packets.", 8) == 0)
        end += strcspn(end, "\n") + (strchr(end, '\n') != NULL);
    int r = pen__stream_text_parse(l->name, end, &stream, reterr);
    l->list->stream = stream.stream;
    l->list->extra = stream.extra;
    l->list->start_ns = stream.start_ns;
    l->list->stream.container = l->file.container;
    l->has_reordering = stream.has_reordering;
    if (r == PEN_OK)
        r = start_pictures(l, reterr);
    return r < 0 ? r : pen__packet_log_take(&l->log, text, (size_t)(end - text), reterr);
}

static int probe_stream(const PenVideoSettings *settings, Listing *l, bool with_packets,
                        PenError *reterr)
{
    PenBuf text = {0};
    PenProcessResult result;
    PenProcessSettings s = {
        .take = pen__process_take_buf, .take_ctx = &text, .out_bytes = MAX_TEXT};
    int r = run_ffprobe(settings, l->name,
                        with_packets ? PACKET_ENTRIES ":" STREAM_ENTRIES : STREAM_ENTRIES,
                        "-show_data", &s, &result, reterr);
    if (r == PEN_OK && pen__buf_add(&text, "", 1) < 0)
        r = pen__fail_memory(reterr, WHERE, l->name);
    if (r == PEN_OK)
        r = take_stream(l, &text, reterr);
    pen__buf_free(&text);
    return r < 0 ? r : check_damage(l->name, &result, reterr);
}

static int probe_packets(const PenVideoSettings *settings, Listing *l, PenError *reterr)
{
    PenProcessResult result;
    PenProcessSettings s = {.take = take_text, .take_ctx = l, .out_bytes = MAX_PACKET_TEXT};
    int r = run_ffprobe(settings, l->name, PACKET_ENTRIES, NULL, &s, &result, reterr);
    return r < 0 ? r : check_damage(l->name, &result, reterr);
}

/* What comes before the first key packet, or is shown before it, cannot be decoded. */
static void hide_first(PenVideoList *list)
{
    uint32_t key = 0;
    while (key < list->n && !list->packets[key].is_key)
        key++;
    list->packets += key;
    list->n -= key;
    for (uint32_t i = 0; i < list->n; i++) {
        PenVideoPacket *p = &list->packets[i];
        p->is_hidden |= p->time < list->packets[0].time;
        list->n_shown += !p->is_hidden;
    }
}

/* Decoders return frames that are left out, too. Between others they come from the parts of an edit
 * list with several, and can have the time of a frame that is shown. */
static int finish(Listing *l, PenError *reterr)
{
    int64_t first = INT64_MAX, last = INT64_MIN;
    hide_first(l->list);
    for (uint32_t i = 0; i < l->list->n; i++) {
        const PenVideoPacket *p = &l->list->packets[i];
        first = p->is_hidden ? first : PEN_MIN(first, p->time);
        last = p->is_hidden ? last : PEN_MAX(last, p->time);
    }
    for (size_t at = 0; at < l->discarded.bytes; at += sizeof(int64_t)) {
        int64_t time = (int64_t)pen__load64(l->discarded.data + at);
        if (time >= first && time <= last)
            return pen__fail(
                reterr, PEN_E_UNSUPPORTED, WHERE,
                "%s: expected an edit list of one part, found several" PEN_VIDEO_INSTEAD, l->name);
    }
    return l->list->n_shown
               ? PEN_OK
               : pen__fail(reterr, PEN_E_DECODE, WHERE, "%s: expected frames, found none", l->name);
}

static int list_packets(const PenVideoSettings *settings, Listing *l, PenError *reterr)
{
    PenFileStat st = {0};
    int r = pen__sys->stat_path(l->name, &st);
    if (r < 0)
        return pen__fail_os(reterr, -r, WHERE, "%s: cannot stat", l->name);
    r = pen__packet_file_open(&l->file, l->name, reterr);
    if (r < 0)
        return r;
    l->list->file_bytes = l->file.source->bytes;
    l->list->mtime_ns = st.mtime_ns;
    bool is_small = l->list->file_bytes <= MAX_DUMPED;
    r = probe_stream(settings, l, is_small, reterr);
    if (r == PEN_OK && !is_small)
        r = probe_packets(settings, l, reterr);
    if (r == PEN_OK)
        r = pen__packet_log_end(&l->log, reterr);
    return r < 0 ? r : finish(l, reterr);
}

int pen__video_list(const PenVideoSettings *settings, const char *path, PenVideoList *ret,
                    PenError *reterr)
{
    *ret = (PenVideoList){0};
    Listing *l = pen__zalloc(sizeof *l);
    if (!l)
        return pen__fail_memory(reterr, WHERE, path);
    l->name = path;
    l->list = ret;
    l->log = (PenPacketLog){.name = path, .take = take_packet, .ctx = l};
    int r = list_packets(settings, l, reterr);
    pen__packet_file_close(&l->file);
    pen__buf_free(&l->discarded);
    pen__free(l);
    if (r < 0)
        pen__video_list_free(ret);
    return r;
}

int pen__video_list_again(const PenVideoSettings *settings, const char *path, PenVideoList *ret,
                          PenError *reterr)
{
    int r = PEN_E_IO;
    for (int i = 0; r == PEN_E_IO && i < TRIES; i++)
        r = pen__video_list(settings, path, ret, reterr);
    return r;
}

void pen__video_list_free(PenVideoList *list)
{
    pen__buf_free(&list->extra);
    pen__buf_free(&list->memory);
    *list = (PenVideoList){0};
}
