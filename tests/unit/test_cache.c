/* SPDX-License-Identifier: Apache-2.0 */
/* The directory that processes share: what it accepts, what it counts, who waits for whom. */
#include <signal.h>
#include <sys/wait.h>

#include "cache_help.h"

/* ---- opening --------------------------------------------------------------------------------- */

TEST(is_made_for_its_user_alone)
{
    struct stat st;
    PenCache *c = open_for(at("new"), pack_a, 0, NULL);
    CHECK(c);
    CHECK_INT(put(c, 258, 1, 10), 1);
    CHECK_INT(stat(at("new"), &st), 0);
    CHECK_INT(st.st_mode & 07777, 0700);
    CHECK_INT(stat(at("new/penstock-cache"), &st), 0);
    CHECK_INT(st.st_mode & 07777, 0600);
    CHECK_INT(stat(folder_of("new", pack_a), &st), 0);
    CHECK_INT(st.st_mode & 07777, 0700);
    CHECK_INT(stat(entry_of("new", pack_a, 258), &st), 0);
    CHECK_INT(st.st_mode & 07777, 0600);
    pen__cache_close(&c);
    c = open_for(at("new/"), pack_a, 0, NULL);
    CHECK(c);
    CHECK_INT(has(c, 258, 1, 10), 1);
    CHECK_INT(has(c, 2, 1, 10), 0);
    pen__cache_close(&c);
    pen__cache_close(&c);
}

static void check_refused(const char *dir, int status, const char *says)
{
    PenError err = {0};
    PenCache *c = open_for(dir, pack_a, 0, &err);
    CHECK(!c);
    CHECK_INT(err.status, status);
    if (!strstr(err.message, says))
        printf("%s\n", err.message);
    CHECK(strstr(err.message, says));
}

TEST(refuses_what_is_not_a_cache)
{
    static char longest[5000];
    memset(longest, 'x', sizeof longest - 1);
    help_text("data/train.csv", "precious");
    check_refused(at("data"), PEN_E_EXISTS, "it has no file penstock-cache and is not empty");
    CHECK_INT(names_in(at("data"), ""), 1);
    check_refused(at("data/train.csv"), PEN_E_INVALID, "found a file");
    check_refused(at("no/such"), PEN_E_NOT_FOUND, "the parent directory does not exist");
    check_refused("", PEN_E_INVALID, "expected a directory name");
    check_refused(longest, PEN_E_INVALID, "1 to 3900 bytes");
    CHECK_INT(mkdir(at("all"), 0777), 0);
    CHECK_INT(chmod(at("all"), 0777), 0);
    check_refused(at("all"), PEN_E_ACCESS, "every user may write to it (mode 0777");
    CHECK_INT(names_in(at("all"), ""), 0);
    help_text("odd/penstock-cache",
              "something else, which is longer than the accounting are, by far");
    check_refused(at("odd"), PEN_E_FORMAT, "was written by another version");
    help_text("short/penstock-cache", "PENCACHE");
    check_refused(at("short"), PEN_E_FORMAT, "was written by another version");
    CHECK_INT(mkdir(at("link"), 0700), 0);
    CHECK_INT(symlink(at("data/train.csv"), at("link/penstock-cache")), 0);
    check_refused(at("link"), PEN_E_FORMAT, "penstock-cache is a symbolic link");
    CHECK_INT(mkdir(at("fifo"), 0700), 0);
    CHECK_INT(mkfifo(at("fifo/penstock-cache"), 0600), 0);
    check_refused(at("fifo"), PEN_E_FORMAT, "not a regular file");
    /* The maker of a marker was killed before it wrote to it: nothing else may be there. */
    help_text("begun/penstock-cache", "");
    PenCache *c = open_for(at("begun"), pack_a, 0, NULL);
    CHECK(c);
    pen__cache_close(&c);
    help_text("mixed/penstock-cache", "");
    help_text("mixed/other", "");
    check_refused(at("mixed"), PEN_E_EXISTS, "is not empty (it contains 'other')");
}

static int no_locks(int fd, int how, uint64_t offset)
{
    (void)fd, (void)how, (void)offset;
    return -ENOLCK;
}

TEST(what_cannot_lock_is_an_error_at_once)
{
    sys = pen__sys_real;
    sys.lock_byte = no_locks;
    pen__sys = &sys;
    check_refused(at("nolock"), PEN_E_UNSUPPORTED, "this file system does not support");
    pen__sys = &pen__sys_real;
}

