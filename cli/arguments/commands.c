/* SPDX-License-Identifier: Apache-2.0 */
#include "arguments/commands.h"

#include <string.h>

#include "arguments/args.h"

#define PACK_OPERANDS "something to pack (a folder, .csv or .tsv lists, .tar files) and -o NAME.pen"

/* Kept as it is: the formatter would cut the texts apart. */
/* clang-format off */
const CliCommand cli_commands[CLI_N_COMMANDS] = {
    [CLI_PACK] = {
        .name = "pack",
        .usage = "SRC... -o NAME.pen [options]",
        .operand_help = PACK_OPERANDS,
        .many = 1,
        .summary = "make a pack from a folder, a list or tars",
        .about =
            "Reads every input once and writes a pack: a directory NAME.pen of a few large files "
            "under checksums, which a loader reads at the speed of the disk. In the default mode "
            "the pixels are those of the source, bit for bit, and the pack is about as large.\n"
            "SRC is a folder (a class for each directory in it), a list (.csv or .tsv with a line "
            "of names: path, label, further columns become fields, mask is a second image; labels "
            "are all integers or all names), or "
            "WebDataset tars (patterns as a-{000..017}.tar are taken too). Images are JPEG, "
            "PNG or WebP; what a file is comes from its bytes, not from its name.\n"
            "Integer labels of LIST.csv get class names from LIST.classes.csv beside it, if there "
            "is one: a line label,class, then a line NUMBER,NAME for each class from 0 on.\n"
            "Clips come from folders of frames (in class folders with --kind frames, or named by a "
            "list, as id;label), from videos (in class folders, or named by a list, with "
            "columns start and end in seconds; the program ffmpeg must be there) and "
            "from gulp directories.\n"
            "The pack comes into being at the very end, by one rename. A run that was "
            "interrupted, even by kill -9, goes on from its last finished shard when the same "
            "command is run again. The same input and options give the same bytes with any "
            "number of threads.\n"
            "NAME.pen may be s3://bucket/NAME.pen: shards are uploaded as they are finished, and "
            "the manifest comes last, under the condition that no other has come.",
        .examples = "penstock pack photos -o photos.pen\n"
                    "penstock pack val -o val.pen --classes-from train.pen\n"
                    "penstock pack photos -o small.pen --mode encode --quality 85 --max-side 512\n"
                    "penstock pack 'web-{000..017}.tar' -o web.pen --order source\n"
                    "penstock pack train.csv --root 20bn-jester-v1 -o jester.pen\n"
                    "penstock pack videos -o clips.pen --fps 8 --mode encode --short-side 256\n"
                    "penstock pack photos -o s3://bucket/photos.pen",
        .next = "'penstock info NAME.pen' shows what is in it, 'penstock verify NAME.pen' checks "
                "every byte. For several machines see 'penstock help plan'.",
        .run = cli_pack,
    },
    [CLI_PLAN] = {
        .name = "plan",
        .usage = "SRC... -o NAME.pen [options]",
        .operand_help = PACK_OPERANDS,
        .many = 1,
        .summary = "list the inputs once, for several machines to pack",
        .about =
            "Makes only the plan of a pack: which inputs, in which order, how many in a block. "
            "'pack' makes it by itself; a plan made beforehand is for machines that share the "
            "directory of the pack and do a part each, without talking to each other.\n"
            "Then run 'penstock pack' with the same sources and options and --task 0/N, 1/N, ... "
            "(each part can be interrupted and run again), and when all have ended 'penstock "
            "finalise'.",
        .examples = "penstock plan /data/train -o /shared/train.pen\n"
                    "penstock pack /data/train -o /shared/train.pen --task 0/3\n"
                    "penstock pack /data/train -o /shared/train.pen --task 1/3\n"
                    "penstock pack /data/train -o /shared/train.pen --task 2/3\n"
                    "penstock finalise /shared/train.pen",
        .next = "Run the tasks: 'penstock pack SRC... -o NAME.pen --task I/N'.",
        .run = cli_plan,
    },
    [CLI_FINALISE] = {
        .name = "finalise",
        .also = "finalize",
        .usage = "NAME.pen [options]",
        .operand_help = "the pack whose tasks have ended",
        .summary = "join what the tasks have written, and publish",
        .about = "Joins what all tasks of a pack have written and publishes it by one rename. "
                 "Until then there is no pack. It is an error when a task has not ended; run that "
                 "task (again), then this.",
        .examples = "penstock finalise train.pen\n"
                    "penstock finalise train.pen --json",
        .next = "'penstock verify NAME.pen' checks every byte.",
        .run = cli_finalise,
    },
    [CLI_GC] = {
        .name = "gc",
        .usage = "NAME.pen [options]",
        .operand_help = "a pack",
        .summary = "remove what interrupted runs left behind",
        .about = "Removes from the directory of a pack what the pack does not use: work of runs "
                 "that were interrupted, shards of states before an --append. It touches nothing "
                 "that penstock did not make. In an object store, uploads that were begun and not "
                 "finished are given up, too. After it an interrupted run starts anew instead of "
                 "going on; a reader that has an older state of the pack open loses it.",
        .examples = "penstock gc train.pen\n"
                    "penstock gc s3://bucket/train.pen --json",
        .next = "'penstock info NAME.pen' shows what is there.",
        .run = cli_gc,
    },
    [CLI_INFO] = {
        .name = "info",
        .usage = "NAME.pen [options]",
        .operand_help = "a pack",
        .summary = "show what a pack holds",
        .about = "Shows id, samples, fields, classes, sizes, what was done to the images and the "
                 "settings of a pack. Reads the manifest alone, so it takes no longer for a pack "
                 "of a thousand million samples.\n"
                 "With --samples it lists the samples: number, key and what is stored in each "
                 "field, tab-separated with a line of names first (control characters in keys as "
                 "\\xNN, backslashes doubled); with --json one object for each sample and line.\n"
                 "In JSON, bytes of a key, path or class that is not UTF-8 are written as the "
                 "characters U+0080 to U+00FF, and a member NAME_hex beside NAME has its exact "
                 "bytes: \"key\": \"caf\\u00e9\", \"key_hex\": \"636166e9\". A list of which one "
                 "text is not UTF-8 gets a list NAME_hex of all.",
        .examples = "penstock info train.pen\n"
                    "penstock info train.pen --json | jq .classes\n"
                    "penstock info train.pen --samples | head\n"
                    "penstock info train.pen --samples --json | jq -r .key",
        .next = "'penstock verify NAME.pen' checks every byte, 'penstock extract' takes samples "
                "out.",
        .run = cli_info,
    },
    [CLI_VERIFY] = {
        .name = "verify",
        .usage = "NAME.pen [options]",
        .operand_help = "a pack",
        .summary = "check every byte of a pack",
        .about = "Reads the whole pack and checks every checksum and all structure. Every problem "
                 "is one line on stderr that names the place; the check goes on to the end. Exit "
                 "code 0 when all is well, 1 when there was a problem.\n"
                 "Samples outside the damage stay readable: 'penstock extract' takes out all that "
                 "it can.",
        .examples = "penstock verify train.pen\n"
                    "penstock verify train.pen --decode\n"
                    "penstock verify train.pen --json 2>/dev/null | jq .problems",
        .next = "A damaged pack is best made anew from its source: remove it and run 'penstock "
                "pack' again.",
        .run = cli_verify,
    },
    [CLI_EXTRACT] = {
        .name = "extract",
        .usage = "NAME.pen -o DIR [-s I[-J]]... [-k KEY]... [options]",
        .operand_help = "a pack",
        .summary = "take samples out as files",
        .about =
            "Writes samples as files under DIR: all, or those named by -s and -k. An image takes "
            "the sample's key as its name (with the suffix of its kind when the key has none); "
            "further images are KEY.FIELD.png, frames of a clip KEY/00001.jpg and so on, bytes "
            "and json KEY.FIELD.bin and KEY.FIELD.json. Numbers and texts go into DIR/samples.csv, "
            "the names of the classes into DIR/samples.classes.csv; 'penstock pack "
            "DIR/samples.csv' gives the same labels and classes again.\n"
            "Nothing is overwritten, no symbolic link is followed, and a key that is not a plain "
            "relative path (absolute, with .. or control characters, too long) is refused: the "
            "message names it, the other samples are written, and the exit code is 1.",
        .examples = "penstock extract train.pen -o out\n"
                    "penstock extract train.pen -s 17 -s 100-199 -o out\n"
                    "penstock extract train.pen -k cats/0001.jpg -o out\n"
                    "penstock pack out/samples.csv -o again.pen",
        .next = "'penstock info NAME.pen --samples' lists numbers and keys.",
        .run = cli_extract,
    },
    [CLI_COPY] = {
        .name = "copy",
        .usage = "FROM.pen TO.pen [options]",
        .operand_help = "the pack and the place for its copy",
        .two = 1,
        .summary = "copy a pack to another place, every byte checked",
        .about =
            "Copies a pack between any two places: a directory, s3://bucket/name, and "
            "https://host/path to copy from. The copy has the same bytes; each is checked against "
            "its checksum on its way.\n"
            "The shards come first and the manifest last, so that TO is no pack, or the whole "
            "one. A copy that was interrupted, even by kill -9, goes on when the same command is "
            "run again: shards that are there are not copied again. Another pack that is at TO "
            "already stays as it is, and is an error.\n"
            "Keys are found where the AWS command line finds them.",
        .examples = "penstock copy train.pen s3://bucket/train.pen\n"
                    "penstock copy s3://bucket/train.pen train.pen --threads 16\n"
                    "penstock copy s3://bucket/train.pen s3://other/train.pen --from-profile a\n"
                    "penstock copy https://host/train.pen /data/train.pen",
        .next = "'penstock info TO.pen' shows what is there; 'penstock gc TO.pen' removes what a "
                "copy left that is not wanted any more.",
        .run = cli_copy,
    },
    [CLI_OPS] = {
        .name = "ops",
        .usage = "[NAME | PIPELINE] [options]",
        .operand_help = "nothing, the name of an operation, or a pipeline",
        .none = 1,
        .summary = "list the operations of pipelines, or check a pipeline",
        .about =
            "Without an operand, lists what a loader's pipeline can be made of. With the name of "
            "an "
            "operation, its parameters. With a pipeline, checks its text and prints the full "
            "form, in "
            "which every parameter is named; a mistake is answered with its place and the nearest "
            "right word.\n"
            "A pipeline is one line, the same in C, Python and here: operations divided by '|', "
            "each "
            "followed by its parameters in order or as name=value. Several fields of a sample "
            "are named "
            "and divided by ';'.",
        .examples = "penstock ops\n"
                    "penstock ops random_resized_crop\n"
                    "penstock ops 'decode | random_resized_crop 224 | hflip | tensor u8 nhwc'\n"
                    "penstock ops 'image: decode | center_crop 224 | tensor; label: tensor'",
        .next = "give the pipeline to penstock.Loader in Python, or to pen_loader_open in C.",
        .run = cli_ops,
    },
    [CLI_BENCH] = {
        .name = "bench",
        .usage = "NAME.pen [options]",
        .operand_help = "a pack",
        .summary = "measure loading, and say which stage binds",
        .about =
            "Loads batches from a pack as a training loop would, in random order (at an address "
            "or with --cache, by blocks), and prints samples "
            "per second, how long a batch was waited for, processor time and memory. Then it "
            "runs each stage alone (read, verify, decode, resample and store) with the same "
            "number of "
            "threads, on samples in memory: the slowest is what binds.\n"
            "The first pass brings the pack into the page cache and is not counted, unless the "
            "time is "
            "over before it ends.",
        .examples = "penstock bench photos.pen\n"
                    "penstock bench photos.pen --threads 2 --seconds 5\n"
                    "penstock bench photos.pen --pipeline 'decode | resize 256 | center_crop 224'\n"
                    "penstock bench photos.pen --batch 400 --consumer 224 --json",
        .next = "more threads when decode binds; 'penstock pack --mode encode' or 'raw' trades "
                "bytes for "
                "speed.",
        .run = cli_bench,
    },
    [CLI_CACHE] = {
        .name = "cache",
        .usage = "DIR [options]",
        .operand_help = "the directory of a cache",
        .summary = "show what a cache of blocks holds, or clear it",
        .about = "Shows the packs of which a cache keeps blocks, the one opened longest ago "
                 "first: it is the first to make room. A cache is made by naming a directory when "
                 "a pack is opened (cache= in Python, --cache here).\n"
                 "With --clear it removes all packs that no process has open. It touches nothing "
                 "that penstock did not make. After files were removed by hand, showing it counts "
                 "what is left.",
        .examples = "penstock cache /nvme/cache\n"
                    "penstock cache /nvme/cache --json | jq .bytes\n"
                    "penstock cache /nvme/cache --clear",
        .next = "'penstock bench s3://bucket/name --cache DIR' measures loading with it.",
        .run = cli_cache,
    },
    [CLI_SIMULATE] = {
        .name = "simulate",
        .usage = "[NAME.pen] --nodes N [options]",
        .operand_help = "a pack, or --samples and --sample-bytes",
        .none = 1,
        .summary = "what many machines would ask of an object store",
        .about =
            "Says beforehand how a training job of many machines would do that reads a pack from "
            "an object store: bytes fetched, bandwidth of a machine, requests per second and "
            "prefix, time to the first batch, time spent waiting, memory, cost of the requests. "
            "Order, window and request policy (retries, second requests, back-off) are the code "
            "that training runs; network, store and training step are a model on a clock of its "
            "own. The same options give the same numbers.\n"
            "How often blocks are fetched in an epoch is exact, from the order. Times are of the "
            "epoch's beginning, --seconds of it; of many machines some are followed that stand for "
            "all (--effort); what was simulated is said. Sizes come from the manifest of a pack, "
            "of which nothing else is read, or from --samples, --sample-bytes and "
            "--block-samples.\n"
            "The model is as good as its constants, which are all printed. Measure latency and "
            "bandwidth where the job will run; with --measured-rate and --measured-first the "
            "result of a small real run is shown beside the simulated one.",
        .examples = "penstock simulate s3://bucket/train.pen --nodes 8 --step-ms 180\n"
                    "penstock simulate --samples 1e9 --sample-bytes 110000 --nodes 1000",
        .next = "when ranks wait: more --in-flight, more --memory, or a --cache-bytes that holds "
                "a node's share; docs/explanation/simulator.md describes the model.",
        .run = cli_simulate,
    },
    [CLI_PROBE] = {
        .name = "probe",
        .usage = "[options]",
        .operand_help = "nothing",
        .none = 1,
        .never = 1,
        .summary = "show what this machine has",
        .about = "Prints the processor, the tier of kernels that is used on it (PENSTOCK_CPU in "
                 "the "
                 "environment forces a lower one), cores this process may use, and the version.",
        .examples = "penstock probe\n"
                    "PENSTOCK_CPU=c penstock probe --json",
        .next = "'penstock bench NAME.pen' measures loading.",
        .run = cli_probe,
    },
};
/* clang-format on */

