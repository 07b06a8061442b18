/**
 * The functions of libhbrt.so, each once: CALL(result, name, answer without a board, parameters, arguments, signature),
 * or FAST with the same arguments for those that fast.c and fastrpc.c try first. arm_client/c_library/prototypes.py
 * reads the signatures. The functions of the vendors' APIs are generated from their headers.
 */
#include "fastrpc_calls.h"
#include "hb_calls.h"

#define HBRT_CALLS(CALL, FAST) \
  HBRT_HB_CALLS(CALL, FAST) HBRT_FASTRPC_CALLS(CALL, FAST) \
  HBRT_OWN_CALLS(CALL)

/** Used by fastrpc.c. */
#define HBRT_OWN_CALLS(CALL) \
  CALL(int32_t, hbrt_fastrpc_finish, AEE_ECONNREFUSED, (remote_handle64 h, uint64_t task), (h, task), "c_int32 c_uint64 c_uint64")
