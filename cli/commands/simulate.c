/* SPDX-License-Identifier: Apache-2.0 */
/* Simulates a multi-node job, and prints the results and all constants. */
#include <math.h>
#include <stdio.h>

#include <penstock/simulate.h>

#include "arguments/commands.h"
#include "arguments/remote_options.h"
#include "interrupt.h"
#include "output/messages.h"
#include "output/pack_report.h"
#include "output/progress.h"
#include "output/result.h"
#include "output/text.h"

static int on_progress(void *ctx, double seconds, double total_seconds)
{
    cli_progress_show(ctx, &(CliProgressState){.stage = "simulate",
                                               .unit = "simulated s",
                                               .done = seconds,
                                               .total = total_seconds});
    return cli_interrupted();
}

/* ---- settings --------------------------------------------------------------------------- */

static void take_network(const CliValue *v, PenSimSettings *s)
{
    s->latency_ms = v[CLI_OPT_SIM_LATENCY].real;
    s->latency_p99_ms = v[CLI_OPT_SIM_LATENCY_P99].given ? v[CLI_OPT_SIM_LATENCY_P99].real
                                                         : 3 * v[CLI_OPT_SIM_LATENCY].real;
    s->connect_ms = v[CLI_OPT_SIM_CONNECT].real;
    s->connection_bytes_per_s = (uint64_t)(v[CLI_OPT_SIM_CONNECTION].real * 1e6);
    s->node_bytes_per_s = (uint64_t)(v[CLI_OPT_SIM_NODE].real * 1e9 / 8);
    s->store_bytes_per_s = (uint64_t)(v[CLI_OPT_SIM_STORE].real * 1e9 / 8);
    s->prefixes = (uint32_t)v[CLI_OPT_SIM_PREFIXES].number;
    s->prefix_per_s = (uint32_t)v[CLI_OPT_SIM_PREFIX_RATE].number;
    s->failures = v[CLI_OPT_SIM_FAILURES].real;
}

static void take_job(const CliValue *v, PenSimSettings *s)
{
    s->nodes = (uint32_t)v[CLI_OPT_SIM_NODES].number;
    s->ranks = (uint32_t)v[CLI_OPT_SIM_RANKS].number;
    s->batch = (uint32_t)v[CLI_OPT_SIM_BATCH].number;
    s->step_ms = v[CLI_OPT_SIM_STEP].real;
    s->decode_ms = v[CLI_OPT_SIM_DECODE].real;
    s->memory_bytes = v[CLI_OPT_SIM_MEMORY].number;
    s->batch_bytes = v[CLI_OPT_SIM_BATCH_BYTES].number;
    s->prefetch = (uint32_t)v[CLI_OPT_SIM_PREFETCH].number;
    s->shuffle_buffer = v[CLI_OPT_SIM_BUFFER].number;
    s->cache_bytes = v[CLI_OPT_SIM_CACHE].number;
    s->sticky = v[CLI_OPT_SIM_STICKY].given;
    s->epoch = (uint32_t)v[CLI_OPT_SIM_EPOCH].number;
    s->in_flight = (uint32_t)v[CLI_OPT_SIM_IN_FLIGHT].number;
    s->opened = v[CLI_OPT_SIM_OPENED].given;
    s->spread_s = v[CLI_OPT_SIM_SPREAD].real;
    s->seconds = v[CLI_OPT_SIM_SECONDS].real;
    s->effort = v[CLI_OPT_SIM_EFFORT].real;
    s->seed = v[CLI_OPT_SIM_SEED].number;
}

static int take_pack(const CliArgs *args, PenPack **pack, PenSimSettings *s, PenError *reterr)
{
    const CliValue *v = args->values;
    const CliValue *samples = &v[CLI_OPT_SIM_SAMPLES], *bytes = &v[CLI_OPT_SIM_SAMPLE_BYTES];
    if (args->n_operands && (samples->given || bytes->given))
        return cli_fail(reterr, PEN_E_INVALID,
                        "a pack has its own sizes; leave out %s, or leave out --samples "
                        "and --sample-bytes",
                        args->operands[0]);
    if (args->n_operands) {
        int r = cli_remote_open(args, args->operands[0], pack, reterr);
        s->pack = *pack;
        return r;
    }
    if (!samples->given || !bytes->given)
        return cli_fail(reterr, PEN_E_INVALID,
                        "simulate needs a pack, or --samples N and --sample-bytes N: penstock "
                        "simulate --samples 1e9 --sample-bytes 110000 --nodes 8");
    s->n_samples = (uint64_t)floor(samples->real);
    s->sample_bytes = bytes->number;
    s->block_samples = (uint32_t)v[CLI_OPT_SIM_BLOCK_SAMPLES].number;
    s->shard_bytes = v[CLI_OPT_SIM_SHARD_BYTES].number;
    return PEN_OK;
}

/* ---- results ------------------------------------------------------------------------- */

