/* SPDX-License-Identifier: Apache-2.0 */
/* Many values of one measure: their quantiles and their histogram. */
#ifndef PEN_CLI_MEASURE_DISTRIBUTION_H
#define PEN_CLI_MEASURE_DISTRIBUTION_H

#include <stddef.h>

#include "output/report.h"

/* Starts as {0}. */
typedef struct CliDistribution {
    double *values;
    size_t n, cap;
    double sum;
} CliDistribution;

/* < 0: out of memory. */
int cli_distribution_add(CliDistribution *d, double value);
void cli_distribution_sort(CliDistribution *d); /* before the calls below */
/* Of the sorted values, interpolated between two of them; 0 if there are none. */
double cli_distribution_quantile(const CliDistribution *d, double share);
/* A row of a list: what they are of, how many, minimum, quantiles, maximum and mean. */
void cli_distribution_report(const CliDistribution *d, CliReport *report, const char *name);
/* Rows of a list: bins of equal, round width, at most 21, from the first to the last that has a
 * value. A bin has the values from `from` up to, but not including, `to`. */
void cli_distribution_histogram(const CliDistribution *d, CliReport *report, const char *name);
void cli_distribution_fini(CliDistribution *d);

#endif
