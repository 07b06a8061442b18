/** The most frequent calls, in C only: their rare cases go to Python, like every other call. */
#ifndef HBRT_ARM_FAST_H
#define HBRT_ARM_FAST_H

#include "dsp/hb_dsp.h"
#include "entry.h"

#include <stdatomic.h>
#include <stdbool.h>

struct hbrt_client;

/** This process's attachment, lent by Python if no check is needed between the steps of a call; else NULL. */
extern _Atomic(struct hbrt_client *) hbrt_lent;

/** This process is a Python interpreter, which runs signal handlers between its own steps. */
extern _Atomic bool hbrt_in_python;

/** Each returns true if it is done, and has succeeded. */
HBRT_SHARED bool hbrt_fast_rpc(hbDSPTask_t *task, const hbSysMem *input, const hbSysMem *output, const hbDSPRpcCtrlParam *control);
HBRT_SHARED bool hbrt_fast_wait(hbDSPTask_t task, int32_t timeout, void *site);
HBRT_SHARED bool hbrt_fast_release(hbDSPTask_t task);

/** Milliseconds left of the limit of this thread's latest wait, at least 1; a limit <= 0 is returned as given. */
int32_t hbrt_left(void);

/** From now on, releases go to Python, which has callbacks to call. */
void hbrt_watch_releases(void);

#endif
