/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/certificates.h"

#include <errno.h>
#include <stdlib.h>

#include "test.h"

#include "base/attr.h"
#include "base/sys.h"

/* A machine with one file or directory of certificates. */
static const char *there, *named_file, *named_dir;

static int fake_open(const char *path, int how)
{
    return there && strcmp(path, there) == 0 ? pen__sys_real.open("/dev/null", how) : -ENOENT;
}

static int fake_stat(const char *path, PenFileStat *ret)
{
    if (!there || strcmp(path, there) != 0)
        return -ENOENT;
    *ret = (PenFileStat){.is_dir = 1};
    return 0;
}

static bool is_fifo; /* in place of the file */

static int fake_stat_fd(int fd, PenFileStat *ret)
{
    (void)fd;
    *ret = (PenFileStat){.is_file = !is_fifo};
    return 0;
}

static const char *fake_environment(const char *name)
{
    if (strcmp(name, "SSL_CERT_FILE") == 0)
        return named_file;
    return strcmp(name, "SSL_CERT_DIR") == 0 ? named_dir : NULL;
}

static PenCa found(const char *on_disk)
{
    PenCa ca = {0};
    there = on_disk;
    if (pen__ca_find(NULL, &ca, NULL) != PEN_OK)
        snprintf(ca.file, sizeof ca.file, "failed");
    return ca;
}

TEST(layouts)
{
    static const char *const FILES[] = {"/etc/ssl/certs/ca-certificates.crt",
                                        "/etc/pki/tls/certs/ca-bundle.crt",
                                        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
                                        "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"};
    for (size_t i = 0; i < PEN_LEN(FILES); i++) {
        PenCa ca = found(FILES[i]);
        CHECK_STR(ca.file, FILES[i]);
        CHECK_STR(ca.dir, "");
    }
    CHECK_STR(found("/etc/ssl/certs").dir, "/etc/ssl/certs");
    CHECK_STR(found(NULL).file, "");
    CHECK_STR(found(NULL).dir, "");
}

TEST(named)
{
    PenCa ca = {.file = "before"};
    PenError err = {0};
    there = "/here.pem";
    CHECK_INT(pen__ca_find("/here.pem", &ca, &err), PEN_OK);
    CHECK_STR(ca.file, "/here.pem");
    CHECK_INT(pen__ca_find("/gone.pem", &ca, &err), PEN_E_NOT_FOUND);
    CHECK_STR(ca.file, "/here.pem");
    CHECK(strstr(err.message, "/gone.pem"));
    named_file = "/gone.pem";
    CHECK_INT(pen__ca_find(NULL, &ca, &err), PEN_E_NOT_FOUND);
    CHECK(strstr(err.message, "SSL_CERT_FILE"));
    CHECK_INT(pen__ca_find("/here.pem", &ca, &err), PEN_OK); /* what is given comes first */
    named_file = "/here.pem";
    CHECK_INT(pen__ca_find(NULL, &ca, &err), PEN_OK);
    CHECK_STR(ca.file, "/here.pem");
    named_file = "";
    named_dir = there = "/certs";
    CHECK_INT(pen__ca_find(NULL, &ca, &err), PEN_OK);
    CHECK_STR(ca.file, "");
    CHECK_STR(ca.dir, "/certs");
    named_dir = NULL;
    is_fifo = true; /* which libcurl would wait for */
    there = "/here.pem";
    CHECK_INT(pen__ca_find("/here.pem", &ca, &err), PEN_E_INVALID);
    is_fifo = false;
    char path[2000];
    memset(path, 'x', sizeof path);
    path[1999] = 0;
    there = path;
    CHECK_INT(pen__ca_find(path, &ca, &err), PEN_E_LIMIT);
}

int main(int argc, char **argv)
{
    static PenSys sys;
    sys = pen__sys_real;
    sys.open = fake_open;
    sys.stat_path = fake_stat;
    sys.stat_fd = fake_stat_fd;
    sys.environment = fake_environment;
    pen__sys = &sys;
    TEST_START(argc, argv);
    RUN(layouts);
    RUN(named);
    return TEST_END();
}
