/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/certificates.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/sys.h"

/* A wheel's TLS library was built elsewhere and knows the paths of that place alone. */
static const char *const FILES[] = {
    "/etc/ssl/certs/ca-certificates.crt",                /* Debian, Ubuntu, Arch, Gentoo */
    "/etc/pki/tls/certs/ca-bundle.crt",                  /* Red Hat, Fedora, Amazon Linux */
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* Red Hat since 7 */
    "/etc/ssl/ca-bundle.pem",                            /* SUSE */
    "/var/lib/ca-certificates/ca-bundle.pem",            /* SUSE */
    "/etc/ssl/cert.pem",                                 /* Alpine */
    "/etc/pki/tls/cacert.pem",                           /* old Red Hat */
};

static const char *const DIRS[] = {"/etc/ssl/certs", "/etc/pki/tls/certs"};

static int check_file(const char *path)
{
    int fd = pen__sys->open(path, PEN_OPEN_READ);
    if (fd < 0)
        return fd;
    char c;
    PenFileStat st;
    int64_t n = pen__sys->stat_fd(fd, &st);
    if (n == 0)
        n = st.is_file || st.is_dir ? pen__sys->pread(fd, &c, 1, 0) : -EINVAL;
    pen__sys->close(fd);
    return n < 0 ? (int)n : 0;
}

static bool is_dir(const char *path)
{
    PenFileStat st;
    return pen__sys->stat_path(path, &st) >= 0 && st.is_dir;
}

static int take(const char *path, char *ret, size_t capacity, const char *who, PenError *reterr)
{
    if (strlen(path) >= capacity)
        return pen__fail(reterr, PEN_E_LIMIT, "net/ca", "%s: the path is longer than %zu bytes",
                         who, capacity - 1);
    snprintf(ret, capacity, "%s", path);
    return PEN_OK;
}

static int take_file(const char *path, const char *who, PenCa *ret, PenError *reterr)
{
    PenCa ca = {0};
    int e = check_file(path);
    if (e < 0)
        return pen__fail_os(reterr, -e, "net/ca", "%s: cannot read the certificates in %s", who,
                            path);
    int r = take(path, ca.file, sizeof ca.file, who, reterr);
    if (r >= 0)
        *ret = ca;
    return r;
}

/* 1: the environment named some. */
static int from_environment(PenCa *ret, PenError *reterr)
{
    const char *file = pen__sys->environment("SSL_CERT_FILE");
    const char *dir = pen__sys->environment("SSL_CERT_DIR");
    PenCa ca = {0};
    int r = PEN_OK;
    if (file && file[0])
        r = take_file(file, "SSL_CERT_FILE", &ca, reterr);
    if (r >= 0 && dir && dir[0] && is_dir(dir))
        r = take(dir, ca.dir, sizeof ca.dir, "SSL_CERT_DIR", reterr);
    if (r < 0)
        return r;
    if (!ca.file[0] && !ca.dir[0])
        return 0;
    *ret = ca;
    return 1;
}

static void from_system(PenCa *ret)
{
    PenCa ca = {0};
    for (size_t i = 0; i < PEN_LEN(FILES) && !ca.file[0]; i++) {
        if (check_file(FILES[i]) == 0)
            snprintf(ca.file, sizeof ca.file, "%s", FILES[i]);
    }
    for (size_t i = 0; i < PEN_LEN(DIRS) && !ca.file[0] && !ca.dir[0]; i++) {
        if (is_dir(DIRS[i]))
            snprintf(ca.dir, sizeof ca.dir, "%s", DIRS[i]);
    }
    *ret = ca;
}

int pen__ca_find(const char *given, PenCa *ret, PenError *reterr)
{
    if (given && given[0])
        return take_file(given, "the CA file", ret, reterr);
    int r = from_environment(ret, reterr);
    if (r < 0)
        return r;
    if (r == 0)
        from_system(ret);
    return PEN_OK;
}
