/* Capabilities of a DSP: short forms of remote_handle_control queries.
 *
 * Source: the header of this name in Hexagon SDKs, for names, https://github.com/AlayaBright/HexagonSDK
 */
#ifndef DSP_CAPABILITIES_UTILS_H
#define DSP_CAPABILITIES_UTILS_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "AEEStdErr.h"
#include "remote.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Query an attribute of a domain; returns 0, or an error code. */
static inline int get_vtcm_info(int domain, uint32_t *capability, uint32_t attr) {
  struct remote_dsp_capability asked = {(uint32_t)domain, attr, 0};
  const int code = remote_handle_control(DSPRPC_GET_DSP_INFO, &asked, sizeof asked);
  if (!code) *capability = asked.capability;
  return code;
}

/* Find a supported domain: the compute DSP. */
static inline int get_dsp_support(int *domain) {
  uint32_t is_there = 0;
  *domain = CDSP_DOMAIN_ID;
  return get_vtcm_info(CDSP_DOMAIN_ID, &is_there, DOMAIN_SUPPORT);
}

static inline bool get_unsignedpd_support(void) {
  uint32_t is_so = 0;
  return get_vtcm_info(CDSP_DOMAIN_ID, &is_so, UNSIGNED_PD_SUPPORT) == AEE_SUCCESS && is_so;
}

#ifdef __cplusplus
}
#endif

#endif
