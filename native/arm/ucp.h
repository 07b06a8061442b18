/** ucp.c for vp.c: tasks whose input block the library allocates. */
#ifndef HBRT_ARM_UCP_H
#define HBRT_ARM_UCP_H

#include <stddef.h>

#include "host.h"
#include "hobot/hb_ucp.h"

/* All calls in between are reported at the program's line. */
#define ASKED(call) (hbrt_caller = __builtin_return_address(0), kept_status = (call), hbrt_caller = NULL, kept_status)

static __thread int32_t kept_status;

/** Print why a call of this generation is refused, a sentence, on standard error; returns the status. */
int32_t hbrt_ucp_refused(int32_t status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Create a task of a CV op with a copy of its parameters, which is freed with the task; otherwise like hbDSPRpcV2. */
int32_t hbrt_ucp_op(hbUCPTaskHandle_t *taskHandle, const void *param, size_t size, hbUCPSysMem *output, int32_t command);

#endif
