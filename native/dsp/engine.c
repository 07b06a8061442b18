#define _GNU_SOURCE
#include "engine.h"
#include "engine_notes.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hb_dsp_tm.h"
#include "hbrt/cycles.h"
#include "layout.h"
#include "runtime.h"

enum { MAX_PAGES = 1024, CALLS_PER_LOOK = 256 };
static const int32_t MAX_HANDLE = 1 << 30;
static const uint64_t MAX_ROW_BYTES = (uint64_t)1 << 40;

EXPORT struct hbrt_dsp_engine hbrt_dsp_engine;
static struct hbrt_dsp_engine *const engine = &hbrt_dsp_engine;
static int is_open;
static hbrt_file file;
static uint32_t client; /* of the op that runs */
static pthread_mutex_t lock; /* threads of the image may call, too; recursive: an urgent op may interrupt a hand-over */

/* Have the engine serve ops over this DDR file; with `map` NULL, stop. Call it only between ops. Returns 0 if it does
 * not serve them. */
EXPORT int32_t hbrt_dsp_engine_open(void *map, uint64_t map_bytes, const void *header) {
  static int is_prepared;
  if (!is_prepared++) {
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &kind);
  }
  engine->is_on = engine->is_called = 0;
  return is_open = map != NULL && hbrt_file_open(&file, map, map_bytes, header);
}

static int is_on(void) { return __atomic_load_n(&engine->is_on, __ATOMIC_ACQUIRE) != 0; }

void hbrt_engine_begin(uint32_t of_client) {
  if (!is_open || !engine->serves) return;
  client = of_client;
  if (engine->last_handle > MAX_HANDLE) engine->last_handle = 0;
  engine->first_handle = engine->last_handle;
  engine->start_cycle = engine->busy_until = engine->now;
  engine->copy_count = engine->tile_count = engine->mapping_count = 0;
  engine->polled = 0;
  if (hbrt_dsp_events != NULL) hbrt_note_begin();
  __atomic_store_n(&engine->is_on, 1, __ATOMIC_RELEASE);
}

uint32_t hbrt_dsp_task_client(void) { return is_on() ? client : (uint32_t)(hbrt_dsp_client(-1) >> 32); }

uint64_t hbrt_engine_end(void) {
  if (is_on() && (engine->copy_count || engine->tile_count || engine->mapping_count)) hbrt_engine_hand_over();
  if (!is_on()) return 0;
  engine->is_on = 0;
  if (hbrt_dsp_events != NULL) hbrt_note_end();
  return engine->now - engine->start_cycle;
}

int hbrt_engine_charge(uint64_t cycles) {
  if (!is_on()) return 0;
  pthread_mutex_lock(&lock);
  const int is_here = is_on();
  if (is_here) engine->now += cycles;
  pthread_mutex_unlock(&lock);
  return is_here;
}

void hbrt_engine_hand_over(void) {
  if (!is_open) return;
  if (is_on()) hbrt_dsp_runtime(); /* it learns of the task first */
  pthread_mutex_lock(&lock); /* even if another thread is using it */
  if (__atomic_exchange_n(&engine->is_on, 0, __ATOMIC_ACQ_REL)) hbrt_dsp_now->take_over();
  pthread_mutex_unlock(&lock);
}

/* Whether the engine handles this thread's call; if so, it holds the lock, and the op's cycles are counted. */
static int enter(void) {
  static uint32_t calls;
  if (!is_on() || hbrt_dsp_frame == NULL) return 0;
  if (__atomic_load_n(&engine->is_called, __ATOMIC_RELAXED) || ++calls % CALLS_PER_LOOK == 0)
    hbrt_dsp_now->look((int32_t)__atomic_exchange_n(&engine->is_called, 0, __ATOMIC_ACQ_REL)); /* an urgent op, a signal */
  hbrt_dsp_leave_if_raised();
  pthread_mutex_lock(&lock);
  if (is_on()) {
    engine->now += hbrt_dsp_take_cycles();
    return 1;
  }
  pthread_mutex_unlock(&lock);
  return 0;
}

static int leave(int is_done) {
  pthread_mutex_unlock(&lock);
  return is_done;
}

/* Ranges of other libraries' memory that Python has mapped into the file's mapping, as long as the tables do not
 * change. */
