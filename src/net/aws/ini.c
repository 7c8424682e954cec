/* SPDX-License-Identifier: Apache-2.0 */
/* The text is taken apart where it lies: settings point into it. */
#include "net/aws/ini.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/secret_memory.h"

#define WHERE "net/ini"

typedef struct Setting {
    const char *section;
    const char *block; /* NULL: the section's own */
    const char *key;   /* NULL: only says that the section is there */
    char *value;
} Setting;

struct PenIni {
    PenSecretMemory text;
    Setting *settings;
    size_t n, cap;
};

/* Where the parser stands. Lines are cut out of the text by a NUL at their end. */
typedef struct Parser {
    PenIni *ini;
    const char *name;
    unsigned line;
    const char *section; /* NULL before the first */
    char *value;         /* of the last setting that deeper lines belong to; NULL when none */
    const char *key;     /* its name */
    size_t indent;       /* its line's */
    bool in_block;       /* deeper lines are settings of the block `key` */
} Parser;

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

static char *trim(char *s)
{
    while (is_space(*s))
        s++;
    size_t n = strlen(s);
    while (n && is_space(s[n - 1]))
        s[--n] = 0;
    return s;
}

static int fail_line(const Parser *p, const char *expected, PenError *reterr)
{
    return pen__fail(
        reterr, PEN_E_FORMAT, WHERE,
        "%s line %u: expected %s (the line is not shown because it may contain a secret)", p->name,
        p->line, expected);
}

static int add(Parser *p, const char *block, const char *key, char *value, PenError *reterr)
{
    PenIni *ini = p->ini;
    if (ini->n == PEN_INI_SETTINGS)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE, "%s: more than %d settings", p->name,
                         PEN_INI_SETTINGS);
    if (ini->n == ini->cap) {
        size_t cap = ini->cap ? ini->cap * 2 : 64;
        Setting *more = pen__resize(ini->settings, cap * sizeof *more);
        if (!more)
            return pen__fail_memory(reterr, WHERE, p->name);
        ini->settings = more;
        ini->cap = cap;
    }
    ini->settings[ini->n++] = (Setting){p->section, block, key, value};
    return PEN_OK;
}

static bool has_kind(const char *name, size_t bytes)
{
    static const char *const kinds[] = {"profile", "services", "sso-session"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strlen(kinds[i]) == bytes && memcmp(name, kinds[i], bytes) == 0)
            return true;
    return false;
}

/* profile   "a b"  ->  profile a b */
static void normalise(char *name)
{
    size_t kind = strcspn(name, " \t");
    if (!name[kind] || !has_kind(name, kind))
        return;
    char *rest = trim(name + kind);
    size_t n = strlen(rest);
    if (n >= 2 && (rest[0] == '"' || rest[0] == '\'') && rest[n - 1] == rest[0]) {
        rest++;
        n -= 2;
    }
    name[kind] = ' ';
    memmove(name + kind + 1, rest, n);
    name[kind + 1 + n] = 0;
}

static int parse_section(Parser *p, char *line, PenError *reterr)
{
    char *end = strchr(line, ']');
    if (!end)
        return fail_line(p, "] after the section name", reterr);
    const char *behind = trim(end + 1);
    if (*behind && *behind != '#' && *behind != ';')
        return fail_line(p, "nothing or a comment after ]", reterr);
    *end = 0;
    char *name = trim(line + 1);
    if (!*name)
        return fail_line(p, "a name between [ and ]", reterr);
    normalise(name);
    p->section = name;
    p->value = NULL;
    return add(p, NULL, NULL, NULL, reterr);
}

/* A comment begins at # or ; behind a space: secrets may hold either. */
static void cut_comment(char *value)
{
    for (char *c = value; *c; c++)
        if ((*c == '#' || *c == ';') && is_space(c[-1])) {
            *c = 0;
            return;
        }
}

/* Takes "key = value" apart. botocore reads "key: value" as well. */
static int split(Parser *p, char *line, char **ret_key, char **ret_value, PenError *reterr)
{
    char *delim = strpbrk(line, "=:");
    if (!delim || delim == line)
        return fail_line(p, "name = value", reterr);
    *delim = 0;
    cut_comment(delim + 1 + (delim[1] != 0));
    char *key = trim(line);
    if (!*key)
        return fail_line(p, "name = value", reterr);
    for (char *c = key; *c; c++)
        if (*c >= 'A' && *c <= 'Z')
            *c = (char)(*c + 'a' - 'A');
    *ret_key = key;
    *ret_value = trim(delim + 1);
    return PEN_OK;
}

