/* SPDX-License-Identifier: Apache-2.0 */
#include <penstock/version.h>

const char *pen_version(uint32_t *ret_api)
{
    if (ret_api)
        *ret_api = PEN_API_VERSION;
    return PEN_VERSION;
}