CliCommandId cli_command_find(const char *name)
{
    for (CliCommandId i = 0; i < CLI_N_COMMANDS; i++)
        if (strcmp(name, cli_commands[i].name) == 0 ||
            (cli_commands[i].also && strcmp(name, cli_commands[i].also) == 0))
            return i;
    return CLI_N_COMMANDS;
}

const char *cli_command_near(const char *name)
{
    /* What other programs call it. */
    static const char *const others[][2] = {
        {"create", "pack"},      {"convert", "pack"},   {"write", "pack"},
        {"show", "info"},        {"list", "info"},      {"ls", "info"},
        {"stat", "info"},        {"check", "verify"},   {"test", "verify"},
        {"fsck", "verify"},      {"unpack", "extract"}, {"export", "extract"},
        {"publish", "finalise"}, {"merge", "finalise"}, {"clean", "gc"},
        {"prune", "gc"},         {"cp", "copy"},        {"upload", "copy"},
        {"download", "copy"},    {"sync", "copy"},      {"push", "copy"},
        {"pull", "copy"},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(name, others[i][0]) == 0)
            return others[i][1];
    const char *near = NULL;
    size_t best = SIZE_MAX;
    for (CliCommandId i = 0; i < CLI_N_COMMANDS; i++)
        if (cli_word_is_near(name, cli_commands[i].name, &best))
            near = cli_commands[i].name;
    return near;
}