static int of_another(int fd, PenFileStat *ret)
{
    int r = pen__sys_real.stat_fd(fd, ret);
    ret->uid = geteuid() + 1;
    return r;
}

TEST(each_user_has_his_own)
{
    PenCache *c = open_for(at("mine"), pack_a, 0, NULL);
    CHECK(c);
    pen__cache_close(&c);
    sys = pen__sys_real;
    sys.stat_fd = of_another;
    pen__sys = &sys;
    check_refused(at("mine"), PEN_E_ACCESS, "belongs to user");
    pen__sys = &pen__sys_real;
}

/* ---- entries --------------------------------------------------------------------------------- */

TEST(books_say_what_is_there)
{
    PenCache *c = open_for(at("accounting"), pack_a, 100000, NULL);
    CHECK(c);
    for (uint64_t i = 0; i < 300; i++)
        CHECK_INT(put(c, i, (uint8_t)i, 100 + i % 7), 1);
    for (uint64_t i = 0; i < 300; i++)
        CHECK_INT(has(c, i, (uint8_t)i, 100 + i % 7), 1);
    PenAccounting b = books_of(c);
    uint64_t all = stats_of(c).stored_bytes;
    CHECK_INT(b.used, all);
    CHECK_INT(b.pending, 0);
    pen__cache_drop(c, block(7));
    pen__cache_drop(c, block(7));
    pen__cache_drop(c, block(7000));
    CHECK_INT(has(c, 7, 7, 100), 0);
    CHECK_INT(books_of(c).used, all - 100);
    PenCacheTotal total;
    CHECK_INT(pen_cache_inspect(at("accounting"), NULL, NULL, &total, NULL), PEN_OK);
    CHECK_INT(total.packs, 1);
    CHECK_INT(total.entries, 299);
    CHECK_INT(total.bytes, all - 100);
    CHECK(total.disk_bytes > total.disk_free_bytes);
    CHECK_INT(names_in(folder_of("accounting", pack_a), "new-"), 0);
    pen__cache_close(&c);
}

TEST(the_same_pack_never_pushes_itself_out)
{
    PenCache *c = open_for(at("full"), pack_a, 1000, NULL);
    CHECK(c);
    for (uint64_t i = 0; i < 20; i++)
        CHECK_INT(put(c, i, 1, 100), i < 10);
    for (uint64_t i = 0; i < 20; i++)
        CHECK_INT(has(c, i, 1, 100), i < 10);
    CHECK_INT(books_of(c).used, 1000);
    PenCacheStats s = stats_of(c);
    CHECK_INT(s.stored, 10);
    CHECK_INT(s.not_stored_full, 10);
    CHECK_INT(put(c, 100, 1, 2000), 0); /* larger than all of it */
    CHECK_INT(stats_of(c).not_stored_full, 11);
    pen__cache_close(&c);
}

/* Entries of several sizes: which of them are stored when the cache becomes full follows from the
 * order in which they arrive. One that is too large leaves space that a smaller one takes later. */
TEST(a_smaller_entry_takes_what_a_larger_one_left)
{
    PenCache *c = open_for(at("rest"), pack_a, 1000, NULL);
    CHECK(c);
    CHECK_INT(put(c, 0, 1, 870), 1);
    CHECK_INT(put(c, 1, 1, 132), 0);
    CHECK_INT(put(c, 2, 1, 128), 0); /* it fits, and is not tried so soon after that */
    pen__cache_close(&c);
    c = open_for(at("rest"), pack_a, 1000, NULL);
    CHECK(c);
    CHECK_INT(put(c, 2, 1, 128), 1);
    CHECK_INT(put(c, 3, 1, 128), 0);
    CHECK_INT(books_of(c).used, 998);
    CHECK_INT(stats_of(c).evicted_bytes, 0);
    pen__cache_close(&c);
}

static PenCache *beside;
static int stored_beside;

/* Another process stores while the first one has reserved, and has not written yet. */
static int open_beside_another(const char *path, int how)
{
    PenCache *c = beside;
    beside = NULL;
    if (c && strstr(path, "/new-"))
        stored_beside = put(c, 2, 2, 500);
    else
        beside = c;
    return pen__sys_real.open(path, how);
}

