/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "sim/arguments.h"
#include "sim/report.h"
#include "sim/simulate.h"

static int fail(const PenError *err, int code)
{
    fprintf(stderr, "penstock-sim: %s\n", err->message);
    return code;
}

int main(int argc, char **argv)
{
    PenError err = {0};
    PenSimSettings settings;
    PenSimResult result;
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        pen__sim_usage(stdout);
        return 0;
    }
    if (pen__sim_settings_parse(&settings, argv + 1, argc - 1, &err) < 0)
        return fail(&err, 2);
    if (pen__simulate(&settings, &result, &err) < 0 ||
        pen__sim_print(&settings, &result, stdout, &err) < 0)
        return fail(&err, 1);
    return 0;
}
