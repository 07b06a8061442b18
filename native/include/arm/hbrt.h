/** What only the emulator has: a program that includes this does not build for the board. */
#ifndef HBRT_HBRT_H
#define HBRT_HBRT_H

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Sentence of the last call that failed in this thread: what was wrong, with the value, and what to do; "" for none.
 * Valid until the next call in this thread.
 */
const char *hbrt_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
