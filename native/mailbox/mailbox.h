/* The mailbox of a board in C: the fast twin of hbrt/mailbox and hbrt/attach, for Python, for C programs and for cores.
 *
 * docs/mailbox.md has the layout and the rules; the Python modules are the readable reference. Rare cases are not here:
 * a function answers HBRT_ASK, and its caller continues with the reference, which has the checks and the sentences.
 *
 * Nothing here has global state, takes a lock of Python's, or is called again by a signal's handler in its middle (Python
 * runs handlers between bytecodes). A blocking call returns HBRT_INTERRUPTED after a signal.
 */
#ifndef HBRT_MAILBOX_H
#define HBRT_MAILBOX_H

#include <stdint.h>

/* Answers that are no handle, slot or state. */
enum {
    HBRT_ASK = 0,           /* the reference handles this case */
    HBRT_NO_SLOT = -1,      /* lease more */
    HBRT_TIMEOUT = -2,
    HBRT_INTERRUPTED = -3,  /* a signal came: its handler runs, then wait again */
    HBRT_GONE = -4,         /* the board, or this attachment, is gone */
    HBRT_ASKED = -5,        /* the daemon asks where this process waits */
    HBRT_NOTHING = -6,      /* no task, no change */
    HBRT_LOCKED = -7,       /* another process holds the claim lock */
    HBRT_CONTROL = -8,      /* the supervisor has sent a message */
    HBRT_RAN = -9,          /* an op in C has ended: the caller answers it */
    HBRT_UNKNOWN_OWNER = -11,  /* answered; the owner sleeps, and its doorbell is not known */
    HBRT_UNSERVED = -12,    /* every core that may run the task is offline; nothing was queued */
};

/* The outcome of a poll, for the habit of the poller. */
enum { HBRT_POLL_NONE, HBRT_POLL_PAID, HBRT_POLL_VAIN, HBRT_POLL_PAID_LOST_CPU, HBRT_POLL_VAIN_LOST_CPU };

/* What an op has spent: cycles, then its work in the order of the slot's record. */
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

/* Layout version of the DDR file that this code speaks. */
uint32_t hbrt_layout_version(void);

/* -- the side that submits ------------------------------------------------------------------------------------------ */

typedef struct hbrt_client hbrt_client;

/* A client of the board whose DDR file is mapped at `map`; NULL for another layout version, or without memory.
 * `header`: the file's header of a file that is what it says; as many doorbells as it has cores.
 * `urgent_bells` has one bell a core, or is NULL. The first serial is `first_serial` + 1. */
hbrt_client *hbrt_client_new(void *map, uint64_t map_bytes, const void *header, uint32_t client_id, int doorbell,
                             const int *core_doorbells, const int *urgent_bells, uint64_t first_serial);
void hbrt_client_free(hbrt_client *client);

/* Handle of each slot's live task, 0 for none; slot_count entries. */
uint64_t *hbrt_client_handles(hbrt_client *client);
uint64_t hbrt_client_serial(hbrt_client *client);

/* From now on waits poll where that pays, for so long at the most; 0, for never, and cores do not poll for it either. */
void hbrt_client_polls(hbrt_client *client, int64_t budget_ns);

/* From now on, every call answers HBRT_GONE or HBRT_ASK, and every wait returns. */
void hbrt_client_leave(hbrt_client *client);
/* Threads that wait, or are about to ring a doorbell or to write a state. */
uint32_t hbrt_client_waiting(hbrt_client *client);

/* Slots that no task uses: give some, take one (or HBRT_NO_SLOT), count them. */
void hbrt_slots_give(hbrt_client *client, const uint32_t *slots, uint32_t count);
int64_t hbrt_slot_take(hbrt_client *client);
uint32_t hbrt_slot_count(hbrt_client *client);

/* What a task is to do. */
typedef struct {
    int64_t cmd, priority, core_mask, custom_id;
    uint64_t input_phy, input_bytes, output_phy, output_bytes;
} hbrt_request;

/* Queue a task, an hbrt_request. Returns its handle (> 0); HBRT_ASK, HBRT_NO_SLOT or HBRT_UNSERVED. `is_checked`: the
 * caller has checked the two blocks. */
int64_t hbrt_submit(hbrt_client *client, const void *request, int is_checked);

/* As hbrt_submit, but the task is left SENT: a relay is to have it queued, or hbrt_publish queues it. With
 * HBRT_ELSEWHERE for `is_checked`, another board is to run it: no core need serve it, and its blocks are not checked. */
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

