# SPDX-License-Identifier: Apache-2.0
"""Calls of the operating system, which belong to the system interface (base/sys.h).

Memory, files, clock, threads, randomness, environment and programs go through it; the library never
prints. A line that must call one of these for a foreign library says so: /* system: why */.
"""

import re

from structure.source import blank

ALLOWED = {
    "src/base/sys.c": "the system interface itself",
    "src/base/spawn/spawn.c": "PenSys.spawn; most of it runs in the child before exec",
    "src/base/spawn/confine.c": "runs in the child before exec",
    "src/base/spawn/confine_files.c": "runs in the child before exec",
    "src/net/http/sockets.c": "libcurl's sockets, and epoll; tests run it against real servers",
}
CALL = re.compile(
    r"(?<![\w.>])(malloc|calloc|realloc|free|strdup|strndup|posix_memalign|aligned_alloc|mmap|"
    r"open|openat|fopen|creat|close|read|write|pread|pwrite|readv|writev|preadv|pwritev|lseek|"
    r"fsync|fdatasync|ftruncate|memfd_create|stat|fstat|lstat|statvfs|fstatvfs|rename|mkdir|unlink|"
    r"rmdir|opendir|flock|fcntl|getenv|secure_getenv|setenv|"
    r"socket|socketpair|bind|connect|listen|accept|accept4|send|sendmsg|recv|recvmsg|"
    r"epoll_\w+|eventfd|timerfd_\w+|poll|ppoll|select|pipe|pipe2|fork|vfork|execv\w*|kill|waitpid|"
    r"clock_gettime|gettimeofday|time|nanosleep|usleep|sleep|getrandom|rand|random|"
    r"pthread_create|printf|fprintf|puts|putchar|perror|exit|abort|_exit|signal|sigaction)\s*\("
)


def direct_calls(text):
    """(line number, name) of each call without a reason."""
    lines = text.split("\n")
    for number, line in enumerate(blank(text).split("\n"), 1):
        m = CALL.search(line)
        if m and "/* system: " not in lines[number - 1]:
            yield number, m.group(1)


def callers(tree):
    return [path for path in tree.paths("src/") if any(direct_calls(tree.texts[path]))]


def findings(tree):
    for path in tree.paths("src/"):
        for number, name in direct_calls(tree.texts[path]) if path not in ALLOWED else ():
            yield f"{path}:{number}: {name}(): goes through base/sys.h or base/mem.h"
