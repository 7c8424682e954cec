/* SPDX-License-Identifier: Apache-2.0 */
/* escape NAME DIRECTORY PARENT ADDRESS: tries one escape. Exit 0 when it went through, 1 when it
 * was refused, 3 when there is none of that name. `escape list` prints the names. */
#include "escape.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *escape_dir;
int escape_parent;
uintptr_t escape_address;

static const Escape *const tables[] = {escapes_of_files, escapes_of_parent, escapes_of_kernel};

const char *escape_path(const char *name)
{
    static char paths[4][4096];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", escape_dir, name);
    return path;
}

static EscapeFn find(const char *name)
{
    for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++)
        for (const Escape *e = tables[t]; e->name; e++)
            if (name ? strcmp(e->name, name) == 0 : puts(e->name) < 0)
                return e->run;
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 5)
        return find(NULL) ? 3 : 0;
    escape_dir = argv[2];
    escape_parent = (int)strtol(argv[3], NULL, 10);
    escape_address = strtoull(argv[4], NULL, 0);
    EscapeFn run = find(argv[1]);
    if (!run)
        return 3;
    errno = 0;
    if (run() >= 0)
        return 0;
    fprintf(stderr, "%s\n", strerror(errno));
    return 1;
}
