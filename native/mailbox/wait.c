/* The side that waits for its tasks.
 *
 * Of many waiting threads, one (the leader) sleeps on the process's doorbell. It wakes the others (followers) when
 * their tasks have ended. When the leader leaves, a follower takes the lead. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "client.h"
#include "kill.h"

enum { POLLS_PER_YIELD = 200 };

uint32_t hbrt_client_waiting(hbrt_client *client) {
    return __atomic_load_n(&client->waiting, __ATOMIC_SEQ_CST) + __atomic_load_n(&client->inside, __ATOMIC_SEQ_CST);
}

static void futex_wake(uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0); }

static int has_ended(const hbrt_client *client, uint64_t handle) {
    uint32_t slot = slot_of(client, (int64_t)handle);
    return hbrt_load(client->file.states + slot) >= HBRT_DONE || live(client, slot) != handle;
}

static int is_due(const hbrt_client *client, const waiter *me) {
    if (me->for_nudges && __atomic_load_n(&client->nudges, __ATOMIC_ACQUIRE) != me->seen) return 1;
    for (uint32_t n = 0; n < me->count; n++)
        if (has_ended(client, me->handles[n])) return 1;
    return 0;
}

static void wake_follower(waiter *who) {
    __atomic_store_n(&who->bell, 1, __ATOMIC_RELEASE);
    futex_wake(&who->bell);
}

/* Wake the followers that are due, or all. */
static void wake_followers(hbrt_client *client, int all) {
    pthread_mutex_lock(&client->lock);
    for (waiter *who = client->followers.next; who != &client->followers; who = who->next)
        if (all || is_due(client, who)) wake_follower(who);
    pthread_mutex_unlock(&client->lock);
}

/* Wait until readable: 1; 0 on timeout, -1 after a signal. */
static int await_doorbell(int doorbell, int64_t deadline_ns) {
    uint64_t rings;
    if (deadline_ns >= 0) {
        int64_t left = deadline_ns - (int64_t)hbrt_now_ns();
        if (left <= 0) return 0;
        struct timespec patience = {left / 1000000000, left % 1000000000};
        struct pollfd bell = {doorbell, POLLIN, 0};
        int ready = ppoll(&bell, 1, &patience, NULL);
        if (ready <= 0) return ready < 0 ? -1 : 0;
    }
    return read(doorbell, &rings, sizeof rings) < 0 && errno == EINTR ? -1 : 1;
}

/* Sleep on the doorbell, for this thread and for the followers. */
static int lead(hbrt_client *client, const waiter *me, int64_t deadline_ns) {
    int answer;
    for (;;) {
        HBRT_KILL_POINT("client-W01");
        hbrt_store(&client->record->asleep, 1);
        hbrt_full_fence(); /* the flag before the states: pairs with the fence of a core that has answered */
        if (__atomic_load_n(&client->follower_count, __ATOMIC_ACQUIRE)) wake_followers(client, 0);
        HBRT_KILL_POINT("client-W02");
        if (is_due(client, me)) {
            answer = 1;
            break;
        }
        if (__atomic_load_n(&client->has_left, __ATOMIC_ACQUIRE)) {
            answer = HBRT_GONE;
            break;
        }
        if (hbrt_load(&client->record->asked)) {
            answer = HBRT_ASKED;
            break;
        }
        HBRT_KILL_POINT("client-W03");
        int rung = await_doorbell(client->doorbell, deadline_ns);
        HBRT_KILL_POINT("client-W04");
        if (rung > 0) continue;
        answer = rung < 0 ? HBRT_INTERRUPTED : HBRT_TIMEOUT;
        break;
    }
    hbrt_store(&client->record->asleep, 0);
    return answer;
}

