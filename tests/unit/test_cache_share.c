/* SPDX-License-Identifier: Apache-2.0 */
/* A cache of several users: whose entries are used, and who waits for whom. The tests that need
 * other users run as root, and put files of other users in place or change their own user. */
#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "cache/share.h"
#include "cache_help.h"
#include "fault_sweep.h"

enum { ALICE = 4001, BOB = 4002, MALLORY = 4003, TEAM = 4100 };

static bool is_root(void)
{
    return geteuid() == 0;
}

static uint32_t wait_ms = 200;

static PenCache *share(const char *dir, uint32_t n, const uint32_t *trusted, PenError *err)
{
    PenCacheSettings s;
    PenCache *c = NULL;
    pen_cache_settings_init(&s);
    s.directory = dir;
    s.wait_ms = wait_ms;
    s.share = 1;
    s.n_trusted = n;
    s.trusted = trusted;
    int r = pen__cache_open(&s, pack_a, "s3://from/here", &c, err);
    if (r < 0 && !err)
        printf("cannot open %s: %d\n", dir, r);
    return c;
}

static void make_shared(const char *name)
{
    CHECK_INT(mkdir(at(name), 0700), 0);
    CHECK_INT(chown(at(name), geteuid(), is_root() ? TEAM : getegid()), 0);
    CHECK_INT(chmod(at(name), 03770), 0);
}

/* The directory of a user, below a shared one. */
static const char *of_user(const char *name, uint32_t uid)
{
    static char path[64];
    snprintf(path, sizeof path, "%s/user-%u", name, uid);
    return path;
}

/* ---- opening --------------------------------------------------------------------------------- */

static int mode_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (int)st.st_mode & 0777 : -1;
}

TEST(the_group_may_read_and_nobody_else_write)
{
    make_shared("modes");
    const char *own = of_user("modes", geteuid());
    char name[128];
    mode_t old = umask(077);
    PenCache *c = share(at("modes"), 0, NULL, NULL);
    CHECK(c);
    CHECK_INT(put(c, 258, 1, 10), 1);
    CHECK_INT(has(c, 258, 1, 10), 1);
    CHECK_INT(mode_of(at(own)), 0750);
    snprintf(name, sizeof name, "%s/penstock-cache", own);
    CHECK_INT(mode_of(at(name)), 0600);
    snprintf(name, sizeof name, "%s/claims", own);
    CHECK_INT(mode_of(at(name)), 0640);
    CHECK_INT(mode_of(folder_of(own, pack_a)), 0750);
    CHECK_INT(mode_of(entry_of(own, pack_a, 258)), 0640);
    snprintf(name, sizeof name, "%s/02", strrchr(folder_of(own, pack_a), '/') + 1);
    char folder[300];
    snprintf(folder, sizeof folder, "%s/%s", own, name);
    CHECK_INT(mode_of(at(folder)), 0750);
    /* A process that was killed before it set them. */
    CHECK_INT(chmod(folder_of(own, pack_a), 0700), 0);
    CHECK_INT(chmod(at(folder), 0700), 0);
    pen__cache_close(&c);
    c = share(at("modes"), 0, NULL, NULL);
    CHECK(c);
    CHECK_INT(put(c, 2, 1, 10), 1);
    CHECK_INT(mode_of(folder_of(own, pack_a)), 0750);
    CHECK_INT(mode_of(at(folder)), 0750);
    pen__cache_close(&c);
    umask(old);
}

static void check_refused(const char *dir, uint32_t n, int status, const char *says)
{
    PenError err = {0};
    static uint32_t trusted[300];
    PenCache *c = share(dir, n, trusted, &err);
    CHECK(!c);
    CHECK_INT(err.status, status);
    if (!strstr(err.message, says))
        printf("%s\n", err.message);
    CHECK(strstr(err.message, says));
}

