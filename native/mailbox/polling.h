/* Decides when a thread waiting for a task polls before it sleeps. Pure: callers pass in the time. */
#ifndef HBRT_POLLING_H
#define HBRT_POLLING_H

#include "layout.h"
#include "mailbox.h"

/* A doorbell wakes a sleeper in 20 to 80 us across two CPUs. A peer that is about to answer needs less, so a waiter
 * first polls, and yields between polls, until its budget is spent. After two unsuccessful polls, a waiter skips
 * polling in more and more of its next waits, and in fewer again once polling pays: a program that calls ten times and
 * then pauses should find pollers in its next ten calls. A waiter that lost its CPU for long skips many more, and
 * returns to polling slowly. */
typedef struct {
    int64_t budget_ns;
    uint32_t most_skipped, most_skipped_cpu_lost; /* waits, as powers of two */
    uint32_t level, skip, paid, steady;
} hbrt_habit;
enum { SKIPPED_IN_VAIN = 6, SKIPPED_CPU_LOST = 12, STEADY = 2, STEADY_CPU_LOST = 64 };

/* How long to poll now; 0 to sleep at once. */
static inline int64_t hbrt_habit_begin(hbrt_habit *mine) {
    int64_t poll_ns = mine->skip ? 0 : mine->budget_ns;
    mine->skip -= mine->skip > 0;
    return poll_ns;
}

/* `polled`: HBRT_POLL_*. */
static inline void hbrt_habit_note(hbrt_habit *mine, int polled) {
    int has_lost_cpu = polled > HBRT_POLL_VAIN;
    if (polled == HBRT_POLL_NONE) return;
    if (polled != HBRT_POLL_PAID) {
        /* An unsuccessful poll does not undo the skips after a lost CPU. */
        if (has_lost_cpu || mine->level <= mine->most_skipped) mine->steady = has_lost_cpu ? STEADY_CPU_LOST : STEADY;
        mine->skip = (1u << mine->level) - 1;
        mine->level += mine->level < (has_lost_cpu ? mine->most_skipped_cpu_lost : mine->most_skipped);
        mine->paid = 0;
    } else if (mine->level && ++mine->paid >= mine->steady) {
        mine->level--;
        mine->paid = 0;
    }
}

/* How long similar calls took, so that a waiter polls when its call is about to end (hybrid polling).
 *
 * Polling from the start would burn a CPU for as long as the op runs. A sleeper wakes 50 to 200 us late: its CPU sleeps
 * too, and its data has left the caches. So a waiter sleeps until shortly before the end and polls around it, as drivers
 * of fast disks do. The time of a call varies. A poll window that opens after the end is of no use, and one that opens
 * early costs a little of a CPU. So the expected time follows shorter calls at once and longer ones slowly. */
enum {
    MIN_EXPECTED_NS = 200000,   /* a shorter call ends while its waiter polls anyway */
    MAX_EXPECTED_NS = 20000000, /* for a longer call, a late wake-up does not matter */
    MIN_MARGIN_NS = 150000,
    MAX_MARGIN_NS = 400000,
    FOLLOW_SHIFT = 2, /* of how much longer a call took, a quarter counts */
    CALL_BYTES = 48,  /* fields of a slot's record, from the command to the sizes: equal if the same call is made again */
    KNOWN_CALLS = 256,
};

typedef struct {
    struct {
        uint8_t call[CALL_BYTES];
        int64_t took_ns; /* 0: not known, or not worth a poll window */
    } calls[KNOWN_CALLS];
} hbrt_times;

static inline uint32_t hbrt_place_of(const void *call) {
    uint64_t hash = 0, word;
    for (const char *at = call, *end = at + CALL_BYTES; at < end; at += sizeof word) {
        memcpy(&word, at, sizeof word);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 32;
    }
    return (uint32_t)hash % KNOWN_CALLS;
}

static inline int64_t hbrt_times_of(const hbrt_times *times, const void *call) {
    uint32_t at = hbrt_place_of(call);
    return memcmp(times->calls[at].call, call, CALL_BYTES) == 0 ? times->calls[at].took_ns : 0;
}

static inline void hbrt_times_note(hbrt_times *times, const void *call, int64_t took_ns) {
    int64_t expected_ns = hbrt_times_of(times, call);
    if (took_ns < MIN_EXPECTED_NS || took_ns > MAX_EXPECTED_NS) took_ns = 0;
    int64_t followed_ns = expected_ns ? expected_ns + ((took_ns - expected_ns) >> FOLLOW_SHIFT) : took_ns;
    uint32_t at = hbrt_place_of(call);
    memcpy(times->calls[at].call, call, CALL_BYTES);
    times->calls[at].took_ns = took_ns < followed_ns ? took_ns : followed_ns;
}

/* The poll window for a call's expected duration: its start after the call's start, and its length. */
static inline int64_t hbrt_window(int64_t expected_ns, int64_t *poll_ns) {
    int64_t margin_ns = expected_ns >> 3;
    if (margin_ns < MIN_MARGIN_NS) margin_ns = MIN_MARGIN_NS;
    if (margin_ns > MAX_MARGIN_NS) margin_ns = MAX_MARGIN_NS;
    *poll_ns = 3 * margin_ns;
    return expected_ns > margin_ns ? expected_ns - margin_ns : 0;
}

