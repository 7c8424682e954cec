/* SPDX-License-Identifier: Apache-2.0 */
/* What others have put into a cache's directory, and what the calls about all of it say. */
#include "cache_help.h"

/* ---- what others have put there -------------------------------------------------------------- */

/* A star stands for the pack's folder. */
static void foreign_name(const char *text, const char *id, char ret[600])
{
    snprintf(ret, 600, "foreign/%s%s", *text == '*' ? id : "", text + (*text == '*'));
}

TEST(nothing_foreign_is_removed)
{
    static const char *const foreign[] = {
        "notes.txt",
        "*/notes",
        "*/00/1.block",
        "*/00/0256.block",
        "*/00/x.block",
        "*/00/256.blocks",
        "*/zz/1",
        "*/new-1",
        "*/00/+0.block",
        "*/00/new",
        "*/new-0123456789abcdeg",
        "0123456789abcdef0123456789abcdeF/00/0.block",
    };
    char name[600];
    PenCacheTotal total;
    PenCache *c = open_for(at("foreign"), pack_a, 0, NULL);
    CHECK(c);
    CHECK_INT(put(c, 0, 1, 10) + put(c, 256, 1, 10) + put(c, 1, 1, 10), 3);
    const char *id = strrchr(folder_of("foreign", pack_a), '/') + 1;
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        foreign_name(foreign[i], id, name);
        help_text(name, "mine");
    }
    /* A folder of entries elsewhere, reached by a link; an entry that is a link. */
    help_text("elsewhere/5.block", "mine");
    char link[4700];
    snprintf(link, sizeof link, "%s/05", folder_of("foreign", pack_a));
    CHECK_INT(symlink(at("elsewhere"), link), 0);
    CHECK_INT(symlink(at("elsewhere/5.block"), entry_of("foreign", pack_a, 512)), 0);
    CHECK_INT(put(c, 5, 1, 10), 0); /* not through a link */
    pen__cache_drop(c, block(5));
    pen__cache_close(&c);
    CHECK_INT(pen_cache_clear(at("foreign"), &total, NULL), PEN_OK);
    CHECK_INT(total.removed_entries, 3);
    CHECK_INT(total.removed_bytes, 30);
    CHECK_INT(total.bytes, 0);
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        foreign_name(foreign[i], id, name);
        if (!there(at(name)))
            printf("gone: %s\n", name);
        CHECK(there(at(name)));
    }
    CHECK(there(at("elsewhere/5.block")));
    CHECK(there(entry_of("foreign", pack_a, 512)));
    CHECK(!there(entry_of("foreign", pack_a, 0)) && !there(entry_of("foreign", pack_a, 1)));
}

TEST(odd_things_in_place_of_entries)
{
    PenCache *c = open_for(at("odd-things"), pack_a, 0, NULL);
    CHECK(c);
    CHECK_INT(put(c, 0, 1, 10) + put(c, 256, 1, 10) + put(c, 512, 1, 10) + put(c, 768, 1, 10), 4);
    CHECK_INT(unlink(entry_of("odd-things", pack_a, 0)), 0);
    CHECK_INT(mkfifo(entry_of("odd-things", pack_a, 0), 0600), 0);
    CHECK_INT(unlink(entry_of("odd-things", pack_a, 256)), 0);
    CHECK_INT(mkdir(entry_of("odd-things", pack_a, 256), 0700), 0);
    CHECK_INT(unlink(entry_of("odd-things", pack_a, 512)), 0);
    CHECK_INT(symlink("/etc/passwd", entry_of("odd-things", pack_a, 512)), 0);
    CHECK_INT(truncate(entry_of("odd-things", pack_a, 768), INT64_C(1) << 40), 0);
    CHECK_INT(has(c, 0, 1, 10), 0);
    CHECK_INT(has(c, 256, 1, 10), 0);
    CHECK_INT(has(c, 512, 1, 10), 0);
    CHECK_INT(has(c, 768, 1, 10), -1);
    for (uint64_t n = 0; n < 1024; n += 256) {
        pen__cache_drop(c, block(n));
        CHECK_INT(put(c, n, 2, 20), n != 256); /* a directory stays, and is in the way */
        CHECK_INT(has(c, n, 2, 20), n != 256);
    }
    CHECK_INT(stats_of(c).not_stored_error, 1);
    CHECK_INT(put(c, 1, 2, 20), 1); /* which is no reason to stop storing others */
    pen__cache_close(&c);
    /* A pack's folder that is something else. */
    CHECK_INT(symlink("/tmp", folder_of("odd-things", pack_b)), 0);
    PenError err = {0};
    CHECK(!open_for(at("odd-things"), pack_b, 0, &err));
    CHECK_INT(err.status, PEN_E_EXISTS);
}

/* ---- looking --------------------------------------------------------------------------------- */

static PenCachePack looked[4];
static unsigned n_looked;

static void on_pack(void *ctx, const PenCachePack *pack)
{
    (void)ctx;
    if (n_looked < 4)
        looked[n_looked++] = *pack;
}

TEST(a_look_tells_what_is_in_use)
{
    PenCacheTotal total;
    PenError err = {0};
    CHECK_INT(pen_cache_inspect(at("nothing-here"), NULL, NULL, &total, &err), PEN_E_NOT_FOUND);
    CHECK(!there(at("nothing-here")));
    CHECK_INT(mkdir(at("empty"), 0700), 0);
    CHECK_INT(pen_cache_clear(at("empty"), &total, &err), PEN_E_NOT_FOUND);
    CHECK_INT(names_in(at("empty"), ""), 0);
    sys = pen__sys_real;
    sys.unix_ns = given_unix_ns;
    pen__sys = &sys;
    unix_s = 5000;
    PenCache *a = open_for(at("look"), pack_a, 0, NULL);
    unix_s = 4000;
    PenCache *b = open_for(at("look"), pack_b, 0, NULL);
    CHECK(a && b);
    CHECK_INT(put(a, 1, 1, 100) + put(a, 2, 1, 100) + put(b, 1, 1, 50), 3);
    pen__cache_close(&b);
    n_looked = 0;
    CHECK_INT(pen_cache_inspect(at("look"), on_pack, NULL, &total, &err), PEN_OK);
    CHECK_INT(n_looked, 2);
    CHECK_MEM(looked[0].id, pack_b, 16);
    CHECK_INT(looked[0].in_use, 0);
    CHECK_INT(looked[0].entries, 1);
    CHECK_INT(looked[0].opened_s, 4000);
    CHECK_STR(looked[0].from, "s3://from/here");
    CHECK_INT(looked[1].in_use, 1);
    CHECK_INT(looked[1].bytes, 200);
    CHECK_INT(pen_cache_clear(at("look"), &total, &err), PEN_OK);
    CHECK_INT(total.removed_bytes, 50);
    CHECK_INT(total.packs, 1);
    CHECK_INT(total.bytes, 200);
    CHECK_INT(has(a, 1, 1, 100), 1);
    pen__cache_close(&a);
    CHECK_INT(pen_cache_clear(at("look"), &total, &err), PEN_OK);
    CHECK_INT(total.packs, 0);
    CHECK_INT(names_in(at("look"), ""), 1); /* the marker */
    pen__sys = &pen__sys_real;
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    help_begin();
    RUN(nothing_foreign_is_removed);
    RUN(odd_things_in_place_of_entries);
    RUN(a_look_tells_what_is_in_use);
    help_end();
    return TEST_END();
}
