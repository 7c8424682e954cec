/* SPDX-License-Identifier: Apache-2.0 */
#include "arguments/cache_options.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include <penstock/cache.h>

#include "output/messages.h"

enum { TRUSTED_MOST = 256, NAME_MOST = 128 };

/* A name, or a number. */
static int find_user(const char *name, uint32_t *ret, PenError *reterr)
{
    char *end = NULL;
    unsigned long long number = strtoull(name, &end, 10);
    if (*name >= '0' && *name <= '9' && !*end && number < UINT32_MAX) {
        *ret = (uint32_t)number;
        return PEN_OK;
    }
    const struct passwd *user = *name ? getpwnam(name) : NULL;
    if (!user)
        return cli_fail(reterr, PEN_E_INVALID,
                        "--cache-trust: no user '%.100s' on this machine; expected names or "
                        "numbers of users, separated by commas",
                        name);
    *ret = user->pw_uid;
    return PEN_OK;
}

/* Users, separated by commas. */
static int read_trusted(const char *text, uint32_t ret[TRUSTED_MOST], uint32_t *ret_n,
                        PenError *reterr)
{
    *ret_n = 0;
    for (const char *from = text; from;) {
        char name[NAME_MOST];
        const char *comma = strchr(from, ',');
        size_t n = comma ? (size_t)(comma - from) : strlen(from);
        if (n >= sizeof name || *ret_n == TRUSTED_MOST)
            return cli_fail(reterr, PEN_E_INVALID,
                            "--cache-trust: expected at most %d users, with names of at most %d "
                            "bytes",
                            (int)TRUSTED_MOST, (int)NAME_MOST - 1);
        memcpy(name, from, n);
        name[n] = 0;
        int r = find_user(name, &ret[(*ret_n)++], reterr);
        if (r < 0)
            return r;
        from = comma ? comma + 1 : NULL;
    }
    return PEN_OK;
}

int cli_cache_check(const CliArgs *args, PenError *reterr)
{
    const CliValue *v = args->values;
    if (v[CLI_OPT_CACHE_BYTES].given && !v[CLI_OPT_CACHE].given)
        return cli_fail(reterr, PEN_E_INVALID, "--cache-bytes needs a cache; add --cache DIR");
    if (v[CLI_OPT_CACHE_SHARE].given && !v[CLI_OPT_CACHE].given)
        return cli_fail(reterr, PEN_E_INVALID, "--cache-share needs a cache; add --cache DIR");
    if (v[CLI_OPT_CACHE_TRUST].given && !v[CLI_OPT_CACHE_SHARE].given)
        return cli_fail(reterr, PEN_E_INVALID,
                        "--cache-trust needs a shared cache; add --cache-share");
    return PEN_OK;
}

int cli_cache_add(const CliArgs *args, PenPack *pack, PenError *reterr)
{
    uint32_t trusted[TRUSTED_MOST];
    PenCacheSettings settings;
    pen_cache_settings_init(&settings);
    settings.directory = args->values[CLI_OPT_CACHE].text;
    settings.bytes = args->values[CLI_OPT_CACHE_BYTES].number;
    settings.share = args->values[CLI_OPT_CACHE_SHARE].given != 0;
    settings.trusted = trusted;
    int r = args->values[CLI_OPT_CACHE_TRUST].given
                ? read_trusted(args->values[CLI_OPT_CACHE_TRUST].text, trusted, &settings.n_trusted,
                               reterr)
                : PEN_OK;
    return r < 0 ? r : pen_pack_cache(pack, &settings, reterr);
}
