/* SPDX-License-Identifier: Apache-2.0 */
/* pack, index, plan, finalise, gc: the commands that write packs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <penstock/ingest.h>

#include "arguments/commands.h"
#include "arguments/remote_options.h"
#include "arguments/splits.h"
#include "interrupt.h"
#include "output/messages.h"
#include "output/pack_report.h"
#include "output/progress.h"
#include "output/result.h"
#include "output/text.h"

/* The words of the option table are numbered as the library numbers them; --mode has no tile. */
_Static_assert(PEN_MODE_TILE == 0 && PEN_MODE_KEEP == 1 && PEN_MODE_ENCODE == 2, "--mode");
_Static_assert(PEN_VIDEOS_FRAMES == 0 && PEN_VIDEOS_KEEP == 1, "--video");
_Static_assert(PEN_MODE_RAW == 3 && PEN_MODE_MIX == 4 && PEN_MODE_SMART == 5, "--mode");
_Static_assert(PEN_ENCODING_JPEG == 0 && PEN_ENCODING_WEBP == 1, "--codec");
_Static_assert(PEN_INPUT_AUTO == 0 && PEN_INPUT_IMAGES == 1, "--kind");
_Static_assert(PEN_INPUT_FRAMES == 2 && PEN_INPUT_VIDEOS == 3, "--kind");
_Static_assert(PEN_SIXTEEN_REFUSE == 0 && PEN_SIXTEEN_REDUCE == 1, "--sixteen-bit");
_Static_assert(PEN_PACK_SHUFFLED == 0 && PEN_PACK_SOURCE == 1, "--order");

enum { NAME_CAP = 4096 };

typedef struct Run {
    const CliArgs *args;
    CliProgress progress;
    uint64_t done, total; /* samples that are packed, at the last progress call */
    int has_waited;       /* the message is printed once */
    char out[NAME_CAP];
    char bad_report[NAME_CAP + 64];
    const char **exclude;
    char remote_root[NAME_CAP]; /* of index: what the first remote source is below, or "" */
    PenRemoteSettings remote;
} Run;

static int on_progress(void *ctx, const PenIngestProgress *p)
{
    Run *run = ctx;
    if (strcmp(p->stage, "wait") == 0) {
        if (!run->has_waited)
            cli_print_message("%s: another process is writing here; waiting up to %u s for it to "
                              "end",
                              run->out, (unsigned)run->args->values[CLI_OPT_WAIT].number);
        run->has_waited = 1;
        return cli_interrupted();
    }
    if (strcmp(p->stage, "pack") == 0) {
        run->done = p->done;
        run->total = p->total;
    }
    cli_progress_show(&run->progress, &(CliProgressState){.stage = p->stage,
                                                          .unit = "samples",
                                                          .done = (double)p->done,
                                                          .total = (double)p->total,
                                                          .done_bytes = p->done_bytes,
                                                          .bad = p->bad});
    return cli_interrupted();
}

/* For threads that wait for a server. */
static int on_wait(void *ctx)
{
    (void)ctx;
    return cli_interrupted();
}

/* The name of a pack without slashes at its end. */
static int copy_name(const char *name, char out[NAME_CAP], PenError *reterr)
{
    size_t n = strlen(name);
    while (n > 1 && name[n - 1] == '/')
        n--;
    if (n >= NAME_CAP)
        return cli_fail(reterr, PEN_E_INVALID,
                        "the name of the pack has %zu bytes, at most %d are allowed", n,
                        NAME_CAP - 1);
    memcpy(out, name, n);
    out[n] = '\0';
    return PEN_OK;
}

/* The suffix .pen prevents writing a pack into a folder of other files. */
static int take_name(Run *run, PenError *reterr)
{
    int r = copy_name(run->args->values[CLI_OPT_OUT].text, run->out, reterr);
    size_t n = strlen(run->out);
    if (r == PEN_OK && (n < 5 || strcmp(run->out + n - 4, ".pen") != 0 || run->out[n - 5] == '/'))
        r = cli_fail(reterr, PEN_E_INVALID,
                     "-o %s: the name of a pack ends in .pen; write -o %s.pen", run->out, run->out);
    return r;
}

