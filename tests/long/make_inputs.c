/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures for the tests that run the program: make_inputs folder|list|tar PATH FIRST N */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/make_pack.h"

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: make_inputs folder|list|tar PATH FIRST N\n");
        return 2;
    }
    uint32_t first = (uint32_t)strtoul(argv[3], NULL, 10);
    uint32_t n = (uint32_t)strtoul(argv[4], NULL, 10);
    if (strcmp(argv[1], "folder") == 0)
        make_folder(argv[2], first, n);
    else if (strcmp(argv[1], "list") == 0)
        make_list(argv[2], n);
    else
        make_tar(argv[2], n);
    return 0;
}
