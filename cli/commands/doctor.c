/* SPDX-License-Identifier: Apache-2.0 */
/* Measures loading as in a training loop, names what limits it, and what to change. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <penstock/cache.h>

#include "arguments/commands.h"
#include "arguments/remote_options.h"
#include "interrupt.h"
#include "measure/run.h"
#include "output/diagnosis_report.h"
#include "output/messages.h"
#include "output/result.h"
#include "output/text.h"

/* The utilization that MLPerf Storage requires for ResNet-50, in percent. */
#define ENOUGH 90.0

/* Accelerators that take a batch every `consumer` seconds. */
typedef struct Accelerators {
    double most;        /* samples per second, without training steps */
    double each;        /* that one consumes if it never waits */
    double utilization; /* percent */
    unsigned count;     /* that can be fed */
} Accelerators;

/* As fast as possible, to learn how many accelerators could be fed; then with one. The last run is
 * the one that is traced. */
static int load(CliRun *run, const char *trace, Accelerators *ret, PenError *reterr)
{
    double consumer = run->consumer;
    if (consumer <= 0)
        return cli_run_load(run, trace, reterr);
    run->consumer = 0;
    int r = cli_run_load(run, NULL, reterr);
    if (r < 0)
        return r;
    ret->most = (double)run->samples / run->elapsed;
    ret->each = run->settings.batch_size / consumer;
    ret->count = (unsigned)(ret->most / (ret->each * ENOUGH / 100));
    run->consumer = consumer;
    r = cli_run_load(run, trace, reterr);
    if (r < 0 || !run->n_waits)
        return r;
    ret->utilization = 100 * run->held / (run->elapsed - run->waits[0]);
    return r;
}

/* ---- the run ---- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void add_wait(CliReport *report, const CliRun *run, const char *name, double share)
{
    size_t i = (size_t)(share * (double)(run->n_waits - 1) + 0.5);
    cli_report_measured(report, name, run->waits[i] * 1e3, "ms");
}

static void add_memory(CliReport *report, const CliRun *run)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    cli_report_size(report, "loader_memory_reserved_bytes", (int64_t)run->stats.memory_peak_bytes);
    cli_report_size(report, "process_memory_resident_bytes", (int64_t)usage.ru_maxrss * 1024);
}

static void add_run(CliReport *report, CliRun *run)
{
    cli_report_measured(report, "read_mb_per_second", (double)run->bytes / run->elapsed / 1e6,
                        "MB/s");
    cli_report_number(report, "samples", run->samples);
    cli_report_measured(report, "seconds", run->elapsed, "s");
    cli_report_number(report, "complete_passes", (uint64_t)run->complete_passes);
    cli_report_measured(report, "first_batch_seconds", run->first_batch, "s");
    cli_report_measured(report, "cpu_seconds_per_1000_samples",
                        run->cpu / (double)run->samples * 1000, NULL);
    add_memory(report, run);
    qsort(run->waits, run->n_waits, sizeof *run->waits, by_size);
    cli_report_object(report, "wait_for_a_batch");
    add_wait(report, run, "p50_ms", 0.50);
    add_wait(report, run, "p95_ms", 0.95);
    add_wait(report, run, "p99_ms", 0.99);
    add_wait(report, run, "max_ms", 1);
    cli_report_close(report);
}

static void add_rate(CliReport *report, const char *name, double rate)
{
    if (rate > 0)
        cli_report_measured(report, name, rate, NULL);
}

static void add_reading(CliReport *report, const PenMeasured *measured)
{
    cli_report_object(report, "reading_alone_samples_per_second");
    add_rate(report, "read", measured->read);
    add_rate(report, "read_cold", measured->read_cold);
    add_rate(report, "read_half_threads", measured->read_half);
    cli_report_close(report);
}

static void add_cache(CliReport *report, const PenPack *pack)
{
    PenCacheStats c;
    pen_pack_cache_stats(pack, &c);
    cli_report_object(report, "cache");
    cli_report_number(report, "hits", c.hits);
    cli_report_number(report, "misses", c.misses);
    cli_report_size(report, "from_cache_bytes", (int64_t)c.bytes_cache);
    cli_report_size(report, "from_origin_bytes", (int64_t)c.bytes_origin);
    cli_report_number(report, "blocks_stored", c.stored);
    cli_report_count(report, "not_stored_full", c.not_stored_full);
    cli_report_count(report, "not_stored_disk", c.not_stored_disk);
    cli_report_count(report, "not_stored_error", c.not_stored_error);
    cli_report_count(report, "not_stored_busy", c.not_stored_busy);
    cli_report_count(report, "damaged", c.bad);
    cli_report_close(report);
}

static void add_requests(CliReport *report, const PenPack *pack)
{
    PenRemoteStats s;
    pen_pack_remote_stats(pack, &s);
    cli_report_object(report, "requests");
    cli_report_number(report, "made", s.requests);
    cli_report_size(report, "bytes", (int64_t)s.bytes);
    cli_report_number(report, "in_flight_limit", s.limit);
    cli_report_count(report, "retries", s.retries);
    cli_report_count(report, "hedges", s.hedges);
    cli_report_count(report, "throttles", s.throttles);
    cli_report_close(report);
}

static void add_trace(CliReport *report, const char *path, const PenTraceStats *traced)
{
    cli_report_object(report, "trace");
    cli_report_text(report, "file", path);
    cli_report_number(report, "events", traced->events);
    cli_report_number(report, "dropped", traced->dropped);
    cli_report_size(report, "file_bytes", (int64_t)traced->bytes);
    cli_report_close(report);
}

/* ---- the report ---- */

