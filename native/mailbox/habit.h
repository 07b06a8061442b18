/* Spinner of hbrt/mailbox/spin.py: a waiter that polled in vain does not poll in its next waits, in more and more of them. */
#ifndef HBRT_HABIT_H
#define HBRT_HABIT_H

#include "mailbox.h"

typedef struct {
    int64_t budget_ns;
    uint32_t level, skip, paid, steady;
} hbrt_habit;
enum { MAX_SKIPPED_IN_VAIN = 6, MAX_SKIPPED_CPU_LOST = 12, STEADY = 2, STEADY_CPU_LOST = 64 };

/* How long to poll now, 0 for no poll. */
static inline int64_t hbrt_habit_begin(hbrt_habit *mine) {
    int64_t poll_ns = mine->skip ? 0 : mine->budget_ns;
    mine->skip -= mine->skip > 0;
    return poll_ns;
}

/* `polled`: HBRT_POLL_*, not _NONE. */
static inline void hbrt_habit_note(hbrt_habit *mine, int polled) {
    int has_lost_cpu = polled > HBRT_POLL_VAIN;
    if (polled != HBRT_POLL_PAID) {
        if (has_lost_cpu || mine->level <= MAX_SKIPPED_IN_VAIN) mine->steady = has_lost_cpu ? STEADY_CPU_LOST : STEADY;
        mine->skip = (1u << mine->level) - 1;
        mine->level += mine->level < (has_lost_cpu ? MAX_SKIPPED_CPU_LOST : MAX_SKIPPED_IN_VAIN);
        mine->paid = 0;
    } else if (mine->level && ++mine->paid >= mine->steady) {
        mine->level--;
        mine->paid = 0;
    }
}

#endif
