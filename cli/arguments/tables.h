/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of commands and options, and the parsed command line. Parsing, checking, the help and
 * the messages about wrong use are derived from the tables. */
#ifndef PEN_CLI_ARGUMENTS_TABLES_H
#define PEN_CLI_ARGUMENTS_TABLES_H

#include <stddef.h>
#include <stdint.h>

#include <penstock/error.h>

typedef enum CliCommandId {
    CLI_PACK,
    CLI_INDEX,
    CLI_PLAN,
    CLI_FINALISE,
    CLI_GC,
    CLI_INFO,
    CLI_VERIFY,
    CLI_EXTRACT,
    CLI_COPY,
    CLI_OPS,
    CLI_DOCTOR,
    CLI_TOP,
    CLI_CACHE,
    CLI_N_COMMANDS
} CliCommandId;

typedef enum CliOpt {
    CLI_OPT_OUT, /* --out of pack, index and plan */
    CLI_OPT_DIR, /* --out of extract */
    CLI_OPT_TO,
    CLI_OPT_FILE_BYTES, /* --shard-bytes of extract */
    CLI_OPT_KIND,
    CLI_OPT_ROOT,
    CLI_OPT_ALLOW_OUTSIDE,
    CLI_OPT_EXCLUDE,
    CLI_OPT_FPS,
    CLI_OPT_VIDEO_SECONDS,
    CLI_OPT_MODE,
    CLI_OPT_VIDEO,
    CLI_OPT_CODEC,
    CLI_OPT_QUALITY,
    CLI_OPT_MAX_SIDE,
    CLI_OPT_SHORT_SIDE,
    CLI_OPT_RAW_SHARE,
    CLI_OPT_SMART_THRESHOLD,
    CLI_OPT_CHECK,
    CLI_OPT_NO_INDEX,
    CLI_OPT_PROGRESSIVE,
    CLI_OPT_SIXTEEN_BIT,
    CLI_OPT_ORDER,
    CLI_OPT_SEED,
    CLI_OPT_FRACTION,
    CLI_OPT_CLASSES_FROM,
    CLI_OPT_ON_BAD,
    CLI_OPT_MAX_BAD,
    CLI_OPT_BAD_REPORT,
    CLI_OPT_SHARD_BYTES,
    CLI_OPT_BLOCK_SAMPLES,
    CLI_OPT_APPEND,
    CLI_OPT_TASK,
    CLI_OPT_TASKS,
    CLI_OPT_WAIT,
    CLI_OPT_PROGRESS,
    CLI_OPT_ABANDON,
    CLI_OPT_SAMPLES,
    CLI_OPT_ANALYSE,
    CLI_OPT_CSV,
    CLI_OPT_DECODE,
    CLI_OPT_SAMPLE,
    CLI_OPT_KEY,
    CLI_OPT_PIPELINE,
    CLI_OPT_BATCH,
    CLI_OPT_SECONDS,
    CLI_OPT_CONSUMER,
    CLI_OPT_MEMORY,
    CLI_OPT_TRACE,
    CLI_OPT_ONCE,
    CLI_OPT_INTERVAL,
    CLI_OPT_THREADS,
    CLI_OPT_AT_ONCE,
    CLI_OPT_FILES_ROOT, /* --root of commands that read packs */
    CLI_OPT_RELOCATE,
    CLI_OPT_CACHE,
    CLI_OPT_CACHE_BYTES,
    CLI_OPT_CLEAR,
    CLI_OPT_JSON,
    CLI_OPT_HELP,
    CLI_OPT_ENDPOINT, /* from here on: for remote packs; those of the same commands in a row */
    CLI_OPT_REGION,
    CLI_OPT_PROFILE,
    CLI_OPT_NO_SIGN,
    CLI_OPT_REQUESTER_PAYS,
    CLI_OPT_ALLOW_HTTP,
    CLI_OPT_CA,
    CLI_OPT_WORK,
    CLI_OPT_FROM_ENDPOINT,
    CLI_OPT_FROM_REGION,
    CLI_OPT_FROM_PROFILE,
    CLI_N_OPTIONS
} CliOpt;