/* The default of the library. */
static void default_report(const char *out, char *buf, size_t cap)
{
    const char *slash = pen_is_remote(out) ? strrchr(out, '/') : NULL;
    snprintf(buf, cap, "%s-bad.jsonl", slash ? slash + 1 : out);
}

static void take_bad_report(Run *run, PenIngestSettings *s)
{
    const CliValue *report = &run->args->values[CLI_OPT_BAD_REPORT];
    if (report->given)
        snprintf(run->bad_report, sizeof run->bad_report, "%s", report->text);
    else
        default_report(run->out, run->bad_report, sizeof run->bad_report);
    if (s->skip_bad)
        s->bad_report = run->bad_report;
}

/* The part of an address that all objects of the source are below. */
static void parent_of(const char *address, char ret[NAME_CAP])
{
    size_t n = strcspn(address, "{");
    const char *dot = strrchr(address, '.');
    static const char *const files[] = {".tar", ".csv", ".tsv"};
    int is_file = address[n] != 0;
    for (size_t i = 0; dot && i < sizeof files / sizeof *files; i++)
        is_file |= strcmp(dot, files[i]) == 0;
    while (is_file && n && address[n - 1] != '/')
        n--;
    while (n && address[n - 1] == '/')
        n--;
    snprintf(ret, NAME_CAP, "%.*s", (int)n, address);
}

static void take_remote_root(Run *run)
{
    const char *root = run->args->values[CLI_OPT_ROOT].text;
    if (root && pen_is_remote(root)) {
        parent_of(root, run->remote_root);
        return;
    }
    for (size_t i = 0; i < (size_t)run->args->n_operands && !run->remote_root[0]; i++)
        if (pen_is_remote(run->args->operands[i]))
            parent_of(run->args->operands[i], run->remote_root);
}

/* The only option of these commands that may be given several times. */
static int take_exclude(Run *run, PenIngestSettings *s, PenError *reterr)
{
    size_t n = run->args->n_items;
    run->exclude = calloc(n > 0 ? n : 1, sizeof *run->exclude);
    if (!run->exclude)
        return cli_fail_memory(reterr);
    for (size_t i = 0; i < n; i++)
        run->exclude[i] = run->args->items[i].value.text;
    s->exclude = run->exclude;
    s->n_exclude = (uint32_t)n;
    return PEN_OK;
}

static void take_settings(Run *run, PenIngestSettings *s)
{
    const CliValue *v = run->args->values;
    pen_ingest_settings_init(s);
    s->sources = run->args->operands;
    s->n_sources = (uint32_t)run->args->n_operands;
    s->out = run->out;
    cli_remote_settings(run->args, &run->remote);
    run->remote.interrupted = on_wait;
    s->remote = &run->remote;
    s->work = v[CLI_OPT_WORK].text;
    s->kind = (int32_t)v[CLI_OPT_KIND].number;
    s->root = v[CLI_OPT_ROOT].text;
    s->allow_outside = v[CLI_OPT_ALLOW_OUTSIDE].given;
    s->fps = v[CLI_OPT_FPS].real;
    if (v[CLI_OPT_VIDEO_SECONDS].given)
        s->video_seconds = (uint32_t)v[CLI_OPT_VIDEO_SECONDS].number;
    s->mode = PEN_MODE_KEEP + (int32_t)v[CLI_OPT_MODE].number;
    s->video = (int32_t)v[CLI_OPT_VIDEO].number;
    s->quality = (int32_t)v[CLI_OPT_QUALITY].number;
    s->max_side = (uint32_t)v[CLI_OPT_MAX_SIDE].number;
    s->short_side = (uint32_t)v[CLI_OPT_SHORT_SIDE].number;
    s->raw_share = v[CLI_OPT_RAW_SHARE].real;
    s->codec = (int32_t)v[CLI_OPT_CODEC].number;
    s->smart_threshold = v[CLI_OPT_SMART_THRESHOLD].number;
    s->check_decode = v[CLI_OPT_CHECK].given;
    s->sixteen_bit = (int32_t)v[CLI_OPT_SIXTEEN_BIT].number;
    s->no_index = v[CLI_OPT_NO_INDEX].given;
    s->progressive = (int32_t)v[CLI_OPT_PROGRESSIVE].number;
    s->order = (int32_t)v[CLI_OPT_ORDER].number;
    s->seed = v[CLI_OPT_SEED].number;
    s->fraction = v[CLI_OPT_FRACTION].real;
    s->classes_from = v[CLI_OPT_CLASSES_FROM].text;
    s->skip_bad = v[CLI_OPT_ON_BAD].number == 1;
    if (v[CLI_OPT_MAX_BAD].given)
        s->max_bad = v[CLI_OPT_MAX_BAD].number;
    if (v[CLI_OPT_THREADS].given)
        s->threads = (int32_t)v[CLI_OPT_THREADS].number;
    s->shard_bytes = v[CLI_OPT_SHARD_BYTES].number;
    if (v[CLI_OPT_BLOCK_SAMPLES].given)
        s->block_samples = v[CLI_OPT_BLOCK_SAMPLES].number;
    s->append = v[CLI_OPT_APPEND].given;
    s->task = (uint32_t)v[CLI_OPT_TASK].number;
    s->n_tasks = (uint32_t)v[CLI_OPT_TASK].second;
    s->wait_seconds = (uint32_t)v[CLI_OPT_WAIT].number;
    if (run->args->command == CLI_INDEX) {
        s->in_place = 1;
        s->mode = PEN_MODE_KEEP;
        s->kind = PEN_INPUT_IMAGES;
        take_remote_root(run);
    }
    s->progress = on_progress;
    s->ctx = run;
    take_bad_report(run, s);
}