TEST(refuses_directories_that_are_not_safe)
{
    check_refused(at("no-such"), 0, PEN_E_NOT_FOUND, "install -d -m 3770 -g GROUP");
    check_refused("", 0, PEN_E_INVALID, "expected a directory");
    help_text("shared-file", "mine");
    check_refused(at("shared-file"), 0, PEN_E_NOT_FOUND, "cannot use as a shared cache");
    make_shared("unsafe");
    CHECK_INT(chmod(at("unsafe"), 03777), 0);
    check_refused(at("unsafe"), 0, PEN_E_ACCESS, "every user may write to it (mode 3777)");
    CHECK_INT(chmod(at("unsafe"), 02770), 0);
    check_refused(at("unsafe"), 0, PEN_E_ACCESS, "found mode 2770. Run 'chmod 3770'");
    CHECK_INT(chmod(at("unsafe"), 01770), 0);
    check_refused(at("unsafe"), 0, PEN_E_ACCESS, "found mode 1770. Run 'chmod 3770'");
    CHECK_INT(chmod(at("unsafe"), 03770), 0);
    check_refused(at("unsafe"), 257, PEN_E_INVALID, "at most 256 users, found 257");
    CHECK_INT(names_in(at("unsafe"), ""), 0);
    const uint32_t nobody[] = {ALICE, 65534};
    PenError why = {0};
    CHECK(!share(at("unsafe"), 2, nobody, &why));
    CHECK_INT(why.status, PEN_E_INVALID);
    CHECK(strstr(why.message, "user 65534 (nobody) cannot share a cache"));
    CHECK_INT(names_in(at("unsafe"), ""), 0);
    help_text(of_user("unsafe", geteuid()), "a file");
    check_refused(at("unsafe"), 0, PEN_E_ACCESS, "expected a directory that belongs to this user");
    PenCache *c = open_for(at("alone"), pack_a, 0, NULL);
    pen__cache_close(&c);
    check_refused(at("alone"), 0, PEN_E_EXISTS, "is your own cache, and cannot be shared");
    /* Trusted users of a cache that is not shared. */
    PenCacheSettings s;
    PenError err = {0};
    pen_cache_settings_init(&s);
    s.directory = at("alone");
    s.n_trusted = 1;
    CHECK_INT(pen__cache_open(&s, pack_a, "", &c, &err), PEN_E_INVALID);
}

TEST(refuses_directories_of_strangers)
{
    const uint32_t alice = ALICE;
    if (!is_root())
        SKIP("not root");
    make_shared("strange");
    CHECK_INT(chown(at("strange"), MALLORY, TEAM), 0);
    CHECK_INT(chmod(at("strange"), 03770), 0);
    check_refused(at("strange"), 0, PEN_E_ACCESS, "belongs to user 4003, who is not trusted");
    CHECK_INT(chown(at("strange"), ALICE, TEAM), 0);
    CHECK_INT(chmod(at("strange"), 03770), 0);
    PenCache *c = share(at("strange"), 1, &alice, NULL);
    CHECK(c);
    pen__cache_close(&c);
    /* Somebody was there before us. */
    CHECK_INT(chown(at(of_user("strange", 0)), MALLORY, TEAM), 0);
    PenError err = {0};
    CHECK(!share(at("strange"), 1, &alice, &err));
    CHECK_INT(err.status, PEN_E_ACCESS);
    /* A marker that a member puts there stops nobody. */
    help_text("strange/penstock-cache", "x");
    CHECK_INT(chown(at("strange/penstock-cache"), MALLORY, TEAM), 0);
    CHECK_INT(chown(at(of_user("strange", 0)), 0, TEAM), 0);
    c = share(at("strange"), 1, &alice, NULL);
    CHECK(c);
    pen__cache_close(&c);
}

/* ---- entries --------------------------------------------------------------------------------- */

enum { ENTRY, FOLDER, PACK, USER, PARTS };

/* The parts of the path of entry 7 of a user. */
static void parts_of(uint32_t uid, char ret[PARTS][600])
{
    const char *user = of_user("team", uid);
    snprintf(ret[USER], 600, "%s", at(user));
    snprintf(ret[PACK], 600, "%s", folder_of(user, pack_a));
    snprintf(ret[FOLDER], 600, "%s/07", folder_of(user, pack_a));
    snprintf(ret[ENTRY], 600, "%s", entry_of(user, pack_a, 7));
}

