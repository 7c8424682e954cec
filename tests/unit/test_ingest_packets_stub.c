/* SPDX-License-Identifier: Apache-2.0 */
/* Output of ffprobe that is hostile, damaged or of another version: what is no list of packets of
 * the file is an error, in bounded time and memory. Programs in ffprobe's place are scripts, so
 * they run unconfined. */
#include <zlib.h>

#include "fault_sweep.h"
#include "ingest/video/packets_impl.h"
#include "video_help.h"

/* ---- packets --------------------------------------------------------------------------------- */

static uint64_t n_taken;
static PenListedPacket last_taken;

static int count_packet(void *ctx, const PenListedPacket *packet, PenError *reterr)
{
    (void)ctx, (void)reterr;
    n_taken++;
    last_taken = *packet;
    return PEN_OK;
}

static int parse_packets(const char *text, uint64_t n_before, PenError *err)
{
    PenPacketLog log = {.name = "v.mp4", .take = count_packet, .n = n_before, .number = UINT64_MAX};
    log.found = n_before ? 60 : 0; /* the one before is complete, and empty */
    n_taken = 0;
    *err = (PenError){0};
    int r = pen__packet_log_take(&log, text, strlen(text), err);
    return r < 0 ? r : pen__packet_log_end(&log, err);
}

#define CHECK_PARSE(text, status, expected)                                                        \
    do {                                                                                           \
        PenError test__err;                                                                        \
        CHECK_INT(parse_packets(text, 0, &test__err), status);                                     \
        if (!strstr(test__err.message, expected))                                                  \
            test__fail(__FILE__, __LINE__, "\"%s\" is not in \"%s\"", expected,                    \
                       test__err.message);                                                         \
    } while (0)

#define N0 "packets.packet.0."
#define N1 "packets.packet.1."
#define REST "size=5\n" N0 "pos=7\n" N0 "flags=\"K_\"\n" N0 "data_hash=\"CRC32:0001e240\"\n"
#define GOOD N0 "pts=3\n" N0 "dts=2\n" N0 REST

TEST(packets)
{
    CHECK_PARSE(GOOD, PEN_OK, "");
    CHECK_INT(n_taken, 1);
    CHECK_INT(last_taken.bytes, 5);
    CHECK_INT(last_taken.position, 7);
    CHECK_INT(last_taken.time, 3);
    CHECK_INT(last_taken.crc, 123456);
    CHECK(last_taken.is_key && !last_taken.is_discarded && last_taken.has_time);
    /* Version 4.2 to 7: other flags, more values, values that are not there. */
    CHECK_PARSE(N0 "codec_type=\"video\"\n" N0 "pts=\"N/A\"\n" N0 "dts=-9\n" N0
                   "duration=\"N/A\"\n" N0 "size=5\n" N0 "pos=7\n" N0 "flags=\"_D_\"\n" N0
                   "side_data_list.side_data.0.side_data_type=\"Skip Samples\"\n" N0
                   "data_hash=\"CRC32:00000001\"\n",
                PEN_OK, "");
    CHECK(!last_taken.is_key && last_taken.is_discarded && !last_taken.has_time);
    CHECK_INT(last_taken.time, -9);
    CHECK_PARSE("", PEN_OK, "");
    CHECK_INT(n_taken, 0);
    /* Without bytes it is no frame. */
    CHECK_PARSE(N0 "size=0\n" N0 "pos=7\n" N0 "flags=\"K_\"\n" N0 "data_hash=\"CRC32:00000000\"\n",
                PEN_OK, "");
    CHECK_INT(n_taken, 0);
}

