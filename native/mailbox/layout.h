/* Layout of a board's DDR file, as described in docs/mailbox.md; little-endian. */
#ifndef HBRT_LAYOUT_H
#define HBRT_LAYOUT_H

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "mailbox.h"

#define HBRT_LAYOUT_VERSION 6u
#define HBRT_PAGE_SHIFT 12
#define HBRT_MAX_CORES 8
#define HBRT_CLIENTS 1024
#define HBRT_BLOCK_FREED 0x80000000u
#define HBRT_MAX_SHARERS 16
#define HBRT_RPC_ALIGNMENT 8
#define HBRT_SLOT_BITS 12
#define HBRT_SERIAL_BITS 40
#define HBRT_CLAIM_LOCK 3072
#define HBRT_PREEMPT 255
#define HBRT_URGENT 254
#define HBRT_PING 0 /* commands without an op */
#define HBRT_BUTT 0xffff
#define HBRT_SLOT_TEXT 256
#define HBRT_SLOT_WORK 3968

enum { HBRT_HEADER_BYTES = 148, HBRT_REQUEST_BYTES = 64 };
enum { HBRT_EMPTY, HBRT_SENT, HBRT_READY, HBRT_RUNNING, HBRT_DONE, HBRT_FAILED, HBRT_CANCELLED };
enum { HBRT_CORE_ASLEEP, HBRT_CORE_LOOKING, HBRT_CORE_RUNNING, HBRT_CORE_OFFLINE, HBRT_CORE_STALLED };

typedef struct {
    char magic[8];
    uint32_t version, header_bytes;
    uint64_t ddr_base, file_bytes, heap, heap_bytes;
    uint64_t cores;
    uint32_t core_record_bytes, core_count;
    uint64_t clients;
    uint32_t client_record_bytes, client_count;
    uint64_t records;
    uint32_t slot_record_bytes, slot_count;
    uint64_t states, announce, pages, blocks;
    uint32_t block_record_bytes, history_record_bytes;
    uint64_t history;
    uint32_t history_count;
} hbrt_header;

typedef struct {
    uint8_t activity, state, reserved[6];
    uint64_t epoch, heartbeat_ns, tasks, busy_ns, cycles;
} hbrt_core_record;

typedef struct {
    uint8_t asleep, sleeps, checks, asked;
    uint32_t pid;
    uint8_t gone, reserved[3];
    uint32_t number;
} hbrt_client_record;

typedef struct {
    uint64_t sequence;
    int64_t custom_id;
    uint32_t cmd;
    uint16_t priority, core_mask;
    uint32_t owner, client;
    uint64_t input_phy, input_bytes, output_phy, output_bytes;
    /* The core writes the fields below. */
    int32_t core, result;
    uint32_t text_bytes, has_work;
    uint64_t claim_ns, start_ns, done_ns, cycles;
} hbrt_slot_record;

/* The work an op charged, in the order of Work in hbrt/profiles/work.py. */
typedef struct {
    uint64_t count[HBRT_WORK_COUNTS];
} hbrt_work;

typedef struct {
    uint64_t phy_addr, size_bytes;
    uint32_t owner;
    uint16_t sharer_count, sharers[HBRT_MAX_SHARERS];
    uint64_t imported; /* memory from another library; its bytes are not in the file */
} hbrt_block_record;

/* A task that a core has finished; `task` copies the first fields of its slot, including the core's. */
typedef struct {
    uint64_t number; /* counts this core's tasks from 1; 0 while being written */
    uint8_t state, reserved[3];
    uint32_t pid;
    hbrt_slot_record task;
    hbrt_work work; /* valid if task.has_work */
    uint64_t spare[3];
} hbrt_history_record;

/* The parts of one mapped file. */
typedef struct {
    uint8_t *map;
    hbrt_header at;
    uint8_t *states;
    pthread_mutex_t *claim_lock;
    uint32_t dsp_count; /* of at.core_count; accelerators follow */
} hbrt_file;

_Static_assert(sizeof(pthread_mutex_t) <= 64, "the claim lock has 64 bytes");

/* `header`: a verified copy of the file's header; another process may have changed the mapped one since. */
static inline int hbrt_file_open(hbrt_file *file, void *map, uint64_t map_bytes, const void *header) {
    if (map_bytes < 4096) return 0;
    file->map = map;
    memcpy(&file->at, header, HBRT_HEADER_BYTES);
    const hbrt_header *at = &file->at;
    if (memcmp(at->magic, "HBRTDDR", 8) != 0 || at->version != HBRT_LAYOUT_VERSION || at->file_bytes > map_bytes ||
        at->core_count > HBRT_MAX_CORES || at->client_count != HBRT_CLIENTS || at->slot_count > 1u << HBRT_SLOT_BITS ||
        at->history_count == 0 || at->history_record_bytes != sizeof(hbrt_history_record))
        return 0;
    file->states = file->map + at->states;
    file->dsp_count = ((const hbrt_header *)map)->core_count; /* `header` counts the accelerators too */
    if (file->dsp_count > at->core_count) file->dsp_count = at->core_count;
    file->claim_lock = (pthread_mutex_t *)(void *)(file->map + HBRT_CLAIM_LOCK);
    return 1;
}

static inline hbrt_slot_record *hbrt_record(const hbrt_file *file, uint32_t slot) {
    return (hbrt_slot_record *)(void *)(file->map + file->at.records + (uint64_t)slot * file->at.slot_record_bytes);
}

