/* A quantized input of MODEL, [1, 1, 8, 8] of int8: padded as reported, dense, and by strides of its own. */
#include <stdio.h>
#include <string.h>

#include "hobot/dnn/hb_dnn.h"

static int8_t results[2][10];

static int32_t run(hbDNNTensor *input, hbDNNTensor *output, hbDNNHandle_t model, int64_t row, int8_t *result) {
  int8_t *values = input->sysMem.virAddr;
  memset(values, 0, input->sysMem.memSize);
  for (int at = 0; at < 64; at++) values[at / 8 * row + at % 8] = (int8_t)(at * 3 - 100);
  hbUCPMemFlush(&input->sysMem, HB_SYS_MEM_CACHE_CLEAN);
  int32_t status = hbDNNInferV2(NULL, output, input, model);
  hbUCPMemFlush(&output->sysMem, HB_SYS_MEM_CACHE_INVALIDATE);
  memcpy(result, output->sysMem.virAddr, sizeof results[0]);
  return status;
}

int main(int argc, char **argv) {
  const char *file = argv[argc - 1], **names;
  hbDNNPackedHandle_t packed;
  hbDNNHandle_t model;
  int32_t count;
  if (hbDNNInitializeFromFiles(&packed, &file, 1) || hbDNNGetModelNameList(&names, &count, packed)) return 1;
  hbDNNGetModelHandle(&model, packed, names[0]);
  hbDNNTensor input, output;
  hbDNNGetInputTensorProperties(&input.properties, model, 0);
  hbDNNGetOutputTensorProperties(&output.properties, model, 0);
  hbUCPMallocCached(&input.sysMem, (uint64_t)input.properties.alignedByteSize, 0);
  hbUCPMallocCached(&output.sysMem, (uint64_t)output.properties.alignedByteSize, 0);
  int64_t *stride = input.properties.stride, padded = stride[2];
  int32_t first = run(&input, &output, model, padded, results[0]);
  stride[2] = 8, stride[1] = stride[0] = 64;
  int32_t second = run(&input, &output, model, 8, results[1]);
  printf("%d %d %d equal %d\n", padded > 8, first, second, !memcmp(results[0], results[1], sizeof results[0]));
  stride[2] = 9;
  printf("refused %d\n", hbDNNInferV2(NULL, &output, &input, model) == HB_DNN_INVALID_ARGUMENT);
  hbUCPFree(&input.sysMem), hbUCPFree(&output.sysMem);
  return hbDNNRelease(packed);
}
