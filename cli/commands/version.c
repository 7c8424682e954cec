/* SPDX-License-Identifier: Apache-2.0 */
/* The version; as JSON, also what this build consists of, and what it uses of this machine. */
#include <stdio.h>
#include <string.h>

#include <penstock/ingest.h>
#include <penstock/version.h>
#include <penstock/video.h>

#include "arguments/commands.h"
#include "output/messages.h"
#include "output/report.h"
#include "tools.h"

/* From /proc/cpuinfo; "unknown" if it has none. */
static void cpu_name(char *buf, size_t cap)
{
    char line[512];
    FILE *file = fopen("/proc/cpuinfo", "r");
    snprintf(buf, cap, "unknown");
    while (file && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon && colon[1] == ' ') {
            snprintf(buf, cap, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
            break;
        }
    }
    if (file)
        fclose(file);
}

static void add_texts(CliReport *report, const char *name, const char *const *texts)
{
    cli_report_list(report, name);
    for (; *texts; texts++)
        cli_report_text(report, NULL, *texts);
    cli_report_close(report);
}

static void add_features(CliReport *report)
{
    static const char *const codecs[] = {"jpeg", "png", "webp", NULL};
    static const char *const addresses[] = {"s3", "https", "http", NULL};
    cli_report_object(report, "features");
    add_texts(report, "codecs", codecs);
    add_texts(report, "addresses", addresses);
    cli_report_bool(report, "ffmpeg", pen_has_ffmpeg());
    cli_report_bool(report, "video_decoder", pen_video_available(NULL, NULL) == PEN_OK);
    cli_report_close(report);
}

static void add_libraries(CliReport *report)
{
    char version[PEN_LIBRARY_VERSION];
    const char *name;
    cli_report_list(report, "libraries");
    for (uint32_t i = 0; (name = pen_library(i, version)); i++) {
        cli_report_object(report, NULL);
        cli_report_text(report, "name", name);
        cli_report_text(report, "version", version);
        cli_report_close(report);
    }
    cli_report_close(report);
}

static int print_json(void)
{
    CliReport report = {0};
    PenError error = {0};
    char cpu[256];
    cpu_name(cpu, sizeof cpu);
    cli_report_text(&report, "version", pen_version());
    cli_report_text(&report, "cpu", cpu);
    cli_report_text(&report, "tier", pen_cpu_tier());
    cli_report_number(&report, "cores", pen_cpu_cores());
    add_features(&report);
    add_libraries(&report);
    int r = cli_report_print_json(&report, CLI_VERSION_SCHEMA, stdout, &error);
    if (r < 0)
        cli_print_error(&error);
    cli_report_fini(&report);
    return r < 0 ? CLI_EXIT_FAILURE : CLI_EXIT_OK;
}

int cli_version(int json)
{
    if (json)
        return print_json();
    printf("penstock %s\n", pen_version());
    return CLI_EXIT_OK;
}
