/* Softmax of a row on the DSP: hbrt cc samples/c/softmax.c && ./softmax */
#include <stdio.h>
#include <string.h>

#include "dsp/hb_dsp.h"
#include "dsp/nn/hb_dsp_nn.h"

#define CHECK(call)                                                          \
  do {                                                                       \
    int32_t status = (call);                                                 \
    if (status) {                                                            \
      fprintf(stderr, "%s: %s\n", #call, hbDSPGetErrorDesc(status));         \
      return 1;                                                              \
    }                                                                        \
  } while (0)

int main(void) {
  const float row[] = {0, 1, 2, 3};
  hbSysMem input, output, block;
  CHECK(hbSysAllocMem(&input, sizeof row));
  CHECK(hbSysAllocMem(&output, sizeof row));
  CHECK(hbSysAllocMem(&block, sizeof(hbDSPSoftmaxParam)));

  memcpy(input.virAddr, row, sizeof row);
  hbDSPSoftmaxParam *param = block.virAddr;
  param->data_size = sizeof row;
  param->input = input.phyAddr; /* physical: the DSP cannot follow virAddr */

  hbDSPRpcCtrlParam ctrl;
  HB_DSP_INITIALIZE_RPC_CTRL_PARAM(&ctrl);
  ctrl.rpcCmd = HB_DSP_RPC_CMD_NN_SOFTMAX;

  hbDSPTask_t task;
  CHECK(hbDSPRpc(&task, &block, &output, &ctrl));
  CHECK(hbDSPWaitTaskDone(task, 0));
  CHECK(hbDSPReleaseTask(task));

  const float *result = output.virAddr;
  printf("%.7f %.7f %.7f %.7f\n", result[0], result[1], result[2], result[3]);

  CHECK(hbSysFreeMem(&block));
  CHECK(hbSysFreeMem(&output));
  CHECK(hbSysFreeMem(&input));
  return 0;
}
