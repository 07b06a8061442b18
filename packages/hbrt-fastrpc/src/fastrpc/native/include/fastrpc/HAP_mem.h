/* Memory of the DSP side, and program memory mapped by its descriptor; for images.
 *
 * Source: programs that call it, https://github.com/haozixu/htp-ops-lib, for names and parameters
 */
#ifndef HBRT_FASTRPC_HAP_MEM_H
#define HBRT_FASTRPC_HAP_MEM_H

#include <stdlib.h>

#include "AEEStdDef.h"
#include "AEEStdErr.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HAP_PROT_NONE 0
#define HAP_PROT_READ 1
#define HAP_PROT_WRITE 2
#define HAP_PROT_EXEC 4
#define HAP_MEM_CACHE_WRITEBACK 0x10
#define HAP_MEM_CACHE_NON_SHARED 0x20
#define HAP_MEM_CACHE_WRITETHROUGH 0x40

/* Look up the memory of a descriptor that the program has passed to fastrpc_mmap, or passes as a dmahandle; returns 0,
 * or AEE_ENOSUCHMAP. Any thread may call this; the address stays valid until the same number of puts. */
int HAP_mmap_get(int fd, void **vaddr, uint64 *paddr);
int HAP_mmap_put(int fd);
/* The same, starting at an offset: returns the address, or (void *)-1. Address, protection and flags are ignored. */
void *HAP_mmap(void *addr, int len, int prot, int flags, int fd, long offset);
void *HAP_mmap2(void *addr, size_t len, int prot, int flags, int fd, long offset);
int HAP_munmap(void *addr, int len);
int HAP_munmap2(void *addr, size_t len);

int HAP_malloc(uint32 bytes, void **pptr);
int HAP_free(void *ptr);
/* Accepted: the heap grows as needed. */
int HAP_mem_set_grow_size(uint64 min, uint64 max);
/* Emulator: bytes_free are those of the host, bytes_used those of the core's process, in one segment. */
struct HAP_mem_stats {
  uint64 bytes_free, bytes_used, seg_free, seg_used, min_grow_bytes;
};
int HAP_mem_get_stats(struct HAP_mem_stats *stats);
/* Bytes of stack below the caller's frame. */
uint64 HAP_mem_available_stack(void);

#ifdef __cplusplus
}
#endif

#endif
