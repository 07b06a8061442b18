/* Time and polling. */
#ifndef HBRT_CLOCK_H
#define HBRT_CLOCK_H

#include "mailbox.h"

#include <sched.h>
#include <stdint.h>
#include <time.h>

static inline uint64_t hbrt_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* A poll's outcome, HBRT_POLL_*. A poll that ended well past its budget lost its CPU. */
static inline int hbrt_polled(int has_paid, int64_t late_ns) {
    return (has_paid ? HBRT_POLL_PAID : HBRT_POLL_VAIN) + (late_ns > 600000 ? 2 : 0);
}

static inline void hbrt_relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Poll until `is_due(of)` or for `poll_ns`, yielding after every few polls. Returns HBRT_POLL_*. */
static inline int hbrt_poll(int (*is_due)(const void *of), const void *of, int polls_per_yield, int64_t poll_ns) {
    int64_t end_ns = (int64_t)hbrt_now_ns() + poll_ns, now_ns;
    int due = 0;
    do {
        for (int n = 0; n < polls_per_yield && !(due = is_due(of)); n++) hbrt_relax();
        if (!due) sched_yield();
        now_ns = (int64_t)hbrt_now_ns();
    } while (!due && now_ns < end_ns);
    return hbrt_polled(due, now_ns - end_ns);
}

#endif