TEST(hostile_packets)
{
    CHECK_PARSE("streams.stream.0.width=4\n", PEN_E_DECODE, "something else");
    CHECK_PARSE("packets.packet.0.pts\n", PEN_E_DECODE, "something else");
    CHECK_PARSE("packets.packet.=3\n", PEN_E_DECODE, "no number of a packet");
    CHECK_PARSE("packets.packet.99999999999.pts=3\n", PEN_E_DECODE, "no number of a packet");
    CHECK_PARSE(N0 "size=-1\n", PEN_E_DECODE, "a size out of range");
    CHECK_PARSE(N0 "size=2147483648\n", PEN_E_DECODE, "a size out of range");
    CHECK_PARSE(N0 "size=99999999999999999999\n", PEN_E_DECODE, "no number");
    CHECK_PARSE(N0 "size=1e3\n", PEN_E_DECODE, "no number");
    CHECK_PARSE(N0 "pos=-1\n", PEN_E_DECODE, "a position out of range");
    CHECK_PARSE(N0 "pos=x\n", PEN_E_DECODE, "no number");
    CHECK_PARSE(N0 "pts=1152921504606846976\n", PEN_E_DECODE, "a time out of range");
    CHECK_PARSE(N0 "dts=-1152921504606846976\n", PEN_E_DECODE, "a time out of range");
    CHECK_PARSE(N0 "pts=9223372036854775808\n", PEN_E_DECODE, "a time out of range");
    CHECK_PARSE(N0 "pts=\n", PEN_E_DECODE, "a time out of range");
    CHECK_PARSE(N0 "data_hash=\"CRC32:0001e24\"\n", PEN_E_DECODE, "no CRC32");
    CHECK_PARSE(N0 "data_hash=\"CRC32:0001e24000\"\n", PEN_E_DECODE, "no CRC32");
    CHECK_PARSE(N0 "data_hash=\"MD5:0001e240\"\n", PEN_E_DECODE, "no CRC32");
    CHECK_PARSE(N0 "flags=\"K_C\"\n", PEN_E_DECODE,
                "expected complete packets, found packet 0 damaged");
    CHECK_PARSE(N0 "side_data_list.side_data.0.side_data_type=\"New Extradata\"\n",
                PEN_E_UNSUPPORTED, "found a codec configuration that changes in packet 0; pack");
    CHECK_PARSE(N0 "side_data_list.side_data.0.side_data_type=\"Encryption info\"\n",
                PEN_E_UNSUPPORTED, "found encryption in packet 0; pack it without --video keep");
    CHECK_PARSE(GOOD N1 "size=5\n" N1 "pos=\"N/A\"\n" N1 "flags=\"__\"\n" N1
                        "data_hash=\"CRC32:0001e240\"\n",
                PEN_E_UNSUPPORTED, "position of every packet, found none of packet 1; pack it");
    CHECK_PARSE(N0 "pts=3\n" N1 "pts=4\n", PEN_E_DECODE, "a packet without all of its values");
    CHECK_PARSE(N0 "pts=3\n", PEN_E_DECODE, "a packet without all of its values");
    CHECK_PARSE(N0 "pts=3", PEN_E_DECODE, "a line that is cut off");
    char line[600];
    memset(line, 'x', sizeof line);
    line[599] = 0;
    CHECK_PARSE(line, PEN_E_DECODE, "a line that is too long");
    PenError err;
    CHECK_INT(parse_packets(GOOD, PEN_MAX_VIDEO_PACKETS - 1, &err), PEN_OK);
    CHECK_INT(parse_packets(GOOD, PEN_MAX_VIDEO_PACKETS, &err), PEN_E_LIMIT);
    CHECK(strstr(err.message, "v.mp4: expected at most 16777216 packets, found more"));
}

/* ---- the stream ------------------------------------------------------------------------------ */

#define S "streams.stream.0."
#define SIDE S "side_data_list.side_data."
#define BASE "time_base=\"1/25\"\n"
#define CODEC S "codec_name=\"mjpeg\"\n"
#define SIZE S "width=64\n" S "height=48\n"
#define PIXELS S "pix_fmt=\"yuvj420p\"\n"
#define FORMAT "format.format_name=\"mov,mp4,m4a,3gp,3g2,mj2\"\n"
#define STREAM CODEC SIZE PIXELS S BASE FORMAT

static int parse_stream(const char *text, PenStreamText *ret, PenError *err)
{
    *ret = (PenStreamText){0};
    *err = (PenError){0};
    int r = pen__stream_text_parse("v.mp4", text, ret, err);
    pen__buf_free(&ret->extra);
    return r;
}

#define CHECK_STREAM(text, status, expected)                                                       \
    do {                                                                                           \
        PenError test__err;                                                                        \
        CHECK_INT(parse_stream(text, &stream, &test__err), status);                                \
        if (!strstr(test__err.message, expected))                                                  \
            test__fail(__FILE__, __LINE__, "\"%s\" is not in \"%s\"", expected,                    \
                       test__err.message);                                                         \
    } while (0)

