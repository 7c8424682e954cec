/* SPDX-License-Identifier: Apache-2.0 */
/* The status that a loader shows to other processes: its text, who may break it, what happens when
 * it cannot be shown. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/sys.h"
#include "load/status/text.h"
#include "load_help.h"
#include "tools.h"

/* ---- text ---- */

static PenLoadStatus largest(void)
{
    PenLoadStatus s;
    memset(&s, 0xff, sizeof s);
    memset(s.pack, 'x', sizeof s.pack - 1);
    s.pack[sizeof s.pack - 1] = 0;
    return s;
}

TEST(a_status_is_read_as_it_was_written)
{
    char text[PEN_STATUS_BYTES];
    PenLoadStatus s = {.process = 7, .rank = 3, .world = 8, .memory_limit_bytes = 1ull << 60};
    PenLoadStatus found = {0}, most = largest();
    s.stats.samples = 5;
    s.stats.threads = 4;
    s.stats.stage_ns[PEN_LOAD_STAGE_STORE] = 9;
    pen__status_set_pack(&s, "/a b/c.pen");
    pen__status_write(&s, text);
    CHECK(pen__status_read(text, &found));
    CHECK_INT(found.process, 7);
    CHECK_INT(found.rank, 3);
    CHECK_INT(found.memory_limit_bytes, 1ull << 60);
    CHECK_INT(found.stats.threads, 4);
    CHECK_INT(found.stats.stage_ns[PEN_LOAD_STAGE_STORE], 9);
    CHECK_STR(found.pack, "/a b/c.pen");
    pen__status_write(&most, text);
    CHECK(pen__status_read(text, &found));
    CHECK(found.clock_ns == UINT64_MAX && found.stats.threads == UINT32_MAX);
    CHECK_INT(strlen(found.pack), sizeof found.pack - 1);
}

TEST(a_path_stays_in_its_line)
{
    char path[3 * PEN_STATUS_PACK_BYTES] = "";
    PenLoadStatus s = {0};
    pen__status_set_pack(&s, "a\nprocess 1\x7f\x1b");
    CHECK_STR(s.pack, "a?process 1??");
    memset(path, 'y', sizeof path - 1);
    memcpy(path + sizeof path - 6, "z.pen", 6);
    pen__status_set_pack(&s, path);
    CHECK_INT(strlen(s.pack), PEN_STATUS_PACK_BYTES - 1);
    CHECK_STR(s.pack + strlen(s.pack) - 5, "z.pen");
}

/* As a process might write it that means us ill: the checksum is right. */
static bool reads(const char *lines)
{
    char text[PEN_STATUS_BYTES] = "";
    PenLoadStatus s;
    size_t n = (size_t)snprintf(text, sizeof text, "%s", lines);
    snprintf(text + n, sizeof text - n, "end %08x\n", pen__crc32c(0, lines, n));
    return pen__status_read(text, &s);
}

TEST(what_is_no_status)
{
    CHECK(reads("penstock-loader 1\nprocess 12\npack x\n"));
    CHECK(reads("penstock-loader 1\n"));
    CHECK(reads("penstock-loader 1\nsome-later-thing x y z\n"));
    CHECK(!reads("penstock-loader 2\nprocess 12\n"));
    CHECK(!reads(""));
    CHECK(!reads("\n"));
    CHECK(!reads("penstock-loader 1\nprocess\n"));
    CHECK(!reads("penstock-loader 1\nprocess \n"));
    CHECK(!reads("penstock-loader 1\nprocess -1\n"));
    CHECK(!reads("penstock-loader 1\nprocess 1.5\n"));
    CHECK(!reads("penstock-loader 1\nprocess 18446744073709551616\n"));
    CHECK(!reads("penstock-loader 1\nprocess 1")); /* the line does not end */
    char large[PEN_STATUS_PACK_BYTES + 64] = "penstock-loader 1\npack ";
    size_t n = strlen(large);
    memset(large + n, 'p', PEN_STATUS_PACK_BYTES);
    large[n + PEN_STATUS_PACK_BYTES] = '\n';
    CHECK(!reads(large));
}

