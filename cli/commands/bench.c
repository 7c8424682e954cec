/* SPDX-License-Identifier: Apache-2.0 */
/* Measures loading as in a training loop, then every stage alone. */
#include <stdlib.h>
#include <sys/resource.h>

#include <penstock/cache.h>

#include "arguments/commands.h"
#include "arguments/remote_options.h"
#include "interrupt.h"
#include "measure/run.h"
#include "output/diagnosis_report.h"
#include "output/result.h"

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
    cli_report_measured(report, "samples_per_second", (double)run->samples / run->elapsed, NULL);
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

static const char *const stage_names[PEN_STAGE_COUNT] = {
    [PEN_STAGE_READ] = "read",
    [PEN_STAGE_VERIFY] = "verify",
    [PEN_STAGE_DECODE] = "decode",
    [PEN_STAGE_PIXELS] = "resample",
    [PEN_STAGE_ALL] = "decode_and_resample",
    [PEN_STAGE_READ_COLD] = "read_cold",
    [PEN_STAGE_READ_HALF] = "read_half_threads",
};

static void add_stages(CliReport *report, const PenStages *stages)
{
    cli_report_object(report, "stages_alone_samples_per_second");
    for (int i = 0; i < PEN_STAGE_COUNT; i++)
        if (stages->per_second[i] > 0)
            cli_report_measured(report, stage_names[i], stages->per_second[i], NULL);
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

static void fill(CliReport *report, const CliArgs *args, CliRun *run)
{
    cli_report_text(report, "pack", args->operands[0]);
    cli_report_text(report, "pipeline", run->pipeline);
    cli_report_text(report, "order", "shuffle");
    cli_report_text(report, "tier", pen_cpu_tier());
    cli_report_number(report, "threads", run->stats.threads);
    cli_report_number(report, "batch", run->settings.batch_size);
    if (run->consumer > 0)
        cli_report_real(report, "consumer_ms", args->values[CLI_OPT_CONSUMER].real, "ms");
    if (run->n_waits)
        add_run(report, run);
    if (args->values[CLI_OPT_CACHE].given)
        add_cache(report, run->pack);
    if (cli_reads_objects(args))
        add_requests(report, run->pack);
    if (run->has_trace)
        add_trace(report, args->values[CLI_OPT_TRACE].text, &run->traced);
    add_stages(report, &run->stages);
}

int cli_bench(const CliArgs *args)
{
    PenError error = {0};
    PenDiagnosis diagnosis;
    CliReport report = {0};
    CliRun run;
    int code;
    cli_interrupt_install();
    int r = cli_run_open(&run, args, &error);
    if (r == PEN_OK)
        r = cli_run_load(&run, args->values[CLI_OPT_TRACE].text, &error);
    if (r == PEN_OK)
        r = cli_run_stages(&run, &error);
    if (r == PEN_OK)
        cli_run_diagnose(&run, &diagnosis);
    if (r == PEN_E_CANCELLED) {
        code = cli_result_interrupted(args, &error, "the measurement is not complete");
    } else if (r < 0) {
        code = cli_result_error(args, &error);
    } else {
        fill(&report, args, &run);
        cli_diagnosis_report(&report, &diagnosis, args->values[CLI_OPT_JSON].given);
        code = cli_result_print(args, &report, NULL);
    }
    cli_report_fini(&report);
    cli_run_close(&run);
    return code;
}