static int end_stopped(const Run *run, const PenError *error)
{
    char advice[160], done[CLI_NUMBER_TEXT], total[CLI_NUMBER_TEXT];
    if (run->total > 0)
        snprintf(advice, sizeof advice,
                 "%s of %s samples are done; run the same command again to resume after the last "
                 "finished shard",
                 cli_text_number((int64_t)run->done, done),
                 cli_text_number((int64_t)run->total, total));
    else if (run->args->command == CLI_INDEX && run->remote_root[0])
        snprintf(advice, sizeof advice,
                 "run the same command again; remote tar files that were read completely are not "
                 "read again");
    else
        snprintf(advice, sizeof advice, "run the same command again to start from the beginning");
    return cli_result_interrupted(run->args, error, advice);
}

static void print_bad(uint64_t n, const char *report)
{
    char number[CLI_NUMBER_TEXT];
    cli_print_message("%s left out as broken; %s lists them with the reasons",
                      cli_text_count(n, "input", number), report);
}

static void print_missing(const PenMissing *missing)
{
    char number[CLI_NUMBER_TEXT];
    cli_print_message("field '%s' is missing in %s", missing->field,
                      cli_text_count(missing->n, "sample", number));
}

/* Notes about a successful run, and the next step. */
static void print_notes(const Run *run, const PenIngestResult *result)
{
    char a[CLI_NUMBER_TEXT], b[CLI_NUMBER_TEXT];
    const CliValue *task = &run->args->values[CLI_OPT_TASK];
    if (result->n_resumed > 0)
        cli_print_message("resumed: %s of %s samples were already packed",
                          cli_text_number((int64_t)result->n_resumed, a),
                          cli_text_number((int64_t)result->n_added, b));
    if (result->n_ignored > 0)
        cli_print_message("%s ignored: not images or videos by the name, hidden, or excluded",
                          cli_text_count(result->n_ignored, "file", a));
    if (result->n_bad > 0 && task->given)
        cli_print_message("%s left out as broken; finalise lists them",
                          cli_text_count(result->n_bad, "input", a));
    else if (result->n_bad > 0)
        print_bad(result->n_bad, run->bad_report);
    for (uint32_t i = 0; i < result->n_missing; i++)
        print_missing(&result->missing[i]);
    cli_pack_report_decoder(run->out, &result->stats);
    if (run->remote_root[0])
        cli_print_message("the images are read from where they are, so name that place to open "
                          "the pack; try: penstock verify %s --root %s",
                          run->out, run->remote_root);
    if (run->args->command == CLI_PLAN)
        cli_print_message(
            "the plan is complete; run 'penstock pack' with the same arguments and --task I/N");
    else if (task->given && result->published)
        cli_print_message("%s: the pack is already complete, so task %s has nothing to do; to pack "
                          "other data, choose another name",
                          run->out, task->text);
    else if (task->given)
        cli_print_message("task %s is complete; when all %u tasks are, run 'penstock finalise %s'",
                          task->text, (unsigned)task->second, run->out);
}

