/* A board's mailbox in C: the fast counterpart of hbrt/mailbox and hbrt/attach, for Python, C programs and cores.
 *
 * docs/mailbox.md describes the layout and the rules; the Python modules are the readable reference. Rare cases are not
 * handled here: a function returns HBRT_ASK, and its caller falls back on the reference, with its checks and messages.
 *
 * Nothing here has global state, takes a Python lock, or is reentered by a signal handler (Python runs handlers between
 * bytecodes). A blocking call returns HBRT_INTERRUPTED after a signal.
 */
#ifndef HBRT_MAILBOX_H
#define HBRT_MAILBOX_H

#include <stdint.h>

/* Return codes other than handles, slots and states. */
enum {
    HBRT_ASK = 0,           /* the reference handles this case */
    HBRT_NO_SLOT = -1,      /* lease more */
    HBRT_TIMEOUT = -2,
    HBRT_INTERRUPTED = -3,  /* by a signal: let its handler run, then wait again */
    HBRT_GONE = -4,         /* the board or this attachment is gone */
    HBRT_ASKED = -5,        /* the daemon asks where this process is waiting */
    HBRT_NOTHING = -6,      /* no task or no change */
    HBRT_LOCKED = -7,       /* another process holds the claim lock */
    HBRT_CONTROL = -8,      /* the supervisor has sent a message */
    HBRT_RAN = -9,          /* an op in C has finished: the caller answers its task */
    HBRT_UNKNOWN_OWNER = -11,  /* answered, but the owner sleeps and its doorbell is unknown */
    HBRT_UNSERVED = -12,    /* every core that may run the task is offline; nothing was queued */
};

/* The outcome of a poll, for the poller's habit. */
enum { HBRT_POLL_NONE, HBRT_POLL_PAID, HBRT_POLL_VAIN, HBRT_POLL_PAID_LOST_CPU, HBRT_POLL_VAIN_LOST_CPU };

/* What an op spent: cycles, then its work in the order of the slot record. */
enum {
    HBRT_WORK_BUNDLES,
    HBRT_WORK_GATHERS,
    HBRT_WORK_DIVIDES,
    HBRT_WORK_SCALARS,
    HBRT_WORK_DDR_LOADS,
    HBRT_WORK_DESCRIPTORS,
    HBRT_WORK_ROWS,
    HBRT_WORK_DMA_BYTES,
    HBRT_WORK_PRINTS,
    HBRT_WORK_PRINTED_BYTES,
    HBRT_WORK_MAPPED_BYTES,
    HBRT_WORK_DMA_CYCLES,
    HBRT_WORK_WAIT_CYCLES,
    HBRT_WORK_COUNTS,
    HBRT_SPENT
};

/* The DDR file layout version that this code supports. */
uint32_t hbrt_layout_version(void);

/* -- the side that submits ------------------------------------------------------------------------------------------ */

typedef struct hbrt_client hbrt_client;

/* A client of the board whose DDR file is mapped at `map`; NULL for another layout version, or without memory.
 * `header`: the verified header of that file; as many doorbells as it has cores.
 * `urgent_bells` has one bell per core, or is NULL. The first serial is `first_serial` + 1. */
hbrt_client *hbrt_client_new(void *map, uint64_t map_bytes, const void *header, uint32_t client_id, int doorbell,
                             const int *core_doorbells, const int *urgent_bells, uint64_t first_serial);
void hbrt_client_free(hbrt_client *client);

/* The handle of each slot's live task, 0 if none; slot_count entries. */
uint64_t *hbrt_client_handles(hbrt_client *client);
uint64_t hbrt_client_serial(hbrt_client *client);

/* From now on, waits poll if that pays, for at most this long; 0: never, and cores do not poll for this client
 * either. */
void hbrt_client_polls(hbrt_client *client, int64_t budget_ns);

