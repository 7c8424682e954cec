/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock: which files the process reads. The kernel's header may be older than the kernel, so the
 * numbers of its interface are written down here. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/spawn/confine_impl.h"

enum { CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446 }; /* on every architecture */
enum { ASK_VERSION = 1, PATH_BENEATH = 1 };
enum { EXECUTE = 1 << 0, READ_FILE = 1 << 2 };

typedef struct Ruleset {
    uint64_t files, net, scope; /* what is forbidden unless a rule allows it */
} Ruleset;

typedef struct PathRule {
    uint64_t allowed;
    int32_t fd;
} __attribute__((packed)) PathRule;

/* All that a version of the kernel's interface can forbid. */
static Ruleset all_of(long version)
{
    static const uint64_t files[] = {0, 0x1fff, 0x3fff, 0x7fff, 0x7fff, 0xffff};
    return (Ruleset){.files = files[version < 5 ? version : 5],
                     .net = version >= 4 ? 3 : 0,    /* TCP: bind, connect */
                     .scope = version >= 6 ? 3 : 0}; /* abstract sockets, signals */
}

/* What does not exist need not be allowed. */
static int allow(int ruleset, const char *path, uint64_t rights)
{
    PathRule rule = {.allowed = rights, .fd = open(path, O_PATH | O_CLOEXEC)};
    if (rule.fd < 0)
        return 0;
    int r = syscall(ADD_RULE, ruleset, PATH_BENEATH, &rule, 0) < 0 ? -errno : 0;
    close(rule.fd);
    return r;
}

static int allow_all(int ruleset, const PenConfine *confine)
{
    int r = allow(ruleset, confine->program, EXECUTE | READ_FILE);
    for (const char *const *p = confine->libraries; r == 0 && *p; p++)
        r = allow(ruleset, *p, EXECUTE | READ_FILE); /* to execute: the loader of programs */
    for (const char *const *p = confine->inputs; r == 0 && *p; p++)
        r = allow(ruleset, *p, READ_FILE);
    return r;
}

int pen__confine_files(const PenConfine *confine)
{
    long version = confine->no_landlock ? 0 : syscall(CREATE_RULESET, NULL, 0, ASK_VERSION);
    if (version < 1)
        return 0;
    Ruleset all = all_of(version);
    int ruleset = (int)syscall(CREATE_RULESET, &all, sizeof all, 0);
    if (ruleset < 0)
        return -errno;
    int r = allow_all(ruleset, confine);
    if (r == 0 && syscall(RESTRICT_SELF, ruleset, 0) < 0)
        r = -errno;
    close(ruleset);
    return r;
}
