/** hbDSPRpc, hbDSPWaitTaskDone and hbDSPReleaseTask without Python, using native/mailbox. */
#define _GNU_SOURCE
#include "fast.h"

#include "../mailbox/clock.h"
#include "../mailbox/layout.h"
#include "../mailbox/mailbox.h"
#include "host.h"

#include <stddef.h>
#include <unistd.h>

_Atomic(struct hbrt_client *) hbrt_lent;
_Atomic bool hbrt_in_python;
static _Atomic bool is_watched;
static __thread int32_t left_ms;

#define IS_AT(theirs, field, ours, name) _Static_assert(offsetof(theirs, field) == offsetof(ours, name), #field)
IS_AT(hbDSPRpcCtrlParam, dspCoreId, hbrt_control, core_mask);
IS_AT(hbDSPRpcCtrlParam, rpcCmd, hbrt_control, cmd);
IS_AT(hbDSPRpcCtrlParam, priority, hbrt_control, priority);
IS_AT(hbDSPRpcCtrlParam, customId, hbrt_control, custom_id);
IS_AT(hbSysMem, phyAddr, hbrt_block, phy);
IS_AT(hbSysMem, memSize, hbrt_block, bytes);

bool hbrt_fast_rpc(hbDSPTask_t *task, const hbSysMem *input, const hbSysMem *output, const hbDSPRpcCtrlParam *control) {
  hbrt_client *client = atomic_load_explicit(&hbrt_lent, memory_order_acquire);
  if (!client || !task || !input || !output || !control) return false;
  int64_t handle = hbrt_rpc(client, (uintptr_t)control, (uintptr_t)input, (uintptr_t)output);
  if (handle > 0) *task = (hbDSPTask_t)(intptr_t)handle;
  return handle > 0;
}

bool hbrt_fast_wait(hbDSPTask_t task, int32_t timeout, void *site) {
  left_ms = timeout;
  hbrt_client *client = atomic_load_explicit(&hbrt_lent, memory_order_acquire);
  if (!client) return false;
  bool is_limited = timeout > 0;
  int64_t left_ns = is_limited ? timeout * INT64_C(1000000) : -1;
  /* Python runs signal handlers only in its main thread, and not in here: so that thread waits in Python. */
  if (atomic_load_explicit(&hbrt_in_python, memory_order_relaxed) && gettid() == getpid()) is_limited = false, left_ns = 0;
  int64_t end_ns = (int64_t)hbrt_now_ns() + left_ns;
  int state, polls = 1;
  int32_t wait = hbrt_wait_begins(site, (uint64_t)(intptr_t)task);
  do {
    state = hbrt_wait(client, (int64_t)(intptr_t)task, left_ns, polls);
    polls = 0;
    if (is_limited && (left_ns = end_ns - (int64_t)hbrt_now_ns()) < 0) left_ns = 0;
  } while (state == HBRT_INTERRUPTED); /* a C handler has already run, and the wait continues */
  hbrt_wait_ends(wait);
  if (is_limited) left_ms = left_ns < 1000000 ? 1 : (int32_t)(left_ns / 1000000); /* Python continues with it */
  return state == HBRT_DONE;
}

int32_t hbrt_left(void) { return left_ms; }

bool hbrt_fast_release(hbDSPTask_t task) {
  hbrt_client *client = atomic_load_explicit(&hbrt_lent, memory_order_acquire);
  return client && !atomic_load(&is_watched) && hbrt_release(client, (int64_t)(intptr_t)task) == 1;
}

void hbrt_watch_releases(void) { atomic_store(&is_watched, true); }
