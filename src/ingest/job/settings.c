/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/job/settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ingest/source/text.h"
#include "net/address/address.h"
#include "pack/format/format.h"

#define WHERE "ingest/settings"
#define DEFAULT_SHARD_BYTES (512ull << 20)

static const PenIngestSettings INGEST_DEFAULTS = {.video_seconds = 600,
                                                  .mode = PEN_MODE_KEEP,
                                                  .quality = 90,
                                                  .raw_share = 0.25,
                                                  .smart_threshold = 65536,
                                                  .fraction = 1,
                                                  .max_bad = UINT64_MAX,
                                                  .shard_bytes = DEFAULT_SHARD_BYTES};

static const PenWriterSettings WRITER_DEFAULTS = {.mode = PEN_MODE_KEEP,
                                                  .quality = 90,
                                                  .raw_share = 0.25,
                                                  .smart_threshold = 65536,
                                                  .block_samples = 32,
                                                  .shard_bytes = DEFAULT_SHARD_BYTES,
                                                  .video_seconds = 600};

void pen_ingest_settings_init(PenIngestSettings *settings)
{
    *settings = INGEST_DEFAULTS;
}

void pen_writer_settings_init(PenWriterSettings *settings)
{
    *settings = WRITER_DEFAULTS;
}

PenIngestSettings pen__ingest_settings(const PenIngestSettings *given)
{
    PenIngestSettings s = given ? *given : INGEST_DEFAULTS;
    /* What is read where it lies is fastest in the order in which it lies. The pack's settings have
     * to say so. */
    if (s.in_place && s.n_sources && pen__name_is_tar(s.sources[0]))
        s.order = PEN_PACK_SOURCE;
    return s;
}

PenWriterSettings pen__writer_settings(const PenWriterSettings *given)
{
    return given ? *given : WRITER_DEFAULTS;
}

static bool can_omit_index(int mode)
{
    return mode == PEN_MODE_KEEP || mode == PEN_MODE_ENCODE || mode == PEN_MODE_SMART;
}

bool pen__settings_index(const PenIngestSettings *s)
{
    return s->mode != PEN_MODE_RAW && !s->no_index;
}

bool pen__settings_entries(const PenIngestSettings *s)
{
    return pen__settings_index(s) || s->mode == PEN_MODE_ENCODE || s->mode == PEN_MODE_SMART;
}

PenPrepareSettings pen__settings_prepare(const PenIngestSettings *s)
{
    return (PenPrepareSettings){.mode = s->mode,
                                .quality = s->quality,
                                .max_side = s->max_side,
                                .short_side = s->short_side,
                                .raw_share = s->raw_share,
                                .codec = s->codec,
                                .smart_threshold = s->smart_threshold,
                                .check_decode = s->check_decode,
                                .index = pen__settings_index(s),
                                .progressive = s->progressive,
                                .sixteen_bit = s->sixteen_bit,
                                .in_place = s->in_place,
                                .keep_videos = s->video == PEN_VIDEOS_KEEP,
                                .video = {.fps = s->fps, .seconds = s->video_seconds},
                                .limits = pen__limits_default};
}

/* Before a source is noted anywhere: an address with a password or a signature is refused. */
static int check_address(const char *text, PenError *reterr)
{
    PenAddress address = {0};
    int r = pen_is_remote(text) ? pen__address_parse(text, &address, reterr) : PEN_OK;
    pen__address_free(&address);
    return r;
}

static int check_sources(const PenIngestSettings *s, PenError *reterr)
{
    int r = s->root ? check_address(s->root, reterr) : PEN_OK;
    for (uint32_t i = 0; r == PEN_OK && i < s->n_sources; i++)
        r = check_address(s->sources[i], reterr);
    return r;
}

int pen__settings_check_images(const PenIngestSettings *s, PenError *reterr)
{
    PenPrepareSettings prepare = pen__settings_prepare(s);
    int r = pen__prepare_settings_check(&prepare, reterr);
    if (r == PEN_OK && s->no_index && !can_omit_index(s->mode))
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "no_index (Python: index=False): only the modes keep, encode and smart "
                         "can do without entry indexes; choose one of them, or leave no_index out");
    return r;
}

static int check_videos(const PenIngestSettings *s, PenError *reterr)
{
    if (s->video != PEN_VIDEOS_FRAMES && s->video != PEN_VIDEOS_KEEP)
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "video %" PRId32 ": expected 0 or 1",
                         s->video);
    if (s->video == PEN_VIDEOS_KEEP && s->mode != PEN_MODE_KEEP)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "video keep stores files as they are: expected the mode keep, found "
                         "another one");
    return PEN_OK;
}

static int check_in_place(const PenIngestSettings *s, PenError *reterr)
{
    if (s->mode != PEN_MODE_KEEP || s->progressive != PEN_PROGRESSIVE_KEEP)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s: an in-place pack keeps files as they are: expected the mode keep",
                         s->out);
    if (s->kind == PEN_INPUT_FRAMES || s->kind == PEN_INPUT_VIDEOS)
        return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                         "%s: an in-place pack holds images, not clips; use 'penstock pack'",
                         s->out);
    bool has_root = s->root && pen_is_remote(s->root);
    for (uint32_t i = 0; pen_is_remote(s->out) && !has_root && i < s->n_sources; i++)
        if (!pen_is_remote(s->sources[i]))
            return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                             "%.200s: an in-place pack in an object store refers to objects: "
                             "expected an s3:// or https:// source, found %.200s; to upload "
                             "samples, use 'penstock pack'",
                             s->out, s->sources[i]);
    if (s->append || s->n_tasks)
        return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                         "%s: an in-place pack is made in one run, and cannot be appended to",
                         s->out);
    return PEN_OK;
}

