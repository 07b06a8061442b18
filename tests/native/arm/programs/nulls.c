/* NULL and nonsense in every argument of every function: a status below 0, and the process lives. */
#include "row.h"

#include "dnn/hb_dnn.h"
#include "dnn/hb_dnn_ext.h"
#include "hbrt.h"

static int taken;

static void expect(const char *call, int32_t status) {
  if (status < 0) return;
  taken++;
  printf("%s returned %d\n", call, status);
}

#define REFUSED(call) expect(#call, call)

int main(void) {
  Row row;
  if (row_make(&row, 1)) return 1;
  char bytes[16] = "";
  hbSysMem huge = row.input, wild = {1, NULL, 16}, zero = {0, NULL, 0};
  huge.memSize = 0xffffffff;
  hbDSPRpcCtrlParam core = row.ctrl, priority = row.ctrl;
  core.dspCoreId = 77;
  priority.priority = -5;
  hbDSPTask_t task = NULL, nonsense = (hbDSPTask_t)(intptr_t)-1, number = (hbDSPTask_t)12345;
  REFUSED(hbSysAllocMem(NULL, 1));
  REFUSED(hbSysAllocMem(&zero, 0));
  REFUSED(hbSysAllocMem(&zero, 0xffffffff));
  REFUSED(hbSysAllocCachedMem(NULL, 1));
  REFUSED(hbSysFreeMem(NULL));
  REFUSED(hbSysFreeMem(&wild));
  REFUSED(hbSysFlushMem(NULL, 1));
  REFUSED(hbSysFlushMem(&row.input, 77));
  REFUSED(hbSysFlushMem(&wild, 1));
  REFUSED(hbSysWriteMem(NULL, bytes, 1));
  REFUSED(hbSysWriteMem(&row.input, NULL, 1));
  REFUSED(hbSysWriteMem(&row.input, bytes, 17));
  REFUSED(hbSysReadMem(NULL, &row.input, 1));
  REFUSED(hbSysReadMem(bytes, NULL, 1));
  REFUSED(hbSysReadMem(bytes, &zero, 1));
  REFUSED(hbSysRegisterMem(NULL));
  REFUSED(hbSysRegisterMem(&wild));
  REFUSED(hbSysUnregisterMem(NULL));
  REFUSED(hbSysUnregisterMem(&wild));
  REFUSED(hbDSPRpc(NULL, &row.block, &row.output, &row.ctrl));
  REFUSED(hbDSPRpc(&task, &row.block, &row.output, NULL));
  REFUSED(hbDSPRpc(&task, &wild, &row.output, &row.ctrl));
  REFUSED(hbDSPRpc(&task, &huge, &row.output, &row.ctrl));
  REFUSED(hbDSPRpc(&task, &row.block, &row.output, &core));
  REFUSED(hbDSPRpc(&task, &row.block, &row.output, &priority));
  REFUSED(hbDSPWaitTaskDone(NULL, 0));
  REFUSED(hbDSPWaitTaskDone(nonsense, 0));
  REFUSED(hbDSPWaitTaskDone(number, 0));
  REFUSED(hbDSPReleaseTask(NULL));
  REFUSED(hbDSPReleaseTask(nonsense));
  REFUSED(hbDSPSetTaskDoneCb(NULL, NULL, NULL));
  if (hbDSPRpc(&task, NULL, NULL, &row.ctrl) == 0) { /* NULL stands for no block: the op says what it lacks */
    REFUSED(hbDSPSetTaskDoneCb(task, NULL, NULL));
    if (hbDSPWaitTaskDone(task, 0) == 0) taken++;
    if (hbDSPReleaseTask(task)) taken++;
    REFUSED(hbDSPReleaseTask(task));
  }
  hbPackedDNNHandle_t packed = NULL;
  hbDNNHandle_t model = NULL;
  hbDNNTaskHandle_t inference = NULL;
  const char *none = NULL, *missing = "no-such-model.onnx";
  const char **names;
  const char *name;
  const void *data = NULL;
  int32_t count = 0, lengths = 0;
  hbDNNTensorProperties properties;
  hbDNNTensor tensor;
  memset(&tensor, 0, sizeof tensor);
  hbDNNTensor *output = NULL;
  hbDNNInferCtrlParam infer;
  HB_DNN_INITIALIZE_INFER_CTRL_PARAM(&infer);
  REFUSED(hbDNNInitializeFromFiles(NULL, &missing, 1));
  REFUSED(hbDNNInitializeFromFiles(&packed, NULL, 1));
  REFUSED(hbDNNInitializeFromFiles(&packed, &none, 1));
  REFUSED(hbDNNInitializeFromFiles(&packed, &missing, 1));
  REFUSED(hbDNNInitializeFromFiles(&packed, &missing, -1));
  REFUSED(hbDNNInitializeFromDDR(&packed, &data, &lengths, 1));
  REFUSED(hbDNNInitializeFromDDR(&packed, NULL, NULL, 1));
  REFUSED(hbDNNRelease(NULL));
  REFUSED(hbDNNRelease(nonsense));
  REFUSED(hbDNNGetModelNameList(&names, &count, NULL));
  REFUSED(hbDNNGetModelNameList(NULL, NULL, nonsense));
  REFUSED(hbDNNGetModelHandle(&model, NULL, "x"));
  REFUSED(hbDNNGetModelHandle(NULL, nonsense, NULL));
  REFUSED(hbDNNGetInputCount(&count, NULL));
  REFUSED(hbDNNGetOutputCount(NULL, nonsense));
  REFUSED(hbDNNGetInputName(&name, NULL, 0));
  REFUSED(hbDNNGetOutputName(NULL, nonsense, 0));
  REFUSED(hbDNNGetInputTensorProperties(&properties, NULL, 0));
  REFUSED(hbDNNGetOutputTensorProperties(NULL, nonsense, 0));
  REFUSED(hbDNNInfer(NULL, NULL, NULL, NULL, NULL));
  REFUSED(hbDNNInfer(&inference, &output, &tensor, nonsense, &infer));
  REFUSED(hbDNNRoiInfer(NULL, NULL, NULL, NULL, 0, NULL, NULL));
  REFUSED(hbDNNResize(NULL, NULL, NULL, NULL, NULL));
  REFUSED(hbDNNResize(&inference, &tensor, &tensor, NULL, NULL));
  REFUSED(hbDNNWaitTaskDone(NULL, 0));
  REFUSED(hbDNNReleaseTask(NULL));
  REFUSED(hbDNNSetTaskDoneCb(NULL, NULL, NULL));
  if (!strstr(hbDSPGetErrorDesc(HB_SYS_OUT_OF_MEMORY), "no free range")) taken++;
  if (!strstr(hbDNNGetErrorDesc(12345), "12345")) taken++;
  if (!*hbDSPGetVersion() || !*hbDNNGetVersion() || !*hbrt_last_error()) taken++;
  if (row_call(&row) || !row_is_right(&row, 1) || row_free(&row)) taken++;
  printf("%d taken\n", taken);
  return 0;
}
