/* SPDX-License-Identifier: Apache-2.0 */
/* Answers lines of words with lines of words, each word in hex, "-" for NULL; see the two functions
 * that begin with answer_. What fails is answered with "error" and the message. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/address/address.h"
#include "net/aws/sign_impl.h"

#define WORDS 256

typedef struct Words {
    char *word[WORDS];
    size_t n, at;
} Words;

static char *from_hex(char *hex)
{
    char *to = hex;
    for (const char *s = hex; s[0] && s[1]; s += 2, to++) {
        char pair[] = {s[0], s[1], 0}, *end;
        *to = (char)strtoul(pair, &end, 16);
        if (*end)
            exit(2);
    }
    *to = 0;
    return hex;
}

static void split(char *line, Words *ret)
{
    line[strcspn(line, "\n")] = 0;
    *ret = (Words){.n = 0};
    for (char *word; (word = strsep(&line, "\t"));) {
        if (ret->n == WORDS)
            exit(2);
        ret->word[ret->n++] = strcmp(word, "-") == 0 ? NULL : from_hex(word);
    }
}

static const char *next(Words *w)
{
    if (w->at == w->n)
        exit(2);
    return w->word[w->at++];
}

static unsigned long long next_number(Words *w)
{
    return strtoull(next(w), NULL, 10);
}

static size_t next_pairs(Words *w, PenHttpHeader *ret)
{
    size_t n = (size_t)next_number(w);
    for (size_t i = 0; i < n; i++) {
        if (i == WORDS / 2)
            exit(2);
        ret[i].name = next(w);
        ret[i].value = next(w);
    }
    return n;
}

static void say(const char *word)
{
    for (; *word; word++)
        printf("%02x", (unsigned char)*word);
    printf("\t");
}

static int say_error(const PenError *err)
{
    say("error");
    say(err->message);
    return 0;
}

/* Key id, secret, token, region, service, unix time, method, payload hash, endpoint, path style,
 * bucket, key, number of query pairs and these, number of headers and these. To: url, host header,
 * date, payload hash, authorization, canonical request. */
static int answer_sign(Words *w)
{
    PenHttpHeader pairs[WORDS / 2], headers[WORDS / 2];
    PenSigning with = {.key_id = next(w)};
    with.secret = next(w);
    with.token = next(w);
    with.region = next(w);
    with.service = next(w);
    with.unix_s = next_number(w);
    PenToSign what = {.method = next(w)};
    what.payload_hash = next(w);
    const char *endpoint = next(w);
    int path_style = (int)next_number(w);
    const char *bucket = next(w), *key = next(w);
    size_t n_pairs = next_pairs(w, pairs);
    what.n_headers = next_pairs(w, headers);
    what.headers = headers;

    PenError err;
    PenEndpoint e;
    PenSigned made;
    PenUrlParts parts = {0};
    PenBuf query = {0}, url = {0}, host = {0}, request = {0}, names = {0};
    if (pen__endpoint_make(endpoint, with.region, &e, &err) < 0)
        return say_error(&err);
    e.path_style = (uint8_t)path_style;
    if (pen__query_make(pairs, n_pairs, &query) < 0 ||
        pen__endpoint_url(&e, bucket, key, (char *)query.data, &url, &host) < 0)
        exit(3);
    what.url = (char *)url.data;
    int r = pen__sign(&with, &what, &made, &err);
    if (r == 0) {
        if (pen__url_split(what.url, &parts, &err) < 0 ||
            pen__sign_canonical(&what, &parts, made.date, with.token, &request, &names, &err) < 0)
            exit(3);
        say(what.url);
        say((char *)host.data);
        say(made.date);
        say(made.content_sha256);
        say((char *)made.authorization.data);
        say((char *)request.data);
        pen__signed_free(&made);
    } else {
        say_error(&err);
    }
    pen__url_parts_free(&parts);
    pen__buf_free(&query);
    pen__buf_free(&url);
    pen__buf_free(&host);
    pen__buf_wipe(&request);
    pen__buf_free(&names);
    return 0;
}

/* Endpoint, region. To: scheme, host, base, region, path style, whether it is safe. */
static int answer_endpoint(Words *w)
{
    PenError err;
    PenEndpoint e;
    const char *endpoint = next(w), *region = next(w);
    if (pen__endpoint_make(endpoint, region, &e, &err) < 0)
        return say_error(&err);
    say(e.scheme);
    say(e.host);
    say(e.base);
    say(e.region);
    say(e.path_style ? "1" : "0");
    say(pen__endpoint_is_safe(&e) ? "1" : "0");
    return 0;
}

int main(void)
{
    char *line = NULL;
    size_t room = 0;
    Words words;
    while (getline(&line, &room, stdin) > 0) {
        split(line, &words);
        const char *what = next(&words);
        if (strcmp(what, "sign") == 0)
            answer_sign(&words);
        else if (strcmp(what, "endpoint") == 0)
            answer_endpoint(&words);
        else
            exit(2);
        printf("\n");
    }
    free(line);
    return 0;
}
