/* SPDX-License-Identifier: Apache-2.0 */
/* Summaries of tars: what is written is read, and nothing else. */
#include "ingest/tar/summary.h"

#include "ingest/prepare/summarize.h"
#include "ingest_help.h"

enum { N = 3 };
static const char address[] = "s3://bucket/web.tar";
static const char *const names[N] = {"a.jpg", "a.txt", "b.jpg"};
static const char *const texts[N] = {"first", "", "the third"};
static PenSummaries all;
static PenBuf file; /* the bytes of a summary */

static void begin(void)
{
    help_begin();
    all = (PenSummaries){.folder = help_root, .settings = {7}};
}

static void end(void)
{
    pen__buf_free(&file);
    help_end();
}

static int write_summary(PenError *reterr)
{
    PenObject object = {.bytes = 4096, .etag = "\"etag\""};
    PenSummaryWriter *w = NULL;
    int r = pen__summary_create(&all, address, &object, &w, reterr);
    for (uint32_t i = 0; r == PEN_OK && i < N; i++) {
        PenMemberRecord m = {.member = {names[i], 512 + 1024 * (uint64_t)i, strlen(texts[i])},
                             .kind = PEN_MEMBER_DATA,
                             .data = (const uint8_t *)texts[i],
                             .data_bytes = strlen(texts[i])};
        r = pen__summary_add(w, &m, reterr);
    }
    return r < 0 ? r : pen__summary_commit(&w, reterr);
}

static int open_and_check(PenSummary **ret, PenError *reterr)
{
    int r = pen__summary_open(&all, address, ret, reterr);
    if (r == PEN_OK)
        r = pen__summary_check(*ret, reterr);
    return r;
}

TEST(what_is_written_is_read)
{
    PenSummary *s = NULL;
    PenMemberRecord m;
    PenBuf scratch = {0};
    uint64_t place = 0;
    begin();
    CHECK_GOES(write_summary(&err));
    CHECK_GOES(open_and_check(&s, &err));
    CHECK_INT(pen__summary_object(s)->bytes, 4096);
    CHECK(strcmp(pen__summary_object(s)->etag, "\"etag\"") == 0);
    for (uint32_t i = 0; i < N; i++) {
        CHECK_GOES(pen__summary_next(s, &place, &scratch, &m, &err));
        CHECK(strcmp(m.member.name, names[i]) == 0);
        CHECK(help_is(m.data, m.data_bytes, texts[i]));
    }
    CHECK_INT(pen__summary_next(s, &place, &scratch, &m, NULL), PEN_END);
    for (uint32_t i = N; i-- > 0;) {
        CHECK_GOES(pen__summary_find(s, 512 + 1024 * (uint64_t)i, &scratch, &m, &err));
        CHECK(help_is(m.data, m.data_bytes, texts[i]));
    }
    CHECK_FAILS(pen__summary_find(s, 513, &scratch, &m, &err), PEN_E_CORRUPT, "damaged");
    pen__buf_free(&scratch);
    pen__summary_close(&s);
    all.settings[0]++;
    CHECK_FAILS(open_and_check(&s, &err), PEN_E_CORRUPT, "other settings");
    all.folder = at("none");
    CHECK_FAILS(open_and_check(&s, &err), PEN_E_NOT_FOUND, "");
    end();
}

/* Writes the file with a change, and says whether it is still taken for a summary. */
static int try_file(const void *data, size_t bytes)
{
    PenSummary *s = NULL;
    char *path = pen__summary_path(&all, address, "");
    help_file(strrchr(path, '/') + 1, data, bytes);
    pen__free(path);
    int r = open_and_check(&s, NULL);
    pen__summary_close(&s);
    return r;
}

TEST(every_change_is_noticed)
{
    PenSource *source = NULL;
    begin();
    CHECK_GOES(write_summary(&err));
    char *path = pen__summary_path(&all, address, "");
    CHECK_GOES(pen__source_open_file(path, &source, &err));
    pen__free(path);
    size_t bytes = (size_t)source->bytes;
    CHECK_INT(pen__buf_reserve(&file, bytes), PEN_OK);
    CHECK_GOES(pen__source_read(source, file.data, bytes, 0, &err));
    pen__source_close(&source);
    CHECK_INT(try_file(file.data, bytes), PEN_OK);
    for (size_t i = 0; i < bytes; i++) {
        file.data[i] ^= (uint8_t)(1u << i % 8);
        CHECK_INT(try_file(file.data, bytes), PEN_E_CORRUPT);
        file.data[i] ^= (uint8_t)(1u << i % 8);
        CHECK_INT(try_file(file.data, i), PEN_E_CORRUPT);
    }
    end();
}

/* A record whose numbers do not fit together is no image: the tar is read instead. */
TEST(images_that_do_not_fit)
{
    uint8_t data[96] = {0};
    PenMemberRecord m = {.member = {"a.jpg", 512, 1000}, .kind = PEN_MEMBER_IMAGE, .data = data};
    PenPreparedImage p = {0};
    for (m.data_bytes = 0; m.data_bytes < 65; m.data_bytes++)
        CHECK_INT(pen__summary_image(&m, false, "", &p, NULL), PEN_END);
    CHECK_INT(pen__summary_image(&m, false, "", &p, NULL), PEN_OK);
    CHECK_INT(pen__summary_image(&m, true, "", &p, NULL), PEN_END);
    for (size_t at = 52; at < 64; at += 4) { /* lengths of its parts */
        pen__store32(data + at, UINT32_MAX);
        CHECK_INT(pen__summary_image(&m, false, "", &p, NULL), PEN_END);
        pen__store32(data + at, 0);
    }
    pen__store32(data + 52, 12);
    m.data_bytes = 65 + 12;
    CHECK_INT(pen__summary_image(&m, false, "", &p, NULL), PEN_END); /* no MCUs */
    pen__store32(data + 32, 100);
    pen__store32(data + 40, 8);
    pen__store32(data + 24, 10);
    CHECK_INT(pen__summary_image(&m, false, "", &p, NULL), PEN_OK);
    pen__store32(data + 24, 2000); /* a scan that is longer than the file */
    CHECK_INT(pen__summary_image(&m, false, "", &p, NULL), PEN_END);
    m.kind = PEN_MEMBER_BAD;
    CHECK_INT(pen__summary_image(&m, false, "", &p, NULL), PEN_END); /* a status that is none */
    pen__store32(data, (uint32_t)PEN_E_DECODE);
    memcpy(data + 4, "here\0broken", 12);
    CHECK_FAILS(pen__summary_image(&m, false, "x", &p, &err), PEN_E_DECODE, "x: broken");
    memset(data + 4, 'x', sizeof data - 4);
    data[m.data_bytes - 1] = 0; /* no message */
    CHECK_INT(pen__summary_image(&m, false, "x", &p, NULL), PEN_END);
}

int main(int argc, char **argv)
{
    TEST_START(argc, argv);
    RUN(what_is_written_is_read);
    RUN(every_change_is_noticed);
    RUN(images_that_do_not_fit);
    return TEST_END();
}
