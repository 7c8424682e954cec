/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/simulate_packing.h"

#include <stdio.h>

#include "output/messages.h"
#include "output/result.h"
#include "output/text.h"

/* ---- settings --------------------------------------------------------------------------- */

/* Of a pack that exists: as if its samples were packed again. */
static void take_sizes(PenSimSettings *job)
{
    if (!job->pack)
        return;
    const PenPackInfo *info = pen_pack_info(job->pack);
    job->n_samples = info->n_samples;
    job->sample_bytes = info->n_samples ? (info->total_bytes - 1) / info->n_samples + 1 : 0;
    job->block_samples = (uint32_t)info->block_samples;
}

static void take_packing(const CliValue *v, PenSimPackingSettings *s)
{
    s->tasks = (uint32_t)v[CLI_OPT_SIM_TASKS].number;
    s->tasks_per_node = (uint32_t)v[CLI_OPT_SIM_TASKS_PER_NODE].number;
    s->threads = (uint32_t)v[CLI_OPT_SIM_THREADS].number;
    s->sample_ms = v[CLI_OPT_SIM_SAMPLE_MS].real;
    s->write_ms = v[CLI_OPT_SIM_WRITE_MS].real;
    s->plan_us = v[CLI_OPT_SIM_PLAN_US].real;
    s->key_bytes = (uint32_t)v[CLI_OPT_SIM_KEY_BYTES].number;
    s->source_prefixes = (uint32_t)v[CLI_OPT_SIM_SOURCE_PREFIXES].number;
    s->prefix_writes_per_s = (uint32_t)v[CLI_OPT_SIM_PREFIX_WRITES].number;
    s->lost = v[CLI_OPT_SIM_LOST].real;
}

/* ---- results ------------------------------------------------------------------------- */

static void add_headline(CliReport *report, const PenSimPackingSettings *s,
                         const PenSimPackingResult *r)
{
    char text[320], nodes[CLI_NUMBER_TEXT], tasks[CLI_NUMBER_TEXT], n[CLI_NUMBER_TEXT];
    char bytes[CLI_NUMBER_TEXT], some[96] = "all of it";
    if (r->followed < s->job->nodes || r->simulated_samples < r->task_samples)
        snprintf(some, sizeof some, "the first %llu samples of the tasks on %u of the nodes",
                 (unsigned long long)r->simulated_samples, (unsigned)r->followed);
    snprintf(text, sizeof text, "packing of %s (%s) by %s on %s: %s",
             cli_text_count(r->n_samples, "sample", n), cli_text_size((double)r->pack_bytes, bytes),
             cli_text_count(s->tasks, "task", tasks), cli_text_count(s->job->nodes, "node", nodes),
             some);
    cli_report_text(report, "simulated", text);
    cli_report_number(report, "nodes", s->job->nodes);
    cli_report_number(report, "nodes_simulated", r->followed);
    cli_report_number(report, "samples_per_task_simulated", r->simulated_samples);
}

static void add_job(CliReport *report, const PenSimPackingResult *r)
{
    cli_report_object(report, "job");
    cli_report_number(report, "samples", r->n_samples);
    cli_report_size(report, "pack_bytes", (int64_t)r->pack_bytes);
    cli_report_number(report, "shards", r->n_shards);
    cli_report_size(report, "plan_bytes", (int64_t)r->plan_bytes);
    cli_report_number(report, "samples_per_task", r->task_samples);
    cli_report_number(report, "runs_of_tasks", r->runs);
    cli_report_close(report);
}

static void add_time(CliReport *report, const PenSimPackingSettings *s,
                     const PenSimPackingResult *r)
{
    double all = r->plan_s + r->tasks_s + r->finalise_s;
    cli_report_object(report, "time");
    cli_report_measured(report, "total_seconds", all, "s");
    cli_report_measured(report, "plan_seconds", r->plan_s, "s");
    cli_report_measured(report, "tasks_seconds", r->tasks_s, "s");
    cli_report_measured(report, "finalise_seconds", r->finalise_s, "s");
    cli_report_measured(report, "one_task_seconds", r->task_s, "s (median)");
    cli_report_measured(report, "node_hours", s->job->nodes * r->tasks_s / 3600,
                        "h (nodes x time of the tasks)");
    cli_report_close(report);
}

static void add_speed(CliReport *report, const PenSimPackingSettings *s,
                      const PenSimPackingResult *r)
{
    static const char *const limits[] = {
        [PEN_SIM_LIMIT_CORES] = "the cores, which prepare samples",
        [PEN_SIM_LIMIT_WRITER] = "the thread of a task that writes",
        [PEN_SIM_LIMIT_UPLOADS] = "the uploads of a task",
        [PEN_SIM_LIMIT_NETWORK] = "the network of a node",
        [PEN_SIM_LIMIT_REQUESTS] = "the concurrent requests of a task",
        [PEN_SIM_LIMIT_STORE] = "the requests per second and prefix of the store",
    };
    double bytes = r->samples_per_s * (double)s->job->sample_bytes;
    cli_report_object(report, "speed");
    cli_report_measured(report, "samples_per_second", r->samples_per_s, NULL);
    cli_report_measured(report, "gigabytes_per_second", bytes / 1e9, "GB/s");
    cli_report_text(report, "limited_by", limits[r->limit]);
    cli_report_measured(report, "cores_busy_percent", r->cores_busy * 100, "%");
    cli_report_measured(report, "writing_thread_busy_percent", r->writer_busy * 100, "%");
    cli_report_measured(report, "waiting_for_uploads_percent", r->uploads_busy * 100, "%");
    cli_report_measured(report, "network_of_a_node_busy_percent", r->network_busy * 100, "%");
    cli_report_measured(report, "reading_threads_busy_percent", r->requests_busy * 100, "%");
    cli_report_close(report);
}

