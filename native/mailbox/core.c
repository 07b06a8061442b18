/* The side that runs tasks; hbrt/mailbox/schedule.py describes the order in words. */
#define _GNU_SOURCE
#include "mailbox.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "clock.h"
#include "kill.h"
#include "layout.h"
#include "polling.h"

enum {
    POLLS_PER_YIELD = 40,
    COMMANDS = 0x10000,
    SHORT_OP_NS = 20000, /* the ring of an owner may wait for an op whose last run took no longer */
    MAX_DEFERRED_NS = 50000,
};

/* The fields of a task that determine its order. */
typedef struct {
    int64_t rank, custom_id;
    uint64_t sequence;
    uint32_t slot;
} entry;

typedef struct {
    void *code; /* NULL: not in C */
    uint64_t last_ns; /* 0: it has not run */
    uint32_t runs; /* in C, since the last report */
} op;

struct hbrt_core {
    hbrt_file file;
    uint32_t index;
    int epoll_fd, control_fd, is_alone, owner_sleeps, has_polled, has_imports;
    uint64_t generation; /* of the tables, when Python last hid memory that is no longer imported */
    hbrt_habit polling;
    hbrt_call *call;
    const uint8_t *is_core;
    op *ops; /* by command */
    hbrt_ran ran;
    uint64_t cycles;
    int running, is_called;
    uint8_t unrung[HBRT_CLIENTS], is_deferred[HBRT_CLIENTS];
    uint32_t deferred[HBRT_CLIENTS], deferred_count;
    uint64_t deferred_ns; /* when the first one was */
    int core_doorbells[HBRT_MAX_CORES];
    int client_doorbells[HBRT_CLIENTS];
    uint32_t client_numbers[HBRT_CLIENTS]; /* of the attachments that own these doorbells */
    uint64_t aging_ns; /* 0 if none */
    hbrt_core_record *record;
    uint64_t *counts, own_counts[3]; /* tasks, busy ns and cycles: in the record, or separately */
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
        core->running = HBRT_NOTHING;
        core->polling = (hbrt_habit){.most_skipped = SKIPPED_IN_VAIN, .most_skipped_cpu_lost = SKIPPED_CPU_LOST};
        memcpy(core->core_doorbells, core_doorbells, core->file.at.core_count * sizeof *core_doorbells);
        for (uint32_t client = 0; client < HBRT_CLIENTS; client++) core->client_doorbells[client] = -1;
        core->announced = hbrt_announced(&core->file, index);
        core->record = hbrt_core_at(&core->file, index);
        core->activity = &core->record->activity;
        core->counts = &core->record->tasks;
        core->capacity = 2 * core->file.at.slot_count;
        core->queue = calloc(core->capacity, sizeof *core->queue);
        core->ops = calloc(COMMANDS, sizeof *core->ops);
        if (core->queue != NULL && core->ops != NULL) return core;
    }
    hbrt_core_free(core);
    return NULL;
}

void hbrt_core_free(hbrt_core *core) {
    free(core->queue);
    free(core->ops);
    free(core);
}

void hbrt_core_client(hbrt_core *core, uint32_t client, uint32_t number, int doorbell) {
    if (client >= HBRT_CLIENTS) return;
    __atomic_store_n(&core->client_numbers[client], number, __ATOMIC_RELAXED);
    __atomic_store_n(&core->client_doorbells[client], doorbell, __ATOMIC_RELEASE);
}

/* The doorbell of an id's present owner, or -1: the stored one may belong to a previous owner. */
static int doorbell_of(const hbrt_core *core, uint32_t client) {
    int doorbell = __atomic_load_n(&core->client_doorbells[client], __ATOMIC_ACQUIRE);
    uint32_t number = __atomic_load_n(&core->client_numbers[client], __ATOMIC_RELAXED);
    return number == HBRT_GET(hbrt_client_at(&core->file, client)->number) ? doorbell : -1;
}