/* The library does not know the names of the options, nor people that of the default report. */
static void add_advice(const Run *run, PenError *error)
{
    size_t used = strlen(error->message);
    int says_it = strstr(error->message, "remove it") != NULL;
    if (strstr(error->message, "see the list of broken inputs"))
        snprintf(error->message + used, sizeof error->message - used, " in %.300s",
                 run->bad_report);
    else if (error->status == PEN_E_DECODE && run->args->values[CLI_OPT_ON_BAD].number == 0)
        snprintf(error->message + used, sizeof error->message - used,
                 "%s or skip broken inputs with --on-bad skip",
                 says_it ? "," : "; fix or remove it,");
}

static void fill_plan(CliReport *report, const Run *run, const PenIngestResult *result,
                      double seconds)
{
    cli_report_text(report, "plan_of", run->out);
    cli_report_number(report, "samples", result->n_samples);
    cli_report_count(report, "files_ignored", result->n_ignored);
    cli_pack_report_classes(report, result);
    cli_report_number(report, "samples_per_block", result->block_samples);
    cli_report_size(report, "source_bytes", (int64_t)result->stats.source_bytes);
    cli_report_measured(report, "seconds", seconds, "s");
}

static int end_done(const Run *run, const PenIngestResult *result, double seconds)
{
    CliReport report = {0};
    if (run->args->command == CLI_PLAN)
        fill_plan(&report, run, result, seconds);
    else
        cli_pack_report_run(&report, run->out, result, seconds, run->args->command == CLI_INDEX);
    if (result->n_bad > 0 && !run->args->values[CLI_OPT_TASK].given)
        cli_report_text(&report, "bad_report", run->bad_report);
    int code = cli_result_print(run->args, &report, NULL);
    print_notes(run, result);
    cli_report_fini(&report);
    return code;
}

static int run_ingest(const CliArgs *args,
                      int (*call)(const PenIngestSettings *, PenIngestResult *, PenError *))
{
    Run run = {.args = args};
    PenIngestSettings settings;
    PenIngestResult result = {0};
    PenError error = {0};
    if (take_name(&run, &error) < 0) {
        cli_print_error(&error);
        return CLI_EXIT_USAGE;
    }
    take_settings(&run, &settings);
    if (take_exclude(&run, &settings, &error) < 0)
        return cli_result_error(args, &error);
    cli_splits_warn(args);
    cli_interrupt_install();
    cli_progress_init(&run.progress);
    run.progress.is_json = args->values[CLI_OPT_PROGRESS].number == 1;
    uint64_t start_ns = cli_clock_ns();
    int r = call(&settings, &result, &error);
    cli_progress_fini(&run.progress);
    free(run.exclude);
    if (r == PEN_E_CANCELLED)
        return end_stopped(&run, &error);
    if (r < 0) {
        add_advice(&run, &error);
        return cli_result_error(args, &error);
    }
    return end_done(&run, &result, (double)(cli_clock_ns() - start_ns) / 1e9);
}

int cli_pack(const CliArgs *args)
{
    return run_ingest(args, pen_ingest_run);
}

int cli_index(const CliArgs *args)
{
    return run_ingest(args, pen_ingest_run);
}

int cli_plan(const CliArgs *args)
{
    return run_ingest(args, pen_ingest_plan);
}

/* Is it a place that packing has written to? Of an object store that is found out later. */
static int check_place(const char *path, PenError *reterr)
{
    struct stat st;
    char inner[NAME_CAP + 16];
    static const char *const signs[] = {"manifest", ".work"};
    if (pen_is_remote(path))
        return PEN_OK;
    if (stat(path, &st) != 0)
        return cli_fail_os(reterr, errno, "%s: expected the directory of a pack", path);
    if (!S_ISDIR(st.st_mode))
        return cli_fail(reterr, PEN_E_INVALID,
                        "%s: not a pack: expected a directory such as NAME.pen, found a file",
                        path);
    size_t n = strlen(path);
    int is_pack = n > 4 && strcmp(path + n - 4, ".pen") == 0;
    for (size_t i = 0; !is_pack && i < sizeof signs / sizeof *signs; i++) {
        snprintf(inner, sizeof inner, "%s/%s", path, signs[i]);
        is_pack = stat(inner, &st) == 0;
    }
    if (!is_pack)
        return cli_fail(reterr, PEN_E_INVALID,
                        "%s: not a pack: expected a directory such as NAME.pen, found one without "
                        "'manifest' and '.work'",
                        path);
    return PEN_OK;
}

