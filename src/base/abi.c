/* SPDX-License-Identifier: Apache-2.0 */
#include "base/abi.h"

#include <penstock/version.h>
#include <string.h>

#define WHERE "base/abi"

/* Far above all settings; a struct_size beyond it was never set. */
enum { MOST_BYTES = 4096 };

static uint32_t copy_out(void *ret, size_t ret_bytes, const void *own, size_t own_bytes)
{
    size_t n = PEN_MIN(ret_bytes, own_bytes);
    memcpy(ret, own, n);
    memset((char *)ret + n, 0, ret_bytes - n);
    return (uint32_t)n;
}

void pen__settings_default(void *ret, size_t bytes, const void *defaults, size_t default_bytes)
{
    uint32_t size = (uint32_t)bytes;
    copy_out(ret, bytes, defaults, default_bytes);
    memcpy(ret, &size, PEN_MIN(bytes, sizeof size));
}

void pen__result_copy(void *ret, size_t ret_bytes, const void *own, size_t own_bytes)
{
    if (!ret)
        return;
    uint32_t size = copy_out(ret, ret_bytes, own, own_bytes);
    memcpy(ret, &size, PEN_MIN(ret_bytes, sizeof size));
}

static int check_tail(const unsigned char *given, size_t from, size_t to, PenError *reterr)
{
    for (size_t i = from; i < to; i++)
        if (given[i])
            return pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE,
                             "settings of %zu bytes: expected 0 beyond byte %zu, found %u at byte "
                             "%zu: the program sets a member that penstock %s does not have; "
                             "install the version that the program was built with, or leave the "
                             "member at its default",
                             to, from, given[i], i, PEN_VERSION);
    return PEN_OK;
}

int pen__settings_copy(void *own, size_t own_bytes, const void *given, const char *init,
                       PenError *reterr)
{
    uint32_t size, own_size = (uint32_t)own_bytes;
    if (!given)
        return PEN_OK;
    memcpy(&size, given, sizeof size);
    if (size < sizeof(void *) || size > MOST_BYTES || size % sizeof(void *))
        return pen__fail(reterr, PEN_E_INVALID, WHERE,
                         "settings: expected the struct_size that %s sets, found %u; call %s first",
                         init, size, init);
    int r = check_tail(given, PEN_MIN(own_bytes, size), size, reterr);
    if (r < 0)
        return r;
    memcpy(own, given, PEN_MIN(own_bytes, size));
    memcpy(own, &own_size, sizeof own_size);
    return PEN_OK;
}
