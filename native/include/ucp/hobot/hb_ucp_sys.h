/**
 * hbUCP*: device memory of the S series.
 *
 * Source: S100 OE documentation (3.5.0), UCP API reference, https://toolchain.d-robotics.cc
 */
#ifndef HBRT_HOBOT_HB_UCP_SYS_H
#define HBRT_HOBOT_HB_UCP_SYS_H

#include <stdint.h>

#include "hb_ucp_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A block of device memory, or part of one. */
typedef struct hbUCPSysMem {
  uint64_t phyAddr; /* physical address: used by the DSP */
  void *virAddr;    /* address in this process: used by the CPU */
  uint64_t memSize; /* bytes */
} hbUCPSysMem;

#ifndef HBRT_DNN_HB_SYS_H
/** Direction of a flush. */
typedef enum {
  HB_SYS_MEM_CACHE_INVALIDATE = 1, /* device to CPU: before the CPU reads what a device has written */
  HB_SYS_MEM_CACHE_CLEAN = 2       /* CPU to device: after the CPU has written, before a device reads */
} hbUCPSysMemFlushFlag;
#endif

/** Allocate uncached device memory. Returns the same codes as hbSysAllocMem. `deviceId` is ignored. */
int32_t hbUCPMalloc(hbUCPSysMem *mem, uint64_t size, int32_t deviceId);

/**
 * Allocate device memory that the CPU caches; hbUCPMemFlush makes writes visible. Returns the same codes as
 * hbUCPMalloc.
 */
int32_t hbUCPMallocCached(hbUCPSysMem *mem, uint64_t size, int32_t deviceId);

/** Free a block. Returns the same codes as hbSysFreeMem. */
int32_t hbUCPFree(hbUCPSysMem *mem);

/** Clean or invalidate cached memory: a block, or part of one. Returns the same codes as hbSysFlushMem. */
int32_t hbUCPMemFlush(const hbUCPSysMem *mem, int32_t flag);

#ifdef __cplusplus
}
#endif

#endif