int pen__settings_check(const PenIngestSettings *s, PenError *reterr)
{
    if (!s->out || !s->out[0])
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "expected a name for the pack, found none");
    if (s->n_sources < 1)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s: expected at least one source, found none", s->out);
    if (!(s->fraction > 0 && s->fraction <= 1))
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "fraction %g: expected more than 0 and at most 1", s->fraction);
    if (s->block_samples > PEN_MAX_BLOCK_SAMPLES)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%" PRIu64 " samples per block: expected at most 2^31", s->block_samples);
    if (s->n_tasks && s->task >= s->n_tasks)
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "task %u of %u: expected a number below %u",
                         s->task, s->n_tasks, s->n_tasks);
    if (s->n_tasks && s->append)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%s: --append cannot be split into tasks; append in one run", s->out);
    if (s->order != PEN_PACK_SHUFFLED && s->order != PEN_PACK_SOURCE)
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "order %d: expected 0 or 1", s->order);
    if (s->kind < PEN_INPUT_AUTO || s->kind > PEN_INPUT_VIDEOS)
        return pen__fail(reterr, PEN_E_INVALID, WHERE, "kind %d: expected 0 to 3", s->kind);
    if (!(s->fps == 0 || (s->fps >= 0.001 && s->fps <= 1000)))
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "%g frames per second: expected 0.001 to 1000", s->fps);
    if (s->video_seconds < 1)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "time limit for a video: expected at least 1 second, found 0");
    int r = s->in_place ? check_in_place(s, reterr) : PEN_OK;
    if (r == PEN_OK)
        r = check_videos(s, reterr);
    if (r == PEN_OK)
        r = pen__settings_check_images(s, reterr);
    if (r == PEN_OK)
        r = pen__exclude_check(s, reterr);
    return r < 0 ? r : check_sources(s, reterr);
}

enum { NUMBER_BYTES = 40 };

/* JSON has a point where the locale of the program may have something else. */
static const char *number_text(double value, char ret[NUMBER_BYTES])
{
    snprintf(ret, NUMBER_BYTES, "%.17g", value);
    size_t digits = strspn(ret, "0123456789+-e");
    size_t point = strcspn(ret + digits, "0123456789");
    if (point) {
        ret[digits] = '.';
        memmove(ret + digits + 1, ret + digits + point, strlen(ret + digits + point) + 1);
    }
    return ret;
}

#define COLUMNS_TEXT ",\"columns\":1"

bool pen__settings_have_columns(const char *text)
{
    return strstr(text, COLUMNS_TEXT) != NULL;
}

void pen__settings_text(const PenIngestSettings *s, char ret[PEN_SETTINGS_TEXT_BYTES])
{
    static const char *const modes[] = {"tile", "keep", "encode", "raw", "mix", "smart"};
    char raw_share[NUMBER_BYTES], fraction[NUMBER_BYTES], number[NUMBER_BYTES], fps[64] = "";
    char threshold[64] = "";
    if (s->mode == PEN_MODE_SMART)
        snprintf(threshold, sizeof threshold, ",\"smart_threshold\":%" PRIu64, s->smart_threshold);
    if (s->fps > 0) /* of clips alone */
        snprintf(fps, sizeof fps, ",\"fps\":%s", number_text(s->fps, number));
    snprintf(ret, PEN_SETTINGS_TEXT_BYTES,
             "{\"mode\":\"%s\",\"quality\":%d,\"max_side\":%u,\"short_side\":%u,"
             "\"raw_share\":%s,\"check_decode\":%d,\"order\":\"%s\",\"seed\":%" PRIu64
             ",\"fraction\":%s,\"shard_bytes\":%" PRIu64 ",\"block_samples\":%" PRIu64
             "%s%s%s%s%s%s%s" COLUMNS_TEXT "%s}",
             modes[s->mode], s->quality, s->max_side, s->short_side,
             number_text(s->raw_share, raw_share), s->check_decode != 0,
             s->order == PEN_PACK_SOURCE ? "source" : "shuffled", s->seed,
             number_text(s->fraction, fraction), s->shard_bytes, s->block_samples, fps,
             s->sixteen_bit == PEN_SIXTEEN_REDUCE ? ",\"sixteen_bit\":\"reduce\"" : "",
             pen__settings_index(s) ? ",\"index\":1" : "",
             s->progressive == PEN_PROGRESSIVE_CONVERT ? ",\"progressive\":\"convert\"" : "",
             s->in_place ? ",\"in_place\":1" : "",
             s->codec == PEN_ENCODING_WEBP ? ",\"codec\":\"webp\"" : "", threshold,
             s->video == PEN_VIDEOS_KEEP ? ",\"videos\":\"keep\"" : "");
}

int pen__settings_report(const PenIngestSettings *s, PenIngestProgress progress, PenError *reterr)
{
    if (!s->progress || s->progress(s->ctx, &progress) == 0)
        return PEN_OK;
    return pen__settings_cancelled(s, reterr);
}

int pen__settings_cancelled(const PenIngestSettings *s, PenError *reterr)
{
    return pen__fail(reterr, PEN_E_CANCELLED, "ingest/job",
                     "%s: stopped; run the same command again to continue from here", s->out);
}
