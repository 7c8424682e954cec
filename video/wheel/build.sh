#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the decoder plug-in from the sources beside this script: dav1d, the decoders of FFmpeg, and
# the part that penstock calls, all in one library. Also builds penstock-video-decoder, the program
# that opens it if PENSTOCK_VIDEO is "process", beside it: sh build.sh [DIRECTORY]
#
# To use a changed FFmpeg or dav1d, edit sources/, run this script, and set PENSTOCK_VIDEO_LIBRARY to
# the path that it prints. It needs a C compiler, make, meson, ninja and pkg-config, and on x86-64
# nasm. CC, AR, RANLIB, NM, CFLAGS, LDFLAGS, STRIP (an option of the linker, -s by default) and JOBS may
# be set, and DAV1D_OPTIONS and FFMPEG_OPTIONS (words for meson setup and configure). For another
# architecture, also set MESON_CROSS_FILE (a file).
set -eu
top=$(cd "$(dirname "$0")" && pwd)
out=${1:-$top/build}
mkdir -p "$out"
out=$(cd "$out" && pwd)
prefix=$out/prefix
library=$out/libpenstock-video.so.0
program=$out/penstock-video-decoder
jobs=${JOBS:-$(nproc)}
CC=${CC:-cc}
DECODERS=h264,hevc,vp8,vp9,libdav1d,mpeg4,mjpeg

build_dav1d() {
    # shellcheck disable=SC2086 # the options are words
    meson setup "$out/dav1d" "$top/sources/dav1d" --prefix="$prefix" --libdir=lib \
        --buildtype=release --default-library=static -Denable_tools=false -Denable_tests=false \
        ${MESON_CROSS_FILE:+--cross-file "$MESON_CROSS_FILE"} ${DAV1D_OPTIONS:-}
    ninja -C "$out/dav1d" -j "$jobs" install
}

# Without GPL code, and with nothing that opens files or connections.
build_ffmpeg() {
    mkdir -p "$out/ffmpeg"
    cd "$out/ffmpeg"
    # shellcheck disable=SC2086 # the options are words
    "$top/sources/ffmpeg/configure" --prefix="$prefix" --cc="$CC" --ar="${AR:-ar}" \
        --ranlib="${RANLIB:-ranlib}" --nm="${NM:-nm}" --pkg-config=pkg-config \
        --pkg-config-flags=--static --enable-pic --disable-debug --disable-autodetect \
        --disable-iconv --enable-pthreads --disable-everything --disable-programs --disable-doc \
        --disable-network --disable-avdevice --disable-avfilter --disable-avformat \
        --disable-swresample --disable-swscale --enable-libdav1d --enable-decoder="$DECODERS" \
        ${FFMPEG_OPTIONS:-}
    grep -q '^#define FFMPEG_LICENSE "LGPL version 2.1 or later"' config.h
    # glibc before 2.32 has this function, and zig has no header for it.
    sed -i 's/^#define HAVE_SYSCTL 1/#define HAVE_SYSCTL 0/' config.h
    make -j "$jobs" install-libs install-headers
}

# Only pen_video_plugin is visible, so other copies of FFmpeg can be in the same process.
link_plugin() {
    cd "$top"
    # shellcheck disable=SC2046,SC2086 # flags are words
    "$CC" -O2 ${CFLAGS:-} -std=gnu17 -D_GNU_SOURCE -fPIC -fvisibility=hidden -Iinclude \
        $(pkg-config --cflags libavcodec) -shared -o "$library" video/*.c \
        -Wl,-soname,libpenstock-video.so.0 -Wl,--version-script=video/plugin.map -Wl,-Bsymbolic \
        -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack ${STRIP--s} ${LDFLAGS:-} \
        $(pkg-config --static --libs libavcodec)
}

# libdl: glibc before 2.34 has dlopen in a library of its own.
link_program() {
    cd "$top"
    # shellcheck disable=SC2086 # flags are words
    "$CC" -O2 ${CFLAGS:-} -std=gnu17 -D_GNU_SOURCE -fPIE -pie -Iinclude -Isrc -o "$program" \
        video/process/*.c -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack ${STRIP--s} ${LDFLAGS:-} -ldl
}

# Nothing of the system's FFmpeg or dav1d is found.
export PKG_CONFIG_LIBDIR="$prefix/lib/pkgconfig"
unset PKG_CONFIG_PATH
build_dav1d
(build_ffmpeg)
link_plugin
link_program
echo "$library"
