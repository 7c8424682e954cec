/* SPDX-License-Identifier: Apache-2.0 */
/* What ffmpeg says of the frames, in pieces as the first byte says: the same however it is cut, a
 * time for each frame, and times that grow. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "help.h"
#include "ingest/video/video_impl.h"

static int take(PenFrameLog *log, const uint8_t *data, size_t bytes, size_t piece)
{
    PenError err;
    int r = PEN_OK;
    for (size_t at = 0; r == PEN_OK && at < bytes; at += piece) {
        size_t n = bytes - at < piece ? bytes - at : piece;
        uint8_t *exact = copy_of(data + at, n);
        r = CALL(pen__frame_log_take(log, exact, n, &err));
        free(exact);
    }
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (!bytes)
        return 0;
    PenBuf times[2] = {{0}, {0}};
    PenFrameLog logs[2] = {{.name = "video", .times = &times[0]},
                           {.name = "video", .times = &times[1]}};
    int whole = take(&logs[0], data + 1, bytes - 1, bytes);
    int cut = take(&logs[1], data + 1, bytes - 1, (size_t)data[0] % 16 + 1);
    REQUIRE(whole == cut && logs[0].n == logs[1].n && times[0].bytes == times[1].bytes);
    REQUIRE(times[0].bytes == logs[0].n * 8);
    int64_t last = -1;
    for (uint64_t i = 0; i < logs[0].n; i++) {
        int64_t ns = (int64_t)pen__load64(times[0].data + i * 8);
        REQUIRE(i ? ns >= last : ns == 0);
        last = ns;
    }
    REQUIRE(logs[0].n == 0 || (logs[0].frame_bytes && logs[0].tb_den));
    pen__buf_free(&times[0]);
    pen__buf_free(&times[1]);
    return 0;
}
