/* SPDX-License-Identifier: Apache-2.0 */
/** @file
 * The C API of penstock. The guide is docs/how-to/c.md. Before version 1.0, each release may change
 * functions and structs: compile programs again for each.
 *
 * Rules of all calls:
 *
 * Errors. A call that can fail returns a PenStatus and fills the PenError that it is passed, which
 * may be NULL. On failure it writes no other result, unless its comment says so.
 *
 * Settings. Initialize a settings struct with its init function, then change members. The library
 * copies the struct, but not the strings and arrays that it points to: keep them until the call
 * returns. NULL instead of a settings struct selects the defaults.
 *
 * Ownership. A function named ..._open returns a handle that the caller closes with ..._close.
 * Close functions accept NULL and set the handle to NULL. Pointers in a result belong to the
 * library unless the comment says otherwise.
 *
 * Text is UTF-8 and ends with a NUL. Sizes are in bytes. A member whose name ends in _ms, _s or
 * _ns is in milliseconds, seconds or nanoseconds.
 *
 * Threads. Each header states which calls may run at the same time. Handles do not survive fork():
 * in the child their calls fail with PEN_E_CLOSED. */
#ifndef PENSTOCK_PENSTOCK_H
#define PENSTOCK_PENSTOCK_H

#include <penstock/cache.h>
#include <penstock/copy.h>
#include <penstock/decode.h>
#include <penstock/error.h>
#include <penstock/ingest.h>
#include <penstock/loader.h>
#include <penstock/mix.h>
#include <penstock/ops.h>
#include <penstock/pack.h>
#include <penstock/preload.h>
#include <penstock/remote.h>
#include <penstock/trace.h>
#include <penstock/version.h>
#include <penstock/video.h>
#include <penstock/writer.h>

#endif
