/* The vector memory of the DSP side: 256 KiB per process domain, from which requests are served.
 *
 * Source: programs that call it, https://github.com/haozixu/htp-ops-lib, for names and parameters
 */
#ifndef HBRT_FASTRPC_HAP_VTCM_MGR_H
#define HBRT_FASTRPC_HAP_VTCM_MGR_H

#include "AEEStdDef.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Allocate memory at a multiple of 2048 bytes; NULL if there is not enough free. */
void *HAP_request_VTCM(unsigned int size, unsigned int single_page_flag);
/* The same, waiting at most timeout_us microseconds. */
void *HAP_request_async_VTCM(unsigned int size, unsigned int single_page_flag, unsigned int timeout_us);
int HAP_release_VTCM(void *pVA);
int HAP_query_total_VTCM(unsigned int *page_size, unsigned int *page_count);
int HAP_query_avail_VTCM(unsigned int *avail_block_size, unsigned int *max_page_size, unsigned int *num_pages);

#ifdef __cplusplus
}
#endif

#endif
