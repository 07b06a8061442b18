/* A softmax of four numbers on the DSP, for the programs of these tests. */
#ifndef ROW_H
#define ROW_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "dsp/hb_dsp.h"
#include "dsp/nn/hb_dsp_nn.h"

typedef struct {
  hbSysMem input, output, block;
  hbDSPRpcCtrlParam ctrl;
} Row;

static inline int32_t row_make(Row *row, float seed) {
  int32_t status = hbSysAllocMem(&row->input, 16);
  if (!status) status = hbSysAllocMem(&row->output, 16);
  if (!status) status = hbSysAllocMem(&row->block, sizeof(hbDSPSoftmaxParam));
  if (status) return status;
  const float values[4] = {0, seed, 2, 3};
  memcpy(row->input.virAddr, values, sizeof values);
  hbDSPSoftmaxParam *param = (hbDSPSoftmaxParam *)row->block.virAddr;
  param->data_size = sizeof values;
  param->input = row->input.phyAddr;
  HB_DSP_INITIALIZE_RPC_CTRL_PARAM(&row->ctrl);
  row->ctrl.rpcCmd = HB_DSP_RPC_CMD_NN_SOFTMAX;
  return 0;
}

static inline int32_t row_call(Row *row) {
  hbDSPTask_t task;
  int32_t status = hbDSPRpc(&task, &row->block, &row->output, &row->ctrl);
  if (status) return status;
  status = hbDSPWaitTaskDone(task, 0);
  int32_t released = hbDSPReleaseTask(task);
  return status ? status : released;
}

static inline int row_is_right(const Row *row, float seed) {
  const float values[4] = {0, seed, 2, 3};
  const float *result = (const float *)row->output.virAddr;
  float sum = 0;
  for (int at = 0; at < 4; at++) sum += expf(values[at]);
  for (int at = 0; at < 4; at++)
    if (fabsf(result[at] - expf(values[at]) / sum) > 1e-6f) return 0;
  return 1;
}

static inline int32_t row_free(Row *row) {
  int32_t status = hbSysFreeMem(&row->block);
  if (!status) status = hbSysFreeMem(&row->output);
  return status ? status : hbSysFreeMem(&row->input);
}

/* All of it; 0 when the result is right. */
static inline int32_t row_once(float seed) {
  Row row;
  int32_t status = row_make(&row, seed);
  if (status) return status;
  status = row_call(&row);
  if (!status && !row_is_right(&row, seed)) status = 1;
  int32_t freed = row_free(&row);
  return status ? status : freed;
}

#endif