TEST(streams)
{
    static const struct {
        const char *format;
        unsigned depth, range;
    } pixels[] = {
        {"yuv420p", 8, 0},  {"yuvj444p", 8, 2},  {"yuv422p10le", 10, 0}, {"yuv444p12le", 12, 0},
        {"gray", 8, 0},     {"gray10le", 10, 0}, {"yuv420p10be", 0, 0},  {"yuv420p9le", 0, 0},
        {"yuva420p", 0, 0}, {"gbrp", 0, 0},      {"yuv411p", 0, 0},      {"unknown", 0, 0},
        {"", 0, 0}};
    PenStreamText stream;
    PenError err;
    char text[1000];
    CHECK_STREAM(STREAM, PEN_OK, "");
    CHECK_INT(stream.stream.tick_den, 25);
    CHECK_INT(stream.stream.matrix, 2);
    CHECK(stream.has_reordering); /* nothing is said of it */
    CHECK_STREAM(STREAM S "has_b_frames=0\n" S "color_space=\"bt709\"\n" S "color_range=\"tv\"\n",
                 PEN_OK, "");
    CHECK(!stream.has_reordering);
    CHECK_INT(stream.stream.matrix, 1);
    CHECK_INT(stream.stream.range, 1);
    for (size_t i = 0; i < PEN_LEN(pixels); i++) {
        snprintf(text, sizeof text, CODEC SIZE S "pix_fmt=\"%s\"\n" S BASE FORMAT,
                 pixels[i].format);
        CHECK_INT(parse_stream(text, &stream, &err), pixels[i].depth ? PEN_OK : PEN_E_UNSUPPORTED);
        CHECK_INT(stream.stream.depth, pixels[i].depth);
        CHECK_INT(stream.stream.range, pixels[i].range);
    }
}

TEST(hostile_streams)
{
    PenStreamText stream;
    CHECK_STREAM("", PEN_E_DECODE, "expected a video, found no pictures");
    CHECK_STREAM(S "codec_name=\"prores\"\n", PEN_E_UNSUPPORTED, "found prores; pack it with");
    CHECK_STREAM(CODEC, PEN_E_UNSUPPORTED, "found no format");
    CHECK_STREAM(CODEC FORMAT S "width=-4\n" S "height=4\n", PEN_E_UNSUPPORTED, "found -4x4");
    CHECK_STREAM(CODEC FORMAT S "width=16385\n" S "height=4\n", PEN_E_UNSUPPORTED, "16385x4");
    CHECK_STREAM(CODEC FORMAT S "width=99999999999999999999\n" S "height=4\n", PEN_E_UNSUPPORTED,
                 "found -1x4");
    CHECK_STREAM(CODEC SIZE FORMAT PIXELS, PEN_E_DECODE, "expected a time base");
    static const char *const bases[] = {"0/1", "1/0", "1", "-1/25", "1/2147483648", "x/y", ""};
    for (size_t i = 0; i < PEN_LEN(bases); i++) {
        char text[1000];
        snprintf(text, sizeof text, CODEC SIZE FORMAT PIXELS S "time_base=\"%s\"\n", bases[i]);
        CHECK_STREAM(text, PEN_E_DECODE, "expected a time base");
    }
    static const char *const matrices[] = {"", "\\n00000000: 1 2", "\\n00000000: 1 2 3\\n", "x:y z",
                                           "\\n0: 9 9 0\\n1: 9 9 0\\n"};
    for (size_t i = 0; i < PEN_LEN(matrices); i++) {
        char text[1000];
        snprintf(text, sizeof text, STREAM SIDE "1.displaymatrix=\"%s\"\n", matrices[i]);
        CHECK_STREAM(text, PEN_E_UNSUPPORTED, "expected a rotation");
    }
}

/* A line of 16 bytes, with a text that has quotes and backslashes. */
#define DUMP "\\n00000000: 3031 3233 3435 3637 3839 3a3b 3c3d 3e3f  0\\\"\\\\\\`\\$n56789:;<=>?\\n"

