/* SPDX-License-Identifier: Apache-2.0 */
#include "far.h"

void cli_far_settings(const CliArgs *args, PenRemoteSettings *ret)
{
    const CliValue *v = args->values;
    pen_remote_settings_init(ret);
    ret->endpoint = v[CLI_OPT_ENDPOINT].text;
    ret->region = v[CLI_OPT_REGION].text;
    ret->profile = v[CLI_OPT_PROFILE].text;
    ret->ca_file = v[CLI_OPT_CA].text;
    ret->no_sign = v[CLI_OPT_NO_SIGN].given != 0;
    ret->requester_pays = v[CLI_OPT_REQUESTER_PAYS].given != 0;
    ret->allow_http = v[CLI_OPT_ALLOW_HTTP].given != 0;
}

void cli_far_settings_from(const CliArgs *args, PenRemoteSettings *ret)
{
    const CliValue *v = args->values;
    cli_far_settings(args, ret);
    if (v[CLI_OPT_FROM_ENDPOINT].given)
        ret->endpoint = v[CLI_OPT_FROM_ENDPOINT].text;
    if (v[CLI_OPT_FROM_REGION].given)
        ret->region = v[CLI_OPT_FROM_REGION].text;
    if (v[CLI_OPT_FROM_PROFILE].given)
        ret->profile = v[CLI_OPT_FROM_PROFILE].text;
}

int cli_far_open(const CliArgs *args, const char *where, PenPack **ret, PenError *reterr)
{
    PenRemoteSettings settings;
    cli_far_settings(args, &settings);
    return pen_pack_open_at(where, &settings, ret, reterr);
}
