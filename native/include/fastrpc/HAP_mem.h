/* Memory of a program on the DSP side, by its descriptor; for images.
 *
 * Source: programs that call it, https://github.com/haozixu/htp-ops-lib, for names and parameters
 */
#ifndef HBRT_FASTRPC_HAP_MEM_H
#define HBRT_FASTRPC_HAP_MEM_H

#include "AEEStdDef.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where the memory of a descriptor lies that the program has given to fastrpc_mmap, or passes on as a dmahandle; 0, or
 * AEE_ENOSUCHMAP. Any thread may ask; the address holds until as many puts. */
int HAP_mmap_get(int fd, void **vaddr, uint64 *paddr);
int HAP_mmap_put(int fd);

#ifdef __cplusplus
}
#endif

#endif