static int parse_setting(Parser *p, char *line, size_t indent, PenError *reterr)
{
    char *key, *value;
    if (!p->section)
        return fail_line(p, "a [section] before the first setting", reterr);
    int r = split(p, line, &key, &value, reterr);
    if (r < 0)
        return r;
    p->key = key;
    p->value = value;
    p->indent = indent;
    p->in_block = !*value;
    return add(p, NULL, key, value, reterr);
}

static int parse_deeper(Parser *p, char *line, PenError *reterr)
{
    char *key, *value;
    if (p->in_block) {
        int r = split(p, line, &key, &value, reterr);
        return r < 0 ? r : add(p, p->key, key, value, reterr);
    }
    /* Appended where the value lies: the line break and the indent leave the place for it. */
    char *end = p->value + strlen(p->value);
    *end++ = '\n';
    memmove(end, line, strlen(line) + 1);
    return PEN_OK;
}

static int parse_line(Parser *p, char *line, PenError *reterr)
{
    size_t indent = strspn(line, " \t");
    line = trim(line);
    if (!*line || *line == '#' || *line == ';')
        return PEN_OK;
    if (p->value && indent > p->indent)
        return parse_deeper(p, line, reterr);
    if (*line == '[')
        return parse_section(p, line, reterr);
    return parse_setting(p, line, indent, reterr);
}

static int parse_text(Parser *p, char *text, size_t bytes, PenError *reterr)
{
    if (memchr(text, 0, bytes))
        return pen__fail(reterr, PEN_E_FORMAT, WHERE, "%s: not a text file: it contains a NUL byte",
                         p->name);
    const char *end = text + bytes;
    if (bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        text += 3;
    while (text < end) {
        char *newline = memchr(text, '\n', (size_t)(end - text));
        bool last = !newline;
        size_t n = (size_t)((last ? end : newline) - text);
        p->line++;
        if (n > PEN_INI_LINE_BYTES)
            return pen__fail(reterr, PEN_E_LIMIT, WHERE, "%s line %u: longer than %d bytes",
                             p->name, p->line, PEN_INI_LINE_BYTES);
        text[n] = 0;
        int r = parse_line(p, text, reterr);
        if (r < 0)
            return r;
        text += n + !last;
    }
    return PEN_OK;
}

/* Takes `text` over, also when it fails. */
static int parse_memory(const char *name, PenSecretMemory *text, PenIni **ret, PenError *reterr)
{
    PenIni *ini = pen__zalloc(sizeof *ini);
    if (!ini) {
        pen__secret_memory_free(text);
        return pen__fail_memory(reterr, WHERE, name);
    }
    ini->text = *text;
    *text = (PenSecretMemory){0};
    Parser p = {.ini = ini, .name = name};
    int r = parse_text(&p, ini->text.data, ini->text.bytes, reterr);
    if (r < 0)
        pen__ini_free(&ini);
    else
        *ret = ini;
    return r;
}

int pen__ini_parse(const char *name, const void *text, size_t bytes, PenIni **ret, PenError *reterr)
{
    PenSecretMemory memory = {0};
    if (bytes > PEN_INI_BYTES)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE, "%s: longer than %u bytes", name,
                         PEN_INI_BYTES);
    int r = pen__secret_memory_new(bytes, &memory, reterr);
    if (r < 0)
        return r;
    if (bytes)
        (void)pen__secret_memory_add(&memory, text, bytes);
    return parse_memory(name, &memory, ret, reterr);
}

int pen__ini_read(const char *path, PenIni **ret, PenError *reterr)
{
    PenSecretMemory memory = {0};
    int r = pen__secret_memory_read(path, PEN_INI_BYTES, &memory, reterr);
    return r < 0 ? r : parse_memory(path, &memory, ret, reterr);
}

void pen__ini_free(PenIni **ini)
{
    if (!*ini)
        return;
    pen__secret_memory_free(&(*ini)->text);
    pen__free((*ini)->settings);
    pen__free(*ini);
    *ini = NULL;
}

int pen__ini_has(const PenIni *ini, const char *section)
{
    for (size_t i = 0; ini && i < ini->n; i++)
        if (strcmp(ini->settings[i].section, section) == 0)
            return 1;
    return 0;
}

static bool same_block(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

const char *pen__ini_get(const PenIni *ini, const char *section, const char *block, const char *key)
{
    for (size_t i = ini ? ini->n : 0; i-- > 0;) {
        const Setting *s = &ini->settings[i];
        if (s->key && strcmp(s->key, key) == 0 && same_block(s->block, block) &&
            strcmp(s->section, section) == 0)
            return s->value;
    }
    return NULL;
}
