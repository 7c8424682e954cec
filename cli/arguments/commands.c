/* SPDX-License-Identifier: Apache-2.0 */
#include "arguments/commands.h"

#include <string.h>

#include "arguments/args.h"

#define PACK_OPERANDS "an input (a folder, .csv or .tsv lists, .tar files) and -o NAME.pen"

/* clang-format off */
const CliCommand cli_commands[CLI_N_COMMANDS] = {
    [CLI_PACK] = {
        .name = "pack",
        .usage = "SRC... -o NAME.pen [options]",
        .operand_help = PACK_OPERANDS,
        .many = 1,
        .summary = "write a pack from images, videos, lists or tar files",
        .about =
            "Reads every input once and writes a pack: a directory NAME.pen of a few large "
            "files with checksums. By default the pixels of images do not change, and the "
            "pack is about as large as the source. Video frames are encoded as JPEG, which "
            "takes more space than the video.\n"
            "SRC is one of these:\n"
            "  a folder, in which each directory is a class. Without directories there are no "
            "classes, and the pack has no labels.\n"
            "  an s3:// prefix of images, which is packed as the folder of its download would "
            "be\n"
            "  a list, .csv or .tsv. Its first line names the columns: path, label (integers "
            "or class names) and mask (a second image). Other columns become fields. A list "
            "can be at s3:// or https://, and name objects below its prefix.\n"
            "  WebDataset tar files, also as a pattern such as a-{000..017}.tar, and also at "
            "s3:// and https://\n"
            "  videos or folders of frames (see --kind), in class folders or in a list. "
            "Videos need the program ffmpeg. A list of videos may have the columns start and "
            "end, in seconds. A list of frame folders may have the form id;label.\n"
            "  a GulpIO directory, which contains clips\n"
            "Images are JPEG, PNG or WebP. The format is detected from the content of a file, "
            "not from its name. Files of a folder or prefix whose names do not end like those "
            "of images or videos, and hidden files, are ignored and counted.\n"
            "To name the classes of integer labels, put a file LIST.classes.csv next to "
            "LIST.csv. Its first line is label,class. The next lines are NUMBER,NAME, "
            "numbered from 0.\n"
            "The pack appears only when it is complete. If a run is interrupted, even by "
            "SIGKILL, the same command resumes after the last finished shard. The same inputs "
            "and options give the same bytes with any number of threads.\n"
            "NAME.pen can be s3://bucket/NAME.pen. Shards are uploaded while packing, and the "
            "manifest is uploaded last. It does not replace a manifest that another run has "
            "uploaded.",
        .examples = "penstock pack photos -o photos.pen\n"
                    "penstock pack val -o val.pen --classes-from train.pen\n"
                    "penstock pack s3://bucket/photos -o photos.pen --endpoint https://HOST\n"
                    "penstock pack videos -o clips.pen --fps 8 --mode encode --short-side 256\n"
                    "penstock pack 'web-{000..017}.tar' -o s3://bucket/web.pen --order source",
        .next =
            "'penstock info NAME.pen' shows the pack, 'penstock verify NAME.pen' checks every "
            "byte. To pack on several machines, see 'penstock help plan'.",
        .schema = 1,
        .run = cli_pack,
    },
    [CLI_INDEX] = {
        .name = "index",
        .usage = "SRC... -o NAME.pen [options]",
        .operand_help = PACK_OPERANDS,
        .many = 1,
        .summary = "write a pack over images that stay in their files",
        .about =
            "Reads every input once and writes an in-place pack. It has keys, labels, texts, "
            "numbers, checksums and an index of each JPEG, but not the bytes of the images: "
            "these are read from their files when the pack is loaded. So the pack has 1 to 3 % "
            "of the size of the files.\n"
            "SRC is a folder, a list (.csv or .tsv), or WebDataset tar files, as in 'penstock "
            "pack', on a disk or at s3:// and https://. Samples of tar files keep their order; "
            "others are shuffled. Compressed tar files and clips cannot be read in place.\n"
            "With the Python package, SRC can be a LeRobot dataset (v3): a folder or an s3:// "
            "prefix with meta/info.json. Samples are then episodes, and the videos are read in "
            "place.\n"
            "Remote tar files are read once, several at a time, and their images are never stored. "
            "If a run is interrupted, the same command reads only those that were not read "
            "completely.\n"
            "Do not change the files afterwards. A file that has changed, moved or vanished is "
            "reported by name, and its samples cannot be read. The pack names files below the "
            "directory that holds NAME.pen by relative paths, so that this directory can be "
            "moved. It names other files by absolute paths, and objects by their URLs; to read "
            "these, pass --root DIR or --root s3://BUCKET/PREFIX, in Python roots=[...]. A pack "
            "over objects can be written to s3:// itself; objects below its parent need no "
            "--root.\n"
            "'penstock copy' makes an ordinary pack of an in-place pack.",
        .examples = "penstock index 'data/web-{000..017}.tar' -o data/web.pen\n"
                    "penstock index photos -o photos.pen\n"
                    "penstock index /mnt/tars/*.tar -o web.pen\n"
                    "penstock verify web.pen --root /mnt/tars\n"
                    "penstock index 's3://bucket/web-{000..017}.tar' -o web.pen\n"
                    "penstock index s3://bucket/robot -o robot.pen   # a LeRobot dataset",
        .next =
            "'penstock verify NAME.pen' checks every byte, also those of the files.",
        .schema = 1,
        .run = cli_index,
    },
    [CLI_PLAN] = {
        .name = "plan",
        .usage = "SRC... -o NAME.pen [options]",
        .operand_help = PACK_OPERANDS,
        .many = 1,
        .summary = "list the inputs once, so that several machines can pack them",
        .about =
            "Writes the plan of a pack: which inputs it contains, in which order, and how "
            "many per block. You need this command only to pack one dataset on several "
            "machines. All of them must be able to write to the directory or the s3:// URL of "
            "the pack.\n"
            "Then run 'penstock pack' with the same sources and options and --task 0/N, 1/N, "
            "... Each task gets about the same number of bytes. A task that was interrupted can "
            "be run again, on any machine. When all tasks are complete, run 'penstock finalise'.\n"
            "A plan at an s3:// URL is not replaced by another one: to start again with other "
            "inputs, run 'penstock gc --abandon' first.",
        .examples = "penstock plan /data/train -o /shared/train.pen\n"
                    "penstock pack /data/train -o /shared/train.pen --task 0/2\n"
                    "penstock pack /data/train -o /shared/train.pen --task 1/2\n"
                    "penstock finalise /shared/train.pen\n"
                    "penstock plan s3://data/photos -o s3://packs/photos.pen",
        .next =
            "run the tasks: 'penstock pack SRC... -o NAME.pen --task I/N'.",
        .schema = 1,
        .run = cli_plan,
    },
    [CLI_FINALISE] = {
        .name = "finalise",
        .also = "finalize",
        .usage = "NAME.pen [options]",
        .operand_help = "the pack whose tasks are complete",
        .summary = "join the parts that the tasks wrote, and publish the pack",
        .about =
            "Joins the parts that all tasks of a pack wrote, and publishes the pack by one "
            "rename, in an object store by one conditional request. Before that, the pack cannot "
            "be opened. If tasks are not complete, this is an error that names them: run them "
            "again, then this command.\n"
            "The tasks are those of 'penstock pack --task', or of penstock.Writer with a task.",
        .examples = "penstock finalise train.pen\n"
                    "penstock finalise s3://packs/train.pen --json",
        .next =
            "'penstock verify NAME.pen' checks every byte.",
        .schema = 1,
        .run = cli_finalise,
    },
    [CLI_GC] = {
        .name = "gc",
        .usage = "NAME.pen [options]",
        .operand_help = "a pack",
        .summary = "remove what interrupted runs left behind",
        .about =
            "Removes the files that a pack does not use from its directory: unfinished work, "
            "and shards that --append replaced. It never removes files that penstock did not "
            "write. In an object store it also aborts unfinished uploads. While tasks share a "
            "plan, it fails with exit code 75, unless you pass --abandon.\n"
            "After this command, an interrupted run starts from the beginning instead of "
            "resuming. A process that still has an older version of the pack open can no "
            "longer read it.",
        .examples = "penstock gc train.pen\n"
                    "penstock gc --abandon /shared/train.pen\n"
                    "penstock gc s3://bucket/train.pen --json",
        .next =
            "'penstock info NAME.pen' shows the pack.",
        .schema = 1,
        .run = cli_gc,
    },
    [CLI_INFO] = {
        .name = "info",
        .usage = "NAME.pen [options]",
        .operand_help = "a pack",
        .summary = "show what a pack contains",
        .about =
            "Shows the samples, fields, classes, sizes and settings of a pack, and how its "
            "images are stored. It reads only the manifest, so it is fast for packs of any "
            "size.\n"
            "With --samples it lists the samples instead: index, key, and what each field "
            "contains. The columns are separated by tabs, and the first line names them. "
            "Control characters in keys are written as \\xNN, and backslashes are doubled. "
            "With --json, each line is one JSON object.\n"
            "With --analyse it decodes the images instead and shows what they are like: JPEG "
            "quality as ImageMagick estimates it, sampling, sizes, bytes per pixel, and the mean "
            "and standard deviation of each channel. Masks are left out. --json also has "
            "histograms, and --csv writes a row for each image. Damaged images are reported, and "
            "the exit code is then 1.\n"
            "If a key, path or class name is not valid UTF-8, its bytes above 127 appear in "
            "JSON as the characters U+0080 to U+00FF. A second member, NAME_hex, then has all "
            "its bytes in hexadecimal. For a list of names, NAME_hex is a list.",
        .examples = "penstock info train.pen\n"
                    "penstock info train.pen --json | jq .classes\n"
                    "penstock info train.pen --samples | head\n"
                    "penstock info train.pen --analyse --csv images.csv",
        .next =
            "'penstock verify NAME.pen' checks every byte, 'penstock extract' writes samples "
            "to files.",
        .schema = 1,
        .run = cli_info,
    },
    [CLI_VERIFY] = {
        .name = "verify",
        .usage = "NAME.pen [options]",
        .operand_help = "a pack",
        .summary = "check every byte of a pack",
        .about =
            "Reads the entire pack, and checks all checksums and its structure. It prints one "
            "line on stderr per problem, and continues to the end. The exit code is 0 if "
            "there is no problem, and 1 otherwise.\n"
            "Samples outside the damaged parts stay readable: 'penstock extract' writes all "
            "samples that it can read.",
        .examples = "penstock verify train.pen\n"
                    "penstock verify train.pen --decode\n"
                    "penstock verify train.pen --json 2>/dev/null | jq .problems",
        .next =
            "to replace a damaged pack, remove it and run 'penstock pack' again.",
        .schema = 1,
        .run = cli_verify,
    },
    [CLI_EXTRACT] = {
        .name = "extract",
        .usage = "NAME.pen -o DIR [-s I[-J]]... [-k KEY]... [options]",
        .operand_help = "a pack",
        .summary = "write samples of a pack to files",
        .about =
            "Writes all samples to files in DIR, or only those that -s and -k select:\n"
            "  an image: KEY, with a suffix such as .jpg if the key has none\n"
            "  further images of a sample: KEY.FIELD.png\n"
            "  the frames of a clip: KEY/00001.jpg, KEY/00002.jpg, ...\n"
            "  a clip that is stored as a video: KEY.mp4, KEY.mkv, ...\n"
            "  bytes and JSON: KEY.FIELD.bin, KEY.FIELD.json\n"
            "  numbers and texts: columns of DIR/samples.csv\n"
            "  class names: DIR/samples.classes.csv\n"
            "'penstock pack DIR/samples.csv' restores the same labels and classes. If samples "
            "are an image and a class, 'penstock pack DIR' does, too.\n"
            "DIR must be empty or new. "
            "This command never overwrites a file and never follows a symbolic link. It "
            "refuses keys that are not plain relative paths: absolute paths, paths with .. or "
            "control characters, and names that are too long. It then prints the key, "
            "extracts the other samples, and exits with code 1.\n"
            "--to webdataset and --to parquet need the Python package, and Parquet also needs "
            "pyarrow. They write samples-000000.tar or samples-000000.parquet and so on to DIR, "
            "which must not exist, and appears when all files are complete. The documentation "
            "(docs/how-to/moving-from-webdataset.md and moving-from-huggingface.md) lists the "
            "members and columns.",
        .examples = "penstock extract train.pen -o out\n"
                    "penstock extract train.pen -s 17 -s 100-199 -o out\n"
                    "penstock extract train.pen -k cats/0001.jpg -o out",
        .next =
            "'penstock info NAME.pen --samples' lists indices and keys.",
        .schema = 1,
        .run = cli_extract,
    },
    [CLI_COPY] = {
        .name = "copy",
        .usage = "FROM.pen TO.pen [options]",
        .operand_help = "the pack to copy and the place for the copy",
        .two = 1,
        .summary = "copy a pack between directories and object stores",
        .about =
            "Copies a pack, byte for byte, and checks every byte against its checksum. FROM "
            "is a directory, s3://bucket/name or https://host/path. TO is a directory or "
            "s3://bucket/name.\n"
            "The manifest is written last, so TO is a pack only when it is complete. If a "
            "copy is interrupted, even by SIGKILL, the same command resumes it and skips "
            "shards that are already copied. If another pack exists at TO, the command fails "
            "and does not change it.\n"
            "penstock finds credentials in the same places as the AWS CLI.",
        .examples = "penstock copy train.pen s3://bucket/train.pen\n"
                    "penstock copy s3://bucket/train.pen /data/train.pen --threads 16\n"
                    "penstock copy s3://bucket/train.pen s3://other/train.pen --from-profile a",
        .next =
            "'penstock info TO.pen' shows the copy. 'penstock gc TO.pen' removes an "
            "unfinished copy.",
        .schema = 1,
        .run = cli_copy,
    },
    [CLI_OPS] = {
        .name = "ops",
        .usage = "[NAME | PIPELINE] [options]",
        .operand_help = "nothing, the name of an operation, or a pipeline",
        .none = 1,
        .summary = "list the operations of pipelines, or check a pipeline",
        .about =
            "Without an argument, lists all operations that a pipeline can contain. With the "
            "name of an operation, shows its parameters. With a pipeline, checks it and "
            "prints its full form, in which every parameter has its name. If there is a "
            "mistake, it prints the position and the most similar name.\n"
            "A pipeline is one line of text, the same in C, in Python and here. Operations "
            "are separated by '|'. Parameters follow the name of an operation, in order or as "
            "name=value. For several fields, write FIELD: before each pipeline and separate "
            "them by ';'.",
        .examples = "penstock ops\n"
                    "penstock ops random_resized_crop\n"
                    "penstock ops 'decode | random_resized_crop 224 | hflip | tensor u8 nhwc'\n"
                    "penstock ops 'image: decode | center_crop 224 | tensor; label: tensor'",
        .next =
            "pass the pipeline to penstock.Loader in Python, or to pen_loader_open in C.",
        .schema = 1,
        .run = cli_ops,
    },
    [CLI_DOCTOR] = {
        .name = "doctor",
        .usage = "NAME.pen | TRACE [options]",
        .operand_help = "a pack, or a trace",
        .summary = "measure loading, name what limits it, and what to change",
        .about =
            "Loads batches as a training loop does. It prints the bottleneck, what to change, with "
            "the samples per second to expect, and how fast each stage is. If two stages are "
            "almost equally busy, the second one is named too. Samples per second, waits for a "
            "batch, CPU time and memory follow.\n"
            "The samples are in the order of shuffle=True. The first pass fills the page cache and "
            "is not counted, unless the time is too short for a second one. The rate of a stage "
            "follows from the time that threads spent in it. read is measured by a loader that "
            "fetches, reads and checks samples as before, and does not decode them; read_cold is "
            "the same for samples that were dropped from the page cache, for a local pack.\n"
            "With the time of a training step (--consumer), it first loads as fast as possible, "
            "and then with steps of this length. It prints the utilization of the accelerator: the "
            "time in training steps, divided by the total time without the wait for the first "
            "batch. MLPerf Storage requires 90 % for ResNet-50. It also prints how many such "
            "accelerators this machine can feed at 90 %.\n"
            "For a local pack, up to 256 MiB are dropped from the page cache to measure the disk, "
            "or one block if it is larger. Other jobs that need these blocks read them from the "
            "disk again.\n"
            "Memory is printed twice. The reserved memory is the budget of the loader. The "
            "resident memory is what the process occupied; it can be smaller, because not every "
            "reserved page is used.\n"
            "TRACE is a file that --trace or penstock.trace wrote (.json or .json.gz). Then "
            "nothing is loaded: its waits, stages, spans and slowest samples are printed. This "
            "needs the Python package, and takes no options.",
        .examples = "penstock doctor photos.pen\n"
                    "penstock doctor photos.pen --threads 2 --seconds 5\n"
                    "penstock doctor photos.pen -p 'decode | resize 256 | center_crop 224'\n"
                    "penstock doctor s3://bucket/photos.pen --consumer 120 --batch 256\n"
                    "penstock doctor photos.pen --json | jq '.bottleneck, .advice[0]'\n"
                    "penstock doctor photos.pen --trace run.json.gz\n"
                    "penstock doctor run.json.gz",
        .next =
            "docs/how-to/find-the-bottleneck.md explains the output. 'penstock top' shows the "
            "bottleneck of running jobs.",
        .schema = 1,
        .run = cli_doctor,
    },
    [CLI_TOP] = {
        .name = "top",
        .usage = "[options]",
        .operand_help = "nothing",
        .none = 1,
        .never = 1,
        .summary = "watch the loaders that run on this machine",
        .about =
            "Shows every loader in the processes of this user, while they train. The jobs need "
            "no change and no restart, and are not slowed down. On a terminal the view is "
            "updated until you press q or Ctrl-C. Elsewhere a table is printed again and "
            "again.\n"
            "The columns are:\n"
            "  samples/s, MB/s: delivered samples and bytes read, in the last one or two "
            "seconds\n"
            "  wait: share of this time in which training waited for a batch\n"
            "  bottleneck: the busiest part: a stage of the loader, memory, or consumer (the "
            "training step). unknown: no part was busy for half of the time. idle: no batch was "
            "requested for this long. open: none was requested yet.\n"
            "  threads: those that decode + those that read or fetch\n"
            "  memory: in use / the budget of the loader, in MiB (M) or GiB (G)\n"
            "  reqs: requests to the object store that run now\n"
            "  cache: share of the blocks that were found in the cache\n"
            "A loader appears when it is opened. Set PENSTOCK_TOP=0 in the environment of a "
            "job to hide its loaders. Other users cannot read them. Processes in other containers "
            "are not found: run the command in the container.",
        .examples = "penstock top\n"
                    "penstock top --once\n"
                    "penstock top --json | jq '.loaders[] | {rank, wait_percent, bottleneck}'",
        .next =
            "'penstock doctor NAME.pen' prints what to change. "
            "docs/reference/counters.md explains the counters.",
        .schema = 1,
        .run = cli_top,
    },
    [CLI_CACHE] = {
        .name = "cache",
        .usage = "DIR [options]",
        .operand_help = "the directory of a cache",
        .summary = "show or clear a block cache",
        .about =
            "Shows which packs have blocks in a cache. The pack that was opened longest ago "
            "comes first: when the cache is full, its blocks are removed first. To create a "
            "cache, pass a directory when you open a pack (cache= in Python, --cache here).\n"
            "--clear removes all packs that no process has open. It never removes files that "
            "penstock did not write. If you removed files by hand, run this command once: it "
            "updates the totals.",
        .examples = "penstock cache /nvme/cache\n"
                    "penstock cache /nvme/cache --json | jq .bytes\n"
                    "penstock cache /nvme/cache --clear",
        .next =
            "'penstock doctor s3://bucket/name --cache DIR' measures loading with a cache.",
        .schema = 1,
        .run = cli_cache,
    },
};

