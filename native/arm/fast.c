/** hbDSPRpc, hbDSPWaitTaskDone and hbDSPReleaseTask without Python, by native/mailbox. */
#include "fast.h"

#include "../mailbox/clock.h"
#include "../mailbox/mailbox.h"
#include "host.h"

_Atomic(struct hbrt_client *) hbrt_lent;
static _Atomic bool is_watched;

bool hbrt_fast_rpc(hbDSPTask_t *task, const hbSysMem *input, const hbSysMem *output, const hbDSPRpcCtrlParam *control) {
  hbrt_client *client = atomic_load_explicit(&hbrt_lent, memory_order_acquire);
  if (!client || !task || !input || !output || !control) return false;
  if (control->rpcCmd == HB_DSP_RPC_CMD_PING || control->rpcCmd == HB_DSP_RPC_CMD_BUTT) return false; /* warned of */
  int64_t handle = hbrt_submit(client, control->rpcCmd, control->priority, control->dspCoreId, control->customId,
                               input->phyAddr, input->memSize, output->phyAddr, output->memSize, 0);
  if (handle > 0) *task = (hbDSPTask_t)(intptr_t)handle;
  return handle > 0;
}

bool hbrt_fast_wait(hbDSPTask_t task, int32_t timeout, void *site) {
  hbrt_client *client = atomic_load_explicit(&hbrt_lent, memory_order_acquire);
  if (!client) return false;
  int64_t left_ns = timeout > 0 ? timeout * INT64_C(1000000) : -1;
  int64_t end_ns = (int64_t)hbrt_now_ns() + left_ns;
  int state, polled;
  int32_t wait = hbrt_wait_begins(site, (uint64_t)(intptr_t)task);
  /* After a signal: a handler of C has run by now, and the wait goes on, as without it. */
  while ((state = hbrt_wait(client, (int64_t)(intptr_t)task, left_ns, -1, &polled)) == HBRT_INTERRUPTED)
    if (timeout > 0 && (left_ns = end_ns - (int64_t)hbrt_now_ns()) < 0) left_ns = 0;
  hbrt_wait_ends(wait);
  return state == HBRT_STATE_DONE;
}

bool hbrt_fast_release(hbDSPTask_t task) {
  hbrt_client *client = atomic_load_explicit(&hbrt_lent, memory_order_acquire);
  return client && !atomic_load(&is_watched) && hbrt_release(client, (int64_t)(intptr_t)task) == 1;
}

void hbrt_watch_releases(void) { atomic_store(&is_watched, true); }