/* As hbrt_submit, of the structures of hbDSPRpc at these addresses; HBRT_ASK for the commands that no op serves, too. */
int64_t hbrt_rpc(hbrt_client *client, uintptr_t control, uintptr_t input, uintptr_t output);

/* Queue a task that hbrt_prepare left SENT. Returns its handle; HBRT_UNSERVED, or HBRT_ASK, and then it is SENT still. */
int64_t hbrt_publish(hbrt_client *client, int64_t handle);

/* Handle of this thread's newest task, if it asks for these and is live, else HBRT_ASK: for a caller that a signal's
 * handler has interrupted before it had the handle. */
int64_t hbrt_newest(hbrt_client *client, int64_t cmd, uint64_t input_phy, uint64_t output_phy);

/* Wait until a task has ended, or its slot has another handle.
 *
 * timeout_ns: < 0 waits for ever. polls: poll first where that pays (hbrt_client_polls). After polling in vain it returns
 * HBRT_INTERRUPTED: of a signal that came while it polled, no sleep would know. The caller goes on without a poll.
 * Returns the state of the task's slot; HBRT_ASK when the handle is not a live one; HBRT_TIMEOUT, _INTERRUPTED, _GONE,
 * _ASKED. */
int hbrt_wait(hbrt_client *client, int64_t handle, int64_t timeout_ns, int polls);

/* hbrt_wait without a limit, with a poll, then hbrt_release of a task that succeeded; returns as hbrt_wait. */
int hbrt_finish(hbrt_client *client, int64_t handle);

/* Wait until one of the tasks has ended or its slot has another handle, or hbrt_nudge was called more often than `seen`.
 * Returns 1; HBRT_TIMEOUT, _INTERRUPTED, _GONE or _ASKED. */
int hbrt_wait_any(hbrt_client *client, const uint64_t *handles, uint32_t count, uint32_t seen, int64_t timeout_ns);
uint32_t hbrt_nudges(hbrt_client *client);
void hbrt_nudge(hbrt_client *client);
/* Have all waiters check: a task has ended, or its handle is gone, without a core. */
void hbrt_wake(hbrt_client *client);

/* Release a task that has ended: 1; HBRT_ASK for one that has not, or a handle that is not live. */
int hbrt_release(hbrt_client *client, int64_t handle);
/* Take a handle out of the table: 1, or HBRT_ASK when it is not a live one. */
int hbrt_forget(hbrt_client *client, int64_t handle);
/* Cancel the task of a slot that no core has claimed, with this sentence: 1. HBRT_NOTHING for one that runs or has ended,
 * HBRT_LOCKED when another process keeps the claim lock. */
int hbrt_cancel(hbrt_client *client, uint32_t slot, int32_t status, const char *text);

/* Note submissions and waits into the records of a ring file of hbrt/trace, which stay mapped as long as the client is
 * there; NULL for no more. 0 without memory. */
int hbrt_client_note(hbrt_client *client, void *records, uint32_t count);

/* -- control requests ----------------------------------------------------------------------------------------------- */

typedef struct hbrt_lease hbrt_lease;

/* The requests of a lease, over its connection `fd`; NULL without memory. */
hbrt_lease *hbrt_lease_new(int fd);
/* Hang up; returns when nobody is in hbrt_exchange any more. The caller closes `fd`. */
void hbrt_lease_close(hbrt_lease *lease);
void hbrt_lease_free(hbrt_lease *lease);

/* Send a request over a lease, NULL for one that is closed, unless `is_sent` says that it is, and wait for its answer; with the number 0 nobody waits for it. Of
 * any thread; called again, it goes on. timeout_ns: < 0 waits for ever.
 * Returns 1: the answer is there, or the request with the number 0 is sent; HBRT_TIMEOUT, _INTERRUPTED or _GONE. */
int hbrt_exchange(hbrt_lease *lease, uint64_t number, const void *request, uint64_t bytes, int *is_sent, int64_t timeout_ns);
/* The answer to a request, which stays until hbrt_answer_end; NULL for none. */
const void *hbrt_answer(hbrt_lease *lease, uint64_t number, uint64_t *bytes);
void hbrt_answer_end(hbrt_lease *lease, uint64_t number);

/* -- the side that runs --------------------------------------------------------------------------------------------- */

typedef struct hbrt_core hbrt_core;

/* Core `index` of the file as in hbrt_client_new; `epoll_fd` watches its doorbell (edge-triggered) and `control_fd`. `is_alone`: one CPU for everybody. */
hbrt_core *hbrt_core_new(void *map, uint64_t map_bytes, const void *header, uint32_t index, const int *core_doorbells,
                         int epoll_fd, int control_fd, int is_alone);
