/* SPDX-License-Identifier: Apache-2.0 */
#include "arguments/remote_options.h"

#include <string.h>

#include <penstock/cache.h>

#include "output/messages.h"

void cli_remote_settings(const CliArgs *args, PenRemoteSettings *ret)
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

void cli_remote_settings_from(const CliArgs *args, PenRemoteSettings *ret)
{
    const CliValue *v = args->values;
    cli_remote_settings(args, ret);
    if (v[CLI_OPT_FROM_ENDPOINT].given)
        ret->endpoint = v[CLI_OPT_FROM_ENDPOINT].text;
    if (v[CLI_OPT_FROM_REGION].given)
        ret->region = v[CLI_OPT_FROM_REGION].text;
    if (v[CLI_OPT_FROM_PROFILE].given)
        ret->profile = v[CLI_OPT_FROM_PROFILE].text;
}

/* At a '=' that a path or a URL follows, if there is one: names of objects may have others. */
static size_t end_of_old(const char *text)
{
    for (const char *at = strchr(text, '='); at; at = strchr(at + 1, '='))
        if (at[1] == '/' || pen_is_remote(at + 1))
            return (size_t)(at - text);
    return strcspn(text, "=");
}

int cli_reads_objects(const CliArgs *args)
{
    const CliValue *root = &args->values[CLI_OPT_FILES_ROOT];
    const CliValue *moved = &args->values[CLI_OPT_RELOCATE];
    size_t old = moved->given ? end_of_old(moved->text) : 0;
    return pen_is_remote(args->operands[0]) || (root->given && pen_is_remote(root->text)) ||
           (moved->given && moved->text[old] && pen_is_remote(moved->text + old + 1));
}

int cli_files_settings(const CliArgs *args, CliFiles *ret, PenError *reterr)
{
    const CliValue *v = args->values;
    pen_file_settings_init(&ret->settings);
    cli_remote_settings_from(args, &ret->remote);
    ret->settings.remote = &ret->remote;
    ret->root = v[CLI_OPT_FILES_ROOT].text;
    ret->settings.roots = &ret->root;
    ret->settings.n_roots = v[CLI_OPT_FILES_ROOT].given != 0;
    if (!v[CLI_OPT_RELOCATE].given)
        return PEN_OK;
    const char *text = v[CLI_OPT_RELOCATE].text;
    size_t n = strlen(text), old = end_of_old(text);
    if (!old || old + 1 >= n || n >= sizeof ret->text)
        return cli_fail(
            reterr, PEN_E_INVALID,
            "--relocate %.200s: expected OLD=NEW, such as /mnt/a=/mnt/b or s3://a=s3://b", text);
    memcpy(ret->text, text, n + 1);
    ret->text[old] = 0;
    ret->from = ret->text;
    ret->to = ret->text + old + 1;
    ret->settings.moved_from = &ret->from;
    ret->settings.moved_to = &ret->to;
    ret->settings.n_moved = 1;
    return PEN_OK;
}

static int add_cache(const CliArgs *args, PenPack *pack, PenError *reterr)
{
    PenCacheSettings settings;
    pen_cache_settings_init(&settings);
    settings.directory = args->values[CLI_OPT_CACHE].text;
    settings.bytes = args->values[CLI_OPT_CACHE_BYTES].number;
    return pen_pack_cache(pack, &settings, reterr);
}

int cli_remote_open(const CliArgs *args, const char *where, PenPack **ret, PenError *reterr)
{
    PenRemoteSettings settings;
    CliFiles files;
    PenPack *pack = NULL;
    if (args->values[CLI_OPT_CACHE_BYTES].given && !args->values[CLI_OPT_CACHE].given)
        return cli_fail(reterr, PEN_E_INVALID, "--cache-bytes needs a cache; add --cache DIR");
    cli_remote_settings(args, &settings);
    int r = cli_files_settings(args, &files, reterr);
    if (r == PEN_OK)
        r = pen_pack_open(where, &settings, &pack, reterr);
    if (r == PEN_OK)
        r = pen_pack_files(pack, &files.settings, reterr);
    if (r == PEN_OK && args->values[CLI_OPT_CACHE].given)
        r = add_cache(args, pack, reterr);
    if (r < 0)
        pen_pack_close(&pack);
    else
        *ret = pack;
    return r;
}