static int finalise(Run *run, PenIngestResult *ret, PenError *reterr)
{
    PenIngestSettings settings;
    int r = copy_name(run->args->operands[0], run->out, reterr);
    if (r == PEN_OK)
        r = check_place(run->out, reterr);
    if (r < 0)
        return r;
    pen_ingest_settings_init(&settings);
    settings.out = run->out;
    cli_remote_settings(run->args, &run->remote);
    run->remote.interrupted = on_wait;
    settings.remote = &run->remote;
    settings.work = run->args->values[CLI_OPT_WORK].text;
    settings.wait_seconds = (uint32_t)run->args->values[CLI_OPT_WAIT].number;
    settings.n_tasks = (uint32_t)run->args->values[CLI_OPT_TASKS].number;
    settings.progress = on_progress;
    settings.ctx = run;
    cli_interrupt_install();
    cli_progress_init(&run->progress);
    run->progress.is_json = run->args->values[CLI_OPT_PROGRESS].number == 1;
    r = pen_ingest_finalise(&settings, ret, reterr);
    cli_progress_fini(&run->progress);
    return r;
}

int cli_finalise(const CliArgs *args)
{
    Run run = {.args = args};
    PenIngestResult result = {0};
    PenError error = {0};
    CliReport report = {0};
    uint64_t start_ns = cli_clock_ns();
    int r = finalise(&run, &result, &error);
    if (r == PEN_E_CANCELLED)
        return cli_result_interrupted(args, &error, "run the same command again");
    if (r < 0)
        return cli_result_error(args, &error);
    cli_pack_report_run(&report, run.out, &result, (double)(cli_clock_ns() - start_ns) / 1e9, 0);
    default_report(run.out, run.bad_report, sizeof run.bad_report);
    if (result.n_bad > 0)
        cli_report_text(&report, "bad_report", run.bad_report);
    int code = cli_result_print(args, &report, NULL);
    if (result.n_bad > 0)
        print_bad(result.n_bad, run.bad_report);
    for (uint32_t i = 0; i < result.n_missing; i++)
        print_missing(&result.missing[i]);
    if (result.not_removed[0])
        cli_print_message("%s: the pack is published, but what the tasks left could not be removed "
                          "(%s); remove it with 'penstock gc --abandon %s'",
                          run.out, result.not_removed, run.out);
    cli_report_fini(&report);
    return code;
}

int cli_gc(const CliArgs *args)
{
    PenGcResult result = {0};
    PenError error = {0};
    CliReport report = {0};
    PenRemoteSettings remote;
    char line[256], files[CLI_NUMBER_TEXT], bytes[CLI_NUMBER_TEXT], uploads[CLI_NUMBER_TEXT];
    char pack[NAME_CAP];
    int r = copy_name(args->operands[0], pack, &error);
    if (r == PEN_OK)
        r = check_place(pack, &error);
    if (r < 0)
        return cli_result_error(args, &error);
    cli_remote_settings(args, &remote);
    const char *work = args->values[CLI_OPT_WORK].text;
    int abandon = args->values[CLI_OPT_ABANDON].given;
    r = pen_ingest_gc(pack, &remote, work, abandon, &result, &error);
    if (r < 0)
        return cli_result_error(args, &error);
    cli_report_text(&report, "pack", pack);
    cli_report_number(&report, "files", result.files);
    cli_report_size(&report, "bytes", (int64_t)result.bytes);
    if (pen_is_remote(pack))
        cli_report_number(&report, "uploads", result.uploads);
    snprintf(line, sizeof line, "%s removed (%s)%s%s%s",
             cli_text_count(result.files, "file", files),
             cli_text_size((double)result.bytes, bytes), pen_is_remote(pack) ? "; " : "",
             pen_is_remote(pack) ? cli_text_count(result.uploads, "upload", uploads) : "",
             pen_is_remote(pack) ? " aborted" : "");
    int code = cli_result_print(args, &report, line);
    cli_report_fini(&report);
    return code;
}