const CliTopic cli_program = {
    .name = "penstock",
    .summary = "pack images and clips into a few large files, and load them fast",
    .about =
        "'penstock help COMMAND' explains a command, 'penstock help s3' the options for packs "
        "in object stores. 'penstock --version' prints the version; with --json, also the "
        "libraries and features of this build, the processor, and the SIMD instructions that "
        "penstock uses (tier). PENSTOCK_CPU=c (or avx2, avx512, neon) sets a lower tier.\n"
        "Results go to stdout, messages and progress to stderr. Every command accepts --json; "
        "names of JSON members end in the unit of the value (_bytes, _seconds, _ms). Exit codes: "
        "0 success, 1 failure, 2 wrong usage, 75 another process is writing here (try again "
        "later), 130 interrupted.",
    .examples =
        "penstock pack photos -o photos.pen     pack a folder; pixels are unchanged\n"
        "penstock info photos.pen               show what the pack contains\n"
        "penstock verify photos.pen             check every byte\n"
        "penstock extract photos.pen -o out     write the samples back to files",
};

const CliTopic cli_topic_s3 = {
    .name = "s3",
    .summary = "options for packs in object stores and on web servers",
    .about =
        "Commands that accept a remote pack take its URL instead of a directory:\n"
        "  s3://bucket/name: an S3-compatible object store, to read and to write\n"
        "  https://host/path: a web server that supports range requests, to read only\n"
        "Credentials come from the same places as for the AWS CLI: the environment, a profile "
        "in ~/.aws, or the role of the machine. No option takes a secret.",
    .examples = "penstock copy train.pen s3://bucket/train.pen --profile training\n"
                "penstock info s3://bucket/train.pen --endpoint https://minio.example.org:9000\n"
                "penstock verify s3://public-bucket/train.pen --no-sign",
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
