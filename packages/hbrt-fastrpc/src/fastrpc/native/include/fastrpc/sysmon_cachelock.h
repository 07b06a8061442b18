/* Memory that is locked in the second-level cache. Emulator: ordinary memory with accounting; 512 KiB can be locked
 * (assumed).
 *
 * Source: the header of this name in Hexagon SDKs, for names and types, https://github.com/AlayaBright/HexagonSDK
 */
#ifndef SYSMON_CACHELOCK_H_
#define SYSMON_CACHELOCK_H_

#ifdef __cplusplus
extern "C" {
#endif

/* Allocate and lock; returns the address, or NULL if not enough can be locked. Emulator: the physical address equals
 * it. */
void *HAP_cache_lock(unsigned int size, unsigned long long *paddr_ptr);
/* Unlock and free: 0, or AEE_EBADPARM. */
int HAP_cache_unlock(void *vaddr_ptr);
/* Lock existing memory; address and size must be multiples of 32. Returns 0, AEE_EBADPARM, or AEE_ENOMEMORY. */
int HAP_cache_lock_addr(void *vaddr_ptr, unsigned int size);
int HAP_cache_unlock_addr(void *vaddr_ptr);
/* Bytes that can still be locked, and bytes that are locked. */
int HAP_query_avail_cachelock(void);
int HAP_query_total_cachelock(void);

#ifdef __cplusplus
}
#endif

#endif
