/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEN_PACK_VERIFY_H
#define PEN_PACK_VERIFY_H

#include "pack/reader.h"

/* Called from several threads for every image or frame whose bytes are right: is it a good image,
 * too? */
typedef int (*PenImageCheckFn)(const PenImageEntry *entry, const uint8_t *data, PenError *reterr);

/* Checks every byte; `image` may be NULL. See pen_pack_verify. */
int pen__verify(PenPack *pack, const PenVerifySettings *settings, PenImageCheckFn image,
                PenVerifyResult *ret, PenError *reterr);

#endif