static void add_headline(CliReport *report, const PenSimSettings *s, const PenSimResult *r)
{
    char text[320], nodes[CLI_NUMBER_TEXT], ranks[CLI_NUMBER_TEXT], n[CLI_NUMBER_TEXT];
    char seconds[CLI_NUMBER_TEXT], some[64] = "all ranks";
    if (r->followed < s->nodes)
        snprintf(some, sizeof some, "%u of the nodes as a sample", (unsigned)r->followed);
    snprintf(text, sizeof text, "%s of %s on a pack of %s: the first %s of epoch %u, %s",
             cli_text_count(s->nodes, "node", nodes), cli_text_count(s->ranks, "rank", ranks),
             cli_text_count(r->n_samples, "sample", n), cli_text_time(r->seconds, seconds),
             (unsigned)s->epoch, some);
    cli_report_text(report, "simulated", text);
    cli_report_number(report, "nodes", s->nodes);
    cli_report_number(report, "nodes_simulated", r->followed);
    cli_report_measured(report, "seconds", r->seconds, "s");
}

static void add_order(CliReport *report, const PenSimResult *r)
{
    cli_report_object(report, "order");
    cli_report_number(report, "samples", r->n_samples);
    cli_report_number(report, "samples_per_block", r->block_samples);
    cli_report_number(report, "blocks", r->n_blocks);
    cli_report_number(report, "shards", r->n_shards);
    cli_report_size(report, "pack_bytes", (int64_t)r->pack_bytes);
    cli_report_number(report, "shuffle_buffer", r->shuffle_buffer);
    cli_report_number(report, "batches_per_rank", r->steps);
    cli_report_text(report, "fetch_unit", cli_text_fetch_unit(r->fetch_unit));
    if (r->memory_wanted_bytes)
        cli_report_size(report, "memory_for_entire_blocks_bytes", (int64_t)r->memory_wanted_bytes);
    cli_report_number(report, "blocks_fetched_per_epoch", r->block_fetches);
    cli_report_number(report, "parts_fetched_per_epoch", r->part_fetches);
    cli_report_number(report, "block_indexes_fetched_per_epoch", r->index_fetches);
    cli_report_measured(report, "requests_per_block", r->requests_per_block, NULL);
    cli_report_measured(report, "fetched_over_pack", r->amplification,
                        r->is_exact ? "(exact, from the order)"
                                    : "(estimated from some of the ranks or batches)");
    if (r->second_epoch >= 0)
        cli_report_measured(report, "fetched_over_pack_second_epoch", r->second_epoch, NULL);
    cli_report_close(report);
}

static void add_speed(CliReport *report, const PenSimSettings *s, const PenSimResult *r)
{
    double step = (s->step_ms > s->decode_ms ? s->step_ms : s->decode_ms) / 1e3;
    cli_report_object(report, "training");
    cli_report_measured(report, "samples_per_second", r->samples_per_s, NULL);
    cli_report_measured(report, "samples_per_second_without_waiting",
                        (double)s->nodes * s->ranks * s->batch / step, NULL);
    cli_report_measured(report, "first_batch_median_seconds", r->first_batch_p50_s, "s");
    cli_report_measured(report, "first_batch_last_rank_seconds", r->first_batch_max_s, "s");
    cli_report_count(report, "ranks_without_a_batch", r->late);
    cli_report_measured(report, "waiting_percent", r->stall_share * 100,
                        "% of the time after the first batch");
    cli_report_measured(report, "waiting_worst_rank_percent", r->stall_share_worst * 100, "%");
    cli_report_measured(report, "longest_wait_seconds", r->longest_stall_s, "s");
    cli_report_close(report);
    cli_report_object(report, "bandwidth_of_a_node");
    cli_report_measured(report, "mean_gbit_per_second", r->node_bytes_per_s / 1e9 * 8, "Gbit/s");
    cli_report_measured(report, "busiest_second_gbit_per_second",
                        r->node_peak_bytes_per_s / 1e9 * 8, "Gbit/s");
    cli_report_close(report);
    cli_report_object(report, "memory_of_a_rank");
    cli_report_size(report, "peak_block_bytes", (int64_t)r->memory_bytes);
    cli_report_size(report, "available_bytes", (int64_t)r->memory_room);
    cli_report_close(report);
}

static void add_requests(CliReport *report, const PenSimSettings *s, const PenSimResult *r)
{
    cli_report_object(report, "requests_per_second_and_prefix");
    cli_report_measured(report, "mean", r->prefix_per_s, NULL);
    cli_report_measured(report, "busiest", r->prefix_peak_per_s, NULL);
    cli_report_number(report, "limit", s->prefix_per_s);
    cli_report_measured(report, "busiest_for_the_manifest", r->manifest_peak_per_s, NULL);
    cli_report_close(report);
    cli_report_object(report, "requests_simulated");
    cli_report_number(report, "made", r->requests);
    cli_report_number(report, "for_blocks", r->block_requests);
    cli_report_number(report, "for_block_indexes", r->index_requests);
    cli_report_number(report, "for_shard_indexes", r->tails);
    cli_report_count(report, "cache_hits", r->hits);
    cli_report_number(report, "retries", r->retries);
    cli_report_number(report, "hedges", r->hedges);
    cli_report_number(report, "hedges_that_won", r->hedges_won);
    cli_report_number(report, "throttled", r->throttles);
    cli_report_close(report);
    cli_report_object(report, "cost_per_epoch");
    cli_report_measured(report, "requests", r->requests_per_epoch, NULL);
    cli_report_measured(report, "dollars", r->dollars_per_epoch, NULL);
    cli_report_measured(report, "dollars_per_million_requests", r->dollars_per_million,
                        "(GET, S3 Standard, us-east-1; bytes within a region cost nothing)");
    cli_report_close(report);
}

