/* SPDX-License-Identifier: Apache-2.0 */
/* The versions of the libraries that this one is linked with. */
#include <penstock/version.h>

#include <stdio.h>
#include <string.h>

#include <archive.h>
#include <curl/curl.h>
#include <expat.h>
#include <jansson.h>
#include <jpeglib.h>
#include <openssl/crypto.h>
#include <spng.h>
#include <webp/decode.h>
#include <zlib.h>

#define TEXT_OF(tokens) #tokens
#define TEXT(macro) TEXT_OF(macro)

typedef struct Library {
    const char *name, *version;
} Library;

const char *pen_library(uint32_t i, char ret_version[PEN_LIBRARY_VERSION])
{
    char webp[PEN_LIBRARY_VERSION];
    unsigned v = (unsigned)WebPGetDecoderVersion();
    snprintf(webp, sizeof webp, "%u.%u.%u", v >> 16, v >> 8 & 0xff, v & 0xff);
    const char *expat = XML_ExpatVersion();         /* "expat_2.5.0" */
    const char *archive = archive_version_string(); /* "libarchive 3.6.2" */
    const Library libraries[] = {
        {"libjpeg-turbo", TEXT(LIBJPEG_TURBO_VERSION)}, /* it has no function for this */
        {"libspng", spng_version_string()},
        {"libwebp", webp},
        {"zlib", zlibVersion()},
        {"libarchive", archive + strcspn(archive, "0123456789")},
        {"libcurl", curl_version_info(CURLVERSION_NOW)->version},
        {"openssl", OpenSSL_version(OPENSSL_VERSION_STRING)},
        {"expat", expat + strcspn(expat, "0123456789")},
        {"jansson", jansson_version_str()},
    };
    if (i >= sizeof libraries / sizeof *libraries)
        return NULL;
    snprintf(ret_version, PEN_LIBRARY_VERSION, "%s", libraries[i].version);
    return libraries[i].name;
}