/* From now on, every call returns HBRT_GONE or HBRT_ASK, and every wait ends. */
void hbrt_client_leave(hbrt_client *client);
/* Number of threads that are waiting, or about to ring a doorbell or write a state. */
uint32_t hbrt_client_waiting(hbrt_client *client);

/* Add unused slots, take one (or HBRT_NO_SLOT), count them. */
void hbrt_slots_give(hbrt_client *client, const uint32_t *slots, uint32_t count);
int64_t hbrt_slot_take(hbrt_client *client);
uint32_t hbrt_slot_count(hbrt_client *client);

/* What a task should do. */
typedef struct {
    int64_t cmd, priority, core_mask, custom_id;
    uint64_t input_phy, input_bytes, output_phy, output_bytes;
} hbrt_request;

/* Queue a task, described by an hbrt_request. Returns its handle (> 0), HBRT_ASK, HBRT_NO_SLOT or HBRT_UNSERVED.
 * `is_checked`: the caller has checked both blocks. */
int64_t hbrt_submit(hbrt_client *client, const void *request, int is_checked);

/* Like hbrt_submit, but leave the task SENT, for a relay or hbrt_publish to queue. If `is_checked` is HBRT_ELSEWHERE,
 * another board will run it: no core has to serve it, and its blocks are not checked. */
enum { HBRT_ELSEWHERE = 2 };
int64_t hbrt_prepare(hbrt_client *client, const void *request, int is_checked);

/* The first fields of hbDSPRpcCtrlParam and of hbSysMem. */
typedef struct {
    int32_t core_mask, cmd, priority;
    int64_t custom_id;
} hbrt_control;
typedef struct {
    uint64_t phy;
    void *address;
    uint32_t bytes;
} hbrt_block;

/* Like hbrt_submit, from hbDSPRpc's structures at these addresses; also HBRT_ASK for commands without an op. */
int64_t hbrt_rpc(hbrt_client *client, uintptr_t control, uintptr_t input, uintptr_t output);

/* Queue a task that hbrt_prepare left SENT. Returns its handle, HBRT_UNSERVED, or HBRT_ASK, which leaves it SENT. */
int64_t hbrt_publish(hbrt_client *client, int64_t handle);

/* Queue the task that another client left SENT in a slot for its relay, this process; `request` is the record that the
 * client sent. Returns 1; HBRT_NOTHING if the slot does not hold exactly that task; HBRT_UNSERVED if all cores that may
 * run it are offline, since the daemon takes the claim lock before it fails such tasks; HBRT_LOCKED. */
int hbrt_relay(hbrt_client *client, uint32_t slot, const void *request);

/* Handle of this thread's newest task, if its request matches and it is live, else HBRT_ASK: for a caller that was
 * interrupted by a signal handler before it got the handle. */
int64_t hbrt_newest(hbrt_client *client, int64_t cmd, uint64_t input_phy, uint64_t output_phy);

/* Wait until a task has ended, or its slot has another handle.
 *
 * timeout_ns: < 0 waits forever. polls: poll first if that pays (hbrt_client_polls). After an unsuccessful poll it
 * returns HBRT_INTERRUPTED, because a sleep would miss a signal that came during the poll; the caller then continues
 * without polling. Returns the state of the task's slot; HBRT_ASK if the handle is not live; HBRT_TIMEOUT,
 * _INTERRUPTED, _GONE, _ASKED. */
int hbrt_wait(hbrt_client *client, int64_t handle, int64_t timeout_ns, int polls);

/* hbrt_wait without a limit, with a poll, then hbrt_release of a task that succeeded; returns the same as hbrt_wait. */
int hbrt_finish(hbrt_client *client, int64_t handle);

/* Wait until one of the tasks has ended or its slot has another handle, or hbrt_nudge was called more than `seen`
 * times. Returns 1; HBRT_TIMEOUT, _INTERRUPTED, _GONE or _ASKED. */