/* Sleep until a leader wakes this thread. The caller holds the lock, before and after. */
static int follow(hbrt_client *client, waiter *me, int64_t deadline_ns) {
    me->bell = 0;
    me->next = &client->followers;
    me->previous = client->followers.previous;
    me->previous->next = client->followers.previous = me;
    __atomic_add_fetch(&client->follower_count, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&client->lock);
    int answer = HBRT_ASK;
    hbrt_full_fence(); /* in the list before the states: pairs with the leader's scan of the list */
    while (!__atomic_load_n(&me->bell, __ATOMIC_ACQUIRE) && !is_due(client, me)) {
        struct timespec until = {deadline_ns / 1000000000, deadline_ns % 1000000000};
        /* FUTEX_WAIT_BITSET takes a point in time, of CLOCK_MONOTONIC. */
        long slept = syscall(SYS_futex, &me->bell, FUTEX_WAIT_BITSET_PRIVATE, 0, deadline_ns < 0 ? NULL : &until, NULL,
                             FUTEX_BITSET_MATCH_ANY);
        if (slept < 0 && errno == EINTR) answer = HBRT_INTERRUPTED;
        if (slept < 0 && errno == ETIMEDOUT) answer = HBRT_TIMEOUT;
        if (answer != HBRT_ASK) break;
    }
    pthread_mutex_lock(&client->lock);
    me->previous->next = me->next;
    me->next->previous = me->previous;
    __atomic_sub_fetch(&client->follower_count, 1, __ATOMIC_SEQ_CST);
    return answer;
}

static int sleep_until_due(hbrt_client *client, waiter *me, int64_t deadline_ns) {
    int answer = HBRT_ASK;
    __atomic_add_fetch(&client->waiting, 1, __ATOMIC_ACQ_REL);
    pthread_mutex_lock(&client->lock);
    while (answer == HBRT_ASK) {
        if (is_due(client, me)) {
            answer = 1;
        } else if (__atomic_load_n(&client->has_left, __ATOMIC_ACQUIRE)) {
            answer = HBRT_GONE;
        } else if (client->has_leader) {
            answer = follow(client, me, deadline_ns);
        } else {
            client->has_leader = 1;
            pthread_mutex_unlock(&client->lock);
            answer = lead(client, me, deadline_ns);
            pthread_mutex_lock(&client->lock);
            client->has_leader = 0;
        }
    }
    /* A leaving thread passes the lead on, whether it used it or was given it and no longer needs it. */
    if (!client->has_leader && client->followers.next != &client->followers) wake_follower(client->followers.next);
    pthread_mutex_unlock(&client->lock);
    __atomic_sub_fetch(&client->waiting, 1, __ATOMIC_ACQ_REL);
    return answer;
}

/* The condition that a poll checks. */
typedef struct {
    const hbrt_client *client;
    const waiter *me;
} watch;

static int is_watched_due(const void *of) {
    const watch *it = of;
    return is_due(it->client, it->me);
}

static int64_t deadline_of(int64_t timeout_ns) {
    return timeout_ns < 0 ? -1 : (int64_t)hbrt_now_ns() + timeout_ns;
}

/* -- when to poll --------------------------------------------------------------------------------------------------- */

void hbrt_client_polls(hbrt_client *client, int64_t budget_ns) {
    /* No poll is skipped because of a lost CPU: the trials measure that cost. A poll window is a small part of the
     * call, even if it is unsuccessful. */
    client->polling = (hbrt_habit){.budget_ns = budget_ns, .most_skipped = SKIPPED_IN_VAIN};
    client->late = (hbrt_habit){.most_skipped = 1};
    hbrt_choice_begin(&client->choice, budget_ns > 0);
    hbrt_store(&client->record->sleeps, budget_ns <= 0);
}

/* Poll according to a habit, for `window_ns` or, with 0, its budget: 1 if due, HBRT_ASK without a poll,
 * HBRT_INTERRUPTED after an unsuccessful one. */
static int poll_by(hbrt_client *client, const waiter *me, hbrt_habit *habit, int64_t window_ns) {
    pthread_mutex_lock(&client->lock);
    if (window_ns) habit->budget_ns = window_ns;
    int64_t poll_ns = hbrt_habit_begin(habit);
    pthread_mutex_unlock(&client->lock);
    if (poll_ns <= 0) return HBRT_ASK;
    int polled = hbrt_poll(is_watched_due, &(watch){client, me}, POLLS_PER_YIELD, poll_ns);
    pthread_mutex_lock(&client->lock);
    hbrt_habit_note(habit, polled);
    pthread_mutex_unlock(&client->lock);
    return polled == HBRT_POLL_PAID || polled == HBRT_POLL_PAID_LOST_CPU ? 1 : HBRT_INTERRUPTED;
}