static inline hbrt_work *hbrt_work_of(const hbrt_file *file, uint32_t slot) {
    return (hbrt_work *)(void *)((uint8_t *)hbrt_record(file, slot) + HBRT_SLOT_WORK);
}

static inline hbrt_core_record *hbrt_core_at(const hbrt_file *file, uint32_t core) {
    return (hbrt_core_record *)(void *)(file->map + file->at.cores + (uint64_t)core * file->at.core_record_bytes);
}

static inline hbrt_client_record *hbrt_client_at(const hbrt_file *file, uint32_t client) {
    return (hbrt_client_record *)(void *)(file->map + file->at.clients +
                                          (uint64_t)client * file->at.client_record_bytes);
}

static inline uint8_t *hbrt_announced(const hbrt_file *file, uint32_t core) {
    return file->map + file->at.announce + (uint64_t)core * file->at.slot_count;
}

static inline hbrt_history_record *hbrt_history(const hbrt_file *file, uint32_t ring, uint64_t number) {
    uint64_t at = (uint64_t)ring * file->at.history_count + number % file->at.history_count;
    return (hbrt_history_record *)(void *)(file->map + file->at.history + at * file->at.history_record_bytes);
}

/* Mask 0 means any DSP core; an accelerator runs only tasks that name it. */
static inline int hbrt_may_run(const hbrt_file *file, uint32_t core, uint32_t mask) {
    return mask == 0 ? core < file->dsp_count : mask >> core & 1u;
}

/* The live block that holds a range, or NULL. */
static inline const hbrt_block_record *hbrt_block_of(const hbrt_file *file, uint64_t phy, uint64_t bytes) {
    const hbrt_header *at = &file->at;
    uint64_t start = at->ddr_base + at->heap;
    if (bytes == 0 || phy < start || bytes > at->heap_bytes || phy - start > at->heap_bytes - bytes) return NULL;
    const uint32_t *pages = (const uint32_t *)(const void *)(file->map + at->pages);
    uint32_t block = __atomic_load_n(&pages[(phy - start) >> HBRT_PAGE_SHIFT], __ATOMIC_ACQUIRE);
    if (block == 0 || (block & HBRT_BLOCK_FREED) || (block + UINT64_C(1)) * at->block_record_bytes > at->history - at->blocks)
        return NULL;
    const hbrt_block_record *record =
        (const hbrt_block_record *)(const void *)(file->map + at->blocks + (uint64_t)block * at->block_record_bytes);
    if (phy < record->phy_addr || phy - record->phy_addr > record->size_bytes ||
        bytes > record->size_bytes - (phy - record->phy_addr))
        return NULL;
    return record;
}

/* Whether a range lies in one live block that a client may use; HBRT_IMPORTED for memory from another library, which is
 * not in this file. The reference implementation explains refusals. */
enum { HBRT_IMPORTED = 2 };
static inline int hbrt_is_in_block(const hbrt_file *file, uint32_t client, uint64_t phy, uint64_t bytes) {
    const hbrt_block_record *record = hbrt_block_of(file, phy, bytes);
    if (!record) return 0;
    int usable = record->imported ? HBRT_IMPORTED : 1;
    if (record->owner == client) return usable;
    for (uint32_t n = 0; n < HBRT_MAX_SHARERS; n++)
        if (record->sharers[n] == client) return usable;
    return 0;
}
/* Like hbrt_is_in_block, for a task's block: an empty one at 0 is usable, and the address must be aligned. */
static inline int hbrt_is_usable(const hbrt_file *file, uint32_t client, uint64_t phy, uint64_t bytes) {
    if (phy == 0 && bytes == 0) return 1;
    return phy % HBRT_RPC_ALIGNMENT ? 0 : hbrt_is_in_block(file, client, phy, bytes);
}

/* Changes whenever the block tables change. */
enum { HBRT_TABLES_GENERATION = 2048 };
static inline uint64_t hbrt_generation(const hbrt_file *file) {
    return __atomic_load_n((const uint64_t *)(const void *)(file->map + HBRT_TABLES_GENERATION), __ATOMIC_ACQUIRE);
}

/* Access bytes that other processes write. */
static inline uint8_t hbrt_load(const uint8_t *byte) { return __atomic_load_n(byte, __ATOMIC_ACQUIRE); }
static inline void hbrt_store(uint8_t *byte, uint8_t value) { __atomic_store_n(byte, value, __ATOMIC_RELEASE); }
/* Record fields that the owner may rewrite while a core still reads them; the core's claim detects that. */
#define HBRT_PUT(field, value) __atomic_store_n(&(field), value, __ATOMIC_RELAXED)
#define HBRT_GET(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)
/* Orders this thread's writes before its later reads, for all processes: between setting a flag and reading the peer's. */
static inline void hbrt_full_fence(void) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

static inline void hbrt_ring(int doorbell) {
    static const uint64_t once = 1;
    /* The counter is full because a process filled it; the sleeper's heartbeat will find the task. */
    while (write(doorbell, &once, sizeof once) < 0 && errno == EINTR) {
    }
}

/* Whether a lock attempt that returned `code` took the claim lock. If a holder dies, nothing needs repair: each slot's
 * own state byte decides. */
static inline int hbrt_is_locked(pthread_mutex_t *claim_lock, int code) {
    return code == 0 || (code == EOWNERDEAD && pthread_mutex_consistent(claim_lock) == 0);
}

#endif
