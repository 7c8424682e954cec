/* SPDX-License-Identifier: Apache-2.0 */
/* credential_process: a program that prints credentials as JSON. Run without a shell, as botocore
 * does: its line is cut into words as a shell would, and nothing else in it has a meaning. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/process.h"
#include "base/thread.h"
#include "net/credentials/sources.h"

#define WHERE "net/process"

enum { MAX_WORDS = 64, OUT_BYTES = 65536 };

/* A backslash stands for the character behind it, between double quotes only before these two. */
static bool is_escape(const char *s, char quote)
{
    return *s == '\\' && s[1] && (!quote || (quote == '"' && strchr("\"\\", s[1])));
}

/* Takes one word off *at and writes it, with its quotes gone, to *to. 1; 0 at the end; -1 when a
 * quote is not closed. */
static int next_word(const char **at, char **to)
{
    const char *s = *at + strspn(*at, " \t\n");
    if (!*s)
        return 0;
    char quote = 0;
    for (; *s && (quote || !strchr(" \t\n", *s)); s++) {
        if (quote && *s == quote)
            quote = 0;
        else if (!quote && (*s == '\'' || *s == '"'))
            quote = *s;
        else if (is_escape(s, quote))
            *(*to)++ = *++s;
        else
            *(*to)++ = *s;
    }
    *(*to)++ = 0;
    *at = s;
    return quote ? -1 : 1;
}

static int split(const char *command, PenSecretMemory *memory, const char **argv, PenError *reterr)
{
    char *to = memory->data;
    for (int n = 0; n < MAX_WORDS; n++) {
        argv[n] = to;
        int r = next_word(&command, &to);
        if (r < 0)
            return pen__fail(reterr, PEN_E_FORMAT, WHERE, "unclosed quote");
        if (r == 0 && n > 0) {
            argv[n] = NULL;
            return PEN_OK;
        }
    }
    return pen__fail(reterr, PEN_E_LIMIT, WHERE, "more than %d words", MAX_WORDS - 1);
}

static int take(void *ctx, const void *data, size_t bytes, PenError *reterr)
{
    return pen__secret_memory_add(ctx, data, bytes) < 0
               ? pen__fail(reterr, PEN_E_LIMIT, WHERE, "the output is too long")
               : PEN_OK;
}

/* Its error output is not shown: it is a stranger's text about secrets. */
static int check_end(const PenProcessResult *result, PenError *reterr)
{
    if (result->exit.signal)
        return pen__fail(reterr, PEN_E_ACCESS, WHERE,
                         "killed by signal %d; run the command by hand to see why",
                         result->exit.signal);
    if (result->exit.code != 0 && !result->exit.lost)
        return pen__fail(reterr, PEN_E_ACCESS, WHERE,
                         "failed with exit code %d; run the command by hand to see why",
                         result->exit.code);
    return PEN_OK;
}

static int check_version(const PenSecretMemory *out, PenError *reterr)
{
    PenJson *json = NULL;
    int64_t version = 0;
    int r = pen__json_parse("its output", out->data, out->bytes, &json, reterr);
    if (r < 0)
        return r;
    if (!pen__json_integer(json, "Version", &version) || version != 1)
        r = pen__fail(reterr, PEN_E_UNSUPPORTED, WHERE, "output: expected \"Version\": 1");
    pen__json_free(&json);
    return r;
}

static int run(PenCred *c, const char **argv, PenSecretMemory *out, PenError *reterr)
{
    PenProcessResult result;
    uint64_t deadline = pen__deadline_after(c->process_ms * UINT64_C(1000000));
    PenProcessSettings settings = {
        .argv = argv,
        .take = take,
        .take_ctx = out,
        .out_bytes = OUT_BYTES,
        .deadline_ns = PEN_MIN(deadline, c->deadline_ns),
        .cancel = c->cancel,
    };
    int r = pen__process_run(&settings, &result, reterr);
    if (r == PEN_OK)
        r = check_end(&result, reterr);
    explicit_bzero(&result, sizeof result);
    return r;
}

int pen__cred_process(PenCred *c, const char *command, PenAwsCredentials **ret, PenError *reterr)
{
    PenSecretMemory words = {0}, out = {0};
    const char *argv[MAX_WORDS];
    int r = pen__secret_memory_new(strlen(command) + MAX_WORDS, &words, reterr);
    if (r == PEN_OK)
        r = pen__secret_memory_new(OUT_BYTES, &out, reterr);
    if (r == PEN_OK)
        r = split(command, &words, argv, reterr);
    if (r == PEN_OK)
        r = run(c, argv, &out, reterr);
    if (r == PEN_OK)
        r = check_version(&out, reterr);
    if (r == PEN_OK)
        r = pen__cred_json("its output", &out, "SessionToken", false, ret, reterr);
    pen__secret_memory_free(&words);
    pen__secret_memory_free(&out);
    return r;
}
