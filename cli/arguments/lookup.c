/* SPDX-License-Identifier: Apache-2.0 */
/* Finds options and choices by name, and similar names for wrong ones. */
#include "arguments/args.h"

#include <stdio.h>
#include <string.h>

enum { MAX_WORD = 31 };

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;
    return m < c ? m : c;
}

size_t cli_word_distance(const char *a, const char *b)
{
    size_t na = strlen(a), nb = strlen(b);
    size_t d[MAX_WORD + 1][MAX_WORD + 1];
    if (na > MAX_WORD || nb > MAX_WORD)
        return na > nb ? na : nb;
    for (size_t i = 0; i <= na; i++) {
        for (size_t j = 0; j <= nb; j++) {
            if (i == 0 || j == 0) {
                d[i][j] = i + j;
                continue;
            }
            d[i][j] =
                min3(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                d[i - 2][j - 2] + 1 < d[i][j])
                d[i][j] = d[i - 2][j - 2] + 1;
        }
    }
    return d[na][nb];
}

int cli_word_is_near(const char *typed, const char *right, size_t *best)
{
    size_t distance = cli_word_distance(typed, right);
    size_t allowed = strlen(right) < 5 ? 1 : strlen(right) < 9 ? 2 : 3;
    /* An abbreviation such as "frac" is similar, but a wrong letter is more so. */
    if (distance > allowed && strlen(typed) >= 3 && strncmp(typed, right, strlen(typed)) == 0)
        distance = allowed;
    if (distance > allowed || distance >= *best)
        return 0;
    *best = distance;
    return 1;
}

static int has_word(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *s = words; s && *s; s += strcspn(s, " "), s += *s == ' ')
        if (strcspn(s, " ") == n && strncmp(s, word, n) == 0)
            return 1;
    return 0;
}

CliOpt cli_option_find(CliCommandId command, const char *name, size_t bytes, int all_commands)
{
    for (CliOpt i = 0; i < CLI_N_OPTIONS; i++)
        if ((all_commands || cli_options[i].commands & 1u << command) &&
            strlen(cli_options[i].name) == bytes && strncmp(cli_options[i].name, name, bytes) == 0)
            return i;
    return CLI_N_OPTIONS;
}

const char *cli_option_near(CliCommandId command, const char *word)
{
    const char *near = NULL;
    size_t best = SIZE_MAX;
    for (CliOpt i = 0; i < CLI_N_OPTIONS; i++) {
        if (!(cli_options[i].commands & 1u << command))
            continue;
        if (has_word(cli_options[i].mistaken, word))
            return cli_options[i].name;
        if (cli_word_is_near(word, cli_options[i].name, &best))
            near = cli_options[i].name;
    }
    return near;
}

/* Copies the next word of "a|b|c" and moves on; 0 at the end. */
static int choice_next(const char **choices, char *buf, size_t cap)
{
    size_t n = strcspn(*choices, "|");
    if (n == 0)
        return 0;
    snprintf(buf, cap, "%.*s", (int)n, *choices);
    *choices += n;
    *choices += **choices == '|';
    return 1;
}

int cli_choice_find(const char *choices, const char *word)
{
    char buf[32];
    for (int i = 0; choice_next(&choices, buf, sizeof buf); i++)
        if (strcmp(buf, word) == 0)
            return i;
    return -1;
}

const char *cli_choice_near(const char *choices, const char *word, char *buf, size_t cap)
{
    char one[32];
    size_t best = SIZE_MAX;
    int found = 0;
    while (choice_next(&choices, one, sizeof one)) {
        if (!cli_word_is_near(word, one, &best))
            continue;
        snprintf(buf, cap, "%s", one);
        found = 1;
    }
    return found ? buf : NULL;
}

static unsigned choice_count(const char *choices, uint32_t mask)
{
    char one[32];
    unsigned n = 0;
    for (unsigned i = 0; choice_next(&choices, one, sizeof one); i++)
        n += mask >> i & 1;
    return n;
}

void cli_choice_list(const char *choices, uint32_t mask, char *buf, size_t cap)
{
    char one[32];
    size_t used = 0;
    unsigned left = choice_count(choices, mask);
    buf[0] = '\0';
    for (unsigned i = 0; used < cap && choice_next(&choices, one, sizeof one); i++) {
        if (!(mask >> i & 1))
            continue;
        const char *before = used == 0 ? "" : left > 1 ? ", " : " or ";
        int n = snprintf(buf + used, cap - used, "%s%s", before, one);
        used += n > 0 ? (size_t)n : 0;
        left--;
    }
}
