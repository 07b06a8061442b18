/**
 * The functions of libhbrt.so, each once: CALL(result, name, answer without a board, parameters, arguments, signature),
 * or FAST with the same arguments for those that fast.c and fastrpc.c try first. arm_client/c_library/prototypes.py
 * reads the signatures. The functions of the vendors' APIs are generated from their headers.
 */
#include "fastrpc_calls.h"
#include "hb_calls.h"
#include "rknn_calls.h"
#include "sp_calls.h"

#define HBRT_CALLS(CALL, FAST) \
  HBRT_HB_CALLS(CALL, FAST) HBRT_FASTRPC_CALLS(CALL, FAST) HBRT_RKNN_CALLS(CALL, FAST) HBRT_SP_CALLS(CALL) \
  HBRT_OWN_CALLS(CALL)

/** Used by fastrpc.c and rga.c. */
#define HBRT_OWN_CALLS(CALL) \
  CALL(int32_t, hbrt_fastrpc_finish, AEE_ECONNREFUSED, (remote_handle64 h, uint64_t task), (h, task), "c_int32 c_uint64 c_uint64") \
  CALL(int32_t, hbrt_rga_do, -1, (uint64_t job), (job), "c_int32 c_uint64") \
  CALL(uint64_t, hbrt_rga_import, 0, (int32_t kind, uint64_t value, uint64_t size), (kind, value, size), "c_uint64 c_int32 c_uint64 c_uint64") \
  CALL(int32_t, hbrt_rga_release, -1, (uint64_t handle), (handle), "c_int32 c_uint64")