/* An entry of 10 bytes as the user itself would have stored it. */
static void plant(uint32_t uid, char parts[PARTS][600])
{
    parts_of(uid, parts);
    for (int i = USER; i > ENTRY; i--) {
        CHECK_INT(mkdir(parts[i], 0750), 0);
        CHECK_INT(chown(parts[i], uid, TEAM), 0);
        CHECK_INT(chmod(parts[i], 02750), 0);
    }
    int fd = open(parts[ENTRY], O_WRONLY | O_CREAT | O_EXCL, 0640);
    CHECK_INT(write(fd, "\7\7\7\7\7\7\7\7\7\7", 10), 10);
    CHECK_INT(fchown(fd, uid, TEAM), 0);
    CHECK_INT(fchmod(fd, 0640), 0);
    close(fd);
}

static void clear(uint32_t uid)
{
    nftw(at(of_user("team", uid)), help_remove, 16, FTW_DEPTH | FTW_PHYS);
}

static void as_link(char parts[PARTS][600], int part)
{
    char aside[700];
    snprintf(aside, sizeof aside, "%s/aside", at("."));
    CHECK_INT(rename(parts[part], aside), 0);
    CHECK_INT(symlink(aside, parts[part]), 0);
    CHECK_INT(lchown(parts[part], ALICE, TEAM), 0);
}

static void as_fifo(char parts[PARTS][600])
{
    CHECK_INT(unlink(parts[ENTRY]), 0);
    CHECK_INT(mkfifo(parts[ENTRY], 0640), 0);
    CHECK_INT(chown(parts[ENTRY], ALICE, TEAM), 0);
}

static void as_directory(char parts[PARTS][600])
{
    CHECK_INT(unlink(parts[ENTRY]), 0);
    CHECK_INT(mkdir(parts[ENTRY], 0750), 0);
    CHECK_INT(chown(parts[ENTRY], ALICE, TEAM), 0);
}

/* A file of mallory's that has a name in the directory of alice too. */
static void as_hard_link(char parts[PARTS][600])
{
    help_text("of-mallory", "\7\7\7\7\7\7\7\7\7\7");
    CHECK_INT(chown(at("of-mallory"), MALLORY, TEAM), 0);
    CHECK_INT(unlink(parts[ENTRY]), 0);
    CHECK_INT(link(at("of-mallory"), parts[ENTRY]), 0);
}

static void check_hostile(PenCache *c, const char *what)
{
    uint64_t before = stats_of(c).refused;
    int found = has(c, 7, 7, 10);
    if (found || stats_of(c).refused != before + 1)
        printf("%s: found %d, refused %d\n", what, found, (int)(stats_of(c).refused - before));
    CHECK_INT(found, 0);
    CHECK_INT(stats_of(c).refused, before + 1);
    clear(ALICE);
    nftw(at("aside"), help_remove, 16, FTW_DEPTH | FTW_PHYS);
}

TEST(only_entries_that_a_trusted_user_alone_can_write)
{
    static void (*const odd[])(char parts[PARTS][600]) = {as_fifo, as_directory, as_hard_link};
    const uint32_t alice = ALICE;
    char parts[PARTS][600], what[64];
    if (!is_root())
        SKIP("not root");
    make_shared("team");
    PenCache *c = share(at("team"), 1, &alice, NULL);
    CHECK(c);
    plant(ALICE, parts);
    CHECK_INT(has(c, 7, 7, 10), 1);
    CHECK_INT(truncate(parts[ENTRY], INT64_C(1) << 40), 0);
    CHECK_INT(has(c, 7, 7, 10), -1); /* its size tells, before anything is read */
    clear(ALICE);
    for (int part = 0; part < PARTS; part++) {
        snprintf(what, sizeof what, "part %d belongs to mallory", part);
        plant(ALICE, parts);
        CHECK_INT(chown(parts[part], MALLORY, TEAM), 0);
        check_hostile(c, what);
        for (int bit = 020; bit >= 002; bit /= 8) {
            snprintf(what, sizeof what, "part %d can be written by %o", part, bit);
            plant(ALICE, parts);
            CHECK_INT(chmod(parts[part], (mode_t)(0750 | bit)), 0);
            check_hostile(c, what);
        }
        snprintf(what, sizeof what, "part %d is a link", part);
        plant(ALICE, parts);
        as_link(parts, part);
        check_hostile(c, what);
    }
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        snprintf(what, sizeof what, "odd %zu", i);
        plant(ALICE, parts);
        odd[i](parts);
        check_hostile(c, what);
    }
    /* Those of others are not even looked for. */
    uint64_t before = stats_of(c).refused;
    plant(MALLORY, parts);
    CHECK_INT(has(c, 7, 7, 10), 0);
    CHECK_INT(stats_of(c).refused, before);
    /* Our own must be ours as well, and ours come first. */
    CHECK_INT(put(c, 7, 9, 10), 1);
    plant(ALICE, parts);
    CHECK_INT(has(c, 7, 9, 10), 1);
    CHECK_INT(chown(entry_of(of_user("team", 0), pack_a, 7), MALLORY, TEAM), 0);
    CHECK_INT(has(c, 7, 7, 10), 1);
    CHECK_INT(stats_of(c).refused, before + 1);
    /* A damaged one of another is left where it is. */
    pen__cache_drop(c, block(7));
    CHECK_INT(has(c, 7, 7, 10), 1);
    pen__cache_close(&c);
}

