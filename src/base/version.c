/* SPDX-License-Identifier: Apache-2.0 */
#include <penstock/version.h>

const char *pen_version(void)
{
    return PEN_VERSION;
}