/* The sections of the help, in this order. */
typedef enum CliGroup {
    CLI_GROUP_COMMON,
    CLI_GROUP_INPUT,
    CLI_GROUP_IMAGES,
    CLI_GROUP_SAMPLES,
    CLI_GROUP_BAD,
    CLI_GROUP_LAYOUT,
    CLI_GROUP_FILES,
    CLI_GROUP_CACHE,
    CLI_GROUP_REMOTE, /* a topic of its own, because many commands have it: 'penstock help s3' */
    CLI_N_GROUPS
} CliGroup;

typedef enum CliArgKind {
    CLI_ARG_FLAG, /* takes no value */
    CLI_ARG_TEXT,
    CLI_ARG_NUMBER, /* a whole number from min to max */
    CLI_ARG_BYTES,  /* the same, with a unit: 512MiB, 1GiB, 256M */
    CLI_ARG_SHARE,  /* a number from 0 to 1; min 1 = without the 0 */
    CLI_ARG_REAL,   /* a number from min to max: 12.5, 1e9 */
    CLI_ARG_RATE,   /* a number from 0.001 to max */
    CLI_ARG_CHOICE, /* one of the words in `choices`; its number is the value */
    CLI_ARG_TASK,   /* I/N with I < N */
    CLI_ARG_RANGE   /* I, or I-J with I <= J */
} CliArgKind;

typedef struct CliOption {
    const char *name; /* without the dashes */
    char letter;      /* short form, 0 = none */
    CliArgKind kind;
    CliGroup group;
    uint32_t commands; /* bit 1 << CliCommandId: the commands that have it */
    int many;          /* may be given several times */
    int required;
    const char *value; /* placeholder of the value in the help */
    uint64_t min, max;
    const char *choices;   /* "keep|encode|raw" */
    const char *removed;   /* a former choice; NULL = none */
    const char *instead;   /* what to use in its place */
    const char *initial;   /* default, as a user would type it; NULL = none */
    const char *otherwise; /* describes the default if it is not a value; NULL = none */
    uint32_t modes;        /* bit 1 << number in the choices of --mode; 0 = any mode */
    int needs_skip;        /* only together with --on-bad skip */
    const char *mistaken;  /* names that users may type instead */
    const char *help;
} CliOption;

extern const CliOption cli_options[CLI_N_OPTIONS];
extern const char *const cli_group_titles[CLI_N_GROUPS];

/* Options that cannot be combined, and what to do. */
typedef struct CliConflict {
    CliOpt a, b;
    const char *advice;
} CliConflict;

extern const CliConflict cli_conflicts[];
extern const size_t cli_n_conflicts;

typedef struct CliValue {
    int given;
    const char *text;        /* as typed, or the default; NULL = neither */
    uint64_t number, second; /* of a task and of a range: two numbers */
    double real;
} CliValue;

typedef struct CliItem { /* one use of an option that may be given several times */
    CliOpt opt;
    CliValue value;
} CliItem;

typedef struct CliArgs {
    CliCommandId command;
    CliValue values[CLI_N_OPTIONS]; /* defaults filled in */
    CliItem *items;
    size_t n_items;
    const char **operands;
    size_t n_operands;
} CliArgs;

typedef struct CliCommand {
    const char *name;
    const char *also;                /* another spelling; NULL = none */
    const char *usage;               /* arguments, after the name */
    const char *operand_help;        /* for the message if it is missing */
    int many;                        /* one or more arguments */
    int two;                         /* exactly two */
    int none;                        /* no argument is allowed too */
    int never;                       /* takes no argument */
    const char *summary;             /* for the list of commands */
    const char *about;               /* paragraphs; "\n" between them */
    const char *examples;            /* lines, as typed */
    const char *next;                /* what to do afterwards */
    uint32_t schema;                 /* version of what --json prints: docs/reference/json.md */
    int (*run)(const CliArgs *args); /* returns the exit code */
} CliCommand;

extern const CliCommand cli_commands[CLI_N_COMMANDS];

/* The same for 'penstock --version --json' and 'penstock help --json'. */
enum { CLI_VERSION_SCHEMA = 1, CLI_HELP_SCHEMA = 1 };

/* Help that is not on one command: on the program, and on the options of CLI_GROUP_REMOTE, which
 * several commands share. The members are those of a command. */
typedef struct CliTopic {
    const char *name, *summary, *about, *examples;
} CliTopic;

extern const CliTopic cli_program, cli_topic_s3;

#endif
