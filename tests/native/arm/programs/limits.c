/* Waits with a limit, and with an op that outlives it: the limit holds, and the sentence has it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "dsp/hb_dsp.h"
#include "hbrt.h"

enum { SLEEPS = 0x1002 }; /* of tests/native/mailbox/image.py: for so many 10 ms as its first byte says */

int main(void) {
  hbSysMem input, output;
  hbDSPRpcCtrlParam control;
  hbDSPTask_t task;
  if (hbSysAllocMem(&input, 8) || hbSysAllocMem(&output, 8)) return 1;
  HB_DSP_INITIALIZE_RPC_CTRL_PARAM(&control);
  control.rpcCmd = SLEEPS;
  for (int round = 0; round < 2; round++) {
    *(uint8_t *)input.virAddr = round ? 200 : 0; /* the first call has Python lend the board */
    if (hbDSPRpc(&task, &input, &output, &control)) return 2;
    if (round) printf("%d", hbDSPWaitTaskDone(task, 1200) == HB_DSP_TIMEOUT);
    printf(" %s\n", hbrt_last_error());
    if (hbDSPWaitTaskDone(task, 60000) || hbDSPReleaseTask(task)) return 3;
  }
  return hbSysFreeMem(&input) || hbSysFreeMem(&output);
}