/* Space that is reserved counts as used: the limit holds at every moment, and no reservation leaves
 * space behind unless its write fails. */
TEST(two_that_store_at_once_stay_below_the_limit)
{
    for (int fits = 0; fits < 2; fits++) {
        const char *dir = at(fits ? "both" : "one");
        PenCache *c = open_for(dir, pack_a, 999 + (uint64_t)fits, NULL);
        beside = open_for(dir, pack_a, 999 + (uint64_t)fits, NULL);
        PenCache *second = beside;
        CHECK(c && second);
        sys = pen__sys_real;
        sys.open = open_beside_another;
        pen__sys = &sys;
        stored_beside = -1;
        CHECK_INT(put(c, 1, 1, 500), 1);
        pen__sys = &pen__sys_real;
        CHECK_INT(stored_beside, fits);
        CHECK_INT(books_of(c).used, fits ? 1000 : 500);
        CHECK_INT(books_of(c).pending, 0);
        pen__cache_close(&second);
        pen__cache_close(&c);
    }
}

TEST(packs_not_in_use_make_room_oldest_first)
{
    sys = pen__sys_real;
    sys.unix_ns = given_unix_ns;
    sys.now_ns = turned_now_ns;
    pen__sys = &sys;
    unix_s = 2000;
    PenCache *b = open_for(at("evict"), pack_b, 3000, NULL);
    unix_s = 1000;
    PenCache *a = open_for(at("evict"), pack_a, 3000, NULL);
    unix_s = 3000;
    PenCache *c = open_for(at("evict"), pack_c, 3000, NULL);
    CHECK(a && b && c);
    for (uint64_t i = 0; i < 10; i++)
        CHECK_INT(put(a, i, 1, 100) + put(b, i, 2, 100), 2);
    for (uint64_t i = 0; i < 11; i++)
        CHECK_INT(put(c, i, 3, 100), i < 10);
    CHECK_INT(stats_of(c).not_stored_full, 1); /* both are in use */
    pen__cache_close(&a);
    CHECK_INT(put(c, 10, 3, 100), 0); /* not looked at again so soon */
    cache_turned_ns += 20000000000u;
    CHECK_INT(put(c, 10, 3, 100), 1);
    CHECK_INT(stats_of(c).evicted_bytes, 200); /* a little more than was needed */
    CHECK_INT(books_of(c).used, 2900);
    for (uint64_t i = 11; i < 20; i++)
        CHECK_INT(put(c, i, 3, 100), 1);
    CHECK_INT(stats_of(c).evicted_bytes, 1000);
    for (uint64_t i = 0; i < 10; i++)
        CHECK_INT(has(b, i, 2, 100), 1);
    CHECK_INT(put(c, 20, 3, 100), 0); /* what is in use stays */
    CHECK(!there(folder_of("evict", pack_a)));
    pen__cache_close(&b);
    cache_turned_ns += 20000000000u;
    CHECK_INT(put(c, 20, 3, 100), 1);
    CHECK_INT(books_of(c).used, 2900);
    pen__cache_close(&c);
    /* Which one goes first is by the time of the last opening, not by the name. */
    unix_s = 4000;
    b = open_for(at("evict"), pack_b, 3000, NULL);
    pen__cache_close(&b);
    a = open_for(at("evict"), pack_a, 3000, NULL);
    CHECK_INT(put(a, 1, 2, 2000), 1);
    CHECK(there(entry_of("evict", pack_b, 9)) && !there(entry_of("evict", pack_c, 10)));
    pen__cache_close(&a);
    pen__sys = &pen__sys_real;
}

static char evict_dir[4400];
static int n_unlinked, n_freed_beside;

/* How many bytes another process frees that wants room now; -1 when it cannot tell. */
static int evict_beside(void)
{
    pid_t child = fork();
    if (child == 0) {
        pen__sys = &pen__sys_real;
        PenCache *c = open_for(evict_dir, pack_c, 1000, NULL);
        _exit(c ? (int)pen__cache_evict(c, 85) : 255);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) == 255)
        return -1;
    return WEXITSTATUS(status);
}

static int unlink_beside_another(int dir, const char *name)
{
    if (n_unlinked++ == 0)
        n_freed_beside = evict_beside();
    return pen__sys_real.unlink(dir, name);
}

