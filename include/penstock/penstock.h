/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PENSTOCK_PENSTOCK_H
#define PENSTOCK_PENSTOCK_H

#include <penstock/bench.h>
#include <penstock/cache.h>
#include <penstock/copy.h>
#include <penstock/error.h>
#include <penstock/ingest.h>
#include <penstock/loader.h>
#include <penstock/ops.h>
#include <penstock/pack.h>
#include <penstock/preload.h>
#include <penstock/remote.h>
#include <penstock/simulate.h>
#include <penstock/version.h>
#include <penstock/writer.h>

#endif
