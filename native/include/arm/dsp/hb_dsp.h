/**
 * hbDSP*: remote calls to the DSP cores.
 *
 * Source: DSP runtime API manual (J5 OE 1.1.77), https://developer.horizon.auto/docs/J5/toolchain/1.1.77/DSPRuntimeAPIManual
 * Emulator: integer widths of hbDSPRpcCtrlParam, the numbers of the priorities, hbDSPSetTaskDoneCb, hbDSPGetErrorDesc.
 */
#ifndef HBRT_DSP_HB_DSP_H
#define HBRT_DSP_HB_DSP_H

#include <stdint.h>

#include "../dnn/hb_sys.h"
#include "hb_dsp_status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HB_DSP_VERSION_MAJOR 0U
#define HB_DSP_VERSION_MINOR 3U
#define HB_DSP_VERSION_PATCH 3U

/** Opaque task handle; NULL until hbDSPRpc fills it. Threads may share handles. */
typedef void *hbDSPTask_t;

#ifndef HBRT_HB_DSP_CORE
#define HBRT_HB_DSP_CORE
/** Which core may run a task; bit i stands for core i, 0 for any. */
typedef enum { HB_DSP_CORE_ANY = 0, HB_DSP_CORE_0 = 1 << 0, HB_DSP_CORE_1 = 1 << 1 } hbDSPCore;
#endif

/** Command numbers and their ranges. Your own ops use 0x1000 to 0xfffe. */
typedef enum {
  HB_DSP_RPC_CMD_R_B = 0x0,
  HB_DSP_RPC_CMD_PING = HB_DSP_RPC_CMD_R_B,
  HB_DSP_RPC_CMD_R_E = 0x3ff,
  HB_DSP_RPC_CMD_NN_B = 0x400,
  HB_DSP_RPC_CMD_NN_SOFTMAX = HB_DSP_RPC_CMD_NN_B,
  HB_DSP_RPC_CMD_NN_QUANTIZE = 0x401,
  HB_DSP_RPC_CMD_NN_DEQUANTIZE = 0x402,
  HB_DSP_RPC_CMD_NN_CENTERPOINT = 0x403,
  HB_DSP_RPC_CMD_NN_POINTPILLARS = 0x404,
  HB_DSP_RPC_CMD_NN_SOFTMAX_ROWS = 0x405,
  HB_DSP_RPC_CMD_NN_E = 0x7ff,
  HB_DSP_RPC_CMD_CV_B = 0x800,
  HB_DSP_RPC_CMD_CV_E = 0xfff,
  HB_DSP_RPC_CMD_BUTT = 0xffff
} hbDSPRpcCmd;

/** Task priorities, 0 to 255; larger first. */
typedef enum {
  HB_DSP_RPC_PRIORITY_LOWEST = 0,
  HB_DSP_RPC_PRIORITY_HIGHEST = 255,
  HB_DSP_RPC_PRIORITY_PREEMP = HB_DSP_RPC_PRIORITY_HIGHEST
} hbDspRpcPriority;

/** How a task is scheduled. */
typedef struct hbDSPRpcCtrlParam {
  int32_t dspCoreId; /* hbDSPCore */
  int32_t rpcCmd;
  int32_t priority;
  int64_t customId; /* second sort key: smaller first */
  int32_t reserved1;
  int32_t reserved2;
} hbDSPRpcCtrlParam;

/** Set the manual's defaults: any core, command BUTT, priority LOWEST, customId 0. */
#define HB_DSP_INITIALIZE_RPC_CTRL_PARAM(param)     \
  do {                                              \
    (param)->dspCoreId = HB_DSP_CORE_ANY;           \
    (param)->rpcCmd = HB_DSP_RPC_CMD_BUTT;          \
    (param)->priority = HB_DSP_RPC_PRIORITY_LOWEST; \
    (param)->customId = 0;                          \
    (param)->reserved1 = 0;                         \
    (param)->reserved2 = 0;                         \
  } while (0)

/** Called in a runtime thread when a task has ended. In Python, pass a plain function. */
typedef void (*hbDSPTaskDoneCb)(hbDSPTask_t task, int32_t status, void *userdata);

/** Version of the API and of the emulator. */
const char *hbDSPGetVersion(void);

/** Message for a status; valid for the process's lifetime. */
const char *hbDSPGetErrorDesc(int32_t code);

/**
 * Submit one task. Addresses inside the input block are physical. Pass NULL for a block that the op does not need.
 * Returns 0; HB_DSP_INVALID_ARGUMENT, _INVALID_CORE, _INVALID_PRIORITY, _INVALID_ADDRESS, _UNALIGNED_ADDRESS,
 * _TASK_NUM_EXCEED_LIMIT, _NOT_RUNNING, _BOARD_LOST or _FORKED. An unknown command is reported by the wait.
 */
int32_t hbDSPRpc(hbDSPTask_t *task, hbSysMem *input, hbSysMem *output, hbDSPRpcCtrlParam *rpcCtrlParam);

/**
 * Wait for a task. `timeout` is in milliseconds; <= 0 waits forever.
 * Returns 0; HB_DSP_TIMEOUT, and the task keeps running; the op's own value; HB_DSP_RUN_TASK_FAILED, _UNKNOWN_COMMAND,
 * _CORE_LOST, _WATCHDOG, _TASK_CANCELLED, _OUT_OF_TCM, _INVALID_TASK_HANDLE, _TASK_RELEASED, _FOREIGN_TASK_HANDLE or
 * _BOARD_LOST.
 */
int32_t hbDSPWaitTaskDone(hbDSPTask_t task, int32_t timeout);

/**
 * Release a task; call this once per hbDSPRpc. A task that waits for a core is cancelled; the result of a running one
 * is discarded. Returns 0; HB_DSP_INVALID_TASK_HANDLE, _TASK_RELEASED or _FOREIGN_TASK_HANDLE.
 */
int32_t hbDSPReleaseTask(hbDSPTask_t task);

/**
 * Have `callback(task, status, userdata)` called when the task ends, or immediately if it has ended.
 * Returns 0; HB_DSP_INVALID_ARGUMENT if the callback is NULL; the codes of hbDSPReleaseTask.
 */
int32_t hbDSPSetTaskDoneCb(hbDSPTask_t task, hbDSPTaskDoneCb callback, void *userdata);

#ifdef __cplusplus
}
#endif

#endif
