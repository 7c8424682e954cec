/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "ingest/plan/plan_impl.h"
#include "ingest/video/video.h"

#define WHERE "ingest/plan"

static int check_settings(const PenIngestSettings *s, PenError *reterr)
{
    if (!s->n_sources)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "sources: expected a folder, list or tar, found none");
    if (!(s->fraction > 0 && s->fraction <= 1))
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "fraction: expected more than 0 and at most 1, found %g", s->fraction);
    if (s->order != PEN_PACK_SHUFFLED && s->order != PEN_PACK_SOURCE)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "order: expected shuffled or source, found number %" PRId32, s->order);
    return PEN_OK;
}

static int check_videos(const PenPlanDraft *d, PenError *reterr)
{
    const PenIngestSettings *s = d->request->settings;
    const PenVideoSettings video = {.seconds = s->video_seconds};
    bool keeps = s->video == PEN_VIDEOS_KEEP;
    if (keeps && s->fps > 0)
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "video keep stores files as they are, with all frames: expected no rate, "
                         "found %g frames per second; leave --fps out and choose frames when "
                         "loading (clip 16 fps=8), or leave --video keep out to store frames",
                         s->fps);
    if (s->mode == PEN_MODE_KEEP && s->no_index)
        return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                         "mode keep without an index: expected images, found videos%s; leave "
                         "--no-index out",
                         keeps ? "" : ", whose frames have to be encoded");
    return pen__video_check_programs(&video, reterr);
}

static int check_no_videos(const PenPlanDraft *d, PenError *reterr)
{
    if (d->request->settings->video != PEN_VIDEOS_KEEP || !d->inputs.n)
        return PEN_OK;
    return pen__fail(reterr, PEN_E_INVALID, WHERE,
                     "video keep: expected videos, found %s; leave --video out",
                     d->inputs.what == PEN_INPUT_FRAMES ? "folders of frames" : "images");
}

/* `spill`: the path of temporary files. */
static int make(const PenPlanRequest *request, const char *path, const char *spill,
                PenError *reterr)
{
    int r;
    PenPlanDraft *d = pen__zalloc(sizeof *d);
    if (!d)
        return pen__fail_memory(reterr, WHERE, path);
    d->request = request;
    d->inputs.settings = request->settings;
    d->inputs.places = request->places;
    d->inputs.summaries = request->summaries;
    d->inputs.space = (PenSpace){spill, request->memory ? request->memory : PEN_PLAN_MEMORY};
    r = pen__scan_sources(&d->inputs, reterr);
    if (r == PEN_OK)
        r = pen__inputs_finish(&d->inputs, reterr);
    if (r == PEN_OK && request->ret_ignored)
        *request->ret_ignored = d->inputs.n_ignored;
    if (r == PEN_OK)
        r = d->inputs.what == PEN_INPUT_VIDEOS ? check_videos(d, reterr)
                                               : check_no_videos(d, reterr);
    if (r == PEN_OK)
        r = pen__order_check_keys(&d->inputs, reterr);
    if (r == PEN_OK)
        r = pen__plan_schema_make(&d->inputs, request, &d->shape, reterr);
    if (r == PEN_OK)
        r = pen__block_samples_given(d, &d->block_samples, reterr);
    if (r == PEN_OK)
        r = pen__order_make(d, reterr);
    if (r == PEN_OK)
        pen__plan_schema_mark_optional(&d->shape, d->n_parts, d->n);
    if (r == PEN_OK)
        r = pen__plan_write(d, path, reterr);
    pen__sequence_close(&d->sequence);
    pen__probes_free(&d->probes);
    pen__plan_schema_free(&d->shape);
    pen__inputs_free(&d->inputs);
    pen__free(d);
    return r;
}

int pen__plan_make(const PenPlanRequest *request, const char *path, PenError *reterr)
{
    int r = check_settings(request->settings, reterr);
    if (r < 0)
        return r;
    char *spill = pen__path_add(path, ".spill");
    r = spill ? make(request, path, spill, reterr) : pen__fail_memory(reterr, WHERE, path);
    pen__free(spill);
    return r;
}