/* Two at once would both remove what one of them needs. */
TEST(one_process_at_a_time_makes_room)
{
    snprintf(evict_dir, sizeof evict_dir, "%s", at("evict2"));
    static const uint8_t idle[2][16] = {"pack d, of tests", "pack e, of tests"};
    for (int n = 0; n < 2; n++) {
        PenCache *a = open_for(evict_dir, idle[n], 1000, NULL);
        CHECK(a);
        for (uint64_t i = 0; i < 5; i++)
            CHECK_INT(put(a, i, 1, 100), 1);
        pen__cache_close(&a);
    }
    PenCache *b = open_for(evict_dir, pack_b, 1000, NULL);
    CHECK(b);
    sys = pen__sys_real;
    sys.unlink = unlink_beside_another;
    pen__sys = &sys;
    n_unlinked = 0;
    n_freed_beside = -1;
    uint64_t freed = pen__cache_evict(b, 85); /* with the 15 more that are freed: one entry */
    pen__sys = &pen__sys_real;
    CHECK_INT(freed, 100);
    CHECK_INT(n_unlinked, 1);
    CHECK_INT(n_freed_beside, 0);
    CHECK_INT(books_of(b).used, 900);
    CHECK_INT(evict_beside(), 100); /* now it is its turn */
    CHECK_INT(books_of(b).used, 800);
    pen__cache_close(&b);
}

/* ---- a disk that is full or fails ------------------------------------------------------------ */

static int failing_errno;
static PenDiskSpace room;

static int64_t failing_pwritev(int fd, const struct iovec *iov, int n, uint64_t offset)
{
    if (iov->iov_len == 64) /* the accounting */
        return pen__sys_real.pwritev(fd, iov, n, offset);
    if (failing_errno == 0) { /* writes less and less, and then nothing */
        struct iovec half = {iov->iov_base, iov->iov_len / 2};
        return half.iov_len ? pen__sys_real.pwritev(fd, &half, 1, offset) : 0;
    }
    return -failing_errno;
}

static int given_room(int fd, PenDiskSpace *ret)
{
    (void)fd;
    *ret = room;
    return 0;
}

TEST(a_disk_that_fails_is_left_alone_for_a_while)
{
    static const int errors[] = {ENOSPC, EDQUOT, EIO, EROFS, 0};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        char name[32];
        snprintf(name, sizeof name, "fails-%zu", i);
        sys = pen__sys_real;
        sys.now_ns = turned_now_ns;
        pen__sys = &sys;
        PenCache *c = open_for(at(name), pack_a, 100000, NULL);
        CHECK(c);
        CHECK_INT(put(c, 1, 1, 1000), 1);
        sys.pwritev = failing_pwritev;
        failing_errno = errors[i];
        CHECK_INT(put(c, 2, 1, 1000), 0);
        CHECK_INT(put(c, 3, 1, 1000), 0);
        sys.pwritev = pen__sys_real.pwritev;
        CHECK_INT(put(c, 4, 1, 1000), 0);
        CHECK_INT(pen__cache_wants(c, 1000), 0);
        bool full = errors[i] == ENOSPC || errors[i] == EDQUOT || errors[i] == 0;
        CHECK_INT(stats_of(c).not_stored_disk, full ? 4 : 0);
        CHECK_INT(stats_of(c).not_stored_error, full ? 0 : 4);
        CHECK_INT(has(c, 1, 1, 1000), 1);
        CHECK_INT(books_of(c).used, 1000);
        CHECK_INT(books_of(c).pending, 0);
        CHECK_INT(names_in(folder_of(name, pack_a), "new-"), 0);
        cache_turned_ns += 60000000000u;
        CHECK_INT(put(c, 4, 1, 1000), 1);
        pen__cache_close(&c);
        pen__sys = &pen__sys_real;
    }
}