/* Whether polling pays at all: a process keeps trying both ways, and uses the cheaper one.
 *
 * Polling saves two wake-ups if CPUs are idle. If other processes want the CPUs, it costs more than it saves: a poller
 * keeps the peer from its CPU, or loses a whole time slice by yielding. The numbers of CPUs and processes do not
 * separate the two cases; the cost of tasks does. So a few tasks out of many are measured, both ways in turn. A trial
 * takes a small share of the time, however much the other way costs, which bounds the loss. */
enum {
    SETTLING_TASKS = 2,     /* after a change, the core's habit lasts for one more task */
    SETTLING_NS = 10000000, /* after a change, the kernel's load balancer moves processes within a few ticks */
    SAMPLE_TASKS = 16,
    SAMPLE_NS = 10000000, /* a sample has at least this many tasks and costs at least this much time */
    /* A trial takes at most one part in this many of the time: after a change, and once each trial has confirmed the
     * choice. */
    MIN_HOLD = 4,
    MAX_HOLD = 64,
};
/* If CPUs are idle, polling costs a third to a tenth of sleeping. A smaller gain is chance: on a busy machine, sleepers
 * come to share a CPU and become cheap, but only some time after their trial has ended. */
#define MIN_GAIN 1.5

/* Mean costs of a task in the latest samples, in ns. */
enum { SAMPLES = 3 };
typedef struct {
    double mean_ns[SAMPLES];
    uint32_t count;
} hbrt_samples;

typedef struct {
    int polls;    /* whether the next wait polls */
    int measures; /* whether the next task is measured */
    int best, settling;
    int64_t tasks, cost_ns;   /* of this sample */
    int64_t settled_ns;       /* -1 until the first task */
    int64_t hold, held_tasks; /* held_tasks: left until the next trial */
    hbrt_samples samples[2];  /* asleep, polling */
} hbrt_choice;

static inline void hbrt_choice_begin(hbrt_choice *mine, int may_poll) {
    *mine = (hbrt_choice){.polls = may_poll, .measures = may_poll, .best = may_poll, .settling = SETTLING_TASKS,
                          .settled_ns = -1, .hold = MIN_HOLD};
}

/* Count a wait that was not measured. */
static inline void hbrt_choice_skip(hbrt_choice *mine) { mine->measures = --mine->held_tasks <= 0; }

static inline void hbrt_keep_sample(hbrt_samples *of, double mean_ns) {
    of->mean_ns[of->count++ % SAMPLES] = mean_ns;
}

static inline double hbrt_least(const hbrt_samples *of) {
    uint32_t count = of->count < SAMPLES ? of->count : SAMPLES;
    double least = of->mean_ns[0];
    for (uint32_t n = 1; n < count; n++)
        if (of->mean_ns[n] < least) least = of->mean_ns[n];
    return least;
}

/* The median; of two, the larger one. */
static inline double hbrt_median(const hbrt_samples *of) {
    const double *at = of->mean_ns;
    if (of->count < 2) return at[0];
    double low = at[0] < at[1] ? at[0] : at[1], high = at[0] < at[1] ? at[1] : at[0];
    if (of->count == 2) return high;
    return at[2] < low ? low : at[2] > high ? high : at[2];
}

/* Add the cost of a task, and choose again at the end of a trial. */
static inline void hbrt_choice_note(hbrt_choice *mine, int64_t cost_ns, int64_t now_ns) {
    if (mine->settled_ns < 0) mine->settled_ns = now_ns + SETTLING_NS;
    if (mine->settling > 0 || now_ns < mine->settled_ns) {
        mine->settling--;
        return;
    }
    mine->tasks++;
    mine->cost_ns += cost_ns;
    int64_t trial_ns = mine->cost_ns;
    if (mine->tasks < SAMPLE_TASKS || trial_ns < SAMPLE_NS) return;
    hbrt_samples *asleep = &mine->samples[0], *polled = &mine->samples[1];
    hbrt_keep_sample(&mine->samples[mine->polls], (double)trial_ns / (double)mine->tasks);
    mine->tasks = mine->cost_ns = 0;
    if (mine->polls != mine->best && asleep->count && polled->count) {
        /* For sleeping, the minimum counts; for polling, the median: another process may take the CPU during one. */
        double asleep_ns = hbrt_least(asleep), polled_ns = hbrt_median(polled);
        int pays = asleep_ns > polled_ns * MIN_GAIN;
        if (!pays || asleep->count >= SAMPLES) {
            mine->hold = pays != mine->best ? MIN_HOLD : 2 * mine->hold < MAX_HOLD ? 2 * mine->hold : MAX_HOLD;
            mine->best = pays;
            /* The duration of a trial of both ways, in tasks of the cheaper one. */
            mine->measures = 0;
            mine->held_tasks = (int64_t)(mine->hold * 2 * (double)(trial_ns + SETTLING_NS) / (pays ? polled_ns : asleep_ns));
        }
    }
    if (!mine->measures && mine->polls == mine->best) return;
    mine->polls = !mine->polls;
    mine->settling = SETTLING_TASKS;
    mine->settled_ns = now_ns + SETTLING_NS;
}

#endif
