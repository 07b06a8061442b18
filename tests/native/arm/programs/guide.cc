// The guide's ARM side (10.2.3.2) as a program: rows of softmax, each its own call; C++17.
#include <cstdint>
#include <cstring>
#include <iostream>
#include <vector>

#include "dnn/hb_dnn.h"
#include "dsp/hb_dsp.h"

typedef struct {
  int data_size;
  uint64_t input;
} hbDSPSoftmaxParam;

static int Forward(const std::vector<std::vector<float>> &bottom, std::vector<std::vector<float>> &top) {
  const int data_size = static_cast<int>(bottom[0].size() * sizeof(float));
  hbSysMem input_mem, output_mem, hb_in_mem;
  if (hbSysAllocMem(&input_mem, data_size) != 0) return -1;
  if (hbSysAllocMem(&output_mem, data_size) != 0) return -1;
  if (hbSysAllocMem(&hb_in_mem, sizeof(hbDSPSoftmaxParam)) != 0) return -1;
  hbDSPRpcCtrlParam param;
  param.rpcCmd = HB_DSP_RPC_CMD_NN_SOFTMAX;
  param.priority = 0;
  param.dspCoreId = 0;
  param.customId = 0;
  for (size_t i = 0; i < bottom.size(); ++i) {
    std::memcpy(input_mem.virAddr, bottom[i].data(), data_size);
    auto *ptr = static_cast<hbDSPSoftmaxParam *>(hb_in_mem.virAddr);
    ptr->data_size = data_size;
    ptr->input = input_mem.phyAddr;
    hbDSPTask_t task;
    if (hbDSPRpc(&task, &hb_in_mem, &output_mem, &param) != 0) return -1;
    if (hbDSPWaitTaskDone(task, 0) != 0) return -1;
    if (hbDSPReleaseTask(task) != 0) return -1;
    std::memcpy(top[i].data(), output_mem.virAddr, data_size);
  }
  hbSysFreeMem(&input_mem);
  hbSysFreeMem(&output_mem);
  hbSysFreeMem(&hb_in_mem);
  return 0;
}

int main() {
  const std::vector<std::vector<float>> bottom = {{0, 1, 2, 3}, {3, 2, 1, 0}, {-50, 0, 50, 50}};
  std::vector<std::vector<float>> top(3, std::vector<float>(4));
  if (Forward(bottom, top) != 0) return 1;
  std::cout.precision(9);
  for (const auto &row : top) std::cout << row[0] << " " << row[1] << " " << row[2] << " " << row[3] << "\n";
}
