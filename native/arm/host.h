/** host.c for the other files of libhbrt.so. */
#ifndef HBRT_ARM_HOST_H
#define HBRT_ARM_HOST_H

#include "entry.h"

/** Where the program calls a library function that makes further calls; NULL in all other calls. */
extern __thread void *hbrt_caller;

/** Error message of the last call that did not reach Python; "" if none. */
const char *hbrt_said(void);

/** Show this thread as waiting in 'hbrt why': where the program calls, and for which task (0: unknown). */
int32_t hbrt_wait_begins(void *site, uint64_t task);

void hbrt_wait_ends(int32_t wait);

#endif