static struct {
  uint64_t phy_addr, size, client;
} shown[HBRT_MAPPINGS];
static uint64_t shown_count, generation;

static void forget_old(void) {
  const uint64_t now = hbrt_generation(&file);
  if (now != generation) shown_count = 0;
  generation = now;
}

static int is_shown(uint64_t phy_addr, uint64_t size) {
  for (uint64_t at = 0; at < shown_count; at++)
    if (shown[at].client == client && phy_addr >= shown[at].phy_addr && phy_addr + size <= shown[at].phy_addr + shown[at].size)
      return 1;
  return 0;
}

void hbrt_engine_remember(uint64_t phy_addr, uint64_t size) {
  const hbrt_block_record *block = is_open ? hbrt_block_of(&file, phy_addr, size) : NULL;
  if (!block || !block->imported) return;
  const uint32_t of_client = hbrt_dsp_task_client(); /* usually a call into Python */
  pthread_mutex_lock(&lock);
  forget_old();
  if (shown_count == HBRT_MAPPINGS) shown_count = 0;
  shown[shown_count].phy_addr = phy_addr, shown[shown_count].size = size, shown[shown_count++].client = of_client;
  pthread_mutex_unlock(&lock);
}

/* -- mappings ------------------------------------------------------------------------------------------------------- */

int hbrt_engine_map(const char *site, uint64_t phy_addr, int64_t size, void **mapped) {
  if (site == NULL || size <= 0 || !enter()) return 0;
  forget_old();
  const int usable = hbrt_is_in_block(&file, client, phy_addr, (uint64_t)size);
  if (engine->mapping_count == HBRT_MAPPINGS || !usable || (usable == HBRT_IMPORTED && !is_shown(phy_addr, (uint64_t)size)))
    return leave(0);
  engine->mappings[engine->mapping_count++] = (struct hbrt_dsp_mapping){phy_addr, (uint64_t)size, site};
  *mapped = file.map + (phy_addr - file.at.ddr_base);
  hbrt_dsp_work[HBRT_WORK_MAPPED_BYTES] += (uint64_t)size;
  return leave(1);
}

int hbrt_engine_unmap(uintptr_t mapped) {
  if (!enter()) return 0;
  for (uint64_t at = engine->mapping_count; at-- > 0;) {
    const uint64_t phy_addr = engine->mappings[at].phy_addr;
    const uintptr_t address = (uintptr_t)file.map + (phy_addr - file.at.ddr_base);
    if (mapped != address && mapped != (uint32_t)address && mapped != phy_addr) continue;
    memmove(engine->mappings + at, engine->mappings + at + 1,
            (--engine->mapping_count - at) * sizeof *engine->mappings);
    return leave(1);
  }
  return leave(0);
}

/* -- tiles ---------------------------------------------------------------------------------------------------------- */

/* Place of a new tile in a bank and in the table: the first gap that fits, as in Bank.gaps. */
static int find_gap(struct hbrt_dsp_tile *tile, uint64_t *place) {
  uint64_t at = 0, start = 0;
  while (at < engine->tile_count && engine->tiles[at].bank < tile->bank) at++;
  for (;; at++) {
    const int is_last = at == engine->tile_count || engine->tiles[at].bank != tile->bank;
    const uint64_t end = is_last ? engine->bank_bytes[tile->bank] : engine->tiles[at].offset;
    if (start < end && tile->size <= end - start) {
      tile->offset = start;
      *place = at;
      return 1;
    }
    if (is_last) return 0;
    start = (engine->tiles[at].offset + engine->tiles[at].size + tile->align - 1) / tile->align * tile->align;
  }
}

int hbrt_engine_allocate(const char *site, const void *tm, int64_t size, int64_t color, int64_t align, void **tile) {
  if (site == NULL || tm != &hbrt_dsp_tile_manager || size <= 0 || align <= 0 || (align & (align - 1)) || !enter())
    return 0;
  struct hbrt_dsp_tile made = {0, 0, (uint64_t)size, (uint64_t)align, site};
  for (uint64_t place; made.bank < 2; made.bank++) {
    const int is_meant = color == XV_MEM_BANK_COLOR_ANY || color == (int64_t)made.bank;
    if (engine->tile_count == HBRT_TILES || !is_meant || !find_gap(&made, &place)) continue;
    struct hbrt_dsp_tile *at = engine->tiles + place;
    memmove(at + 1, at, (engine->tile_count++ - place) * sizeof *at);
    *at = made;
    *tile = (void *)(uintptr_t)(engine->bank_start[made.bank] + made.offset);
    if (hbrt_dsp_events != NULL) hbrt_note_tiles();
    return leave(1);
  }
  return leave(0);
}