TEST(every_damaged_byte_is_noticed)
{
    char text[PEN_STATUS_BYTES];
    PenLoadStatus s = {.process = 7}, found;
    int wrong = 0;
    pen__status_write(&s, text);
    size_t n = strlen(text);
    for (size_t i = 0; i < n; i++) {
        text[i] ^= 1;
        wrong += pen__status_read(text, &found);
        text[i] ^= 1;
    }
    CHECK_INT(wrong, 0);
    memset(text, 'x', sizeof text); /* without an end */
    CHECK(!pen__status_read(text, &found));
    memset(text, 0, sizeof text);
    CHECK(!pen__status_read(text, &found));
}

/* ---- of a loader ---- */

static PenPack *pack;
enum { N = 400, BATCH = 20 };

/* Set before the threads of a loader start; they use the system, too. */
static struct {
    atomic_int made, named, written;
    int result;                    /* of these calls, if it is not 0 */
    const char *value;             /* of the variable */
    atomic_uint_fast64_t added_ns; /* to the clock, by each batch */
    atomic_bool is_torn;
} fake;

static PenSys sys;

static uint64_t later(void)
{
    return pen__sys_real.now_ns() + fake.added_ns;
}

static void begin_fake(void)
{
    fake.made = fake.named = fake.written = fake.result = 0;
    fake.value = NULL;
    fake.added_ns = 0;
    fake.is_torn = false;
    sys = pen__sys_real;
    sys.now_ns = later;
    pen__sys = &sys;
}

static int make(const char *name, uint64_t bytes)
{
    fake.made++;
    return fake.result ? fake.result : pen__sys_real.memory_make(name, bytes);
}

static int take_name(const char *name)
{
    fake.named++;
    return fake.result ? fake.result : pen__sys_real.name_take(name);
}

static int64_t count_write(int fd, const struct iovec *iov, int n, uint64_t offset)
{
    fake.written++;
    return fake.result ? fake.result : pen__sys_real.pwritev(fd, iov, n, offset);
}

static const char *variable(const char *name)
{
    return strcmp(name, "PENSTOCK_TOP") == 0 ? fake.value : pen__sys_real.environment(name);
}

static PenLoader *open_loader(void)
{
    PenError err = {0};
    PenLoader *l = NULL;
    PenLoaderSettings set = help_loader_settings(BATCH);
    set.threads = 2;
    int r = pen_loader_open(pack, &set, &l, &err);
    return r == PEN_OK ? l : NULL;
}

static int take_batches(PenLoader *l, int n)
{
    PenError err = {0};
    PenBatch *batch = NULL;
    for (int i = 0; i < n; i++) {
        int r = pen_loader_next(l, -1, &batch, &err);
        if (r != PEN_OK)
            return r;
        pen_batch_unref(&batch);
        fake.added_ns += 30000000;
    }
    return PEN_OK;
}

static void end_fake(PenLoader **l)
{
    pen_loader_close(l);
    pen__sys = &pen__sys_real;
}

/* Takes batches; then the number of loaders that this process is found to have, or -1. */
static int loaders_seen(PenLoader *l, int batches)
{
    PenError err = {0};
    PenLoaderList *list = NULL;
    PenRunningLoader found;
    int n = 0;
    if (take_batches(l, batches) != PEN_OK || pen_loader_list_open(&list, &err) != PEN_OK)
        return -1;
    for (uint64_t i = 0; pen_loader_list_get(list, i, &found) == PEN_OK; i++)
        n += found.process == getpid();
    pen_loader_list_close(&list);
    return n;
}

/* The number in a list of the loader of this process; others run, too. */
static uint64_t own(const PenLoaderList *list, PenRunningLoader *ret)
{
    uint64_t i = 0;
    while (pen_loader_list_get(list, i, ret) == PEN_OK && ret->process != getpid())
        i++;
    return i;
}