static void add_constants(CliReport *report, const PenSimSettings *s)
{
    cli_report_object(report, "constants");
    cli_report_number(report, "batch", s->batch);
    cli_report_measured(report, "step_ms", s->step_ms, "ms");
    cli_report_measured(report, "decode_ms", s->decode_ms, "ms per batch");
    cli_report_size(report, "memory_bytes", (int64_t)s->memory_bytes);
    cli_report_number(report, "prefetch", s->prefetch);
    cli_report_number(report, "in_flight", s->in_flight);
    cli_report_size(report, "cache_bytes", (int64_t)s->cache_bytes);
    cli_report_bool(report, "sticky", s->sticky);
    cli_report_measured(report, "latency_ms", s->latency_ms, "ms");
    cli_report_measured(report, "latency_p99_ms", s->latency_p99_ms, "ms (log-normal)");
    cli_report_measured(report, "connect_ms", s->connect_ms, "ms");
    cli_report_measured(report, "connection_mb_per_second", (double)s->connection_bytes_per_s / 1e6,
                        "MB/s (0: no limit)");
    cli_report_measured(report, "node_gbit_per_second", (double)s->node_bytes_per_s * 8 / 1e9,
                        "Gbit/s (0: no limit)");
    cli_report_measured(report, "store_gbit_per_second", (double)s->store_bytes_per_s * 8 / 1e9,
                        "Gbit/s (0: no limit)");
    cli_report_number(report, "prefixes", s->prefixes);
    cli_report_measured(report, "failures_per_1000_requests", s->failures, NULL);
    cli_report_measured(report, "spread_seconds", s->spread_s, "s");
    cli_report_bool(report, "opened", s->opened);
    cli_report_number(report, "seed", s->seed);
    cli_report_close(report);
}

static void add_measured(CliReport *report, const CliArgs *args, const PenSimResult *r)
{
    const CliValue *rate = &args->values[CLI_OPT_SIM_MEASURED_RATE];
    const CliValue *first = &args->values[CLI_OPT_SIM_MEASURED_FIRST];
    if (!rate->given && !first->given)
        return;
    cli_report_object(report, "comparison_with_a_real_run");
    if (rate->given) {
        cli_report_measured(report, "samples_per_second_simulated", r->samples_per_s, NULL);
        cli_report_measured(report, "samples_per_second_measured", rate->real, NULL);
        cli_report_measured(report, "samples_per_second_ratio", r->samples_per_s / rate->real,
                            NULL);
    }
    if (first->given) {
        cli_report_measured(report, "first_batch_simulated_seconds", r->first_batch_p50_s, "s");
        cli_report_measured(report, "first_batch_measured_seconds", first->real, "s");
        cli_report_measured(report, "first_batch_ratio", r->first_batch_p50_s / first->real, NULL);
    }
    cli_report_close(report);
}

static int finish(const CliArgs *args, const PenSimSettings *s, const PenSimResult *result)
{
    CliReport report = {0};
    add_headline(&report, s, result);
    if (args->n_operands)
        cli_report_text(&report, "pack", args->operands[0]);
    if (result->seconds < s->seconds && result->batches < result->ranks * result->steps)
        cli_report_text(&report, "note", "fewer seconds than requested; see --effort");
    add_order(&report, result);
    add_speed(&report, s, result);
    add_requests(&report, s, result);
    add_measured(&report, args, result);
    add_constants(&report, s);
    int code = cli_result_print(args, &report, NULL);
    cli_report_fini(&report);
    return code;
}

int cli_simulate(const CliArgs *args)
{
    PenPack *pack = NULL;
    PenError error = {0};
    PenSimSettings s;
    PenSimResult result;
    CliProgress progress;
    pen_sim_settings_init(&s);
    int r = take_pack(args, &pack, &s, &error);
    if (r < 0) {
        int code = cli_result_error(args, &error);
        return args->n_operands && !args->values[CLI_OPT_SIM_SAMPLES].given ? code : CLI_EXIT_USAGE;
    }
    take_job(args->values, &s);
    take_network(args->values, &s);
    s.progress_of = on_progress;
    s.ctx = &progress;
    cli_interrupt_install();
    cli_progress_init(&progress);
    r = pen_simulate(&s, &result, &error);
    cli_progress_fini(&progress);
    int code;
    if (r == PEN_E_CANCELLED)
        code = cli_result_interrupted(args, &error, "there is no result");
    else
        code = r < 0 ? cli_result_error(args, &error) : finish(args, &s, &result);
    pen_pack_close(&pack);
    return code;
}
