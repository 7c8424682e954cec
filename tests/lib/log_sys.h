/* SPDX-License-Identifier: Apache-2.0 */
/* A system interface that does everything for real and notes what was written, in order. */
#ifndef PEN_TESTS_LIB_LOG_SYS_H
#define PEN_TESTS_LIB_LOG_SYS_H

#include <stddef.h>
#include <stdint.h>

typedef enum LogKind {
    LOG_CREATE, /* path; an existing file is cut to nothing */
    LOG_WRITE,  /* path is the name it was created with */
    LOG_SYNC,
    LOG_SYNC_DIR,
    LOG_RENAME,
    LOG_MKDIR,
    LOG_UNLINK,
    LOG_RMDIR
} LogKind;

typedef struct LogOp {
    LogKind kind;
    char *path;
    char *to;      /* of a rename */
    uint64_t file; /* number of the LOG_CREATE that made it: of create, write and sync */
    uint64_t offset;
    uint8_t *data;
    size_t bytes;
} LogOp;

typedef struct Log {
    LogOp *ops;
    size_t n, cap;
} Log;

/* Sets the system interface; what succeeds from here to log_end is in *ret. */
void log_begin(void);
void log_end(Log *ret);
void log_free(Log *log);
const char *log_name(LogKind kind);

#endif