TEST(some_of_the_disk_stays_free)
{
    sys = pen__sys_real;
    sys.disk_space = given_room;
    sys.now_ns = turned_now_ns;
    pen__sys = &sys;
    room = (PenDiskSpace){1000000, 20000};
    PenCache *c = open_for(at("low"), pack_a, 0, NULL);
    CHECK(c);
    CHECK_INT(c->limit, 500000);
    CHECK_INT(put(c, 1, 1, 10000), 1); /* 1 % of a small disk */
    room.free_bytes = 19999;
    CHECK_INT(put(c, 2, 1, 10000), 0);
    CHECK_INT(stats_of(c).not_stored_disk, 1);
    cache_turned_ns += 20000000000u;
    room =
        (PenDiskSpace){UINT64_C(1) << 50, (UINT64_C(1) << 30) + 10000}; /* 1 GiB of a large one */
    CHECK_INT(put(c, 2, 1, 10000), 1);
    room.free_bytes--;
    CHECK_INT(put(c, 3, 1, 10000), 0);
    pen__cache_close(&c);
    pen__sys = &pen__sys_real;
}

/* ---- locks ----------------------------------------------------------------------------------- */

TEST(an_entry_is_fetched_by_one)
{
    PenCache *one = open_for(at("claim"), pack_a, 0, NULL);
    PenCache *two = open_for(at("claim"), pack_a, 0, NULL);
    PenCache *other = open_for(at("claim"), pack_b, 0, NULL);
    CHECK(one && two && other);
    CHECK_INT(pen__cache_claim(one, block(5)), 1);
    CHECK_INT(pen__cache_claim(two, block(5)), 0);
    CHECK_INT(pen__cache_claim(two, block(6)), 1);
    CHECK_INT(pen__cache_claim(two, (PenCacheKey){PEN_CACHE_TAIL, 5}), 1);
    CHECK_INT(pen__cache_claim(other, block(5)), 1);
    pen__cache_release(one, block(5));
    CHECK_INT(pen__cache_claim(two, block(5)), 1);
    pen__cache_close(&two);
    CHECK_INT(pen__cache_claim(one, block(5)), 1);
    CHECK_INT(pen__cache_claim(one, block(6)), 1);
    pen__cache_close(&one);
    pen__cache_close(&other);
}

static int rename_and_die(int from_dir, const char *from, int to_dir, const char *to)
{
    if (strstr(from, "/new-") && strstr(to, ".block"))
        kill(getpid(), SIGKILL);
    return pen__sys_real.rename(from_dir, from, to_dir, to);
}

