/** The most frequent calls, in C alone: their rare cases go into Python, as every other call. */
#ifndef HBRT_ARM_FAST_H
#define HBRT_ARM_FAST_H

#include "dsp/hb_dsp.h"

#include <stdatomic.h>
#include <stdbool.h>

struct hbrt_client;

/** This process's attachment, which Python lends where no check stands between the steps of a call; else NULL. */
extern _Atomic(struct hbrt_client *) hbrt_lent;

/** This process is Python, which runs handlers of signals between its own steps. */
extern _Atomic bool hbrt_in_python;

/** Each: true when it is done, and has succeeded. */
bool hbrt_fast_rpc(hbDSPTask_t *task, const hbSysMem *input, const hbSysMem *output, const hbDSPRpcCtrlParam *control);
bool hbrt_fast_wait(hbDSPTask_t task, int32_t timeout, void *site);
bool hbrt_fast_release(hbDSPTask_t task);

/** Milliseconds that are left of the limit of this thread's latest wait, at least 1; a limit <= 0 as it was given. */
int32_t hbrt_left(void);

/** From now on, releases go into Python: it has callbacks to call. */
void hbrt_watch_releases(void);

#endif