/* Sleep until a task is about to end, then poll: returns the same as poll_by, or how the sleep ended. */
static int doze(hbrt_client *client, waiter *me, int64_t expected_ns, int64_t timeout_ns) {
    enum { MIN_DOZE_NS = 50000 }; /* setting a timer and waking up takes as long */
    uint32_t slot = slot_of(client, (int64_t)*me->handles);
    const uint8_t *state = client->file.states + slot;
    int64_t poll_ns, sleep_ns = hbrt_window(expected_ns, &poll_ns);
    if (hbrt_load(state) == HBRT_RUNNING)
        sleep_ns -= (int64_t)(hbrt_now_ns() - HBRT_GET(hbrt_record(&client->file, slot)->claim_ns));
    if (timeout_ns >= 0 && timeout_ns < sleep_ns + poll_ns) return HBRT_ASK;
    if (sleep_ns >= MIN_DOZE_NS) {
        int answer = sleep_until_due(client, me, (int64_t)hbrt_now_ns() + sleep_ns);
        if (answer != HBRT_TIMEOUT) return answer;
    }
    if (hbrt_load(state) < HBRT_RUNNING) return HBRT_INTERRUPTED; /* one that no core has claimed by now ends much later */
    return poll_by(client, me, &client->late, poll_ns);
}

/* Learn from the end of a task whose waiting thread may poll. */
static void learn(hbrt_client *client, const hbrt_slot_record *record, int has_succeeded, uint64_t since_ns) {
    int64_t now_ns = (int64_t)hbrt_now_ns(), done_ns = (int64_t)HBRT_GET(record->done_ns);
    pthread_mutex_lock(&client->lock);
    if (!client->choice.measures) {
        hbrt_choice_skip(&client->choice);
    } else if (has_succeeded && __atomic_load_n(&client->follower_count, __ATOMIC_ACQUIRE) == 0) {
        /* Measured from the submission, since that is when the core's doorbell rings; the op's time is left out, since it varies. */
        int64_t op_ns = done_ns - (int64_t)HBRT_GET(record->start_ns);
        hbrt_choice_note(&client->choice, now_ns - (int64_t)HBRT_GET(record->sequence) - op_ns, now_ns);
        hbrt_store(&client->record->sleeps, !client->choice.polls);
    }
    if (has_succeeded && (now_ns - (int64_t)since_ns > MIN_EXPECTED_NS || hbrt_times_of(&client->times, &record->cmd)))
        hbrt_times_note(&client->times, &record->cmd, done_ns - (int64_t)HBRT_GET(record->claim_ns));
    pthread_mutex_unlock(&client->lock);
}

/* -- wait ----------------------------------------------------------------------------------------------------------- */

static int wait_for(hbrt_client *client, int64_t handle, int64_t timeout_ns, int polls) {
    uint32_t slot = slot_of(client, handle);
    uint64_t wanted = (uint64_t)handle;
    if (handle <= 0 || live(client, slot) != wanted) return HBRT_ASK;
    const hbrt_slot_record *record = hbrt_record(&client->file, slot);
    uint8_t state = hbrt_load(client->file.states + slot);
    if (state < HBRT_DONE) {
        waiter me = {.handles = &wanted, .count = 1};
        int answer = HBRT_ASK;
        /* Other waiting threads need the CPU, or the lead. */
        if (polls && client->polling.budget_ns > 0 && timeout_ns != 0 &&
            __atomic_load_n(&client->waiting, __ATOMIC_ACQUIRE) == 0) {
            pthread_mutex_lock(&client->lock);
            int pays = client->choice.polls;
            int64_t expected_ns = hbrt_times_of(&client->times, &record->cmd);
            pthread_mutex_unlock(&client->lock);
            if (pays) answer = expected_ns ? doze(client, &me, expected_ns, timeout_ns) : poll_by(client, &me, &client->polling, 0);
        }
        if (answer == HBRT_ASK) answer = sleep_until_due(client, &me, deadline_of(timeout_ns));
        if (answer != 1) return answer;
        state = hbrt_load(client->file.states + slot);
    }
    HBRT_KILL_POINT("client-W05");
    return live(client, slot) == wanted ? state : HBRT_ASK;
}

