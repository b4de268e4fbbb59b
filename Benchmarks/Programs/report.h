/* SPDX-License-Identifier: Apache-2.0 */

// The page on which workers report that they run, in a file that all share. Writing it wakes no process, so that
// waiting for a thousand workers costs the measured machine nothing.
#ifndef TORPOR_BENCHMARK_REPORT_H
#define TORPOR_BENCHMARK_REPORT_H

#include <stdint.h>

#define REPORT_SLOTS 16384

struct report_slot {
    uint64_t started_ns; // CLOCK_MONOTONIC, first thing in main
    int32_t pid;
    uint32_t starts;     // how many processes have had this slot
};

struct report_page {
    uint32_t count;      // reports so far, counted atomically; a futex: woken when it reaches `target`
    uint32_t target;
    uint32_t beats;      // heartbeats sent by all workers together
    uint32_t reserved[13];
    struct report_slot slots[REPORT_SLOTS];
};

#endif
