/**
 * hbSys*: device memory shared by the CPU, the DSP cores and the models.
 *
 * Every function returns 0, or a negative status of dnn/hb_dnn_status.h. hbrt_last_error() of hbrt.h returns the error
 * message.
 * Source: BPU SDK API manual (J5 OE 1.1.77), 9.2.3.5; https://developer.horizon.auto/docs/J5/toolchain/1.1.77/BPUSDKAPIManual
 */
#ifndef HBRT_DNN_HB_SYS_H
#define HBRT_DNN_HB_SYS_H

#include <stdint.h>

#include "hb_dnn_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A block of device memory, or part of one. */
typedef struct hbSysMem {
  uint64_t phyAddr; /* physical address: used by the DSP */
  void *virAddr;    /* address in this process: used by the CPU */
  uint32_t memSize; /* bytes */
} hbSysMem;

/** Direction of a flush. */
typedef enum {
  HB_SYS_MEM_CACHE_INVALIDATE = 1, /* device to CPU: before the CPU reads what a device has written */
  HB_SYS_MEM_CACHE_CLEAN = 2       /* CPU to device: after the CPU has written, before a device reads */
} hbSysMemFlushFlag;

/**
 * Allocate uncached device memory: zeroed, page-aligned.
 * Returns 0; HB_SYS_INVALID_ARGUMENT, _OUT_OF_MEMORY, _NOT_RUNNING, _BOARD_LOST or _FORKED.
 */
int32_t hbSysAllocMem(hbSysMem *mem, uint32_t size);

/**
 * Allocate device memory that the CPU caches; hbSysFlushMem makes writes visible. Returns the same codes as
 * hbSysAllocMem.
 */
int32_t hbSysAllocCachedMem(hbSysMem *mem, uint32_t size);

/**
 * Clean or invalidate cached memory: a block, or part of one given by adjusted phyAddr, virAddr and memSize.
 * Returns 0; HB_SYS_INVALID_ARGUMENT for an unknown flag, or memory of another process.
 */
int32_t hbSysFlushMem(hbSysMem *mem, int32_t flag);

/** Free a block. Returns 0; HB_SYS_NOT_ALLOCATED if no live block starts at phyAddr, for example on a double free. */
int32_t hbSysFreeMem(hbSysMem *mem);

/** Copy into a block, as memcpy would. Returns 0; HB_SYS_INVALID_ARGUMENT for NULL, or a size above memSize. */
int32_t hbSysWriteMem(hbSysMem *dest, char *src, uint32_t size);

/** Copy out of a block, as memcpy would. Returns 0; HB_SYS_INVALID_ARGUMENT for NULL, or a size above memSize. */
int32_t hbSysReadMem(char *dest, hbSysMem *src, uint32_t size);

/**
 * Map memory given by phyAddr and memSize, such as another process's; sets virAddr. The mapping is cached. Returns 0;
 * HB_SYS_REGISTER_MEM_FAILED if the range is not inside one live block.
 */
int32_t hbSysRegisterMem(hbSysMem *mem);

/** Undo one hbSysRegisterMem. Returns 0; HB_SYS_INVALID_ARGUMENT if this process has not registered that memory. */
int32_t hbSysUnregisterMem(hbSysMem *mem);

#ifdef __cplusplus
}
#endif

#endif