/* Record a wait for a task that began at `start_ns`. */
static void note_wait(hbrt_client *client, int64_t handle, uint64_t start_ns, int answer) {
    if (answer < HBRT_DONE && answer != HBRT_TIMEOUT) return;
    const hbrt_slot_record *record = hbrt_record(&client->file, slot_of(client, handle));
    hbrt_event what = {.start_ns = start_ns, .end_ns = hbrt_now_ns(), .kind = HBRT_NOTE_WAIT, .a = HBRT_GET(record->sequence),
                       .b = HBRT_GET(record->claim_ns), .d = HBRT_GET(record->cmd), .unit = (uint16_t)HBRT_GET(record->client)};
    if (what.b < what.a) what.b = 0; /* left by an earlier task in the slot */
    if (answer >= HBRT_DONE) what.c = HBRT_GET(record->done_ns);
    hbrt_note(client->events, what);
}

int hbrt_wait(hbrt_client *client, int64_t handle, int64_t timeout_ns, int polls) {
    /* One wait of a program may be several calls, with signal handlers running in between: it begins with the first
     * one. */
    static _Thread_local struct {
        int64_t handle;
        uint64_t since_ns;
    } begun;
    uint64_t noted_ns = begin_note(client), start_ns = noted_ns;
    int may_poll = client->polling.budget_ns > 0;
    if (may_poll && start_ns == 0) start_ns = hbrt_now_ns();
    int answer = wait_for(client, handle, timeout_ns, polls);
    if (start_ns == 0) return answer;
    if (begun.handle == handle) start_ns = begun.since_ns;
    begun.handle = 0;
    if (answer == HBRT_INTERRUPTED || answer == HBRT_ASKED) {
        begun.handle = handle;
        begun.since_ns = start_ns;
    } else if (may_poll && answer >= HBRT_DONE) {
        learn(client, hbrt_record(&client->file, slot_of(client, handle)), answer == HBRT_DONE, start_ns);
    }
    if (noted_ns) note_wait(client, handle, start_ns, answer);
    return answer;
}

int hbrt_finish(hbrt_client *client, int64_t handle) {
    int state = hbrt_wait(client, handle, -1, 1);
    if (state == HBRT_DONE && hbrt_release(client, handle) != 1) return HBRT_ASK;
    return state;
}

int hbrt_wait_any(hbrt_client *client, const uint64_t *handles, uint32_t count, uint32_t seen, int64_t timeout_ns) {
    waiter me = {.handles = handles, .count = count, .seen = seen, .for_nudges = 1};
    return sleep_until_due(client, &me, deadline_of(timeout_ns));
}

uint32_t hbrt_nudges(hbrt_client *client) { return __atomic_load_n(&client->nudges, __ATOMIC_ACQUIRE); }

void hbrt_nudge(hbrt_client *client) {
    __atomic_add_fetch(&client->nudges, 1, __ATOMIC_SEQ_CST);
    hbrt_wake(client);
}

void hbrt_wake(hbrt_client *client) {
    pthread_mutex_lock(&client->lock);
    int has_leader = client->has_leader;
    pthread_mutex_unlock(&client->lock);
    if (has_leader) hbrt_ring(client->doorbell);
    else if (__atomic_load_n(&client->follower_count, __ATOMIC_ACQUIRE)) wake_followers(client, 1);
}

void hbrt_client_leave(hbrt_client *client) {
    __atomic_store_n(&client->has_left, 1, __ATOMIC_SEQ_CST);
    wake_followers(client, 1);
    if (hbrt_client_waiting(client)) hbrt_ring(client->doorbell);
}