TEST(a_loader_is_seen_while_it_is_open)
{
    PenError err = {0};
    PenLoaderList *list = NULL;
    PenRunningLoader found = {0};
    PenLoaderStats stats;
    PenLoader *l = open_loader();
    CHECK_INT(loaders_seen(l, 0), 1); /* a job that hangs before its first batch is found */
    CHECK_INT(pen_loader_list_open(&list, &err), PEN_OK);
    own(list, &found);
    CHECK_STR(found.pack, pen__pack_path(pack));
    CHECK_INT(found.batches, 0);
    pen_loader_list_close(&list);
    CHECK_INT(loaders_seen(l, 10), 1);
    CHECK_INT(pen_loader_list_open(&list, &err), PEN_OK);
    CHECK_INT(pen_loader_list_stats(list, own(list, &found), &stats), PEN_OK);
    CHECK_STR(found.pack, pen__pack_path(pack));
    CHECK_INT(found.world, 1);
    CHECK_INT(found.batches, N / BATCH);
    CHECK(found.batch >= 1 && found.batch <= 10);
    CHECK(stats.samples == found.batch * BATCH && stats.ns_elapsed > 0);
    CHECK_INT(stats.threads, 2);
    CHECK(stats.memory_bytes > 0 && stats.memory_bytes <= found.memory_limit_bytes);
    CHECK_INT(pen_loader_list_get(list, 1 << 20, &found), PEN_END);
    CHECK_INT(pen_loader_list_stats(list, 1 << 20, &stats), PEN_END);
    pen_loader_list_close(&list);
    pen_loader_close(&l);
    CHECK_INT(loaders_seen(NULL, 0), 0);
}

static PenLoaderStats own_stats(void)
{
    PenError err = {0};
    PenLoaderStats stats = {0};
    PenRunningLoader found;
    PenLoaderList *list = NULL;
    if (pen_loader_list_open(&list, &err) == PEN_OK)
        (void)!pen_loader_list_stats(list, own(list, &found), &stats);
    pen_loader_list_close(&list);
    return stats;
}

/* The clock moves by 30 ms with each batch. */
TEST(it_writes_ten_times_a_second)
{
    begin_fake();
    sys.pwritev = count_write;
    PenLoader *l = open_loader();
    CHECK_INT(take_batches(l, 20), PEN_OK);
    CHECK(fake.written >= 5 && fake.written <= 16);
    end_fake(&l);
}

/* Of the last one or two seconds; 20 batches take 0.6 s of this clock, and the loader is opened
 * long before the first of them. */
TEST(rates_are_those_of_the_last_seconds)
{
    begin_fake();
    PenLoader *l = open_loader();
    fake.added_ns += 60000000000u;
    CHECK_INT(take_batches(l, N / BATCH), PEN_OK);
    PenLoaderStats stats = own_stats();
    CHECK(stats.batches > 0 && stats.ns_elapsed < 50000000000u);
    for (int pass = 0; pass < 10; pass++) {
        CHECK_INT(take_batches(l, 1), PEN_END);
        CHECK_INT(take_batches(l, N / BATCH), PEN_OK);
    }
    stats = own_stats();
    CHECK(stats.ns_elapsed >= 1000000000 && stats.samples < 200 * BATCH);
    CHECK(stats.batches * 30000000 <= stats.ns_elapsed);
    end_fake(&l);
}

TEST(nothing_is_shown_if_it_is_switched_off)
{
    begin_fake();
    fake.value = "0";
    sys.environment = variable;
    sys.memory_make = make;
    PenLoader *l = open_loader();
    CHECK_INT(loaders_seen(l, 10), 0);
    CHECK_INT(fake.made, 0);
    end_fake(&l);
    begin_fake();
    fake.value = "1";
    sys.environment = variable;
    l = open_loader();
    CHECK_INT(loaders_seen(l, 1), 1);
    end_fake(&l);
}

/* The file of this process that has this memory. */
static int memory_file(void)
{
    char path[64], target[64];
    for (int fd = 3; fd < 256; fd++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(path, target, sizeof target - 1);
        target[n < 0 ? 0 : n] = 0;
        if (strcmp(target, "/memfd:penstock-loader (deleted)") == 0)
            return fd;
    }
    return -1;
}

static int count_files(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (dir && readdir(dir))
        n++;
    closedir(dir);
    return n;
}