/* Puts mallory's file in the place of alice's: just before it is opened, or just after. */
static int swap_at;
static int swapping(int dir, const char *name, int how)
{
    if (how != PEN_OPEN_PLAIN)
        return pen__sys_real.open_at(dir, name, how);
    int fd = swap_at ? pen__sys_real.open_at(dir, name, how) : -1;
    if (rename(at("of-mallory"), entry_of(of_user("team", ALICE), pack_a, 7)) != 0)
        return -EIO;
    return swap_at ? fd : pen__sys_real.open_at(dir, name, how);
}

TEST(what_was_checked_is_what_is_read)
{
    const uint32_t alice = ALICE;
    char parts[PARTS][600];
    if (!is_root())
        SKIP("not root");
    clear(0);
    PenCache *c = share(at("team"), 1, &alice, NULL);
    CHECK(c);
    sys = pen__sys_real;
    sys.open_at = swapping;
    for (swap_at = 0; swap_at < 2; swap_at++) {
        clear(ALICE);
        plant(ALICE, parts);
        help_text("of-mallory", "\6\6\6\6\6\6\6\6\6\6");
        CHECK_INT(chown(at("of-mallory"), MALLORY, TEAM), 0);
        pen__sys = &sys;
        CHECK_INT(has(c, 7, 7, 10), swap_at);
        pen__sys = &pen__sys_real;
        CHECK_INT(has(c, 7, 7, 10), 0);
    }
    pen__cache_close(&c);
}

TEST(nobody_evicts_what_another_stored)
{
    const uint32_t alice = ALICE;
    char parts[PARTS][600];
    PenCacheTotal total;
    if (!is_root())
        SKIP("not root");
    clear(ALICE);
    plant(ALICE, parts);
    PenCache *c = share(at("team"), 1, &alice, NULL);
    CHECK(c);
    CHECK_INT(put(c, 8, 1, 100), 1);
    pen__cache_close(&c);
    CHECK_INT(pen_cache_clear(at(of_user("team", 0)), &total, NULL), PEN_OK);
    CHECK_INT(total.removed_bytes, 100);
    CHECK(there(parts[ENTRY]));
}

/* ---- claims ---------------------------------------------------------------------------------- */

static void become(uint32_t uid)
{
    CHECK_INT(seteuid(0), 0);
    CHECK_INT(setegid(uid ? TEAM : 0), 0);
    CHECK_INT(seteuid(uid), 0);
    CHECK_INT(prctl(PR_SET_DUMPABLE, 1), 0); /* LeakSanitizer traces the process when it ends */
}

static PenCache *share_as(uint32_t uid, uint32_t trusted)
{
    become(uid);
    return share(at("claims"), 1, &trusted, NULL);
}

static int claim_as(uint32_t uid, PenCache *c)
{
    become(uid);
    return pen__cache_claim(c, block(5));
}

static void release_as(uint32_t uid, PenCache *c)
{
    become(uid);
    pen__cache_release(c, block(5));
}

