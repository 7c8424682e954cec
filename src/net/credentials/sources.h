/* SPDX-License-Identifier: Apache-2.0 */
/* Where credentials come from: one file for each source, and the order they are asked in. All of it
 * runs in the thread of a fetch, and may wait until its deadline.
 *
 * A source returns PEN_OK; PEN_END when it is not set up here, so that the next is asked; or a
 * failure, which ends the search: what the user set up and does not work is not passed over. */
#ifndef PEN_NET_CREDENTIALS_SOURCES_H
#define PEN_NET_CREDENTIALS_SOURCES_H

#include <stdatomic.h>

#include "base/attr.h"
#include "net/aws/profile_files.h"
#include "net/credentials/credentials.h"
#include "net/http/call.h"

/* One search. The first four are of whoever begins it. */
typedef struct PenCred {
    const PenAwsEnv *env;
    PenAsk *ask;
    const char *profile;       /* a setting, which then counts before the environment; or NULL */
    const atomic_bool *cancel; /* programs that are run end when it is true */
    uint64_t deadline_ns;
    uint32_t process_ms; /* for credential_process */
    PenAwsFiles files;   /* of pen__cred_files */
    bool files_read;
    uint64_t date_s;  /* the clock of the server that gave them; 0: ours will do */
    char source[256]; /* where they are from, for messages */
    char absent[256]; /* why there is nothing, as the last source puts it */
} PenCred;

/* The order: environment, web identity, profile, container, instance. A profile that is named by a
 * setting (not by AWS_PROFILE) puts the first two aside, as botocore has it. */
int pen__cred_find(PenCred *c, PenAwsCredentials **ret, PenError *reterr);
void pen__cred_end(PenCred *c); /* frees what the search holds */

int pen__cred_environment(PenCred *c, PenAwsCredentials **ret, PenError *reterr);
int pen__cred_web_identity(PenCred *c, PenAwsCredentials **ret, PenError *reterr);
int pen__cred_profile(PenCred *c, PenAwsCredentials **ret, PenError *reterr);
int pen__cred_container(PenCred *c, PenAwsCredentials **ret, PenError *reterr);
int pen__cred_instance(PenCred *c, PenAwsCredentials **ret, PenError *reterr);

/* What sources stand on. */

int pen__cred_files(PenCred *c, PenError *reterr); /* reads them once */
void pen__cred_set_source(PenCred *c, const char *fmt, ...) PEN_PRINTF(2, 3);

/* The credentials in a JSON object: AccessKeyId, SecretAccessKey, `token` and Expiration. `name`
 * is for messages. */
int pen__cred_json(const char *name, const PenSecretMemory *body, const char *token, bool expires,
                   PenAwsCredentials **ret, PenError *reterr);

/* Runs a credential_process. */
int pen__cred_process(PenCred *c, const char *command, PenAwsCredentials **ret, PenError *reterr);

/* Asks STS for a role. */
typedef struct PenCredRole {
    const char *profile; /* whose region and endpoint count */
    const char *arn;
    const char *session;           /* NULL: one of ours */
    const char *external_id;       /* or NULL */
    const char *duration;          /* seconds, or NULL */
    const char *web_token_file;    /* AssumeRoleWithWebIdentity, ... */
    const PenAwsCredentials *with; /* ... or AssumeRole, signed with these */
} PenCredRole;
int pen__cred_role(PenCred *c, const PenCredRole *role, PenAwsCredentials **ret, PenError *reterr);

/* May secrets go there? https to anybody; http to loopback and the metadata services
 * (169.254.169.254, 169.254.170.2, 169.254.170.23, fd00:ec2::254, fd00:ec2::23). < 0 with the
 * reason. */
int pen__cred_place(const char *name, const char *url, PenError *reterr);

/* A GET or PUT without a body of a metadata service: up to three times, `ms` each. */
typedef struct PenCredQuestion {
    const char *method, *url;
    PenHttpHeader header; /* its name is NULL: none */
    uint32_t ms;
} PenCredQuestion;
int pen__cred_metadata(PenCred *c, const PenCredQuestion *q, PenAnswer *ret, PenError *reterr);
/* What an answer that is none of 2xx says, for messages: "status 404", "timed out", ... */
void pen__cred_answer_text(const PenAnswer *a, char *ret, size_t bytes);

#endif
