/** Memory that another library made, as a block of the board: a memfd and shared memory, their bytes in a task, and mistakes. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dnn/hb_sys.h"
#include "dsp/hb_dsp.h"
#include "dsp/nn/hb_dsp_nn.h"
#include "hbrt.h"

static int bad;

static void expect(int is_so, const char *what) {
  if (is_so) return;
  printf("%s: %s\n", what, hbrt_last_error());
  bad++;
}

/** Softmax of four numbers in one buffer into four of another. */
static void softmax(const hbSysMem *input, const hbSysMem *output) {
  hbSysMem block;
  hbDSPTask_t task;
  hbDSPRpcCtrlParam ctrl;
  HB_DSP_INITIALIZE_RPC_CTRL_PARAM(&ctrl);
  ctrl.rpcCmd = HB_DSP_RPC_CMD_NN_SOFTMAX;
  expect(!hbSysAllocMem(&block, sizeof(hbDSPSoftmaxParam)), "alloc");
  hbDSPSoftmaxParam *param = block.virAddr;
  param->data_size = 4 * sizeof(float);
  param->input = input->phyAddr;
  hbSysMem out = *output;
  out.memSize = 4 * sizeof(float);
  expect(!hbDSPRpc(&task, &block, &out, &ctrl), "rpc");
  expect(!hbDSPWaitTaskDone(task, 0), "wait");
  expect(!hbDSPReleaseTask(task), "release");
  expect(!hbSysFreeMem(&block), "free");
}

int main(void) {
  char name[64];
  snprintf(name, sizeof name, "/hbrt-test-camera-%d", (int)getpid());
  int camera = memfd_create("camera", 0), display = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
  if (camera < 0 || display < 0 || ftruncate(camera, 8192) || ftruncate(display, 8192)) return 2;
  shm_unlink(name);
  float *picture = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, camera, 0);
  float *screen = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, display, 0);
  hbSysMem input, output, none;
  expect(!hbrt_register_fd(&input, camera, 4096, 4096), "the camera's");
  expect(!hbrt_register_fd(&output, display, 0, 8192), "the display's");
  close(display); /* the board holds it */
  for (int turn = 0; turn < 3; turn++) {
    for (int i = 0; i < 4; i++) picture[1024 + i] = (float)(i * turn);
    expect(!memcmp(input.virAddr, picture + 1024, 16), "what the CPU sees of the camera");
    softmax(&input, &output);
    printf("%.3f %.3f %.3f %.3f\n", (double)screen[0], (double)screen[1], (double)screen[2], (double)screen[3]);
  }
  expect(hbrt_register_fd(NULL, camera, 0, 1) == HB_SYS_INVALID_ARGUMENT, "NULL");
  expect(hbrt_register_fd(&none, -1, 0, 1) == HB_SYS_INVALID_ARGUMENT, "-1");
  expect(hbrt_register_fd(&none, display, 0, 1) == HB_SYS_INVALID_ARGUMENT, "closed");
  expect(hbrt_register_fd(&none, 1, 0, 1) == HB_SYS_INVALID_ARGUMENT, "a pipe");
  expect(hbrt_register_fd(&none, camera, 4, 4) == HB_SYS_INVALID_ARGUMENT, "an odd offset");
  expect(hbrt_register_fd(&none, camera, UINT64_MAX - 4095, 4) == HB_SYS_INVALID_ARGUMENT, "a large offset");
  expect(hbrt_register_fd(&none, camera, 0, 8193) == HB_SYS_INVALID_ARGUMENT, "larger than it is");
  expect(hbSysFreeMem(&input) == HB_SYS_NOT_ALLOCATED, "freed");
  expect(!hbSysUnregisterMem(&input), "unregister");
  expect(!hbSysUnregisterMem(&output), "unregister");
  expect(hbSysUnregisterMem(&output) == HB_SYS_INVALID_ARGUMENT, "unregistered twice");
  picture[0] = screen[0]; /* the libraries keep theirs */
  return bad != 0;
}
