/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <jansson.h>
#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

#define WHERE "net/json"

struct PenJson {
    json_t *root;
};

int pen__json_is_deep(const char *text, size_t bytes, unsigned levels)
{
    unsigned depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < bytes; i++) {
        char c = text[i];
        if (in_string) {
            i += c == '\\';
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > levels)
                return 1;
        } else if (c == '}' || c == ']') {
            depth -= depth > 0;
        }
    }
    return 0;
}

int pen__json_parse(const char *name, const void *text, size_t bytes, PenJson **ret,
                    PenError *reterr)
{
    json_error_t why;
    if (bytes > PEN_JSON_BYTES)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE, "%s: JSON is longer than %u bytes", name,
                         PEN_JSON_BYTES);
    if (pen__json_is_deep(text, bytes, PEN_JSON_DEPTH))
        return pen__fail(reterr, PEN_E_LIMIT, WHERE, "%s: JSON is nested more than %d levels deep",
                         name, PEN_JSON_DEPTH);
    PenJson *json = pen__zalloc(sizeof *json);
    if (!json)
        return pen__fail_memory(reterr, WHERE, name);
    /* Its message quotes what it could not read: only the place is passed on. */
    json->root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &why);
    if (!json->root || !json_is_object(json->root)) {
        bool parsed = json->root != NULL;
        pen__json_free(&json);
        if (!parsed && json_error_code(&why) == json_error_out_of_memory)
            return pen__fail_memory(reterr, WHERE, name);
        return pen__fail(reterr, PEN_E_FORMAT, WHERE,
                         "%s: expected a JSON object, found something else at line %d column %d",
                         name, parsed ? 1 : why.line, parsed ? 1 : why.column);
    }
    *ret = json;
    return PEN_OK;
}

/* No deeper than the check above allows. */
static void wipe(json_t *value)
{
    const char *key;
    json_t *each;
    size_t i;
    if (json_is_string(value)) {
        explicit_bzero((void *)(uintptr_t)json_string_value(value), json_string_length(value));
    } else if (json_is_object(value)) {
        json_object_foreach(value, key, each) wipe(each);
    } else if (json_is_array(value)) {
        json_array_foreach(value, i, each) wipe(each);
    }
}

void pen__json_free(PenJson **json)
{
    if (!*json)
        return;
    wipe((*json)->root);
    json_decref((*json)->root);
    pen__free(*json);
    *json = NULL;
}

static const json_t *find(const PenJson *json, const char *path)
{
    char name[128];
    const json_t *at = json->root;
    while (at) {
        size_t n = strcspn(path, ".");
        if (n >= sizeof name)
            return NULL;
        memcpy(name, path, n);
        name[n] = 0;
        at = json_object_get(at, name);
        if (!path[n])
            return at;
        path += n + 1;
    }
    return NULL;
}

const char *pen__json_string(const PenJson *json, const char *path)
{
    return json_string_value(find(json, path));
}

int pen__json_integer(const PenJson *json, const char *path, int64_t *ret)
{
    const json_t *value = find(json, path);
    if (!json_is_integer(value))
        return 0;
    *ret = json_integer_value(value);
    return 1;
}
