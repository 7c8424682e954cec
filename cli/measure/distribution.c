/* SPDX-License-Identifier: Apache-2.0 */
#include "measure/distribution.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_BINS = 20 }; /* and one more, since bins start at multiples of their width */

int cli_distribution_add(CliDistribution *d, double value)
{
    if (d->n == d->cap) {
        size_t cap = d->cap ? 2 * d->cap : 1024;
        double *values = realloc(d->values, cap * sizeof *values);
        if (!values)
            return -1;
        d->values = values;
        d->cap = cap;
    }
    d->values[d->n++] = value;
    d->sum += value;
    return 0;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void cli_distribution_sort(CliDistribution *d)
{
    if (d->n)
        qsort(d->values, d->n, sizeof *d->values, compare);
}

double cli_distribution_quantile(const CliDistribution *d, double share)
{
    if (d->n == 0)
        return 0;
    double at = share * (double)(d->n - 1);
    size_t low = (size_t)at;
    size_t high = low + 1 < d->n ? low + 1 : low;
    return d->values[low] + (at - (double)low) * (d->values[high] - d->values[low]);
}

void cli_distribution_report(const CliDistribution *d, CliReport *report, const char *name)
{
    static const struct {
        const char *name;
        double share;
    } quantiles[] = {{"min", 0},    {"p05", 0.05}, {"p25", 0.25}, {"median", 0.5},
                     {"p75", 0.75}, {"p95", 0.95}, {"max", 1}};
    cli_report_object(report, NULL);
    cli_report_text(report, "of", name);
    cli_report_number(report, "images", d->n);
    for (size_t i = 0; i < sizeof quantiles / sizeof *quantiles; i++)
        cli_report_measured(report, quantiles[i].name,
                            cli_distribution_quantile(d, quantiles[i].share), NULL);
    cli_report_measured(report, "mean", d->n ? d->sum / (double)d->n : 0, NULL);
    cli_report_close(report);
}

/* 1, 2 or 5 times a power of ten: the least that is enough for this range. */
static double bin_width(double range)
{
    double least = range / MOST_BINS;
    if (!(least > 0))
        return 1;
    double power = pow(10, floor(log10(least)));
    static const double steps[] = {1, 2, 5, 10};
    for (size_t i = 0; i < 4; i++)
        if (steps[i] * power >= least)
            return steps[i] * power;
    return 10 * power;
}

void cli_distribution_histogram(const CliDistribution *d, CliReport *report, const char *name)
{
    if (d->n == 0)
        return;
    double width = bin_width(d->values[d->n - 1] - d->values[0]);
    double bin = floor(d->values[0] / width);
    for (size_t i = 0; i < d->n; bin++) {
        size_t first = i;
        while (i < d->n && d->values[i] < (bin + 1) * width)
            i++;
        cli_report_object(report, NULL);
        cli_report_text(report, "of", name);
        cli_report_measured(report, "from", bin * width, NULL);
        cli_report_measured(report, "to", (bin + 1) * width, NULL);
        cli_report_number(report, "images", i - first);
        cli_report_close(report);
    }
}

void cli_distribution_fini(CliDistribution *d)
{
    free(d->values);
    *d = (CliDistribution){0};
}
