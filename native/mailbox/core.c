/* The side that runs: dsp_server/core/loop.py is its readable twin, hbrt/mailbox/schedule.py has the order. */
#define _GNU_SOURCE
#include "mailbox.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "clock.h"
#include "layout.h"

enum { POLLS_PER_YIELD = 40 };

/* What the schedule needs of a task. */
typedef struct {
    int64_t rank, custom_id;
    uint64_t sequence;
    uint32_t slot;
} entry;

struct hbrt_core {
    hbrt_file file;
    uint32_t index;
    int epoll_fd, control_fd, is_alone, owner_sleeps;
    int core_doorbells[HBRT_MAX_CORES];
    int client_doorbells[HBRT_CLIENTS];
    uint64_t aging_ns; /* 0 for none */
    hbrt_core_record *record;
    uint8_t *announced, *activity;
    entry *queue; /* a binary heap, the best first */
    uint32_t count, capacity;
};

hbrt_core *hbrt_core_new(void *map, uint64_t map_bytes, const void *header, uint32_t index, const int *core_doorbells,
                         int epoll_fd, int control_fd, int is_alone) {
    hbrt_core *core = calloc(1, sizeof *core);
    if (core == NULL) return NULL;
    if (hbrt_file_open(&core->file, map, map_bytes, header) && index < core->file.at.core_count) {
        core->index = index;
        core->epoll_fd = epoll_fd;
        core->control_fd = control_fd;
        core->is_alone = is_alone;
        memcpy(core->core_doorbells, core_doorbells, core->file.at.core_count * sizeof *core_doorbells);
        for (uint32_t client = 0; client < HBRT_CLIENTS; client++) core->client_doorbells[client] = -1;
        core->announced = hbrt_announced(&core->file, index);
        core->record = hbrt_core_at(&core->file, index);
        core->activity = &core->record->activity;
        core->capacity = 2 * core->file.at.slot_count;
        core->queue = calloc(core->capacity, sizeof *core->queue);
        if (core->queue != NULL) return core;
    }
    hbrt_core_free(core);
    return NULL;
}

void hbrt_core_free(hbrt_core *core) {
    free(core->queue);
    free(core);
}

void hbrt_core_client(hbrt_core *core, uint32_t client, int doorbell) {
    if (client < HBRT_CLIENTS) __atomic_store_n(&core->client_doorbells[client], doorbell, __ATOMIC_RELEASE);
}

void hbrt_core_age(hbrt_core *core, uint64_t aging_ns) { core->aging_ns = aging_ns; }

/* -- queue ---------------------------------------------------------------------------------------------------------- */

/* schedule.py's `rank`: the priority, less the ticks of the board's clock before the submission. */
static int64_t rank(const hbrt_core *core, int64_t priority, uint64_t sequence) {
    if (core->aging_ns == 0 || priority >= HBRT_URGENT) return priority;
    return priority - (int64_t)(sequence / core->aging_ns);
}

/* Whether a task comes before another: higher rank, smaller customId, earlier submission. */
static int is_before(const entry *one, const entry *other) {
    if (one->rank != other->rank) return one->rank > other->rank;
    if (one->custom_id != other->custom_id) return one->custom_id < other->custom_id;
    return one->sequence < other->sequence;
}

