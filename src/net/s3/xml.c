/* SPDX-License-Identifier: Apache-2.0 */
#include "net/s3/xml.h"

#include <expat.h>
#include <openssl/crypto.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"

#define WHERE "net/xml"
#define HEAD 16 /* before each block: how long it is; keeps it aligned */

typedef struct Reader {
    XML_Parser parser;
    const PenXmlCalls *calls;
    void *ctx;
    PenError *reterr;
    int r;
    int depth;
    int leaf; /* nothing has begun in the element that began last */
    char path[PEN_XML_PATH_BYTES];
    char *text; /* as long as the whole document */
    size_t text_bytes, text_capacity;
} Reader;

/* expat's memory comes through the system interface and is wiped when it is freed. */
static void *xml_alloc(size_t bytes)
{
    if (bytes > SIZE_MAX - HEAD)
        return NULL;
    char *p = pen__alloc(bytes + HEAD);
    if (!p)
        return NULL;
    memcpy(p, &bytes, sizeof bytes);
    return p + HEAD;
}

static void xml_free(void *block)
{
    size_t bytes;
    if (!block)
        return;
    char *p = (char *)block - HEAD;
    memcpy(&bytes, p, sizeof bytes);
    OPENSSL_cleanse(p, bytes + HEAD);
    pen__free(p);
}

static void *xml_resize(void *block, size_t bytes)
{
    size_t old = 0;
    void *p = xml_alloc(bytes);
    if (!p || !block)
        return p;
    memcpy(&old, (char *)block - HEAD, sizeof old);
    memcpy(p, block, old < bytes ? old : bytes);
    xml_free(block);
    return p;
}

static void stop(Reader *rd, int r)
{
    rd->r = r;
    XML_StopParser(rd->parser, XML_FALSE);
}

static int push(Reader *rd, const char *name)
{
    const char *colon = strrchr(name, ':');
    size_t used = strlen(rd->path), n;
    name = colon ? colon + 1 : name;
    n = strlen(name);
    if (rd->depth == PEN_XML_DEPTH)
        return pen__fail(rd->reterr, PEN_E_LIMIT, WHERE,
                         "response: expected at most %d nested elements, found more",
                         PEN_XML_DEPTH);
    if (n + 2 > sizeof rd->path - used)
        return pen__fail(
            rd->reterr, PEN_E_LIMIT, WHERE,
            "response: expected nested element names of at most %d bytes in total, found more",
            PEN_XML_PATH_BYTES);
    if (used)
        rd->path[used++] = '/';
    memcpy(rd->path + used, name, n + 1);
    rd->depth++;
    return PEN_OK;
}

static void pop(Reader *rd)
{
    char *slash = strrchr(rd->path, '/');
    *(slash ? slash : rd->path) = 0;
    rd->depth--;
}

static void XMLCALL on_begin(void *ctx, const char *name, const char **attributes)
{
    Reader *rd = ctx;
    (void)attributes;
    if (rd->r < 0) /* expat may still call after it was stopped */
        return;
    int r = push(rd, name);
    if (r == PEN_OK && rd->calls->begin)
        r = rd->calls->begin(rd->ctx, rd->path, rd->reterr);
    rd->leaf = 1;
    rd->text_bytes = 0;
    if (r < 0)
        stop(rd, r);
}

static void XMLCALL on_end(void *ctx, const char *name)
{
    Reader *rd = ctx;
    (void)name;
    if (rd->r < 0)
        return;
    if (rd->leaf) {
        rd->text[rd->text_bytes] = 0;
        int r = rd->calls->text(rd->ctx, rd->path, rd->text, rd->text_bytes, rd->reterr);
        OPENSSL_cleanse(rd->text, rd->text_bytes);
        if (r < 0)
            stop(rd, r);
    }
    rd->leaf = 0;
    rd->text_bytes = 0;
    pop(rd);
}

static void XMLCALL on_text(void *ctx, const char *text, int bytes)
{
    Reader *rd = ctx;
    if (rd->r < 0 || !rd->leaf)
        return;
    if ((size_t)bytes > rd->text_capacity - rd->text_bytes) {
        stop(rd, pen__fail(rd->reterr, PEN_E_LIMIT, WHERE,
                           "response: found more text than the document has bytes"));
        return;
    }
    memcpy(rd->text + rd->text_bytes, text, (size_t)bytes);
    rd->text_bytes += (size_t)bytes;
}

static void XMLCALL on_doctype(void *ctx, const char *name, const char *system, const char *public,
                               int internal)
{
    Reader *rd = ctx;
    (void)name, (void)system, (void)public, (void)internal;
    if (rd->r == PEN_OK)
        stop(rd, pen__fail(rd->reterr, PEN_E_CORRUPT, WHERE,
                           "response: expected no document type, found one at line %lu",
                           XML_GetCurrentLineNumber(rd->parser)));
}

static int parse(Reader *rd, const char *data, size_t bytes)
{
    static const XML_Memory_Handling_Suite memory = {xml_alloc, xml_resize, xml_free};
    rd->parser = XML_ParserCreate_MM("UTF-8", &memory, NULL);
    if (!rd->parser)
        return pen__fail_memory(rd->reterr, WHERE, "answer");
    XML_SetUserData(rd->parser, rd);
    XML_SetElementHandler(rd->parser, on_begin, on_end);
    XML_SetCharacterDataHandler(rd->parser, on_text);
    XML_SetStartDoctypeDeclHandler(rd->parser, on_doctype);
    int r = PEN_OK;
    if (XML_Parse(rd->parser, data, (int)bytes, 1) != XML_STATUS_OK) {
        enum XML_Error why = XML_GetErrorCode(rd->parser);
        if (rd->r < 0)
            r = rd->r;
        else if (why == XML_ERROR_NO_MEMORY)
            r = pen__fail_memory(rd->reterr, WHERE, "answer");
        else
            r = pen__fail(rd->reterr, PEN_E_CORRUPT, WHERE,
                          "response: expected XML, found %s at line %lu", XML_ErrorString(why),
                          XML_GetCurrentLineNumber(rd->parser));
    }
    XML_ParserFree(rd->parser);
    return r;
}

int pen__xml_read(const void *data, size_t bytes, const PenXmlCalls *calls, void *ctx,
                  PenError *reterr)
{
    const char *at = data;
    if (bytes > PEN_XML_BYTES)
        return pen__fail(reterr, PEN_E_LIMIT, WHERE,
                         "response: expected at most %u bytes, found %zu", PEN_XML_BYTES, bytes);
    /* A server that takes its time sends spaces to keep the connection, also in front. */
    while (bytes && (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n')) {
        at++;
        bytes--;
    }
    Reader rd = {.calls = calls, .ctx = ctx, .reterr = reterr, .text_capacity = bytes};
    rd.text = xml_alloc(bytes + 1);
    if (!rd.text)
        return pen__fail_memory(reterr, WHERE, "answer");
    int r = parse(&rd, at, bytes);
    xml_free(rd.text);
    return r;
}