void hbrt_core_free(hbrt_core *core);

/* The doorbell of a client, by its id and the number of its attachment; -1 when it is gone. */
void hbrt_core_client(hbrt_core *core, uint32_t client, uint32_t number, int doorbell);

/* From now on, tasks are not counted in the core's record: for a program that runs its own ops. */
void hbrt_core_apart(hbrt_core *core);

/* From now on, a waiting task gains a level every `aging_ns`; 0, the initial value, for never. Call it before the first claim. */
void hbrt_core_age(hbrt_core *core, uint64_t aging_ns);

/* Claim the best task that is READY for this core: its slot, HBRT_NOTHING, or HBRT_LOCKED. `least_priority`: of any for
 * 0 and less; with aging, another bound than an urgent priority means a rank. The claim's time stands in its record. */
int hbrt_core_claim(hbrt_core *core, int64_t least_priority);

/* How a task has ended. `owner`: as the caller continues to use it; the record's may change. `is_nested`: inside an
 * interrupted op, so that this core is not free. `has_work`: whether the record has what the op charged. */
typedef struct {
    uint32_t slot, owner;
    int32_t result, is_nested;
    uint64_t start_ns, done_ns, cycles, has_work;
} hbrt_ending;

/* Publish an answer, an hbrt_ending, whose record is written, or with a result of 0 write it too; count the task. Returns
 * 1, or HBRT_UNKNOWN_OWNER. On one CPU the ring of an owner may wait for the queue's end. */
int hbrt_core_answer(hbrt_core *core, const void *ending);

/* Whether a slot is queued here; the first one's priority, with aging its rank, INT64_MIN for none. */
int hbrt_core_is_queued(hbrt_core *core, uint32_t slot);
int64_t hbrt_core_first_rank(hbrt_core *core);
/* Owners that seemed awake when one of their tasks ended, since the last time: up to `most` of them. Of any thread. */
uint32_t hbrt_core_unrung(hbrt_core *core, uint32_t *owners, uint32_t most);

/* Whether memory of other libraries is mapped over parts of the file: then hbrt_core_next runs no op in C by itself. */
void hbrt_core_imports(hbrt_core *core, int has_imports);

/* Poll by habit so long before each sleep, while the owner of the latest answer polls too; 0 for never. */
void hbrt_core_polls(hbrt_core *core, int64_t budget_ns);

/* Claim a task: its slot. Ops in C are run and answered meanwhile. Where there is none, poll, or sleep; then HBRT_NOTHING,
 * _CONTROL or _INTERRUPTED. Or HBRT_LOCKED; HBRT_RAN and HBRT_UNKNOWN_OWNER are of the task in hbrt_core_ran. */
int hbrt_core_next(hbrt_core *core);

/* -- ops in C ------------------------------------------------------------------------------------------------------- */

/* Runs a client's op by its code and its blocks; `spent` takes HBRT_SPENT numbers. Returns 1 when the runtime is to answer
 * the task. */
typedef int32_t hbrt_call(void *code, void *input, void *output, uint64_t input_bytes, uint64_t output_bytes, uint32_t client,
                          int32_t *result, uint64_t *spent);

/* The function that runs ops in C. `is_core`: a byte that is 0 in a process that an op forks. */
void hbrt_core_calls(hbrt_core *core, hbrt_call *call, const void *is_core);
/* From now on a command has this code; NULL for an op that hbrt_core_next is to return. */
void hbrt_core_op(hbrt_core *core, uint32_t cmd, void *code);

/* The task that hbrt_core_next runs, or has run: as it was claimed, then how it ended. */
typedef struct {
    uint32_t slot, cmd, owner, client;
    int32_t result;
    uint64_t start_ns, done_ns, spent[14];
} hbrt_ran;
const hbrt_ran *hbrt_core_ran(hbrt_core *core);

/* The slot of the op in C that runs, or HBRT_NOTHING. Of any thread. */
int hbrt_core_running(hbrt_core *core);
/* As hbrt_core_running, for the runtime that it calls: from now on it is the caller's, which answers it as HBRT_RAN. */
int hbrt_core_adopt(hbrt_core *core);
/* Have hbrt_core_next return after the op that runs. Of any thread. */
void hbrt_core_interrupt(hbrt_core *core);
/* How often the op of a command has run here since the last time, and for how long the last one did. Of any thread. */
uint32_t hbrt_core_runs(hbrt_core *core, uint32_t cmd, uint64_t *last_ns);
/* Cycles of the ops that were answered here, since the last time. */
uint64_t hbrt_core_cycles(hbrt_core *core);

#endif
