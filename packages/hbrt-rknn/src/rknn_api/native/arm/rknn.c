/** librknnrt.so: the run time's functions. */
#include "rknn_api.h"
#include "rknn_custom_op.h"
#include "rknn_matmul_api.h"

#include "entry.h"
#include "rknn_calls.h"

HBRT_RKNN_CALLS(HBRT_FUNCTION)
