/* FastRPC's shared memory: arguments in it are not copied.
 *
 * Source: qualcomm/fastrpc, rpcmem.h, for names and values, https://github.com/qualcomm/fastrpc
 */
#ifndef HBRT_FASTRPC_RPCMEM_H
#define HBRT_FASTRPC_RPCMEM_H

#include <stddef.h>
#include <stdint.h>

/* Heaps; all are equivalent here. */
enum rpc_heap_ids { RPCMEM_HEAP_ID_SECURE = 9, RPCMEM_HEAP_ID_CONTIG = 22, RPCMEM_HEAP_ID_SYSTEM = 25 };
#define RPCMEM_DEFAULT_HEAP (-1)
#define RPCMEM_HEAP_DEFAULT 0x80000000
#define RPCMEM_FLAG_UNCACHED 0
#define RPCMEM_FLAG_CACHED 1
#define RPCMEM_DEFAULT_FLAGS RPCMEM_FLAG_CACHED
#define RPCMEM_TRY_MAP_STATIC 0x04000000
#define RPCMEM_HEAP_NOREG 0x40000000
#define RPCMEM_HEAP_UNCACHED 0x20000000
#define RPCMEM_HEAP_NOVA 0x10000000
#define RPCMEM_HEAP_NONCOHERENT 0x08000000
#define RPCMEM_FORCE_NOFLUSH 0x01000000
#define RPCMEM_FORCE_NOINVALIDATE 0x02000000

#ifdef __cplusplus
extern "C" {
#endif

/* Accepted; there is nothing to do. */
void rpcmem_init(void);
/* Accepted; allocated memory stays until it is freed. */
void rpcmem_deinit(void);
/* Allocate page-aligned memory, registered at once; NULL on failure. Heap and flags are ignored, as in the library for
 * Linux. */
void *rpcmem_alloc(int heapid, uint32_t flags, int size);
void *rpcmem_alloc2(int heapid, uint32_t flags, size_t size);
static inline void *rpcmem_alloc_def(int size) {
  return rpcmem_alloc(RPCMEM_HEAP_ID_SYSTEM, RPCMEM_DEFAULT_FLAGS, size);
}
/* Free it; any other address is ignored. */
void rpcmem_free(void *po);
/* A descriptor of the same memory, given its first address; -1 for any other address. mmap accepts it, from offset
 * 0. */
int rpcmem_to_fd(void *po);

#ifdef __cplusplus
}
#endif

#endif
