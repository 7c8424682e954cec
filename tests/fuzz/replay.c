/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the place of libFuzzer, for compilers without it: gives a target every file of the
 * directories that are named, in the order of their names. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "help.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t bytes, size_t max_bytes)
{
    (void)data, (void)max_bytes;
    return bytes;
}

static void replay(const char *directory, const char *name)
{
    char path[4096];
    uint8_t *data = NULL;
    size_t bytes = 0;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "rb");
    FILE *memory = open_memstream((char **)&data, &bytes);
    if (!file || !memory) {
        perror(path);
        exit(1);
    }
    for (int c = fgetc(file); c != EOF; c = fgetc(file))
        fputc(c, memory);
    fclose(file);
    fclose(memory);
    uint8_t *exact = copy_of(data, bytes);
    free(data);
    LLVMFuzzerTestOneInput(exact, bytes);
    free(exact);
}

int main(int argc, char **argv)
{
    int done = 0;
    for (int i = 1; i < argc; i++) {
        struct dirent **names = NULL;
        int n = scandir(argv[i], &names, NULL, alphasort);
        for (int k = 0; k < n; k++) {
            if (names[k]->d_name[0] != '.') {
                printf("%s/%s\n", argv[i], names[k]->d_name);
                fflush(stdout);
                replay(argv[i], names[k]->d_name);
                done++;
            }
            free(names[k]);
        }
        free(names);
    }
    printf("Done %d runs\n", done);
    return done ? 0 : 1;
}