TEST(configurations)
{
    PenStreamText stream = {0};
    PenError err = {0};
    CHECK_INT(pen__stream_text_parse("v.mp4",
                                     STREAM S "extradata=\"" DUMP
                                              "00000010: 4142 43                             "
                                              "         ABC\\n\"\n" S "extradata_size=19\n",
                                     &stream, &err),
              PEN_OK);
    CHECK_INT(stream.stream.extra_bytes, 19);
    CHECK_MEM(stream.stream.extra, "0123456789:;<=>?ABC", 19);
    pen__buf_free(&stream.extra);
    CHECK_STREAM(STREAM S "extradata=\"" DUMP "\"\n" S "extradata_size=17\n", PEN_E_DECODE,
                 "found another size");
    CHECK_STREAM(STREAM S "extradata=\"no dump\"\n", PEN_E_DECODE, "a line that is no dump");
    CHECK_STREAM(STREAM S "extradata=\"\\n00000000: 30\\n\"\n", PEN_E_DECODE, "no dump");
    CHECK_STREAM(STREAM S "extradata=\"\\n00000000: 3x31 3233 3435 3637 3839 3a3b 3c3d 3e3f  "
                          "0123456789:;<=>?\\n\"\n",
                 PEN_E_DECODE, "no dump");
    PenBuf large = {0};
    CHECK_INT(pen__buf_add(&large, STREAM S "extradata=\"", strlen(STREAM S "extradata=\"")), 0);
    for (int i = 0; i < 65537; i++)
        CHECK_INT(pen__buf_add(&large, DUMP, strlen(DUMP)), 0);
    CHECK_INT(pen__buf_add(&large, "\"\n", 3), 0);
    CHECK_STREAM((const char *)large.data, PEN_E_DECODE, "found more than 1 MiB");
    pen__buf_free(&large);
}

/* ---- programs -------------------------------------------------------------------------------- */

static int spawn_free(const PenSpawn *what, PenSpawned *ret)
{
    PenSpawn free_one = *what;
    if (!what->confine)
        test__fail(__FILE__, __LINE__, "it is not confined");
    free_one.confine = NULL;
    return pen__sys_real.spawn(&free_one, ret);
}

/* Prints `packets` and `stream`, as it is asked for them, and runs `rest` after the packets. */
static void stub_ffprobe(const char *stream, const char *packets, const char *rest)
{
    char script[8192];
    help_text("stream.txt", stream);
    help_text("packets.txt", packets);
    snprintf(script, sizeof script,
             "case \"$*\" in *packet=*) cat '%s'; %s;; esac; "
             "case \"$*\" in *stream=*) cat '%s';; esac",
             at("packets.txt"), rest, at("stream.txt"));
    stub("ffprobe", script);
}

static const uint8_t content[] = "0123456789abcdef";

static char *packet_text(char *text, size_t cap, unsigned number, const char *times,
                         uint64_t position, unsigned bytes, unsigned from)
{
    size_t n = strlen(text);
    snprintf(text + n, cap - n,
             "packets.packet.%u.size=%u\npackets.packet.%u.pos=%" PRIu64
             "\npackets.packet.%u.flags=\"K_\"\npackets.packet.%u.data_hash=\"CRC32:%08lx\"\n%s",
             number, bytes, number, position, number, number, crc32(0, content + from, bytes),
             times);
    return text;
}

static int list_stub(const char *name, PenVideoList *list, PenError *err)
{
    PenVideoSettings s = {.seconds = 5};
    *err = (PenError){0};
    return pen__video_list(&s, at(name), list, err);
}

#define CHECK_LIST(name, status, expected)                                                         \
    do {                                                                                           \
        PenVideoList test__l;                                                                      \
        PenError test__err;                                                                        \
        CHECK_INT(list_stub(name, &test__l, &test__err), status);                                  \
        if (!strstr(test__err.message, expected))                                                  \
            test__fail(__FILE__, __LINE__, "\"%s\" is not in \"%s\"", expected,                    \
                       test__err.message);                                                         \
        pen__video_list_free(&test__l);                                                            \
    } while (0)

