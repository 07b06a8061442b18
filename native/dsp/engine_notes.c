#define _GNU_SOURCE
#include "engine_notes.h"

#include <stdlib.h>

#include "clock.h"
#include "engine.h"
#include "runtime.h"

hbrt_events *hbrt_dsp_events;
static const struct hbrt_dsp_engine *const engine = &hbrt_dsp_engine;
static uint64_t begun_ns, waiting_ns, waiting_cycle; /* 0: does not wait */
static struct {
  uint64_t ns, first_cycle;
  uint16_t lane;
} issued[HBRT_COPIES];
static uint64_t lanes; /* in use, one bit each */

/* Record into a ring file, which stays mapped; NULL stops it. Call it only between ops. */
EXPORT void hbrt_dsp_engine_note(void *records, uint32_t count) {
  hbrt_events *ring = records == NULL ? NULL : calloc(1, sizeof *ring);
  if (ring != NULL) *ring = (hbrt_events){.records = records, .count = count};
  free(hbrt_dsp_events);
  hbrt_dsp_events = ring;
  lanes = waiting_ns = 0;
}

void hbrt_note_begin(void) {
  begun_ns = hbrt_now_ns();
  lanes = waiting_ns = 0;
}

void hbrt_note_end(void) {
  hbrt_note(hbrt_dsp_events, (hbrt_event){.start_ns = begun_ns, .end_ns = hbrt_now_ns(), .b = engine->start_cycle,
                                          .c = engine->now, .kind = HBRT_NOTE_RUN});
}

void hbrt_note_issue(int64_t handle, uint64_t cycles) {
  const uint16_t lane = ~lanes ? (uint16_t)__builtin_ctzll(~lanes) : HBRT_COPIES - 1;
  lanes |= (uint64_t)1 << lane;
  issued[handle % HBRT_COPIES].ns = hbrt_now_ns();
  issued[handle % HBRT_COPIES].first_cycle = engine->busy_until - cycles;
  issued[handle % HBRT_COPIES].lane = lane;
}

void hbrt_note_copied(int64_t handle) {
  const struct hbrt_dsp_copy *copy = engine->copies + handle % HBRT_COPIES;
  const uint16_t lane = issued[handle % HBRT_COPIES].lane;
  lanes &= ~((uint64_t)1 << lane);
  hbrt_note(hbrt_dsp_events, (hbrt_event){.start_ns = issued[handle % HBRT_COPIES].ns, .end_ns = hbrt_now_ns(),
                                          .a = issued[handle % HBRT_COPIES].first_cycle, .b = copy->end_cycle,
                                          .c = copy->row_bytes * (copy->rows ? copy->rows : 1), .unit = lane,
                                          .kind = HBRT_NOTE_COPY});
}

void hbrt_note_waiting(uint64_t cycle) {
  if (waiting_ns) return;
  waiting_ns = hbrt_now_ns();
  waiting_cycle = cycle;
}

void hbrt_note_waited(void) {
  if (!waiting_ns) return;
  hbrt_note(hbrt_dsp_events, (hbrt_event){.start_ns = waiting_ns, .end_ns = hbrt_now_ns(), .a = waiting_cycle,
                                          .b = engine->now, .kind = HBRT_NOTE_DMA_WAIT});
  waiting_ns = 0;
}

void hbrt_note_tiles(void) {
  hbrt_event what = {.start_ns = hbrt_now_ns(), .c = engine->now, .kind = HBRT_NOTE_TCM};
  what.end_ns = what.start_ns;
  for (uint64_t at = 0; at < engine->tile_count; at++) *(engine->tiles[at].bank ? &what.b : &what.a) += engine->tiles[at].size;
  hbrt_note(hbrt_dsp_events, what);
}