static void add_requests(CliReport *report, const PenSimPackingSettings *s,
                         const PenSimPackingResult *r)
{
    cli_report_object(report, "requests");
    cli_report_measured(report, "get_sources", r->source_gets, NULL);
    cli_report_measured(report, "get", r->gets, NULL);
    cli_report_measured(report, "head", r->heads, NULL);
    cli_report_measured(report, "list", r->lists, NULL);
    cli_report_measured(report, "put", r->puts, NULL);
    cli_report_measured(report, "post", r->posts, NULL);
    cli_report_measured(report, "delete", r->deletes, NULL);
    cli_report_measured(report, "retries", r->retries, "of these");
    cli_report_measured(report, "hedges", r->hedges, "of these");
    cli_report_measured(report, "throttled", r->throttles, "of these");
    cli_report_close(report);
    cli_report_object(report, "requests_per_second_and_prefix");
    cli_report_measured(report, "busiest_of_the_sources", r->source_peak_per_s, NULL);
    cli_report_number(report, "limit_of_the_sources", s->job->prefix_per_s);
    cli_report_measured(report, "busiest_of_the_pack", r->pack_peak_per_s, NULL);
    cli_report_number(report, "limit_of_the_pack", s->prefix_writes_per_s);
    cli_report_close(report);
    cli_report_object(report, "cost");
    cli_report_measured(report, "dollars", r->dollars, "for requests");
    cli_report_measured(report, "dollars_per_million_reads", r->dollars_per_million_reads,
                        "(GET and HEAD, S3 Standard, us-east-1)");
    cli_report_measured(report, "dollars_per_million_writes", r->dollars_per_million_writes,
                        "(PUT, POST and LIST; DELETE and bytes within a region cost nothing)");
    cli_report_close(report);
}

static void add_constants(CliReport *report, const PenSimPackingSettings *s)
{
    const PenSimSettings *job = s->job;
    cli_report_object(report, "constants");
    cli_report_size(report, "sample_bytes", (int64_t)job->sample_bytes);
    cli_report_number(report, "block_samples", job->block_samples);
    cli_report_size(report, "shard_bytes", (int64_t)job->shard_bytes);
    cli_report_number(report, "tasks", s->tasks);
    cli_report_number(report, "tasks_per_node", s->tasks_per_node);
    cli_report_number(report, "threads", s->threads);
    cli_report_measured(report, "sample_ms", s->sample_ms, "ms of a core per sample");
    cli_report_measured(report, "write_ms", s->write_ms, "ms of the writing thread per sample");
    cli_report_measured(report, "plan_us", s->plan_us, "us per sample");
    cli_report_number(report, "key_bytes", s->key_bytes);
    cli_report_measured(report, "lost_percent", s->lost, "% of the tasks");
    cli_report_number(report, "in_flight", job->in_flight);
    cli_report_number(report, "source_prefixes", s->source_prefixes);
    cli_report_number(report, "prefixes", job->prefixes);
    cli_report_measured(report, "latency_ms", job->latency_ms, "ms");
    cli_report_measured(report, "latency_p99_ms", job->latency_p99_ms, "ms (log-normal)");
    cli_report_measured(report, "connect_ms", job->connect_ms, "ms");
    cli_report_measured(report, "connection_mb_per_second",
                        (double)job->connection_bytes_per_s / 1e6, "MB/s (0: no limit)");
    cli_report_measured(report, "node_gbit_per_second", (double)job->node_bytes_per_s * 8 / 1e9,
                        "Gbit/s in each direction (0: no limit)");
    cli_report_measured(report, "store_gbit_per_second", (double)job->store_bytes_per_s * 8 / 1e9,
                        "Gbit/s (0: no limit)");
    cli_report_measured(report, "failures_per_1000_requests", job->failures, NULL);
    cli_report_number(report, "seed", job->seed);
    cli_report_close(report);
}

static int finish(const CliArgs *args, const PenSimPackingSettings *s,
                  const PenSimPackingResult *result)
{
    CliReport report = {0};
    add_headline(&report, s, result);
    add_job(&report, result);
    add_time(&report, s, result);
    add_speed(&report, s, result);
    add_requests(&report, s, result);
    add_constants(&report, s);
    int code = cli_result_print(args, &report, NULL);
    cli_report_fini(&report);
    return code;
}

int cli_simulate_packing(const CliArgs *args, PenSimSettings *job, CliProgress *progress)
{
    PenError error = {0};
    PenSimPackingSettings s;
    PenSimPackingResult result;
    pen_sim_packing_settings_init(&s);
    take_sizes(job);
    take_packing(args->values, &s);
    s.job = job;
    int r = pen_simulate_packing(&s, &result, &error);
    cli_progress_fini(progress);
    if (r == PEN_E_CANCELLED)
        return cli_result_interrupted(args, &error, "there is no result");
    return r < 0 ? cli_result_error(args, &error) : finish(args, &s, &result);
}