TEST(places)
{
    PenVideoList list;
    PenError err;
    char text[2000] = "";
    help_file("v.mov", content, 16);
    packet_text(text, sizeof text, 0, "packets.packet.0.pts=5\n", 4, 6, 4);
    stub_ffprobe(STREAM, packet_text(text, sizeof text, 1, "packets.packet.1.pts=6\n", 0, 4, 0),
                 ":");
    list_stub("v.mov", &list, &err);
    CHECK_STR(err.message, "");
    CHECK_INT(list.n, 2);
    CHECK_INT(list.n_shown, 2);
    CHECK_INT(list.file_bytes, 16);
    CHECK_INT(list.packets[0].offset, 4);
    CHECK_INT(list.packets[1].offset, 0);
    CHECK_INT(list.packets[1].time, 6);
    CHECK_INT(list.stream.container, PEN_CONTAINER_MOV);
    pen__video_list_free(&list);
    static const struct {
        uint64_t position;
        unsigned bytes, from;
        const char *found;
    } bad[] = {{5, 6, 4, "found others"},
               {11, 6, 4, "found the end of the file"},
               {17, 6, 4, "found the end of the file"},
               {INT64_MAX, 6, 4, "found the end of the file"}};
    for (size_t i = 0; i < PEN_LEN(bad); i++) {
        text[0] = 0;
        packet_text(text, sizeof text, 0, "", bad[i].position, bad[i].bytes, bad[i].from);
        stub_ffprobe(STREAM, text, ":");
        CHECK_LIST("v.mov", PEN_E_UNSUPPORTED, bad[i].found);
    }
    stub_ffprobe(STREAM,
                 N0 "size=268435457\n" N0 "pos=0\n" N0 "flags=K\n" N0 "data_hash=CRC32:00000000\n",
                 ":");
    CHECK_LIST("v.mov", PEN_E_LIMIT, "expected packets of at most 268435456 bytes");
}

/* Blocks of Matroska begin with the number of the track in 1 to 8 bytes. */
TEST(blocks)
{
    static const struct {
        const char *head;
        size_t bytes;
        const char *found; /* NULL: it is right */
    } cases[] = {{"\x81\x00\x00\x80", 4, NULL},
                 {"\x40\x81\x00\x00\x80", 5, NULL},
                 {"\x01\x00\x00\x00\x00\x00\x00\x81\x00\x00\x80", 11, NULL},
                 {"\x00\x00\x00\x00\x00\x00\x00\x81\x00\x00\x80", 11, "a laced block"},
                 {"\x81\x00\x00\x82\x00", 4, "a laced block"},
                 {"\x81\x00\x00\x80z", 5, "others: it is compressed or encrypted there"}};
    for (size_t i = 0; i < PEN_LEN(cases); i++) {
        uint8_t file[64] = {0x1a, 0x45, 0xdf, 0xa3, 0x42, 0x82, 0x84, 'w', 'e', 'b', 'm'};
        char text[1000] = "";
        PenVideoList list;
        PenError err;
        memcpy(file + 11, cases[i].head, cases[i].bytes);
        memcpy(file + 11 + cases[i].bytes, content, 8);
        help_file("v.webm", file, 11 + cases[i].bytes + 8);
        packet_text(text, sizeof text, 0, "packets.packet.0.pts=5\n", 11, 8, 0);
        stub_ffprobe(STREAM, text, ":");
        int r = list_stub("v.webm", &list, &err);
        CHECK_INT(r, cases[i].found ? PEN_E_UNSUPPORTED : PEN_OK);
        if (cases[i].found) {
            CHECK(strstr(err.message, cases[i].found));
            continue;
        }
        CHECK_INT(list.stream.container, PEN_CONTAINER_WEBM);
        CHECK_INT(list.packets[0].offset, 11 + cases[i].bytes);
        pen__video_list_free(&list);
    }
    help_file("v.webm", "\x1a\x45\xdf\xa3\x81", 5); /* ends within the block */
    CHECK_LIST("v.webm", PEN_E_UNSUPPORTED, "found the end of the file");
}

/* Presentation times that are missing are decoding times if frames are in that order. */
TEST(missing_times)
{
    PenVideoList list;
    PenError err;
    char text[2000] = "";
    help_file("v.mov", content, 16);
    packet_text(text, sizeof text, 0, "packets.packet.0.dts=7\n", 4, 6, 4);
    stub_ffprobe(STREAM S "has_b_frames=0\n", text, ":");
    CHECK_INT(list_stub("v.mov", &list, &err), PEN_OK);
    CHECK_INT(list.packets[0].time, 7);
    pen__video_list_free(&list);
    stub_ffprobe(STREAM S "has_b_frames=2\n", text, ":");
    CHECK_LIST("v.mov", PEN_E_UNSUPPORTED,
               "expected a time for each frame, found none in packet 0");
    text[0] = 0;
    packet_text(text, sizeof text, 0, "", 4, 6, 4);
    stub_ffprobe(STREAM S "has_b_frames=0\n", text, ":");
    CHECK_LIST("v.mov", PEN_E_UNSUPPORTED, "found none in packet 0; pack it without --video keep");
}