static uint64_t address_of(const struct hbrt_dsp_tile *tile) { return engine->bank_start[tile->bank] + tile->offset; }

int hbrt_engine_free(const void *tm, const void *tile) {
  if (tm != &hbrt_dsp_tile_manager || !enter()) return 0;
  for (uint64_t at = 0; at < engine->tile_count; at++) {
    if (address_of(engine->tiles + at) != (uintptr_t)tile) continue;
    engine->freed[engine->freed_count++ % HBRT_FREED] = engine->tiles[at];
    memmove(engine->tiles + at, engine->tiles + at + 1, (--engine->tile_count - at) * sizeof *engine->tiles);
    if (hbrt_dsp_events != NULL) hbrt_note_tiles();
    return leave(1);
  }
  return leave(0);
}

/* -- iDMA ----------------------------------------------------------------------------------------------------------- */

/* Whether the op may use those bytes: within one block, one tile, or the image's own memory. */
static int is_usable(const void *from, uint64_t bytes) {
  const uint64_t address = (uintptr_t)from, in_file = address - (uintptr_t)file.map;
  if (in_file < file.at.file_bytes) return hbrt_is_in_block(&file, client, file.at.ddr_base + in_file, bytes) == 1;
  for (uint64_t at = 0; at < engine->tile_count; at++) {
    const uint64_t inside = address - address_of(engine->tiles + at), size = engine->tiles[at].size;
    if (inside < size) return bytes <= size - inside;
  }
  for (int bank = 0; bank < 2; bank++)
    if (address - engine->bank_start[bank] < engine->bank_bytes[bank]) return 0;
  const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), start = address / page * page;
  unsigned char is_present[MAX_PAGES];
  return from != NULL && address + bytes - start <= MAX_PAGES * page &&
         mincore((void *)(uintptr_t)start, address + bytes - start, is_present) == 0;
}

/* Whether a copy is allowed by checked_copy and checked_copy_2d of dsp_server/hardware/transfers.py. */
static int is_plain(const struct hbrt_dsp_copy *copy) {
  if (copy->row_bytes == 0 || copy->row_bytes > MAX_ROW_BYTES) return 0;
  uint64_t dst_bytes = copy->row_bytes, src_bytes = copy->row_bytes;
  if (copy->rows > 1) {
    if (copy->src_pitch < copy->row_bytes || copy->dst_pitch < copy->row_bytes) return 0;
    dst_bytes += (copy->rows - 1) * copy->dst_pitch;
    src_bytes += (copy->rows - 1) * copy->src_pitch;
  }
  const uint64_t dst = (uintptr_t)copy->dst, src = (uintptr_t)copy->src;
  return (dst < src ? src - dst >= dst_bytes : dst - src >= src_bytes) && is_usable(copy->dst, dst_bytes) &&
         is_usable(copy->src, src_bytes);
}

static void issue(const struct hbrt_dsp_copy *copy) {
  const uint64_t rows = copy->rows ? copy->rows : 1, bytes = copy->row_bytes * rows;
  const uint64_t moving = engine->setup_cycles + (rows - 1) * engine->row_cycles +
                          (bytes + engine->bytes_per_cycle - 1) / engine->bytes_per_cycle;
  engine->now += engine->issue_cycles;
  if (engine->busy_until < engine->now) engine->busy_until = engine->now;
  engine->busy_until += moving;
  hbrt_dsp_work[HBRT_WORK_DESCRIPTORS]++;
  hbrt_dsp_work[HBRT_WORK_ROWS] += rows - 1;
  hbrt_dsp_work[HBRT_WORK_DMA_BYTES] += bytes;
  hbrt_dsp_work[HBRT_WORK_DMA_CYCLES] += moving;
  engine->copy_count++;
  struct hbrt_dsp_copy *queued = engine->copies + ++engine->last_handle % HBRT_COPIES;
  *queued = *copy;
  queued->end_cycle = engine->busy_until;
  if (hbrt_dsp_events != NULL) hbrt_note_issue(engine->last_handle, moving);
}

