/** Every function of libhbrt.so: a jump into Python through host.c, which those that fast.c tries first mostly avoid. */
#include "hb_calls.h"

#include "dnn/hb_dnn.h"
#include "dnn/hb_dnn_ext.h"
#include "dnn/hb_sys.h"
#include "dnn/plugin/hbrt_layer.h"
#include "dsp/hb_dsp.h"
#include "fast.h"
#include "hbrt.h"
#include "host.h"

/* For functions here that call another one: report the program's line, not ours. */
__thread void *hbrt_caller;
#define FROM (hbrt_caller ? hbrt_caller : __builtin_return_address(0))
#define FAST_hbDSPRpc hbrt_fast_rpc
#define FAST_hbDSPWaitTaskDone(task, timeout) hbrt_fast_wait(task, timeout, FROM)
#define FAST_hbDSPReleaseTask hbrt_fast_release

HBRT_HB_CALLS(HBRT_FUNCTION, HBRT_FAST_FUNCTION)