/* Of a small file, which takes one run, and of a large one. */
static void check_programs(size_t bytes)
{
    static const uint8_t file[200000];
    help_file("v.mov", file, bytes);
    stub_ffprobe(STREAM, "", ":");
    CHECK_LIST("v.mov", PEN_E_DECODE, "expected frames, found none");
    stub_ffprobe(STREAM, GOOD, "echo bad >&2; exit 1");
    CHECK_LIST("v.mov", PEN_E_DECODE, "ffprobe cannot read this video: bad");
    stub_ffprobe(STREAM, "", "echo '[mov] stream 0, offset 0x30: partial file' >&2");
    CHECK_LIST("v.mov", PEN_E_DECODE, "expected a complete video, found its end missing");
    stub_ffprobe(STREAM, "", "kill -KILL $$");
    CHECK_LIST("v.mov", PEN_E_IO, "was killed by another process");
    stub_ffprobe(STREAM, "", "yes");
    CHECK_LIST("v.mov", bytes > 16 ? PEN_E_DECODE : PEN_E_LIMIT,
               bytes > 16 ? "something else: \"y\"" : "8388608");
    stub("ffprobe", "yes");
    CHECK_LIST("v.mov", PEN_E_LIMIT, "8388608");
    stub_ffprobe(S "codec_name=\"h264\"\n" SIZE S "pix_fmt=\"yuv420p\"\n" S BASE FORMAT S
                   "extradata=\"\\n00000000: 0142 0010 ff                             "
                   "        .....\\n\"\n",
                 "", ":");
    CHECK_LIST("v.mov", PEN_E_UNSUPPORTED, "an H.264 configuration that is cut off");
    stub_ffprobe(STREAM, "", ":");
    CHECK_LIST("none.mov", PEN_E_NOT_FOUND, "none.mov");
}

TEST(programs)
{
    check_programs(16);
    check_programs(200000);
}

/* ---- faults ---------------------------------------------------------------------------------- */

static size_t sweep_bytes; /* of the video: by one run or by two */
static const PenSys *faulty;

/* The pipes of a program are not counted when they are opened. */
static int close_counted(int fd)
{
    struct stat st;
    bool is_pipe = fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
    return is_pipe ? pen__sys_real.close(fd) : faulty->close(fd);
}

static int list_once(PenError *err)
{
    PenVideoList list;
    PenVideoSettings s = {.seconds = 20};
    faulty = pen__sys;
    PenSys sys = *faulty;
    sys.spawn = spawn_free;
    sys.close = close_counted;
    pen__sys = &sys;
    int r = pen__video_list(&s, sweep_bytes > 16 ? "large.mov" : "small.mov", &list, err);
    pen__sys = faulty;
    if (r == PEN_OK && (list.n != 2 || list.n_shown != 1 || list.stream.extra_bytes != 16 ||
                        list.stream.orientation != 3 || list.file_bytes != sweep_bytes))
        test__fail(__FILE__, __LINE__, "another list");
    pen__video_list_free(&list);
    return r;
}

TEST(faults)
{
    static const size_t sizes[] = {16, 200000};
    const PenSys *before = pen__sys;
    char text[2000] = "";
    static uint8_t file[200000];
    memcpy(file, content, 16);
    CHECK_INT(chdir(help_root), 0);
    help_file("small.mov", file, 16);
    help_file("large.mov", file, sizeof file);
    packet_text(text, sizeof text, 0, "packets.packet.0.pts=5\n", 4, 6, 4);
    packet_text(text, sizeof text, 1, "packets.packet.1.pts=4\npackets.packet.1.flags=\"_D\"\n", 0,
                4, 0);
    stub_ffprobe(STREAM S "extradata=\"" DUMP "\"\n" SIDE
                          "0.displaymatrix=\"\\n0: -65536 0 0\\n1: 0 -65536 0\\n\"\n",
                 text, ":");
    for (size_t i = 0; i < PEN_LEN(sizes); i++) {
        int points = 0;
        sweep_bytes = sizes[i];
        fault_sweep(list_once, &points);
        pen__sys = before;
        CHECK_OK_SO_FAR();
        CHECK(points > 20);
    }
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    static PenSys sys;
    sys = pen__sys_real;
    sys.spawn = spawn_free;
    pen__sys = &sys;
    help_begin();
    RUN(packets);
    RUN(hostile_packets);
    RUN(streams);
    RUN(hostile_streams);
    RUN(configurations);
    RUN(places);
    RUN(blocks);
    RUN(missing_times);
    RUN(programs);
    RUN(faults);
    help_end();
    return TEST_END();
}
