/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include <penstock/version.h>

#include "arguments/commands.h"
#include "output/result.h"
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

int cli_probe(const CliArgs *args)
{
    CliReport report = {0};
    char cpu[256];
    cpu_name(cpu, sizeof cpu);
    cli_report_text(&report, "version", pen_version());
    cli_report_text(&report, "cpu", cpu);
    cli_report_text(&report, "tier", pen_cpu_tier());
    cli_report_number(&report, "cores", pen_cpu_cores());
    int code = cli_result_print(args, &report, NULL);
    cli_report_fini(&report);
    return code;
}
