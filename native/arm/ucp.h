/** ucp.c for vp.c: tasks whose input block the library allocates. */
#ifndef HBRT_ARM_UCP_H
#define HBRT_ARM_UCP_H

#include <stddef.h>

#include "host.h"
#include "hobot/hb_ucp.h"

/* What is called in between is told at the program's line, and the next call is on its own. */
#define ASKED(call) (hbrt_caller = program_line ? program_line : __builtin_return_address(0), kept_status = (call), hbrt_caller = NULL, kept_status)

static __thread int32_t kept_status;
static __thread void *program_line; /* of a call that makes several of these calls for its program; else NULL */

/** Make a task of a CV op with a copy of its parameters, which is freed with the task; as hbDSPRpcV2. */
int32_t hbrt_ucp_op(hbUCPTaskHandle_t *taskHandle, const void *param, size_t size, hbUCPSysMem *output, int32_t command);

#endif
