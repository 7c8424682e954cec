/* SPDX-License-Identifier: Apache-2.0 */
/* AWS's dialect of INI: the files config and credentials.
 *
 *     # a comment; so is one behind a space:   region = us-east-1 ; like this
 *     [profile train]
 *     region = us-east-1
 *     s3 =                         an empty value and deeper lines: a block
 *       addressing_style = path
 *     description = one            deeper lines behind a value: the value goes on
 *       two                        ("one\ntwo")
 *
 * Names of settings are lower case here; of sections with a kind ("profile", "services",
 * "sso-session") one space follows the kind, and quotes around the name are gone. The last of equal
 * settings counts. Values are kept in memory for secrets, and no message holds any. */
#ifndef PEN_NET_AWS_INI_H
#define PEN_NET_AWS_INI_H

#include <stddef.h>

#include <penstock/error.h>

#define PEN_INI_BYTES (1u << 20)
#define PEN_INI_LINE_BYTES 32768
#define PEN_INI_SETTINGS 65536

typedef struct PenIni PenIni;

/* `name` is for messages. */
int pen__ini_parse(const char *name, const void *text, size_t bytes, PenIni **ret,
                   PenError *reterr);
int pen__ini_read(const char *path, PenIni **ret, PenError *reterr);
void pen__ini_free(PenIni **ini); /* accepts NULL */

int pen__ini_has(const PenIni *ini, const char *section);
/* Of a block when `block` is not NULL. NULL when it is not there; accepts no file (NULL). */
const char *pen__ini_get(const PenIni *ini, const char *section, const char *block,
                         const char *key);

#endif
