/* Resources of the DSP side held by a context: a part of the vector memory, and the matrix unit (accepted, without
 * effect).
 *
 * Source: programs that call it, https://github.com/haozixu/htp-ops-lib, for names and parameters
 */
#ifndef HBRT_FASTRPC_HAP_COMPUTE_RES_H
#define HBRT_FASTRPC_HAP_COMPUTE_RES_H

#include "AEEStdDef.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HAP_COMPUTE_RES_NOT_SUPPORTED 0x80000404

typedef struct {
  unsigned long long attributes[8];
} compute_res_attr_t;
typedef struct {
  unsigned int page_size, num_pages;
} compute_res_vtcm_page_def_t;
typedef struct {
  unsigned int block_size, page_list_len;
  compute_res_vtcm_page_def_t page_list[8];
} compute_res_vtcm_page_t;

int HAP_compute_res_attr_init(compute_res_attr_t *attr);
int HAP_compute_res_attr_set_serialize(compute_res_attr_t *attr, unsigned char b_serialize);
int HAP_compute_res_attr_set_hmx_param(compute_res_attr_t *attr, unsigned char b_enable);
int HAP_compute_res_attr_set_vtcm_param(compute_res_attr_t *attr, unsigned int vtcm_size, unsigned char b_single_page);
/* As much of vtcm_size bytes as is free, but at least min_vtcm_size. */
int HAP_compute_res_attr_set_vtcm_param_v2(compute_res_attr_t *attr, unsigned int vtcm_size, unsigned int min_page_size,
                                           unsigned int min_vtcm_size);
int HAP_compute_res_attr_set_app_type(compute_res_attr_t *attr, unsigned int application_id);
int HAP_compute_res_attr_set_cache_mode(compute_res_attr_t *attr, unsigned char b_enable);
int HAP_compute_res_attr_set_release_callback(compute_res_attr_t *attr, int (*release_callback)(unsigned int context_id, void *client_context),
                                              void *client_context);
void *HAP_compute_res_attr_get_vtcm_ptr(compute_res_attr_t *attr);
int HAP_compute_res_attr_get_vtcm_ptr_v2(compute_res_attr_t *attr, void **vtcm_ptr, unsigned int *vtcm_size);
int HAP_compute_res_query_VTCM(unsigned int application_id, unsigned int *total_block_size, compute_res_vtcm_page_t *total_block_layout,
                               unsigned int *avail_block_size, compute_res_vtcm_page_t *avail_block_layout);
/* Acquire a context with the resources in the attributes; 0 if they do not become free in time. */
unsigned int HAP_compute_res_acquire(compute_res_attr_t *attr, unsigned int timeout_us);
int HAP_compute_res_release(unsigned int context_id);
int HAP_compute_res_acquire_cached(unsigned int context_id, unsigned int timeout_us);
int HAP_compute_res_release_cached(unsigned int context_id);
int HAP_compute_res_hmx_lock(unsigned int context_id);
int HAP_compute_res_hmx_unlock(unsigned int context_id);
#define HAP_COMPUTE_RES_HMX_NON_SHARED 0
#define HAP_COMPUTE_RES_HMX_SHARED 1
int HAP_compute_res_hmx_lock2(unsigned int context_id, unsigned char type);
int HAP_compute_res_hmx_unlock2(unsigned int context_id, unsigned char type);
/* Accepted: the first caller keeps the unit. */
int HAP_compute_res_update_priority(unsigned int context_id, unsigned int priority);
int HAP_compute_res_check_release_request(unsigned int context_id);

/* Names that programs look up to learn whether these functions exist. */
#define compute_resource_attr_init HAP_compute_res_attr_init
#define compute_resource_attr_set_serialize HAP_compute_res_attr_set_serialize
#define compute_resource_attr_set_hmx_param HAP_compute_res_attr_set_hmx_param
#define compute_resource_attr_set_vtcm_param HAP_compute_res_attr_set_vtcm_param
#define compute_resource_attr_set_vtcm_param_v2 HAP_compute_res_attr_set_vtcm_param_v2
#define compute_resource_attr_set_app_type HAP_compute_res_attr_set_app_type
#define compute_resource_attr_set_cache_mode HAP_compute_res_attr_set_cache_mode
#define compute_resource_attr_set_release_callback HAP_compute_res_attr_set_release_callback
#define compute_resource_attr_get_vtcm_ptr HAP_compute_res_attr_get_vtcm_ptr
#define compute_resource_attr_get_vtcm_ptr_v2 HAP_compute_res_attr_get_vtcm_ptr_v2
#define compute_resource_query_VTCM HAP_compute_res_query_VTCM
#define compute_resource_acquire HAP_compute_res_acquire
#define compute_resource_release HAP_compute_res_release
#define compute_resource_acquire_cached HAP_compute_res_acquire_cached
#define compute_resource_release_cached HAP_compute_res_release_cached
#define compute_resource_hmx_lock HAP_compute_res_hmx_lock
#define compute_resource_hmx_unlock HAP_compute_res_hmx_unlock
#define compute_resource_check_release_request HAP_compute_res_check_release_request

#ifdef __cplusplus
}
#endif

#endif