/* Pretends for a while that nobody has a claim: as if two looked at once. */
static int blind_looks;
static int half_blind(int fd, int how, uint64_t offset)
{
    if (how == PEN_RANGE_ASK && blind_looks > 0) {
        blind_looks--;
        return 0;
    }
    return pen__sys_real.lock_byte(fd, how, offset);
}

/* A lock that everybody who may read the file can take. */
static void hostile_lock(uint32_t uid, int *ret)
{
    char name[128];
    struct flock all = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    snprintf(name, sizeof name, "%s/claims", of_user("claims", uid));
    become(MALLORY);
    int fd = open(at(name), O_RDONLY);
    *ret = fd;
    CHECK(fd >= 0);
    CHECK_INT(fcntl(fd, F_OFD_SETLK, &all), 0);
    CHECK(open(at(name), O_RDWR) < 0);
}

TEST(users_that_trust_each_other_wait_for_each_other)
{
    if (!is_root())
        SKIP("not root");
    CHECK_INT(chmod(at("."), 0755), 0);
    make_shared("claims");
    PenCache *a = share_as(ALICE, BOB), *b = share_as(BOB, ALICE), *m = share_as(MALLORY, BOB);
    CHECK(a && b && m);
    CHECK_INT(claim_as(ALICE, a), 1);
    CHECK_INT(claim_as(BOB, b), 0);
    release_as(ALICE, a);
    CHECK_INT(claim_as(BOB, b), 1);
    CHECK_INT(claim_as(ALICE, a), 0);
    release_as(BOB, b);
    /* Whom nobody trusts keeps nobody waiting. */
    CHECK_INT(claim_as(MALLORY, m), 1);
    CHECK_INT(claim_as(ALICE, a), 1);
    release_as(ALICE, a);
    release_as(MALLORY, m);
    /* Both at once: the lower number goes on. */
    sys = pen__sys_real;
    sys.lock_byte = half_blind;
    pen__sys = &sys;
    CHECK_INT(claim_as(ALICE, a), 1);
    blind_looks = 1;
    CHECK_INT(claim_as(BOB, b), 0);
    release_as(ALICE, a);
    CHECK_INT(claim_as(BOB, b), 1);
    blind_looks = 1;
    CHECK_INT(claim_as(ALICE, a), 1);
    release_as(ALICE, a);
    release_as(BOB, b);
    pen__sys = &pen__sys_real;
    /* A stranger's lock hides a claim, and stops nobody. */
    int fd = -1;
    hostile_lock(ALICE, &fd);
    CHECK_INT(claim_as(ALICE, a), 1);
    CHECK_INT(claim_as(BOB, b), 1);
    release_as(ALICE, a);
    release_as(BOB, b);
    become(0);
    close(fd);
    pen__cache_close(&a);
    pen__cache_close(&b);
    pen__cache_close(&m);
}

/* ---- failures -------------------------------------------------------------------------------- */

static int open_and_use(PenError *err)
{
    const uint32_t alice = ALICE;
    PenCache *c = share(at("faults"), 1, &alice, err);
    if (!c)
        return err->status;
    if (put(c, 3, 1, 100))
        (void)has(c, 3, 1, 100);
    if (pen__cache_claim(c, block(4)) == 1)
        pen__cache_release(c, block(4));
    pen__cache_drop(c, block(3));
    pen__cache_close(&c);
    return PEN_OK;
}

TEST(every_failure_is_an_error_or_a_miss)
{
    int points = 0;
    wait_ms = 1; /* locks that fail are waited for */
    make_shared("faults");
    fault_sweep(open_and_use, &points);
    CHECK(points > 50);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    RUN(the_group_may_read_and_nobody_else_write);
    RUN(refuses_directories_that_are_not_safe);
    RUN(refuses_directories_of_strangers);
    RUN(only_entries_that_a_trusted_user_alone_can_write);
    RUN(what_was_checked_is_what_is_read);
    RUN(nobody_evicts_what_another_stored);
    RUN(users_that_trust_each_other_wait_for_each_other);
    RUN(every_failure_is_an_error_or_a_miss);
    help_end();
    return TEST_END();
}