/* The loader does not notice, and does not try again. */
TEST(a_failure_is_silent)
{
    for (int which = 0; which < 3; which++) {
        begin_fake();
        fake.result = which == 1 ? -EADDRINUSE : -ENOSPC;
        if (which == 0)
            sys.memory_make = make;
        else if (which == 1)
            sys.name_take = take_name;
        else
            sys.pwritev = count_write;
        PenLoader *l = open_loader();
        CHECK_INT(loaders_seen(l, 19), 0);
        CHECK_INT(fake.made + fake.named + fake.written, 1);
        CHECK_INT(memory_file(), -1);
        int open = count_files();
        end_fake(&l);
        CHECK(count_files() <= open);
    }
}

TEST(another_file_with_the_number_is_left_alone)
{
    char path[] = "/tmp/pen-status-XXXXXX", byte = 'x';
    begin_fake();
    PenLoader *l = open_loader();
    CHECK_INT(loaders_seen(l, 1), 1);
    int other = mkstemp(path), fd = memory_file();
    CHECK(other >= 0 && fd >= 0);
    CHECK_INT(write(other, &byte, 1), 1);
    CHECK_INT(dup2(other, fd), fd); /* a program that closes and opens files by their numbers */
    CHECK_INT(loaders_seen(l, 18), 0);
    CHECK_INT(lseek(other, 0, SEEK_END), 1);
    end_fake(&l);
    close(other);
    unlink(path);
}

TEST(memory_that_somebody_sealed_ends_it)
{
    begin_fake();
    PenLoader *l = open_loader();
    CHECK_INT(loaders_seen(l, 1), 1);
    CHECK_INT(pen__sys_real.memory_seal(memory_file()), 0);
    CHECK_INT(loaders_seen(l, 18), 0);
    CHECK_INT(memory_file(), -1);
    end_fake(&l);
}

/* ---- the list ---- */

static int no_list(const char *path, int how)
{
    return strcmp(path, "/proc/net/unix") == 0 ? -EACCES : pen__sys_real.open(path, how);
}

static void *no_memory(size_t bytes)
{
    (void)bytes;
    return NULL;
}

TEST(a_list_that_cannot_be_read_is_an_error)
{
    PenError err = {0};
    PenLoaderList *list = NULL;
    PenLoader *l = NULL;
    begin_fake();
    sys.open = no_list;
    CHECK_INT(pen_loader_list_open(&list, &err), PEN_E_ACCESS);
    CHECK_STR(err.message, "cannot search for loaders in /proc/net/unix: Permission denied");
    sys.open = pen__sys_real.open;
    sys.alloc = no_memory;
    CHECK_INT(pen_loader_list_open(&list, &err), PEN_E_NO_MEMORY);
    CHECK(!list);
    end_fake(&l);
}

/* While it is torn, a text is damaged at every second reading. */
static int64_t torn_pread(int fd, void *buf, size_t bytes, uint64_t offset)
{
    int64_t n = pen__sys_real.pread(fd, buf, bytes, offset);
    if (fake.is_torn && bytes == PEN_STATUS_BYTES && fake.written++ % 2 == 0)
        ((char *)buf)[30] ^= 1;
    return n;
}

TEST(a_torn_text_is_read_again)
{
    begin_fake();
    sys.pread = torn_pread;
    PenLoader *l = open_loader();
    CHECK_INT(loaders_seen(l, N / BATCH), 1); /* nothing else is read now */
    fake.is_torn = true;
    CHECK_INT(loaders_seen(l, 0), 1);
    CHECK(fake.written >= 2);
    end_fake(&l);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(a_status_is_read_as_it_was_written);
    RUN(a_path_stays_in_its_line);
    RUN(what_is_no_status);
    RUN(every_damaged_byte_is_noticed);
    help_begin();
    pack = help_load_pack("pack.pen", N, -1, PEN_MODE_KEEP);
    RUN(a_loader_is_seen_while_it_is_open);
    RUN(it_writes_ten_times_a_second);
    RUN(rates_are_those_of_the_last_seconds);
    RUN(nothing_is_shown_if_it_is_switched_off);
    RUN(a_failure_is_silent);
    RUN(another_file_with_the_number_is_left_alone);
    RUN(memory_that_somebody_sealed_ends_it);
    RUN(a_list_that_cannot_be_read_is_an_error);
    RUN(a_torn_text_is_read_again);
    pen_pack_close(&pack);
    help_end();
    return TEST_END();
}
