/* A softmax on a DSP core, by the S series' names. */
#include <stdio.h>
#include <string.h>

#include "dsp/nn/hb_dsp_nn.h"
#include "hobot/dsp/hb_dsp.h"

int main(void) {
  const float row[] = {0, 1, 2, 3};
  hbUCPSysMem data, block, out;
  hbUCPMalloc(&data, sizeof row, 0);
  hbUCPMalloc(&block, sizeof(hbDSPSoftmaxParam), 0);
  hbUCPMalloc(&out, sizeof row, 0);
  hbUCPSysMem outside = {(uint64_t)(uintptr_t)row, (void *)row, sizeof row}, mapped;
  int refused = hbDSPAddrMap(&mapped, &outside), visible = hbDSPAddrMap(&mapped, &data);
  printf("%d %d %d\n", refused, visible, mapped.phyAddr == data.phyAddr);
  memcpy(data.virAddr, row, sizeof row);
  hbDSPSoftmaxParam *param = block.virAddr;
  param->data_size = sizeof row;
  param->input = data.phyAddr;
  hbUCPTaskHandle_t task = NULL;
  hbUCPSchedParam how;
  HB_UCP_INITIALIZE_SCHED_PARAM(&how);
  how.backend = HB_UCP_BPU_CORE_0;
  int created = hbDSPRpcV2(&task, &block, &out, 0x400), wrong = hbUCPSubmitTask(task, &how);
  how.backend = HB_UCP_DSP_CORE_1;
  int submitted = hbUCPSubmitTask(task, &how), waited = hbUCPWaitTaskDone(task, 0);
  printf("%d %d %d %d %d\n", created, wrong != 0, submitted, waited, hbUCPReleaseTask(task));
  const float *result = out.virAddr;
  printf("%.3f %.3f %.3f %.3f\n", result[0], result[1], result[2], result[3]);
  hbUCPFree(&data);
  hbUCPFree(&block);
  return hbUCPFree(&out);
}
