/**
 * hbDSP*: ops on a DSP core of the S series.
 *
 * Source: a guide to UCP published by its vendor; the command ranges as stated by its readers.
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

/**
 * Create a task with one call; `taskHandle` NULL runs it immediately. The blocks are referenced, not copied, until it
 * has ended.
 */
int32_t hbDSPRpcV2(hbUCPTaskHandle_t *taskHandle, hbUCPSysMem *input, hbUCPSysMem *output, int32_t rpcCmd);

/**
 * Make memory visible to the DSP. Here it sees all memory: `out` becomes `in`. Returns 0; HB_SYS_INVALID_ARGUMENT for
 * NULL; HB_SYS_REGISTER_MEM_FAILED for a range that is not inside one live block.
 */
int32_t hbDSPAddrMap(hbUCPSysMem *out, hbUCPSysMem const *in);

/** Undo hbDSPAddrMap. */
int32_t hbDSPAddrUnmap(hbUCPSysMem const *mem);

#ifdef __cplusplus
}
#endif

#endif
