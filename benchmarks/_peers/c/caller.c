/* Calls the echo op of the benchmarks' boards by the C names. */
#include "orders.h"

#include "dsp/hb_dsp.h"

static hbSysMem requests[DEPTH], replies[DEPTH];
static hbDSPTask_t tasks[DEPTH];
static hbDSPRpcCtrlParam control;

static void ask(int n, const uint8_t *request) {
  memcpy(requests[n].virAddr, request, PAYLOAD);
  int status = hbDSPRpc(&tasks[n], &requests[n], &replies[n], &control);
  if (status) fail("hbDSPRpc", status);
}

static void take(int n, uint8_t *reply) {
  int status = hbDSPWaitTaskDone(tasks[n], 0);
  if (status == 0) status = hbDSPReleaseTask(tasks[n]);
  if (status) fail("A wait", status);
  memcpy(reply, replies[n].virAddr, PAYLOAD);
}

int main(void) {
  HB_DSP_INITIALIZE_RPC_CTRL_PARAM(&control);
  control.rpcCmd = 0x1001;
  for (int n = 0; n < DEPTH; n++) {
    int status = hbSysAllocMem(&requests[n], PAYLOAD);
    if (status == 0) status = hbSysAllocMem(&replies[n], PAYLOAD);
    if (status) fail("hbSysAllocMem", status);
  }
  for (int n = 0; n < DEPTH; n++) ask(n, request_of(n));
  for (int n = 0; n < DEPTH; n++) take_checked(n, request_of(n));
  int status = obey();
  for (int n = 0; n < DEPTH; n++) hbSysFreeMem(&requests[n]), hbSysFreeMem(&replies[n]);
  return status;
}