void hbrt_core_apart(hbrt_core *core) {
    memcpy(core->own_counts, &core->record->tasks, sizeof core->own_counts);
    core->counts = core->own_counts;
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

/* Drop tasks that were claimed elsewhere, cancelled, or announced again: at most one entry per slot stays. */
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
#ifdef __SANITIZE_THREAD__ /* it treats memchr as plain reads */
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
        /* Cleared before the record is read: a task announced again in between is found by the next scan. */
        HBRT_KILL_POINT("core-C01");
        if (__atomic_exchange_n(at, 0, __ATOMIC_ACQ_REL) != 1) continue;
        HBRT_KILL_POINT("core-C02");
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

/* The core to ring for a task with this mask: none if a core is LOOKING, else the first sleeping one. */
static int core_to_wake(const hbrt_core *core, uint32_t mask) {
    int asleep = -1;
    for (uint32_t other = 0; other < core->file.at.core_count; other++) {
        if (other == core->index || !hbrt_may_run(&core->file, other, mask)) continue;
        uint8_t activity = hbrt_load(&hbrt_core_at(&core->file, other)->activity);
        if (activity == HBRT_CORE_LOOKING) return -1;
        if (activity == HBRT_CORE_ASLEEP && asleep < 0) asleep = (int)other;
    }
    return asleep;
}

/* Ring a sleeping core for a task that this core, now busy, leaves READY. */
static void chain(hbrt_core *core) {
    uint32_t asleep = 0;
    hbrt_full_fence(); /* RUNNING before checking the others' activity: pairs with a submitter that saw this core LOOKING */
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

static void flush(hbrt_core *core) {
    uint32_t count = core->deferred_count;
    core->deferred_count = 0;
    for (uint32_t at = 0; at < count; at++) {
        uint32_t owner = core->deferred[at];
        core->is_deferred[owner] = 0;
        hbrt_store(&hbrt_client_at(&core->file, owner)->asleep, 0);
        int doorbell = doorbell_of(core, owner);
        if (doorbell >= 0) hbrt_ring(doorbell);
    }
}

/* Ring the owners that should not wait until the op that is about to run has ended. */
static void flush_before(hbrt_core *core, uint32_t cmd, uint64_t now_ns) {
    uint64_t last_ns = cmd < COMMANDS ? core->ops[cmd].last_ns : 0;
    if (last_ns == 0 || last_ns > SHORT_OP_NS || now_ns - core->deferred_ns > MAX_DEFERRED_NS) flush(core);
}

static void defer(hbrt_core *core, uint32_t owner, uint64_t now_ns) {
    hbrt_store(&core->unrung[owner], 1); /* an op that was short before may hang: the heartbeat rings, too */
    if (core->deferred_count == 0) core->deferred_ns = now_ns;
    if (core->is_deferred[owner]) return;
    core->is_deferred[owner] = 1;
    core->deferred[core->deferred_count++] = owner;
}

int hbrt_core_claim(hbrt_core *core, int64_t least_priority) {
    hbrt_file *file = &core->file;
    int64_t least_rank = least_priority > 0 ? least_priority : INT64_MIN;
    collect(core);
    while (core->count && core->queue[0].rank >= least_rank) {
        HBRT_KILL_POINT("core-C03");
        if (!is_current(core, &core->queue[0])) {
            take_first(core); /* another core was first: not worth the lock */
            continue;
        }
        HBRT_KILL_POINT("core-C04");
        if (!hbrt_is_locked(file->claim_lock, pthread_mutex_trylock(file->claim_lock))) return HBRT_LOCKED;
        HBRT_KILL_POINT("core-C05");
        entry task = take_first(core);
        hbrt_slot_record *record = hbrt_record(file, task.slot);
        /* Check the mask, too: an earlier task in the slot may have made the announcement. */
        int is_mine = is_current(core, &task) && hbrt_may_run(file, core->index, HBRT_GET(record->core_mask));
        if (is_mine) {
            record->core = (int32_t)core->index;
            record->result = 0;
            record->text_bytes = record->has_work = 0;
            record->claim_ns = hbrt_now_ns();
            record->start_ns = record->done_ns = record->cycles = 0; /* of the task that previously used the slot */
            /* For note(), which writes to a place that has left the caches: the op's run time hides the misses. */
            const hbrt_history_record *kept = hbrt_history(file, core->index, core->counts[0] + 1);
            __builtin_prefetch(kept, 1);
            __builtin_prefetch((const char *)kept + sizeof *kept / 2, 1);
            HBRT_KILL_POINT("core-C06");
            hbrt_store(file->states + task.slot, HBRT_RUNNING); /* a reader that finds RUNNING finds the core, too */
            HBRT_KILL_POINT("core-C07");
        }
        pthread_mutex_unlock(file->claim_lock);
        if (!is_mine) continue;
        HBRT_KILL_POINT("core-C08");
        hbrt_store(core->activity, HBRT_CORE_RUNNING);
        if (file->at.core_count > 1) chain(core);
        if (core->deferred_count) flush_before(core, HBRT_GET(record->cmd), record->claim_ns);
        return (int)task.slot;
    }
    return HBRT_NOTHING;
}

/* -- answer --------------------------------------------------------------------------------------------------------- */

/* Record the end of a task in the history, if this core still owns it. */
static void note(hbrt_core *core, uint32_t slot, uint8_t state) {
    const hbrt_slot_record *record = hbrt_record(&core->file, slot);
    uint64_t number = core->counts[0];
    hbrt_history_record *kept = hbrt_history(&core->file, core->index, number);
    __atomic_store_n(&kept->number, 0, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    kept->state = state;
    uint32_t client = HBRT_GET(record->client); /* once: the submitter can write there */
    kept->pid = client < HBRT_CLIENTS ? hbrt_client_at(&core->file, client)->pid : 0;
    kept->task = *record;
    if (kept->task.has_work) kept->work = *hbrt_work_of(&core->file, slot);
    __atomic_store_n(&kept->number, number, __ATOMIC_RELEASE);
}

static int answer(hbrt_core *core, const hbrt_ending *end) {
    hbrt_file *file = &core->file;
    hbrt_slot_record *record = hbrt_record(file, end->slot);
    uint32_t cmd = HBRT_GET(record->cmd), owner = end->owner;
    uint64_t spent_ns = end->done_ns - end->start_ns;
    int is_nested = end->is_nested;
    HBRT_KILL_POINT("core-C14");
    if (cmd < COMMANDS) __atomic_store_n(&core->ops[cmd].last_ns, spent_ns + 1, __ATOMIC_RELAXED);
    if (end->result == 0) {
        record->start_ns = end->start_ns;
        record->done_ns = end->done_ns;
        record->cycles = end->cycles;
        record->has_work = (uint32_t)end->has_work;
    }
    core->counts[0]++;
    core->counts[2] += end->cycles;
    if (!is_nested) core->counts[1] += spent_ns; /* the interrupted op's time includes that of this one */
    uint8_t state = end->result ? HBRT_FAILED : HBRT_DONE;
    note(core, end->slot, state);
    HBRT_KILL_POINT("core-C15");
    hbrt_store(file->states + end->slot, state);
    HBRT_KILL_POINT("core-C16");
    /* Before the owner wakes: its next submission then finds a LOOKING core, and rings none. */
    hbrt_store(core->activity, is_nested ? HBRT_CORE_RUNNING : HBRT_CORE_LOOKING);
    HBRT_KILL_POINT("core-C17");
    if (owner >= HBRT_CLIENTS) return 1; /* the slot has an invalid owner */
    hbrt_full_fence(); /* the state before the flag: pairs with the fence of an owner that goes to sleep */
    hbrt_client_record *client = hbrt_client_at(file, owner);
    core->owner_sleeps = hbrt_load(&client->sleeps);
    if (!hbrt_load(&client->asleep)) {
        hbrt_store(&core->unrung[owner], 1);
        return 1;
    }
    int doorbell = doorbell_of(core, owner);
    if (doorbell >= 0 && core->is_alone && core->count && !is_nested) { /* an interrupted op may be long */
        defer(core, owner, end->done_ns);
        return 1;
    }
    HBRT_KILL_POINT("core-C18");
    hbrt_store(&client->asleep, 0); /* no other core needs to ring it before its next sleep */
    HBRT_KILL_POINT("core-C19");
    if (doorbell < 0) return HBRT_UNKNOWN_OWNER;
    hbrt_ring(doorbell);
    return 1;
}

int hbrt_core_answer(hbrt_core *core, const void *ending) { return answer(core, ending); }

uint32_t hbrt_core_unrung(hbrt_core *core, uint32_t *owners, uint32_t most) {
    uint32_t count = 0;
    for (uint32_t owner = 0; owner < HBRT_CLIENTS && count < most; owner++)
        if (hbrt_load(&core->unrung[owner]) && __atomic_exchange_n(&core->unrung[owner], 0, __ATOMIC_ACQ_REL))
            owners[count++] = owner;
    return count;
}

/* -- ops in C ------------------------------------------------------------------------------------------------------- */

void hbrt_core_calls(hbrt_core *core, hbrt_call *call, const void *is_core) {
    core->call = call;
    core->is_core = is_core;
}

void hbrt_core_op(hbrt_core *core, uint32_t cmd, void *code) {
    if (cmd < COMMANDS) core->ops[cmd].code = code;
}

const hbrt_ran *hbrt_core_ran(hbrt_core *core) { return &core->ran; }

int hbrt_core_running(hbrt_core *core) { return __atomic_load_n(&core->running, __ATOMIC_ACQUIRE); }

int hbrt_core_adopt(hbrt_core *core) { return __atomic_exchange_n(&core->running, HBRT_NOTHING, __ATOMIC_ACQ_REL); }

void hbrt_core_interrupt(hbrt_core *core) { __atomic_store_n(&core->is_called, 1, __ATOMIC_RELEASE); }

uint32_t hbrt_core_runs(hbrt_core *core, uint32_t cmd, uint64_t *last_ns) {
    op *it = &core->ops[cmd % COMMANDS];
    *last_ns = __atomic_load_n(&it->last_ns, __ATOMIC_RELAXED);
    return __atomic_exchange_n(&it->runs, 0, __ATOMIC_RELAXED);
}

uint64_t hbrt_core_cycles(hbrt_core *core) {
    uint64_t cycles = core->cycles;
    core->cycles = 0;
    return cycles;
}

/* A block of the task run by an op in C. */
typedef struct {
    void *at; /* NULL if none */
    uint64_t bytes;
} op_block;

static op_block block(const hbrt_file *file, uint64_t phy, uint64_t bytes) {
    return (op_block){phy ? file->map + (phy - file->at.ddr_base) : NULL, bytes};
}

void hbrt_core_imports(hbrt_core *core, int has_imports) { core->has_imports = has_imports; }

/* Whether another library's memory may still be shown after its import has ended: then Python runs the task, and hides
 * it. */
static int shows_old_imports(hbrt_core *core) {
    uint64_t generation = hbrt_generation(&core->file);
    int is_so = core->has_imports && generation != core->generation;
    core->generation = generation;
    return is_so;
}

/* Whether C can run a claimed slot: its op is in C and unchecked, and may use its blocks, which are in the file. */
static int is_for_c(hbrt_core *core, int slot, op_block *input, op_block *output) {
    const hbrt_file *file = &core->file;
    const hbrt_slot_record *record = hbrt_record(file, (uint32_t)slot);
    /* Each is read once, because the submitter can write here. */
    uint32_t cmd = HBRT_GET(record->cmd), client = HBRT_GET(record->client);
    uint64_t input_phy = HBRT_GET(record->input_phy), output_phy = HBRT_GET(record->output_phy);
    uint64_t input_bytes = HBRT_GET(record->input_bytes), output_bytes = HBRT_GET(record->output_bytes);
    if (cmd >= COMMANDS || core->ops[cmd].code == NULL || client == 0 || client >= HBRT_CLIENTS ||
        hbrt_load(&hbrt_client_at(file, client)->checks) || shows_old_imports(core) ||
        hbrt_is_usable(file, client, input_phy, input_bytes) != 1 ||
        hbrt_is_usable(file, client, output_phy, output_bytes) != 1)
        return 0;
    *input = block(file, input_phy, input_bytes);
    *output = block(file, output_phy, output_bytes);
    core->ran = (hbrt_ran){.slot = (uint32_t)slot, .cmd = cmd, .owner = HBRT_GET(record->owner), .client = client};
    return 1;
}

/* Run an op in C, and answer: 1. HBRT_RAN and HBRT_UNKNOWN_OWNER as for hbrt_core_next. */
static int serve(hbrt_core *core, int slot, const op_block *input, const op_block *output) {
    hbrt_ran *ran = &core->ran;
    op *it = &core->ops[ran->cmd];
    ran->start_ns = hbrt_now_ns();
    __atomic_store_n(&core->running, slot, __ATOMIC_RELEASE);
    int has_used = core->call(it->code, input->at, output->at, input->bytes, output->bytes, ran->client, &ran->result,
                              ran->spent);
    ran->done_ns = hbrt_now_ns();
    __atomic_add_fetch(&it->runs, 1, __ATOMIC_RELAXED);
    if (has_used || ran->result || !*core->is_core || hbrt_core_adopt(core) != slot) return HBRT_RAN;
    core->cycles += ran->spent[0];
    uint64_t has_work = ran->spent[0] || ran->spent[1 + HBRT_WORK_MAPPED_BYTES];
    if (has_work) memcpy(hbrt_work_of(&core->file, ran->slot), ran->spent + 1, sizeof(hbrt_work));
    return answer(
        core, &(hbrt_ending){ran->slot, ran->owner, 0, 0, ran->start_ns, ran->done_ns, ran->spent[0], has_work});
}

/* -- wait ----------------------------------------------------------------------------------------------------------- */

void hbrt_core_polls(hbrt_core *core, int64_t budget_ns) { core->polling.budget_ns = budget_ns; }

/* Whether a task is announced to a core. */
static int is_announced(const void *of) {
    const hbrt_core *core = of;
    return next_announced(core, core->announced) != NULL;
}

/* Sleep until a task is announced: 1; HBRT_CONTROL or HBRT_INTERRUPTED. */
static int doze(hbrt_core *core) {
    int answer = 1;
    HBRT_KILL_POINT("core-C21");
    hbrt_store(core->activity, HBRT_CORE_ASLEEP);
    HBRT_KILL_POINT("core-C22");
    hbrt_full_fence(); /* asleep before the last scan: pairs with a submitter's fence */
    if (next_announced(core, core->announced) == NULL) {
        struct epoll_event events[2];
        int ready = epoll_wait(core->epoll_fd, events, 2, -1);
        if (ready < 0 && errno != EINTR) abort(); /* an op has closed this core's descriptors: nothing wakes it anymore */
        if (ready < 0) answer = HBRT_INTERRUPTED;
        for (int n = 0; n < ready; n++)
            if (events[n].data.fd == core->control_fd) answer = HBRT_CONTROL;
    }
    hbrt_store(core->activity, HBRT_CORE_LOOKING);
    return answer;
}

/* Poll by habit, and return HBRT_NOTHING if that was unsuccessful: a sleep would miss a signal that came in the
 * meantime. Otherwise sleep. 1 if a task is announced. */
static int wait_for_task(hbrt_core *core) {
    hbrt_store(core->activity, HBRT_CORE_LOOKING);
    int64_t poll_ns = core->has_polled || core->owner_sleeps ? 0 : hbrt_habit_begin(&core->polling);
    core->has_polled = 0;
    if (poll_ns <= 0) return doze(core);
    int polled = hbrt_poll(is_announced, core, POLLS_PER_YIELD, poll_ns);
    hbrt_habit_note(&core->polling, polled);
    if (polled == HBRT_POLL_PAID || polled == HBRT_POLL_PAID_LOST_CPU) return 1;
    core->has_polled = 1;
    return HBRT_NOTHING;
}

int hbrt_core_next(hbrt_core *core) {
    int is_woken = 0;
    while (!__atomic_exchange_n(&core->is_called, 0, __ATOMIC_ACQ_REL)) {
        int slot = hbrt_core_claim(core, 0), answer;
        op_block input, output;
        if (slot >= 0) {
            if (!is_for_c(core, slot, &input, &output)) return slot;
            answer = serve(core, slot, &input, &output);
            is_woken = 0;
        } else {
            flush(core);
            if (slot != HBRT_NOTHING || is_woken) return slot;
            answer = wait_for_task(core);
            is_woken = 1;
        }
        if (answer != 1) return answer;
    }
    return HBRT_INTERRUPTED;
}