static void sift_up(hbrt_core *core, uint32_t at) {
    entry moved = core->queue[at];
    while (at > 0 && is_before(&moved, &core->queue[(at - 1) / 2])) {
        core->queue[at] = core->queue[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    core->queue[at] = moved;
}

static void sift_down(hbrt_core *core, uint32_t at) {
    entry moved = core->queue[at];
    for (uint32_t child; (child = 2 * at + 1) < core->count; at = child) {
        if (child + 1 < core->count && is_before(&core->queue[child + 1], &core->queue[child])) child++;
        if (!is_before(&core->queue[child], &moved)) break;
        core->queue[at] = core->queue[child];
    }
    core->queue[at] = moved;
}

static entry take_first(hbrt_core *core) {
    entry first = core->queue[0];
    core->queue[0] = core->queue[--core->count];
    if (core->count) sift_down(core, 0);
    return first;
}

static int is_current(const hbrt_core *core, const entry *task) {
    return hbrt_load(core->file.states + task->slot) == HBRT_READY &&
           HBRT_GET(hbrt_record(&core->file, task->slot)->sequence) == task->sequence;
}

/* Drop what others have claimed or cancelled, and what was announced again: at most one entry a slot stays. */
static void drop_stale(hbrt_core *core) {
    uint32_t kept = 0, before = core->count;
    uint8_t is_kept[1u << HBRT_SLOT_BITS] = {0};
    for (uint32_t at = 0; at < before; at++) {
        entry task = core->queue[at];
        if (is_kept[task.slot] || !is_current(core, &task)) continue;
        is_kept[task.slot] = 1;
        core->queue[kept++] = task;
    }
    core->count = kept;
    for (uint32_t at = kept / 2; at-- > 0;) sift_down(core, at);
}

static uint8_t *next_announced(const hbrt_core *core, uint8_t *from) {
    uint8_t *end = core->announced + core->file.at.slot_count;
#ifdef __SANITIZE_THREAD__ /* which takes memchr for plain reads */
    for (; from < end; from++)
        if (hbrt_load(from) == 1) return from;
    return NULL;
#else
    return from < end ? memchr(from, 1, (size_t)(end - from)) : NULL;
#endif
}

/* Queue the announced tasks. */
static void collect(hbrt_core *core) {
    for (uint8_t *at = core->announced; (at = next_announced(core, at)) != NULL; at++) {
        /* Cleared before the record is read: one that is announced again meanwhile is found by the next look. */
        if (__atomic_exchange_n(at, 0, __ATOMIC_ACQ_REL) != 1) continue;
        uint32_t slot = (uint32_t)(at - core->announced);
        if (hbrt_load(core->file.states + slot) != HBRT_READY) continue;
        if (core->count == core->capacity) drop_stale(core);
        const hbrt_slot_record *record = hbrt_record(&core->file, slot);
        uint64_t sequence = HBRT_GET(record->sequence);
        core->queue[core->count] = (entry){rank(core, HBRT_GET(record->priority), sequence),
                                           HBRT_GET(record->custom_id), sequence, slot};
        sift_up(core, core->count++);
    }
}

int hbrt_core_is_queued(hbrt_core *core, uint32_t slot) {
    for (uint32_t at = 0; at < core->count; at++)
        if (core->queue[at].slot == slot) return 1;
    return 0;
}

int64_t hbrt_core_first_rank(hbrt_core *core) {
    collect(core);
    return core->count ? core->queue[0].rank : INT64_MIN;
}

/* -- claim ---------------------------------------------------------------------------------------------------------- */

/* The core to ring for a task of this mask: none when one looks, else the first that sleeps. */
static int core_to_wake(const hbrt_core *core, uint32_t mask) {
    int asleep = -1;
    for (uint32_t other = 0; other < core->file.at.core_count; other++) {
        if (other == core->index || !hbrt_may_run(other, mask)) continue;
        uint8_t activity = hbrt_load(&hbrt_core_at(&core->file, other)->activity);
        if (activity == HBRT_CORE_LOOKING) return -1;
        if (activity == HBRT_CORE_ASLEEP && asleep < 0) asleep = (int)other;
    }
    return asleep;
}

/* Ring a sleeping core for a task that this one, now busy, leaves READY. */
static void chain(hbrt_core *core) {
    uint32_t asleep = 0;
    hbrt_full_fence(); /* RUNNING before the others' activity: pairs with a submitter that saw this core look */
    for (uint32_t other = 0; other < core->file.at.core_count; other++)
        asleep += other != core->index && hbrt_load(&hbrt_core_at(&core->file, other)->activity) == HBRT_CORE_ASLEEP;
    if (asleep == 0 || (core->count == 0 && next_announced(core, core->announced) == NULL)) return;
    collect(core);
    for (uint32_t at = 0; at < core->count; at++) {
        uint32_t slot = core->queue[at].slot;
        if (hbrt_load(core->file.states + slot) != HBRT_READY) continue;
        int wake = core_to_wake(core, HBRT_GET(hbrt_record(&core->file, slot)->core_mask));
        if (wake < 0) continue;
        hbrt_ring(core->core_doorbells[wake]);
        return;
    }
}

int hbrt_core_claim(hbrt_core *core, int64_t least_priority) {
    hbrt_file *file = &core->file;
    int64_t least_rank = least_priority > 0 ? least_priority : INT64_MIN;
    collect(core);
    while (core->count && core->queue[0].rank >= least_rank) {
        if (!is_current(core, &core->queue[0])) {
            take_first(core); /* another core was first: not worth the lock */
            continue;
        }
        if (!hbrt_is_locked(file->claim_lock, pthread_mutex_trylock(file->claim_lock))) return HBRT_LOCKED;
        entry task = take_first(core);
        hbrt_slot_record *record = hbrt_record(file, task.slot);
        /* The mask too: an earlier task in the slot may have made the announcement. */
        int is_mine = is_current(core, &task) && hbrt_may_run(core->index, HBRT_GET(record->core_mask));
        if (is_mine) {
            record->core = (int32_t)core->index;
            record->result = 0;
            record->text_bytes = record->reserved = 0;
            record->claim_ns = hbrt_now_ns();
            hbrt_store(file->states + task.slot, HBRT_RUNNING); /* who finds RUNNING finds the core too */
        }
        pthread_mutex_unlock(file->claim_lock);
        if (!is_mine) continue;
        hbrt_store(core->activity, HBRT_CORE_RUNNING);
        if (file->at.core_count > 1) chain(core);
        return (int)task.slot;
    }
    return HBRT_NOTHING;
}

/* -- answer --------------------------------------------------------------------------------------------------------- */

int hbrt_core_answer(hbrt_core *core, uint32_t slot, uint32_t owner, int result, uint64_t start_ns, uint64_t done_ns,
                     uint64_t cycles, int is_nested) {
    hbrt_file *file = &core->file;
    hbrt_slot_record *record = hbrt_record(file, slot);
    if (result == 0) {
        record->start_ns = start_ns;
        record->done_ns = done_ns;
        record->cycles = cycles;
    }
    core->record->tasks++;
    core->record->cycles += cycles;
    if (!is_nested) core->record->busy_ns += done_ns - start_ns; /* the interrupted op's time includes that of this one */
    hbrt_store(file->states + slot, result ? HBRT_FAILED : HBRT_DONE);
    /* Before the owner wakes: its next submission then finds a core that looks, and rings nobody. */
    hbrt_store(core->activity, is_nested ? HBRT_CORE_RUNNING : HBRT_CORE_LOOKING);
    if (owner >= HBRT_CLIENTS) return 1; /* the slot has an invalid owner */
    hbrt_full_fence(); /* the state before the flag: pairs with the fence of an owner that goes to sleep */
    hbrt_client_record *client = hbrt_client_at(file, owner);
    core->owner_sleeps = hbrt_load(&client->sleeps);
    if (!hbrt_load(&client->asleep)) return HBRT_UNRUNG;
    if (core->is_alone && core->count) return HBRT_DEFERRED;
    hbrt_store(&client->asleep, 0); /* no other core needs to ring it before its next sleep */
    int doorbell = __atomic_load_n(&core->client_doorbells[owner], __ATOMIC_ACQUIRE);
    if (doorbell < 0) return HBRT_UNKNOWN_OWNER;
    hbrt_ring(doorbell);
    return 1;
}

int hbrt_core_owner_sleeps(hbrt_core *core) { return core->owner_sleeps; }

/* -- wait ----------------------------------------------------------------------------------------------------------- */

int hbrt_core_poll(hbrt_core *core, int64_t poll_ns) {
    int64_t end_ns = (int64_t)hbrt_now_ns() + poll_ns, now_ns;
    int found = 0;
    hbrt_store(core->activity, HBRT_CORE_LOOKING);
    do {
        for (int n = 0; n < POLLS_PER_YIELD && !(found = next_announced(core, core->announced) != NULL); n++)
            hbrt_relax();
        if (!found) sched_yield();
        now_ns = (int64_t)hbrt_now_ns();
    } while (!found && now_ns < end_ns);
    return hbrt_polled(found, now_ns - end_ns);
}

int hbrt_core_sleep(hbrt_core *core) {
    int answer = 1;
    hbrt_store(core->activity, HBRT_CORE_ASLEEP);
    hbrt_full_fence(); /* asleep before the last look: pairs with a submitter's fence */
    if (next_announced(core, core->announced) == NULL) {
        struct epoll_event events[2];
        int ready = epoll_wait(core->epoll_fd, events, 2, -1);
        if (ready < 0) answer = HBRT_INTERRUPTED;
        for (int n = 0; n < ready; n++)
            if (events[n].data.fd == core->control_fd) answer = HBRT_CONTROL;
    }
    hbrt_store(core->activity, HBRT_CORE_LOOKING);
    return answer;
}

int hbrt_core_next(hbrt_core *core) {
    int slot = hbrt_core_claim(core, 0);
    if (slot != HBRT_NOTHING) return slot;
    int woken = hbrt_core_sleep(core);
    return woken == 1 ? hbrt_core_claim(core, 0) : woken;
}
