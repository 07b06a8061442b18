/* What the engine of ops in C notes while its board is traced; dsp_server/hardware/engine_trace.py has the same for Python. */
#ifndef HBRT_DSP_ENGINE_NOTES_H
#define HBRT_DSP_ENGINE_NOTES_H

#include <stdint.h>

#include "note.h"

extern hbrt_events *hbrt_dsp_events; /* NULL: nobody traces */

void hbrt_note_begin(void);
void hbrt_note_end(void);
/* A copy was issued, whose bytes move for so many cycles; a copy is complete. */
void hbrt_note_issue(int64_t handle, uint64_t cycles);
void hbrt_note_copied(int64_t handle);
/* A poll was in vain at a cycle; the copy that was polled is complete. */
void hbrt_note_waiting(uint64_t cycle);
void hbrt_note_waited(void);
/* A tile was allocated or freed. */
void hbrt_note_tiles(void);

#endif /* HBRT_DSP_ENGINE_NOTES_H */
