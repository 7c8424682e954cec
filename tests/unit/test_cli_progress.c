/* SPDX-License-Identifier: Apache-2.0 */
/* Rates, the time left, the pieces of the line, and lines for a log: at given times. */
#include "test.h"

#include <stdlib.h>

#include "output/progress.h"
#include "output/progress_line.h"

#define SECOND UINT64_C(1000000000)

/* Reports `per_second` of 1,000 samples, ten times a second, from `from` until `to` seconds. */
static CliProgressState feed(CliRates *rates, double from, double to, double per_second)
{
    CliProgressState s = {
        .stage = "pack", .unit = "samples", .done = rates->done, .total = 1000, .bad = 0};
    for (int i = 0; i <= (int)((to - from) * 10 + 0.5); i++) {
        s.done = rates->done + (i > 0 ? per_second / 10 : 0);
        s.done_bytes = (uint64_t)(s.done * 1e5);
        cli_rates_update(rates, &s, (uint64_t)((from + i / 10.0) * 1e9) + SECOND);
    }
    return s;
}

TEST(time_left_follows_the_rate)
{
    CliRates r = {.start_ns = 0};
    feed(&r, 0, 0.3, 100);
    CHECK(cli_rates_seconds_left(&r) < 0); /* too early */
    feed(&r, 0.3, 2, 100);
    CHECK(r.per_second > 99 && r.per_second < 101);
    CHECK(r.bytes_per_second > 0.99e7 && r.bytes_per_second < 1.01e7);
    double left = cli_rates_seconds_left(&r);
    CHECK(left > 7.9 && left < 8.1); /* 800 of 1,000 at 100/s */
    feed(&r, 2, 32, 10);             /* slows down to 10/s; 500 are left */
    left = cli_rates_seconds_left(&r);
    CHECK(left > 30 && left < 52);
    CHECK(r.per_second > 9.5 && r.per_second < 17);
}

TEST(a_stop_has_no_time_left)
{
    CliRates r = {.start_ns = 0};
    feed(&r, 0, 2, 100);
    feed(&r, 2, 400, 0);
    CHECK(r.per_second >= 0 && r.per_second < 0.001);
    CHECK(cli_rates_seconds_left(&r) < 0);
}

TEST(a_new_stage_starts_again)
{
    CliRates r = {.start_ns = 0};
    feed(&r, 0, 2, 100);
    CliProgressState s = {.stage = "publish", .unit = "samples", .done = 500, .total = 1000};
    cli_rates_update(&r, &s, 4 * SECOND);
    CHECK(r.per_second < 0 && cli_rates_seconds_left(&r) < 0);
    s.done = 510;
    cli_rates_update(&r, &s, 5 * SECOND);
    CHECK(r.per_second > 9.99 && r.per_second < 10.01); /* not the 500 of another stage */
    s.done = 0;                                         /* a second pass */
    cli_rates_update(&r, &s, 6 * SECOND);
    CHECK(r.per_second < 0);
    cli_rates_update(&r, &s, 6 * SECOND); /* no division by zero */
    CHECK(r.per_second < 0);
}

/* The line for this number of columns. */
static const char *line_of(const CliProgressState *s, const CliRates *r, size_t columns)
{
    static char line[CLI_LINE_BYTES];
    CliLineStyle style = {.columns = columns};
    size_t used = cli_progress_line(s, r, &style, line);
    return used == strlen(line) && used <= columns ? line : "wrong width";
}

TEST(the_line_fits)
{
    CliRates r = {.start_ns = 0};
    CliProgressState s = feed(&r, 0, 4, 100);
    CHECK_STR(line_of(&s, &r, 200), "pack  [################                        ]   40 %"
                                    "  400 of 1,000  100 samples/s  10.0 MB/s  6 s left");
    CHECK_STR(line_of(&s, &r, 79),
              "pack  [#####         ]   40 %  400 of 1,000  100 samples/s  10.0 MB/s  6 s left");
    CHECK_STR(line_of(&s, &r, 75),
              "pack  [#####         ]   40 %  400 of 1,000  100 samples/s  6 s left");
    CHECK_STR(line_of(&s, &r, 60), "pack  [####      ]   40 %  100 samples/s  6 s left");
    CHECK_STR(line_of(&s, &r, 39), "pack   40 %  100 samples/s  6 s left");
    CHECK_STR(line_of(&s, &r, 19), " 40 %  6 s left");
    CHECK_STR(line_of(&s, &r, 5), " 40 %");
    CHECK_STR(line_of(&s, &r, 4), "pack");
    CHECK_STR(line_of(&s, &r, 0), "");
    s.bad = 2;
    for (size_t columns = 0; columns < 300; columns++)
        CHECK(strcmp(line_of(&s, &r, columns), "wrong width") != 0);
}

