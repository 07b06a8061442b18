/** Many calls, some in flight at once, with each byte of each result looked at: a reordered store would show in one. */
#include <stdio.h>
#include <stdlib.h>

#include "dnn/hb_sys.h"
#include "dsp/hb_dsp.h"
#include "hbrt.h"

enum { ADD_ONE = 0x1000, IN_FLIGHT = 6, BYTES = 1000 };

int main(int argc, char **argv) {
  unsigned seed = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
  int count = argc > 2 ? atoi(argv[2]) : 1000, bad = 0;
  hbSysMem input[IN_FLIGHT], output[IN_FLIGHT];
  hbDSPTask_t task[IN_FLIGHT];
  hbDSPRpcCtrlParam ctrl;
  HB_DSP_INITIALIZE_RPC_CTRL_PARAM(&ctrl);
  ctrl.rpcCmd = ADD_ONE;
  for (int at = 0; at < IN_FLIGHT; at++)
    if (hbSysAllocMem(&input[at], BYTES) || hbSysAllocMem(&output[at], BYTES)) return 2;
  for (int made = 0; made < count + IN_FLIGHT; made++) {
    int at = made % IN_FLIGHT;
    uint8_t *in = input[at].virAddr, *out = output[at].virAddr;
    if (made >= IN_FLIGHT) {
      int is_good = hbDSPWaitTaskDone(task[at], 0) == 0;
      for (int i = 0; i < BYTES; i++) is_good &= out[i] == (uint8_t)(in[i] + 1);
      bad += !is_good;
      if (hbDSPReleaseTask(task[at])) return 2;
    }
    if (made >= count) continue;
    for (int i = 0; i < BYTES; i++) {
      seed = seed * 1664525 + 1013904223;
      in[i] = (uint8_t)(seed >> 24);
    }
    if (hbDSPRpc(&task[at], &input[at], &output[at], &ctrl)) return 2;
  }
  for (int at = 0; at < IN_FLIGHT; at++)
    if (hbSysFreeMem(&input[at]) || hbSysFreeMem(&output[at])) return 2;
  printf("%d calls, %d bad\n", count, bad);
  return bad != 0;
}
