/* SPDX-License-Identifier: Apache-2.0 */
/* A diagnosis for people. */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "tools.h"

enum { COLUMNS = 80, ADVICE_INDENT = 26 };

typedef struct Text {
    char *buf;
    size_t bytes, at; /* of the buffer; of the text, even if it does not fit */
} Text;

PEN_PRINTF(2, 3)
static void put(Text *t, const char *format, ...)
{
    va_list args;
    size_t left = t->at < t->bytes ? t->bytes - t->at : 0;
    va_start(args, format);
    int n = vsnprintf(left ? t->buf + t->at : NULL, left, format, args);
    va_end(args);
    t->at += n > 0 ? (size_t)n : 0;
}

/* Words in lines that start at a column, the first of which has begun there. */
static void put_words(Text *t, const char *text, size_t indent)
{
    size_t column = indent;
    while (*text) {
        size_t n = strcspn(text, " ");
        if (column > indent && column + 1 + n > COLUMNS) {
            put(t, "\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            put(t, " ");
            column++;
        }
        put(t, "%.*s", (int)n, text);
        column += n;
        text += n + (text[n] == ' ');
    }
    put(t, "\n");
}

/* "1,234". A rate below 100 has a decimal. */
static const char *number(double value, char buf[32])
{
    char digits[32];
    int n = snprintf(digits, sizeof digits, "%.0f", value), to = 0;
    if (value < 100) {
        snprintf(buf, 32, "%.1f", value);
        return buf;
    }
    for (int i = 0; i < n && to < 30; i++) {
        if (i && (n - i) % 3 == 0)
            buf[to++] = ',';
        buf[to++] = digits[i];
    }
    buf[to] = '\0';
    return buf;
}

/* "read_cold" as "read cold". */
static const char *label(const char *name, char buf[32])
{
    snprintf(buf, 32, "%s", name);
    for (char *c = buf; *c; c++)
        if (*c == '_')
            *c = ' ';
    return buf;
}

static void put_stages(Text *t, const PenDiagnosis *v)
{
    char buf[32], name[32];
    put(t, "\n  %-10s %12s  %s\n", "stage", "samples/s", "compared with the bottleneck");
    for (uint32_t i = 0; i < v->n_stages; i++) {
        const PenDiagnosisStage *s = &v->stages[i];
        put(t, "  %-10s %12s  ", label(s->name, name), number(s->per_second, buf));
        if (strcmp(s->name, v->bottleneck) == 0)
            put(t, "the bottleneck\n");
        else
            put(t, "%.*f times as fast\n", s->ratio < 10 ? 1 : 0, s->ratio);
    }
}

static void put_advices(Text *t, const PenDiagnosis *v)
{
    char buf[32];
    put(t, "\n%12s  %-9s   %s\n", "expected", "gain", "what to change");
    for (uint32_t i = 0; i < v->n_advices; i++) {
        const PenAdvice *a = &v->advices[i];
        char gain[16] = "none";
        if (a->gain >= 1.005)
            snprintf(gain, sizeof gain, a->gain < 9.95 ? "%.1f times" : "%.0f times", a->gain);
        put(t, "%10s/s  %-9s   ", number(a->per_second, buf), gain);
        put_words(t, a->text, ADVICE_INDENT);
    }
}

/* A bottleneck that is no stage of the loader, in the words of its caller. */
static const char *meaning(const char *name)
{
    static const char *const known[][2] = {{"consumer", " (the training step)"},
                                           {"transform", " (the function transform=)"},
                                           {"memory", " (the limit memory=)"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(name, known[i][0]) == 0)
            return known[i][1];
    return "";
}

static void put_bottleneck(Text *t, const PenDiagnosis *v)
{
    char line[160], second[80] = "";
    if (v->second)
        snprintf(second, sizeof second, ", closely followed by %s%s", v->second,
                 meaning(v->second));
    snprintf(line, sizeof line, "Bottleneck: %s%s%s", v->bottleneck, meaning(v->bottleneck),
             second);
    put_words(t, line, 0);
}

/* What to do where no change has a gain that is worth it. */
static void put_no_advice(Text *t, const PenDiagnosis *v)
{
    const char *text =
        "No single change brings 5 % or more. A faster machine or a simpler pipeline would help.";
    if (v->per_second <= 0)
        text = "No batch has been delivered yet.";
    else if (strcmp(v->bottleneck, "unknown") == 0)
        text = "No part of the loader was busy for half of the time. To see what its threads wait "
               "for, record a trace: set PENSTOCK_TRACE=run.json.gz in the environment of the job, "
               "or run 'penstock doctor NAME.pen --trace run.json.gz'.";
    put(t, "\n");
    put_words(t, text, 0);
}

size_t pen_diagnosis_text(const PenDiagnosis *diagnosis, char *buf, size_t bytes)
{
    Text t = {.buf = buf, .bytes = bytes};
    char rate[32];
    if (bytes)
        buf[0] = '\0';
    put_bottleneck(&t, diagnosis);
    put(&t, "%s samples/s. The training loop waited for batches for %.0f %% of the time.\n",
        number(diagnosis->per_second, rate), 100 * diagnosis->wait_share);
    if (diagnosis->n_stages)
        put_stages(&t, diagnosis);
    if (diagnosis->n_advices)
        put_advices(&t, diagnosis);
    else
        put_no_advice(&t, diagnosis);
    return t.at;
}
