/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials: found where users of AWS keep them, renewed ahead of their end, shown nowhere. */
#ifndef PEN_NET_CREDENTIALS_CREDENTIALS_H
#define PEN_NET_CREDENTIALS_CREDENTIALS_H

#include <stdbool.h>

#include <penstock/error.h>

#include "net/http/transport.h"

/* Lives on pages kept out of core dumps and is wiped when freed. Counted: shared by many requests.
 */
typedef struct PenAwsCredentials PenAwsCredentials;

int pen__credentials_new(const char *key_id, const char *secret, const char *token,
                         uint64_t expires_s, PenAwsCredentials **ret,
                         PenError *reterr); /* expires_s 0: never */
PenAwsCredentials *pen__credentials_get(PenAwsCredentials *s);
void pen__credentials_put(PenAwsCredentials **s);
const char *pen__credentials_key_id(const PenAwsCredentials *s);
const char *pen__credentials_secret(const PenAwsCredentials *s);
const char *pen__credentials_token(const PenAwsCredentials *s); /* NULL when there is none */
uint64_t pen__credentials_expires(const PenAwsCredentials *s);
bool pen__credentials_same(const PenAwsCredentials *a,
                           const PenAwsCredentials *b); /* key, secret and token */
/* Overwrites what a message repeats of them, because a server sent it back: any 10 characters in a
 * row, or all of a shorter one. */
void pen__credentials_hide(const PenAwsCredentials *s, char *message);
/* The same for any one text. */
void pen__text_hide(const char *secret, char *message);

/* Asked for new ones from a thread of the library's. < 0 with the error filled in. */
typedef int PenSecretCall(void *ctx, PenAwsCredentials **ret, uint64_t deadline_ns,
                          PenError *reterr);

typedef struct PenSecretSettings {
    const char *key_id, *secret, *token; /* given by the caller: used, nothing is looked for */
    PenSecretCall *call;                 /* else asked, when set */
    void *call_ctx;
    void (*call_free)(void *ctx); /* when nobody can be in the call any more, and when
                                     pen__keyring_new fails; may be NULL */
    const char *profile; /* when set, the environment's keys do not count, as botocore has it; else
                          * AWS_PROFILE, else "default" */
} PenSecretSettings;

typedef struct PenKeyring PenKeyring;

/* Reads nothing yet. The transport carries requests to metadata services and STS. */
int pen__keyring_new(const PenSecretSettings *settings, PenTransport *t, PenKeyring **ret,
                     PenError *reterr);
void pen__keyring_free(PenKeyring **ring); /* waits for a fetch under way, a second at most */

/* Never waits: the current credentials, and a fetch begun in a thread of its own where they are
 * missing or near their end (5-10 minutes before, jittered; one fetch at a time). PEN_E_BUSY while
 * there are none yet; the failure of the last fetch when there are none and it failed (then asked
 * again after a while). A failed renewal keeps what is still valid. */
int pen__keyring_now(PenKeyring *ring, PenAwsCredentials **ret, PenError *reterr);
/* The server called these expired: the next _now fetches anew, unless somebody did already. */
void pen__keyring_refuse(PenKeyring *ring, const PenAwsCredentials *s);
void pen__keyring_hide(PenKeyring *ring,
                       char *message); /* pen__credentials_hide of the current ones */
/* Where they came from, for messages: "environment", "profile train in ~/.aws/credentials", ... */
void pen__keyring_source(PenKeyring *ring, char *ret, size_t bytes);

#endif