TEST(no_rate_of_nothing)
{
    CliRates r = {.start_ns = 0};
    CliProgressState s = feed(&r, 0, 4, 0);
    CHECK_STR(line_of(&s, &r, 60), "pack  [          ]    0 %  0 of 1,000");
    s.total = 0;
    CHECK_STR(line_of(&s, &r, 60), "pack");
}

TEST(blocks_have_eighths)
{
    char line[CLI_LINE_BYTES];
    CliRates r = {.start_ns = 0};
    CliLineStyle style = {.columns = 30, .utf8 = 1};
    CliProgressState s = {.stage = "copy", .done_bytes = 200, .total_bytes = 800};
    cli_rates_update(&r, &s, SECOND);
    CHECK_INT(cli_progress_line(&s, &r, &style, line), 4 + 2 + 12 + 2 + 5);
    CHECK_STR(line, "copy  [██▌       ]   25 %");
    s.done_bytes = 800;
    CHECK_INT(cli_progress_line(&s, &r, &style, line), 25);
    CHECK_STR(line, "copy  [██████████]  100 %");
    style.colour = 1;
    CHECK_INT(cli_progress_line(&s, &r, &style, line), 25); /* colours take no columns */
    CHECK_STR(line, "copy  \033[32m[██████████]\033[0m  100 %");
}

TEST(each_command_has_its_unit)
{
    char line[CLI_LINE_BYTES];
    CliRates r = {.start_ns = 0};
    CliProgressState s = {.stage = "verify", .total_bytes = 4000000000ull};
    cli_rates_update(&r, &s, SECOND);
    s.done_bytes = 1000000000;
    cli_rates_update(&r, &s, 3 * SECOND);
    cli_progress_sentence(&s, &r, line);
    CHECK_STR(line, "verify: 25 %, 953.7 MiB of 3.7 GiB, 500.0 MB/s, 6 s left");
    s = (CliProgressState){.stage = "load", .unit = "samples", .total = 600};
    cli_rates_update(&r, &s, SECOND);
    s.done = 3;
    cli_rates_update(&r, &s, 3 * SECOND);
    cli_progress_sentence(&s, &r, line);
    CHECK_STR(line, "load: 0 %, 3 of 600, 1.5 samples/s, 6 min 38 s left");
    s = (CliProgressState){.stage = "publish", .unit = "samples"};
    cli_rates_update(&r, &s, SECOND);
    cli_progress_sentence(&s, &r, line);
    CHECK_STR(line, "publish");
}

/* What is written if stderr is a log. */
TEST(a_log_has_a_line_every_30_seconds)
{
    char *text = NULL;
    size_t bytes = 0;
    CliProgress p;
    CliProgressState s = {.stage = "pack", .unit = "samples", .total = 1000};
    cli_progress_init(&p);
    p.is_terminal = 0;
    p.to = open_memstream(&text, &bytes);
    CHECK(p.to != NULL);
    uint64_t start = p.printed_ns;
    for (int tenth = 1; tenth <= 650; tenth++) {
        s.done = tenth;
        s.bad = tenth > 400;
        cli_progress_show_at(&p, &s, start + (uint64_t)tenth * SECOND / 10);
        fflush(p.to);
        if (tenth == 299)
            CHECK_INT(bytes, 0); /* none if the work is short */
    }
    fclose(p.to);
    p.to = stderr;
    cli_progress_fini(&p);
    CHECK_STR(text, "penstock: pack: 30 %, 300 of 1,000, 10 samples/s, 70 s left\n"
                    "penstock: pack: 60 %, 600 of 1,000, 10 samples/s, 40 s left, 1 bad\n");
    free(text);
}

TEST(a_terminal_is_updated_ten_times_a_second)
{
    char *text = NULL;
    size_t bytes = 0, n = 0;
    CliProgress p;
    CliProgressState s = {.stage = "pack", .unit = "samples", .total = 1000};
    cli_progress_init(&p);
    p.is_terminal = 1;
    p.utf8 = p.colour = 0;
    p.to = open_memstream(&text, &bytes);
    CHECK(p.to != NULL);
    for (int ms = 0; ms < 1000; ms++)
        cli_progress_show_at(&p, &s, 100 * SECOND + (uint64_t)ms * 1000000);
    cli_progress_fini(&p);
    fclose(p.to);
    for (const char *at = text; (at = strstr(at, "pack")); at++)
        n++;
    CHECK_INT(n, 10);
    CHECK_STR(text + bytes - 3, "  \r"); /* the line ends empty, the cursor at its start */
    free(text);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(time_left_follows_the_rate);
    RUN(a_stop_has_no_time_left);
    RUN(a_new_stage_starts_again);
    RUN(the_line_fits);
    RUN(no_rate_of_nothing);
    RUN(blocks_have_eighths);
    RUN(each_command_has_its_unit);
    RUN(a_log_has_a_line_every_30_seconds);
    RUN(a_terminal_is_updated_ten_times_a_second);
    return TEST_END();
}
