// A program of an S100: MODEL of one NV12 input and one float output, run as its public programs do.
#include <cstdio>
#include <cstring>
#include <vector>

#include "hobot/dnn/hb_dnn.h"
#include "hobot/hb_ucp.h"
#include "hobot/hb_ucp_sys.h"

#define CHECK(call)                                                                      \
  do {                                                                                   \
    int32_t code = (call);                                                               \
    if (code) return std::fprintf(stderr, "%s: %s\n", #call, hbUCPGetErrorDesc(code)), 1; \
  } while (0)

static void Done(hbUCPTaskHandle_t, int32_t status, void *count) { *static_cast<int *>(count) += status == 0; }

static int Run(hbDNNHandle_t model, std::vector<hbDNNTensor> &inputs, std::vector<hbDNNTensor> &outputs, int chain) {
  hbUCPTaskHandle_t task = nullptr;
  static int done; // the callback may come after the release
  for (int at = 0; at < chain; ++at) CHECK(hbDNNInferV2(&task, outputs.data(), inputs.data(), model));
  CHECK(hbUCPSetTaskDoneCb(task, Done, &done));
  hbUCPSchedParam how;
  HB_UCP_INITIALIZE_SCHED_PARAM(&how);
  how.backend = HB_UCP_BPU_CORE_ANY;
  how.priority = 254;
  CHECK(hbUCPSubmitTask(task, &how));
  std::printf("again %d\n", hbUCPSubmitTask(task, &how) == HB_DNN_API_USE_ERROR);
  CHECK(hbUCPWaitTaskDone(task, 0));
  hbDNNTensorProperties told;
  CHECK(hbDNNGetTaskOutputTensorProperties(&told, task, chain - 1, 0));
  CHECK(hbUCPReleaseTask(task));
  std::printf("released %d\n", hbUCPReleaseTask(task) == HB_DNN_INVALID_TASK_HANDLE);
  std::printf("output %d %lld %d\n", told.validShape.numDimensions, (long long)told.alignedByteSize, told.tensorType);
  return 0;
}

int main(int, char **argv) {
  const char *file = argv[1];
  hbDNNPackedHandle_t packed = nullptr;
  CHECK(hbDNNInitializeFromFiles(&packed, &file, 1));
  const char **names;
  int32_t count, cores;
  CHECK(hbDNNGetModelNameList(&names, &count, packed));
  hbDNNHandle_t model = nullptr;
  CHECK(hbDNNGetModelHandle(&model, packed, names[0]));
  CHECK(hbDNNGetCompileBpuCoreNum(&cores, model));
  CHECK(hbDNNGetInputCount(&count, model));
  std::vector<hbDNNTensor> inputs(count), outputs(1);
  for (int32_t at = 0; at < count; ++at) {
    hbDNNTensorProperties &told = inputs[at].properties;
    const char *name;
    CHECK(hbDNNGetInputName(&name, model, at));
    CHECK(hbDNNGetInputTensorProperties(&told, model, at));
    const int32_t *size = told.validShape.dimensionSize;
    std::printf("%s %d x %d x %d of type %d, strides %lld %lld\n", name, size[1], size[2], size[3], told.tensorType,
                (long long)told.stride[1], (long long)told.stride[2]);
    told.stride[1] = (size[2] * size[3] + 31) / 32 * 32;
    told.stride[0] = told.stride[1] * size[1];
    told.alignedByteSize = told.stride[0];
    CHECK(hbUCPMallocCached(&inputs[at].sysMem, told.stride[0], 0));
    std::memset(inputs[at].sysMem.virAddr, 255, told.stride[0]);  // what is padding must not matter
    for (int32_t row = 0; row < size[1]; ++row)
      std::memset(static_cast<char *>(inputs[at].sysMem.virAddr) + row * told.stride[1], 128, size[2] * size[3]);
    CHECK(hbUCPMemFlush(&inputs[at].sysMem, HB_SYS_MEM_CACHE_CLEAN));
  }
  CHECK(hbDNNGetOutputTensorProperties(&outputs[0].properties, model, 0));
  const hbDNNQuantiType quanti = outputs[0].properties.quantiType;
  CHECK(quanti != (outputs[0].properties.scale.scaleLen > 0 ? SCALE : NONE));
  CHECK(hbUCPMallocCached(&outputs[0].sysMem, outputs[0].properties.alignedByteSize, 0));
  hbUCPTaskHandle_t none = nullptr;
  int64_t &row = inputs[1].properties.stride[1], kept = row;
  row = -1;
  const bool needs_rows = hbDNNInferV2(&none, outputs.data(), inputs.data(), model) == HB_DNN_INVALID_ARGUMENT;
  row = kept + 32;
  std::printf("refused %d %d\n", needs_rows,
              hbDNNInferV2(&none, outputs.data(), inputs.data(), model) == HB_DNN_INVALID_ARGUMENT);
  row = kept;
  if (Run(model, inputs, outputs, 1) || Run(model, inputs, outputs, 2)) return 1;
  CHECK(hbDNNInferV2(nullptr, outputs.data(), inputs.data(), model));
  CHECK(hbUCPMemFlush(&outputs[0].sysMem, HB_SYS_MEM_CACHE_INVALIDATE));
  const float *result = static_cast<float *>(outputs[0].sysMem.virAddr);
  std::printf("%.3f %.3f %.3f\n", result[0], result[1], result[2]);
  std::printf("%s %d cores, no input %d\n", hbUCPGetSocName(), cores,
              hbDNNGetInputName(names, model, count) == HB_DNN_INVALID_ARGUMENT);
  for (hbDNNTensor &tensor : inputs) CHECK(hbUCPFree(&tensor.sysMem));
  CHECK(hbUCPFree(&outputs[0].sysMem));
  CHECK(hbDNNRelease(packed));
  return 0;
}