int hbrt_engine_copy(const char *site, void *dst, const void *src, uint64_t row_bytes, const uint32_t *shape,
                     int32_t *handle) {
  const uint64_t tiles = shape == NULL ? 1 : shape[3];
  if (site == NULL || tiles == 0 || tiles > HBRT_COPIES || (shape != NULL && shape[0] == 0) || !enter()) return 0;
  struct hbrt_dsp_copy copies[HBRT_COPIES];
  if (engine->copy_count + tiles > engine->depth) return leave(0);
  for (uint64_t tile = 0; tile < tiles; tile++) {
    copies[tile] = (struct hbrt_dsp_copy){.dst = dst, .src = src, .row_bytes = row_bytes, .site = site};
    if (shape != NULL) {
      copies[tile].rows = shape[0], copies[tile].src_pitch = shape[1], copies[tile].dst_pitch = shape[2];
      copies[tile].src = (const uint8_t *)((uintptr_t)src + tile * shape[4]);
      copies[tile].dst = (uint8_t *)((uintptr_t)dst + tile * shape[5]);
    }
    if (!is_plain(copies + tile)) return leave(0);
  }
  for (uint64_t tile = 0; tile < tiles; tile++) issue(copies + tile);
  *handle = (int32_t)engine->last_handle;
  return leave(1);
}

static struct hbrt_dsp_copy *oldest(void) {
  return engine->copies + (engine->last_handle - (int64_t)engine->copy_count + 1) % HBRT_COPIES;
}

static void move_oldest(void) {
  const struct hbrt_dsp_copy *copy = oldest();
  const uint64_t rows = copy->rows ? copy->rows : 1;
  for (uint64_t row = 0; row < rows; row++)
    memcpy(copy->dst + row * copy->dst_pitch, copy->src + row * copy->src_pitch, copy->row_bytes);
  if (hbrt_dsp_events != NULL) hbrt_note_copied(engine->last_handle - (int64_t)engine->copy_count + 1);
  engine->copy_count--;
}

static void wait_until(uint64_t cycle) {
  hbrt_dsp_work[HBRT_WORK_WAIT_CYCLES] += cycle - engine->now;
  engine->now = cycle;
}

int hbrt_engine_desc_done(int32_t handle, int32_t *is_done) {
  const int64_t first = engine->last_handle - (int64_t)engine->copy_count; /* the last one that is done */
  if (!is_on() || hbrt_dsp_frame == NULL || handle <= engine->first_handle || handle > engine->last_handle) return 0;
  const struct hbrt_dsp_copy *copy = engine->copies + handle % HBRT_COPIES;
  if (handle > first && hbrt_dsp_poll_in_vain(engine->now, copy->end_cycle, engine->poll_cycles)) {
    engine->polled = handle;
    if (hbrt_dsp_events != NULL) hbrt_note_waiting(engine->now + hbrt_cycles_pending());
    *is_done = 0;
    return 1;
  }
  if (!enter()) return 0;
  engine->polled = handle;
  *is_done = 1;
  if (handle > engine->last_handle - (int64_t)engine->copy_count && engine->now < copy->end_cycle) {
    if (hbrt_dsp_events != NULL) hbrt_note_waiting(engine->now);
    wait_until(engine->now + engine->poll_cycles);
    *is_done = 0;
  } else {
    if (hbrt_dsp_events != NULL) hbrt_note_waited();
    while (engine->last_handle - (int64_t)engine->copy_count < handle) move_oldest();
  }
  return leave(1);
}

int hbrt_engine_status(int is_wait, int32_t *left) {
  if (!enter()) return 0;
  if (is_wait && hbrt_dsp_events != NULL) hbrt_note_waiting(engine->now);
  if (is_wait && engine->copy_count && engine->now < engine->busy_until) wait_until(engine->busy_until);
  if (is_wait && hbrt_dsp_events != NULL) hbrt_note_waited();
  while (engine->copy_count && oldest()->end_cycle <= engine->now) move_oldest();
  if (engine->copy_count) wait_until(engine->now + engine->poll_cycles);
  *left = (int32_t)engine->copy_count;
  return leave(1);
}

int hbrt_engine_cycles(uint64_t *cycles) {
  if (!enter()) return 0;
  *cycles = engine->now;
  return leave(1);
}
