/* A model from C: its names, its properties, inferences of zeros with a callback; prints the output. */
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dnn/hb_dnn.h"

#define CHECK(call)                                    \
  do {                                                 \
    int32_t status = (call);                           \
    if (status) {                                      \
      printf("%s: %d\n", #call, status);              \
      return 1;                                        \
    }                                                  \
  } while (0)

static sem_t done;
static int32_t told = 1;

static void ended(hbDNNTaskHandle_t task, int32_t status, void *userdata) {
  told = task && userdata == &told ? status : 2;
  sem_post(&done);
}

int main(int count, char **arguments) {
  if (count < 2) return 2;
  const char *file = arguments[1];
  hbPackedDNNHandle_t packed;
  CHECK(hbDNNInitializeFromFiles(&packed, &file, 1));
  const char **names, *input_name, *output_name;
  int32_t models, inputs, outputs;
  CHECK(hbDNNGetModelNameList(&names, &models, packed));
  hbDNNHandle_t model;
  CHECK(hbDNNGetModelHandle(&model, packed, names[0]));
  CHECK(hbDNNGetInputCount(&inputs, model));
  CHECK(hbDNNGetOutputCount(&outputs, model));
  CHECK(hbDNNGetInputName(&input_name, model, 0));
  CHECK(hbDNNGetOutputName(&output_name, model, 0));
  hbDNNTensor input, output, *outs = &output;
  memset(&input, 0, sizeof input);
  memset(&output, 0, sizeof output);
  CHECK(hbDNNGetInputTensorProperties(&input.properties, model, 0));
  CHECK(hbDNNGetOutputTensorProperties(&output.properties, model, 0));
  printf("%d model %s: %d inputs (%s: type %d, %d bytes), %d outputs (%s)\n", models, names[0], inputs, input_name,
         input.properties.tensorType, input.properties.alignedByteSize, outputs, output_name);
  CHECK(hbSysAllocCachedMem(&input.sysMem[0], (uint32_t)input.properties.alignedByteSize));
  CHECK(hbSysAllocCachedMem(&output.sysMem[0], (uint32_t)output.properties.alignedByteSize));
  memset(input.sysMem[0].virAddr, 0, (size_t)input.properties.alignedByteSize);
  CHECK(hbSysFlushMem(&input.sysMem[0], HB_SYS_MEM_CACHE_CLEAN));
  hbDNNInferCtrlParam ctrl;
  HB_DNN_INITIALIZE_INFER_CTRL_PARAM(&ctrl);
  sem_init(&done, 0, 0);
  for (int at = 0; at < 3; at++) {
    hbDNNTaskHandle_t task = NULL;
    CHECK(hbDNNInfer(&task, &outs, &input, model, &ctrl));
    CHECK(hbDNNSetTaskDoneCb(task, ended, &told));
    CHECK(hbDNNWaitTaskDone(task, 0));
    sem_wait(&done);
    CHECK(told);
    CHECK(hbDNNReleaseTask(task));
  }
  CHECK(hbSysFlushMem(&output.sysMem[0], HB_SYS_MEM_CACHE_INVALIDATE));
  printf("%s %s", input_name, output_name);
  const float *values = output.sysMem[0].virAddr;
  for (int at = 0; at < output.properties.alignedByteSize / 4; at++) printf(" %.4f", values[at]);
  printf("\n");
  CHECK(hbSysFreeMem(&input.sysMem[0]));
  CHECK(hbSysFreeMem(&output.sysMem[0]));
  CHECK(hbDNNRelease(packed));
  return 0;
}
