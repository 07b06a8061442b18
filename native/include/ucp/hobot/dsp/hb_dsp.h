/**
 * hbDSP*: ops on a DSP core of the S series.
 *
 * Source: a guide of UCP that its vendor published; the ranges of commands as its readers state them.
 */
#ifndef HBRT_HOBOT_DSP_HB_DSP_H
#define HBRT_HOBOT_DSP_HB_DSP_H

#include "../hb_ucp.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef HBRT_DSP_HB_DSP_H
/** The last command. */
#define HB_DSP_RPC_CMD_BUTT 0xffff
#endif

/** Make a task of one call; `taskHandle` NULL runs it at once. The blocks are kept by address until it has ended. */
int32_t hbDSPRpcV2(hbUCPTaskHandle_t *taskHandle, hbUCPSysMem *input, hbUCPSysMem *output, int32_t rpcCmd);

/** Have the DSP see memory. Here it sees all of it: `out` becomes `in`. Returns 0; HB_SYS_INVALID_ARGUMENT for NULL. */
int32_t hbDSPAddrMap(hbUCPSysMem *out, hbUCPSysMem const *in);

/** Undo hbDSPAddrMap. */
int32_t hbDSPAddrUnmap(hbUCPSysMem const *mem);

#ifdef __cplusplus
}
#endif

#endif
