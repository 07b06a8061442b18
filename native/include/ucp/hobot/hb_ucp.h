/**
 * hbUCP*: tasks of the S series. hbDNNInferV2 and hbDSPRpcV2 create one, hbUCPSubmitTask queues it.
 *
 * Every function returns 0, or a negative status of hb_ucp_status.h.
 * Source: S100 OE documentation (3.5.0), UCP API reference, https://toolchain.d-robotics.cc
 */
#ifndef HBRT_HOBOT_HB_UCP_H
#define HBRT_HOBOT_HB_UCP_H

#include "hb_ucp_sys.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A task; valid until hbUCPReleaseTask. */
typedef void *hbUCPTaskHandle_t;

/** Task priorities; larger first. A DSP interrupts ordinary tasks for 254, and 254 for 255; a BPU does not. */
typedef enum { HB_UCP_PRIORITY_LOWEST = 0, HB_UCP_PRIORITY_HIGHEST = 255 } hbUCPTaskPriority;

/** Processors that may run a task, ORed; HB_UCP_CORE_ANY must be used alone. */
#define HB_UCP_CORE_ANY 0ULL
#define HB_UCP_BPU_CORE_0 (1ULL << 0)
#define HB_UCP_BPU_CORE_1 (1ULL << 1)
#define HB_UCP_BPU_CORE_2 (1ULL << 2)
#define HB_UCP_BPU_CORE_3 (1ULL << 3)
#define HB_UCP_BPU_CORE_ANY (1ULL << 7)
#define HB_UCP_DSP_CORE_0 (1ULL << 8)
#define HB_UCP_DSP_CORE_1 (1ULL << 9)
#define HB_UCP_DSP_CORE_ANY (1ULL << 15)
#define HB_UCP_JPU_CORE_0 (1ULL << 24) /* emulator: the number, and there is no such core */

/** How a task is scheduled. */
typedef struct hbUCPSchedParam {
  int32_t priority; /* 0..255 */
  int64_t customId; /* smaller first, among tasks of the same priority */
  uint64_t backend; /* HB_UCP_..._CORE_... */
  uint32_t deviceId;
} hbUCPSchedParam;

/** Set the defaults: any core, priority LOWEST. */
#define HB_UCP_INITIALIZE_SCHED_PARAM(param)    \
  do {                                          \
    (param)->priority = HB_UCP_PRIORITY_LOWEST; \
    (param)->customId = 0;                      \
    (param)->backend = HB_UCP_CORE_ANY;         \
    (param)->deviceId = 0;                      \
  } while (0)

/** Called in a runtime thread when a task has ended. */
typedef void (*hbUCPTaskDoneCb)(hbUCPTaskHandle_t taskHandle, int32_t status, void *userData);

/** Version of the runtime. */
const char *hbUCPGetVersion(void);

/** Name of the chip: "S100". */
const char *hbUCPGetSocName(void);

/** Message for a status; valid for the process's lifetime. */
const char *hbUCPGetErrorDesc(int32_t errorCode);

/**
 * Queue a task. Returns 0; HB_DNN_API_USE_ERROR if it was already submitted, or is empty; the codes of hbDNNInfer and
 * hbDSPRpc.
 */
int32_t hbUCPSubmitTask(hbUCPTaskHandle_t taskHandle, hbUCPSchedParam *schedParam);

/**
 * Wait for a task. `timeout` is in milliseconds; <= 0 waits forever. Returns 0; HB_DNN_TIMEOUT; or the task's
 * result.
 */
int32_t hbUCPWaitTaskDone(hbUCPTaskHandle_t taskHandle, int32_t timeout);

/** Release a task; call this once per task. */
int32_t hbUCPReleaseTask(hbUCPTaskHandle_t taskHandle);

/**
 * Have `callback(taskHandle, status, userData)` called when the task has ended; set it before or after
 * hbUCPSubmitTask.
 */
int32_t hbUCPSetTaskDoneCb(hbUCPTaskHandle_t taskHandle, hbUCPTaskDoneCb callback, void *userData);

#ifdef __cplusplus
}
#endif

#endif
