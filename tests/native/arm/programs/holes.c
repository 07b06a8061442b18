/* Calls with structures that a DSP may read differently. */
#include <stddef.h>
#include <stdio.h>

#include "dsp/hb_dsp.h"

typedef struct {
  int32_t rows;
  uint64_t source;
} with_hole;
struct closed {
  uint64_t source;
  uint64_t rows;
};

static int call(hbSysMem *input) {
  hbDSPTask_t task;
  hbDSPRpcCtrlParam control;
  HB_DSP_INITIALIZE_RPC_CTRL_PARAM(&control);
  control.rpcCmd = 0x400;
  struct closed *param = (struct closed *)input->virAddr;
  param->source = param->rows = 0;
  hbDSPRpc(&task, input, NULL, &control);
  hbDSPWaitTaskDone(task, 0);
  return hbDSPReleaseTask(task);
}

int main(void) {
  hbSysMem input;
  hbDSPTask_t task;
  hbDSPRpcCtrlParam control;
  HB_DSP_INITIALIZE_RPC_CTRL_PARAM(&control);
  control.rpcCmd = 0x400;
  if (hbSysAllocMem(&input, sizeof(with_hole))) return 1;
  with_hole *param = input.virAddr;
  param->rows = 0;
#define CHECK(call) \
  if (call) printf("%s\n", #call)
  for (int round = 0; round < 2; round++) {
    CHECK(hbDSPRpc(&task, &input, NULL, &control)); /* with a hole */
    hbDSPWaitTaskDone(task, 0);
    if (hbDSPReleaseTask(task)) return 2;
  }
  return call(&input) || hbSysFreeMem(&input);
}