int hbrt_wait_any(hbrt_client *client, const uint64_t *handles, uint32_t count, uint32_t seen, int64_t timeout_ns);
uint32_t hbrt_nudges(hbrt_client *client);
void hbrt_nudge(hbrt_client *client);
/* Make all waiters check: a task ended, or its handle was removed, without a core's help. */
void hbrt_wake(hbrt_client *client);

/* Release a finished task: 1; HBRT_ASK if it has not finished, or the handle is not live. */
int hbrt_release(hbrt_client *client, int64_t handle);
/* Remove a handle from the table: 1, or HBRT_ASK if it is not live. */
int hbrt_forget(hbrt_client *client, int64_t handle);
/* Cancel the task of a slot that no core has claimed, with this message: 1. HBRT_NOTHING if it runs or has ended,
 * HBRT_LOCKED if another process keeps the claim lock. */
int hbrt_cancel(hbrt_client *client, uint32_t slot, int32_t status, const char *text);

/* Record submissions and waits into a ring file of hbrt/trace, which stays mapped as long as the client exists; NULL
 * stops it. 0 without memory. */
int hbrt_client_note(hbrt_client *client, void *records, uint32_t count);

/* -- control requests ----------------------------------------------------------------------------------------------- */

typedef struct hbrt_lease hbrt_lease;

/* The requests of a lease, over its connection `fd`; NULL without memory. */
hbrt_lease *hbrt_lease_new(int fd);
/* Whether `fd` is still its connection: a program may have closed or replaced descriptors that it did not open. */
int hbrt_lease_is_open(const hbrt_lease *lease);
/* Hang up; returns once no thread is in hbrt_exchange, and later exchanges find it gone. The caller closes `fd`. */
void hbrt_lease_close(hbrt_lease *lease);
void hbrt_lease_free(hbrt_lease *lease);

/* Send a request over a lease (NULL: none), unless `is_sent` is already set, and wait for its answer, except for
 * number 0. Safe from any thread; call it again to resume. timeout_ns: < 0 waits forever.
 * Returns 1 once the answer has arrived (number 0: once it is sent), HBRT_TIMEOUT, _INTERRUPTED or _GONE. */
int hbrt_exchange(hbrt_lease *lease, uint64_t number, const void *request, uint64_t bytes, int *is_sent, int64_t timeout_ns);
/* The answer to a request, valid until hbrt_answer_end; NULL if none. Several threads may read it at once. */
const void *hbrt_answer(hbrt_lease *lease, uint64_t number, uint64_t *bytes);
void hbrt_answer_end(hbrt_lease *lease, const void *message);

/* -- the side that runs tasks --------------------------------------------------------------------------------------- */

typedef struct hbrt_core hbrt_core;

/* Core `index` of the file, as for hbrt_client_new; `epoll_fd` watches its doorbell (edge-triggered) and `control_fd`.
 * `is_alone`: the machine has one CPU. */
hbrt_core *hbrt_core_new(void *map, uint64_t map_bytes, const void *header, uint32_t index, const int *core_doorbells,
                         int epoll_fd, int control_fd, int is_alone);
void hbrt_core_free(hbrt_core *core);

/* Set a client's doorbell, by its id and attachment number; -1 if the client is gone. */
void hbrt_core_client(hbrt_core *core, uint32_t client, uint32_t number, int doorbell);

/* From now on, tasks are not counted in the core's record: for a program that runs its own ops. */
void hbrt_core_apart(hbrt_core *core);

/* From now on, a waiting task gains one level every `aging_ns`; 0, the initial value: never. Call it before the first
 * claim. */
void hbrt_core_age(hbrt_core *core, uint64_t aging_ns);

/* Claim the best task that is READY for this core: returns its slot, HBRT_NOTHING, or HBRT_LOCKED. `least_priority`: 0
 * or less for any; with aging, a bound other than an urgent priority is a rank. The record stores the time of the
 * claim. */