static void add_accelerators(CliReport *report, const CliRun *run, const Accelerators *a)
{
    cli_report_object(report, "accelerators");
    cli_report_measured(report, "consumer_ms", run->consumer * 1e3, "ms");
    cli_report_measured(report, "samples_per_second_each", a->each, NULL);
    cli_report_measured(report, "utilization_percent", a->utilization, "%");
    cli_report_real(report, "wanted_percent", ENOUGH, "%");
    cli_report_bool(report, "is_enough", a->utilization >= ENOUGH);
    cli_report_measured(report, "samples_per_second_most", a->most, NULL);
    cli_report_number(report, "count", a->count);
    cli_report_close(report);
}

/* Nothing else of a report says it. */
static const char *note(const CliRun *run)
{
    int is_from_disk = !run->facts.is_remote && !run->facts.has_cache && run->measured.read > 0;
    return is_from_disk && run->measured.read_cold <= 0
               ? "The page cache could not be dropped, so the disk was not measured."
               : NULL;
}

static void add_settings(CliReport *report, const CliArgs *args, const CliRun *run)
{
    cli_report_text(report, "pack", args->operands[0]);
    cli_report_text(report, "pipeline", run->pipeline);
    cli_report_text(report, "order", "shuffle");
    cli_report_text(report, "tier", pen_cpu_tier());
    cli_report_number(report, "threads", run->stats.threads);
    cli_report_number(report, "cores", pen_cpu_cores());
    cli_report_number(report, "batch", run->settings.batch_size);
    if (run->consumer > 0)
        cli_report_real(report, "consumer_ms", run->consumer * 1e3, "ms");
}

static void fill(CliReport *report, const CliArgs *args, CliRun *run, const PenDiagnosis *diagnosis,
                 const Accelerators *a)
{
    cli_report_measured(report, "samples_per_second",
                        run->elapsed > 0 ? (double)run->samples / run->elapsed : 0, NULL);
    cli_diagnosis_report(report, diagnosis, note(run));
    if (run->consumer > 0)
        add_accelerators(report, run, a);
    add_settings(report, args, run);
    if (run->n_waits)
        add_run(report, run);
    cli_report_text(report, "fetch_unit", cli_text_fetch_unit(run->stats.fetch_unit));
    cli_report_size(report, "memory_for_entire_blocks_bytes",
                    (int64_t)run->stats.memory_wanted_bytes);
    cli_report_measured(report, "memory_copy_mb_per_second", run->measured.copy_bytes / 1e6,
                        "MB/s");
    if (args->values[CLI_OPT_CACHE].given)
        add_cache(report, run->pack);
    if (cli_reads_objects(args))
        add_requests(report, run->pack);
    if (run->has_trace)
        add_trace(report, args->values[CLI_OPT_TRACE].text, &run->traced);
    add_reading(report, &run->measured);
}

/* ---- the command ---- */

/* Only the Python package reads traces. */
static int check_operand(const char *name, PenError *reterr)
{
    static const char *const endings[] = {".json", ".json.gz"};
    for (int i = 0; i < 2; i++) {
        size_t n = strlen(name), m = strlen(endings[i]);
        if (n > m && strcmp(name + n - m, endings[i]) == 0)
            return cli_fail(reterr, PEN_E_UNSUPPORTED,
                            "%s: a trace takes no options, and is read by the Python package; run "
                            "'python3 -m penstock doctor %s'",
                            name, name);
    }
    return PEN_OK;
}

int cli_doctor(const CliArgs *args)
{
    PenError error = {0};
    PenDiagnosis diagnosis;
    Accelerators accelerators = {0};
    CliReport report = {0};
    CliRun run = {0};
    int code, r = check_operand(args->operands[0], &error);
    cli_interrupt_install();
    if (r == PEN_OK)
        r = cli_run_open(&run, args, &error);
    if (r == PEN_OK)
        r = load(&run, args->values[CLI_OPT_TRACE].text, &accelerators, &error);
    if (r == PEN_OK)
        r = cli_run_measure(&run, &error);
    if (r == PEN_OK)
        cli_run_diagnose(&run, &diagnosis);
    if (r == PEN_E_CANCELLED) {
        code = cli_result_interrupted(args, &error, "the measurement is not complete");
    } else if (r < 0) {
        code = cli_result_error(args, &error);
    } else {
        fill(&report, args, &run, &diagnosis, &accelerators);
        code = cli_result_print(args, &report, NULL);
    }
    cli_report_fini(&report);
    cli_run_close(&run);
    return code;
}
