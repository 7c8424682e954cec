/* SPDX-License-Identifier: Apache-2.0 */
#include "cred_help.h"

void check_clean(const PenError *err, int line)
{
    char text[sizeof err->message];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)tolower((unsigned char)err->message[i]);
    if (strstr(text, "canary") || strchr(text, '\n'))
        test__fail(__FILE__, line, "not to be shown: %s", err->message);
}

void find_at(Found *f, const char *profile, uint32_t process_ms, int line)
{
    Wire wire;
    PenAsk ask;
    PenAwsEnv env = {.text = {0}};
    PenAwsCredentials *s = NULL;
    *f = (Found){.err = {.status = 0}};
    wire_open(&wire);
    pen__ask_init(&ask, &wire.base);
    PenCred c = {.env = &env, .ask = &ask, .profile = profile, .process_ms = process_ms};
    c.deadline_ns = pen__deadline_after(20 * SECOND);
    f->r = pen__aws_env_read(&env, &f->err);
    if (f->r == PEN_OK)
        f->r = pen__cred_find(&c, &s, &f->err);
    if (f->r == PEN_OK) {
        snprintf(f->key_id, sizeof f->key_id, "%s", pen__credentials_key_id(s));
        snprintf(f->secret, sizeof f->secret, "%s", pen__credentials_secret(s));
        snprintf(f->token, sizeof f->token, "%s",
                 pen__credentials_token(s) ? pen__credentials_token(s) : "");
        f->expires_s = pen__credentials_expires(s);
        f->date_s = c.date_s;
    }
    snprintf(f->source, sizeof f->source, "%s", c.source);
    check_clean(&f->err, line);
    if ((f->r < 0) != (f->err.status < 0) || (f->r == PEN_OK) != (s != NULL))
        test__fail(__FILE__, line, "status %d with %d", f->r, f->err.status);
    pen__credentials_put(&s);
    pen__cred_end(&c);
    pen__aws_env_free(&env);
    pen__ask_free(&ask);
    wire_close(&wire);
    if (atomic_load(&world.pages) || atomic_load(&world.dirty))
        test__fail(__FILE__, line, "%d rooms are out, %d were not wiped", world.pages, world.dirty);
}