static void die_while_storing(const char *dir)
{
    pid_t child = fork();
    if (child == 0) {
        sys = pen__sys_real;
        sys.rename = rename_and_die;
        pen__sys = &sys;
        PenCache *c = open_for(dir, pack_a, 0, NULL);
        if (c && pen__cache_claim(c, block(9)) == 1)
            put(c, 9, 9, 5000);
        _exit(1);
    }
    int status = 0;
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

TEST(who_is_killed_leaves_nothing_behind)
{
    char dir[4400];
    snprintf(dir, sizeof dir, "%s", at("killed"));
    PenCache *c = open_for(dir, pack_a, 0, NULL);
    CHECK(c);
    CHECK_INT(put(c, 1, 1, 1000), 1);
    die_while_storing(dir);
    CHECK_OK_SO_FAR();
    CHECK_INT(books_of(c).used, 6000); /* too much, and known to be so */
    CHECK_INT(books_of(c).pending, 1);
    CHECK_INT(names_in(folder_of("killed", pack_a), "new-"), 1);
    CHECK_INT(pen__cache_claim(c, block(9)), 1);
    CHECK_INT(put(c, 9, 9, 5000), 1);
    /* One more opens it while it is in use: nothing may be removed. */
    PenCache *second = open_for(dir, pack_b, 0, NULL);
    CHECK(second);
    CHECK_INT(names_in(folder_of("killed", pack_a), "new-"), 1);
    CHECK_INT(books_of(c).pending, 1);
    pen__cache_close(&second);
    pen__cache_close(&c);
    c = open_for(dir, pack_a, 0, NULL);
    CHECK(c);
    CHECK_INT(books_of(c).used, 6000);
    CHECK_INT(books_of(c).pending, 0);
    CHECK_INT(names_in(folder_of("killed", pack_a), "new-"), 0);
    CHECK_INT(has(c, 9, 9, 5000), 1);
    CHECK_INT(has(c, 1, 1, 1000), 1);
    /* And others are let in again. */
    second = open_for(dir, pack_b, 0, NULL);
    CHECK(second);
    CHECK_INT(put(second, 1, 1, 10), 1);
    pen__cache_close(&second);
    pen__cache_close(&c);
}

TEST(a_process_that_hangs_with_the_books_holds_up_nobody)
{
    PenCache *one = open_for(at("hang"), pack_a, 0, NULL);
    PenCache *two = open_for(at("hang"), pack_a, 0, NULL);
    CHECK(one && two);
    PenAccounting b;
    CHECK_INT(pen__accounting_begin(one, 0, &b), 0);
    CHECK_INT(put(two, 1, 1, 10), 0);
    CHECK_INT(stats_of(two).not_stored_busy, 1);
    check_refused(at("hang"), PEN_E_BUSY,
                  "another process has held the lock of the cache for 200 ms");
    CHECK_INT(pen__accounting_end(one, NULL), 0);
    CHECK_INT(put(two, 1, 1, 10), 1);
    pen__cache_close(&one);
    pen__cache_close(&two);
}

TEST(books_that_are_wrong_are_counted_anew)
{
    PenCache *c = open_for(at("wrong"), pack_a, 0, NULL);
    CHECK(c);
    CHECK_INT(put(c, 1, 1, 1000) + put(c, 300, 1, 500), 2);
    PenCache *second = open_for(at("wrong"), pack_b, 0, NULL);
    CHECK(second);
    int fd = open(at("wrong/penstock-cache"), O_WRONLY);
    CHECK_INT(pwrite(fd, "\xff\xff", 2, 20), 2);
    close(fd);
    CHECK_INT(put(c, 2, 1, 10), 1);
    CHECK_INT(books_of(c).used, 1510);
    CHECK_INT(truncate(at("wrong/penstock-cache"), 0), 0);
    CHECK_INT(put(c, 3, 1, 20), 1);
    CHECK_INT(books_of(c).used, 1530);
    pen__cache_close(&second);
    pen__cache_close(&c);
    /* Removed by hand: noticed when somebody looks, or after a day. */
    CHECK_INT(unlink(entry_of("wrong", pack_a, 1)), 0);
    PenCacheTotal total;
    CHECK_INT(pen_cache_inspect(at("wrong"), NULL, NULL, &total, NULL), PEN_OK);
    c = open_for(at("wrong"), pack_a, 0, NULL);
    CHECK(c);
    CHECK_INT(books_of(c).used, 530);
    pen__cache_close(&c);
}

/* What another process was writing while the accounting was counted anew was not in that count. */
TEST(books_counted_beside_others_are_counted_again)
{
    PenCache *c = open_for(at("beside"), pack_a, 0, NULL);
    PenCache *second = open_for(at("beside"), pack_b, 0, NULL);
    CHECK(c && second);
    CHECK_INT(put(second, 1, 1, 1000), 1);
    char late[PEN_CACHE_PATH];
    snprintf(late, sizeof late, "%s", entry_of("beside", pack_b, 1));
    CHECK_INT(rename(late, at("written")), 0);
    CHECK_INT(truncate(at("beside/penstock-cache"), 0), 0);
    CHECK_INT(put(c, 2, 1, 10), 1);
    CHECK_INT(rename(at("written"), late), 0);
    CHECK_INT(books_of(c).used, 10);
    pen__cache_close(&second);
    pen__cache_close(&c);
    c = open_for(at("beside"), pack_a, 0, NULL);
    CHECK(c);
    CHECK_INT(books_of(c).used, 1010);
    pen__cache_close(&c);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    RUN(is_made_for_its_user_alone);
    RUN(refuses_what_is_not_a_cache);
    RUN(what_cannot_lock_is_an_error_at_once);
    RUN(each_user_has_his_own);
    RUN(books_say_what_is_there);
    RUN(the_same_pack_never_pushes_itself_out);
    RUN(a_smaller_entry_takes_what_a_larger_one_left);
    RUN(two_that_store_at_once_stay_below_the_limit);
    RUN(packs_not_in_use_make_room_oldest_first);
    RUN(one_process_at_a_time_makes_room);
    RUN(a_disk_that_fails_is_left_alone_for_a_while);
    RUN(some_of_the_disk_stays_free);
    RUN(an_entry_is_fetched_by_one);
    RUN(who_is_killed_leaves_nothing_behind);
    RUN(a_process_that_hangs_with_the_books_holds_up_nobody);
    RUN(books_that_are_wrong_are_counted_anew);
    RUN(books_counted_beside_others_are_counted_again);
    help_end();
    return TEST_END();
}
