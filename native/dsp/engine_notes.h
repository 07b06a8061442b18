/* What the engine records for C ops while their board is traced; dsp_server/hardware/engine_trace.py is the Python
 * counterpart. */
#ifndef HBRT_DSP_ENGINE_NOTES_H
#define HBRT_DSP_ENGINE_NOTES_H

#include <stdint.h>

#include "note.h"

extern hbrt_events *hbrt_dsp_events; /* NULL: tracing is off */

void hbrt_note_begin(void);
void hbrt_note_end(void);
/* A copy was issued, whose transfer takes this many cycles; a copy is complete. */
void hbrt_note_issue(int64_t handle, uint64_t cycles);
void hbrt_note_copied(int64_t handle);
/* A poll at a cycle found the copy incomplete; the polled copy is complete. */
void hbrt_note_waiting(uint64_t cycle);
void hbrt_note_waited(void);
/* A tile was allocated or freed. */
void hbrt_note_tiles(void);

#endif /* HBRT_DSP_ENGINE_NOTES_H */