int hbrt_core_claim(hbrt_core *core, int64_t least_priority);

/* How a task has ended. `owner`: as the caller will use it; the record's may change. `is_nested`: inside an interrupted
 * op, so this core is not free. `has_work`: whether the record has the op's charges. */
typedef struct {
    uint32_t slot, owner;
    int32_t result, is_nested;
    uint64_t start_ns, done_ns, cycles, has_work;
} hbrt_ending;

/* Publish an answer, an hbrt_ending, whose record is already written, or with a result of 0 write it, too; count the
 * task. Returns 1, or HBRT_UNKNOWN_OWNER. On one CPU, the owner's ring may wait until the queue is empty. */
int hbrt_core_answer(hbrt_core *core, const void *ending);

/* Whether a slot is queued here; the first one's priority, or with aging its rank, INT64_MIN if there is none. */
int hbrt_core_is_queued(hbrt_core *core, uint32_t slot);
int64_t hbrt_core_first_rank(hbrt_core *core);
/* Owners that seemed awake when one of their tasks ended, since the last call: up to `most` of them. Any thread may
 * call this. */
uint32_t hbrt_core_unrung(hbrt_core *core, uint32_t *owners, uint32_t most);

/* Whether other libraries' memory is mapped over parts of the file: then hbrt_core_next runs no op in C by itself. */
void hbrt_core_imports(hbrt_core *core, int has_imports);

/* Poll by habit for this long before each sleep, while the owner of the latest answer polls, too; 0: never. */
void hbrt_core_polls(hbrt_core *core, int64_t budget_ns);

/* Claim a task and return its slot. Ops in C are run and answered in the meantime. If there is no task, poll, or sleep;
 * then HBRT_NOTHING, _CONTROL or _INTERRUPTED. HBRT_LOCKED; HBRT_RAN and HBRT_UNKNOWN_OWNER refer to the task in
 * hbrt_core_ran. */
int hbrt_core_next(hbrt_core *core);

/* -- ops in C ------------------------------------------------------------------------------------------------------- */

/* Runs a client's op, given its code and its blocks; `spent` receives HBRT_SPENT numbers. Returns 1 if the runtime must
 * answer the task. */
typedef int32_t hbrt_call(void *code, void *input, void *output, uint64_t input_bytes, uint64_t output_bytes, uint32_t client,
                          int32_t *result, uint64_t *spent);

/* Set the function that runs ops in C. `is_core`: a byte that is 0 in a process forked by an op. */
void hbrt_core_calls(hbrt_core *core, hbrt_call *call, const void *is_core);
/* From now on, a command has this code; NULL for an op that hbrt_core_next returns to its caller. */
void hbrt_core_op(hbrt_core *core, uint32_t cmd, void *code);

/* The task that hbrt_core_next runs, or has run: as it was claimed, then how it ended. */
typedef struct {
    uint32_t slot, cmd, owner, client;
    int32_t result;
    uint64_t start_ns, done_ns, spent[14];
} hbrt_ran;
const hbrt_ran *hbrt_core_ran(hbrt_core *core);

/* The slot of the op in C that runs, or HBRT_NOTHING. Any thread may call this. */
int hbrt_core_running(hbrt_core *core);
/* Like hbrt_core_running, for the runtime that the op calls: from now on the caller owns it, and answers it as
 * HBRT_RAN. */
int hbrt_core_adopt(hbrt_core *core);
/* Have hbrt_core_next return after the op that runs. Any thread may call this. */
void hbrt_core_interrupt(hbrt_core *core);
/* How often the op of a command has run here since the last call, and how long its latest run took. Any thread may call
 * this. */
uint32_t hbrt_core_runs(hbrt_core *core, uint32_t cmd, uint64_t *last_ns);
/* Cycles of the ops answered here since the last call. */
uint64_t hbrt_core_cycles(hbrt_core *core);

#endif
