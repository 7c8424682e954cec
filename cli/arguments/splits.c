/* SPDX-License-Identifier: Apache-2.0 */
#include "arguments/splits.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "output/messages.h"

enum { SHOWN = 3 };

typedef struct Splits {
    char first[SHOWN][16]; /* as long as the longest name of a split */
    int n;
} Splits;

static int is_split(const char *name)
{
    static const char *const names[] = {"train", "training", "val",  "valid", "validation",
                                        "test",  "testing",  "eval", "dev"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(name, names[i]) == 0)
            return 1;
    return 0;
}

static int is_folder(DIR *dir, const struct dirent *entry)
{
    struct stat st;
    if (entry->d_type != DT_UNKNOWN && entry->d_type != DT_LNK)
        return entry->d_type == DT_DIR;
    return fstatat(dirfd(dir), entry->d_name, &st, 0) == 0 && S_ISDIR(st.st_mode);
}

/* Keeps them sorted by name, because readdir returns no fixed order. */
static void add(Splits *s, const char *name)
{
    int at = s->n < SHOWN ? s->n : SHOWN - 1;
    if (s->n < SHOWN || strcmp(name, s->first[at]) < 0) {
        while (at > 0 && strcmp(name, s->first[at - 1]) < 0) {
            memcpy(s->first[at], s->first[at - 1], sizeof s->first[at]);
            at--;
        }
        snprintf(s->first[at], sizeof s->first[at], "%.15s", name);
    }
    s->n++;
}

/* Finds the splits; 0 if there is no folder, or one that is not a split. */
static int find(const char *path, Splits *ret)
{
    DIR *dir = opendir(path);
    if (!dir)
        return 0; /* reading it reports the error */
    int all = 1;
    for (const struct dirent *e = readdir(dir); e && all; e = readdir(dir)) {
        if (e->d_name[0] == '.' || !is_folder(dir, e))
            continue;
        all = is_split(e->d_name);
        if (all)
            add(ret, e->d_name);
    }
    closedir(dir);
    return all && ret->n > 0;
}

static void warn(const char *path, const Splits *s)
{
    const char *slash = path[strlen(path) - 1] == '/' ? "" : "/";
    cli_print_message(
        "warning: the only folders in %s are %s%s%s%s%s%s, which look like splits and become "
        "the classes; to pack one split: penstock pack %s%s%s -o %s.pen",
        path, s->first[0],
        s->n == 2  ? " and "
        : s->n > 2 ? ", "
                   : "",
        s->n > 1 ? s->first[1] : "",
        s->n == 3  ? " and "
        : s->n > 3 ? ", "
                   : "",
        s->n > 2 ? s->first[2] : "", s->n > SHOWN ? ", ..." : "", path, slash, s->first[0],
        s->first[0]);
}

void cli_splits_warn(const CliArgs *args)
{
    for (size_t i = 0; i < (size_t)args->n_operands; i++) {
        Splits s = {.n = 0};
        if (args->operands[i][0] && find(args->operands[i], &s))
            warn(args->operands[i], &s);
    }
}
