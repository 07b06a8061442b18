/** Every function of the library: a jump into Python through host.c, which those declared FAST mostly avoid. */
#include "calls.h"

#include "AEEStdErr.h"
#include "dnn/hb_dnn.h"
#include "dnn/hb_dnn_ext.h"
#include "dnn/hb_sys.h"
#include "dnn/plugin/hbrt_layer.h"
#include "dsp/hb_dsp.h"
#include "dspqueue.h"
#include "fast.h"
#include "fastrpc.h"
#include "hbrt.h"
#include "host.h"
#include "remote.h"
#include "rpcmem.h"

#include <pthread.h>

/* Same contract as hbrt_enter and hbrt_leave. */
#define UNCANCELLED(statement)                                                                                        \
  do {                                                                                                                \
    int cancel_state;                                                                                                 \
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);                                                    \
    statement;                                                                                                        \
    pthread_setcancelstate(cancel_state, NULL);                                                                       \
  } while (0)
#define FAST_FUNCTION(result, name, refusal, parameters, arguments, signature)                                                   \
  __attribute__((visibility("default"))) result name parameters {                                                     \
    int32_t code = 0;                                                                                                 \
    bool is_done;                                                                                                     \
    UNCANCELLED(is_done = FAST_##name arguments);                                                                     \
    if (is_done) return code;                                                                                         \
    HBRT_BY_PYTHON(result, name, refusal, parameters, arguments, signature)                                               \
  }
/* For functions here that call another one: report the program's line, not ours. */
__thread void *hbrt_caller;
#define FROM (hbrt_caller ? hbrt_caller : __builtin_return_address(0))
#define FAST_hbDSPRpc hbrt_fast_rpc
#define FAST_hbDSPWaitTaskDone(task, timeout) hbrt_fast_wait(task, timeout, FROM)
#define FAST_hbDSPReleaseTask hbrt_fast_release

#define FAST_remote_handle64_invoke(h, word, pra) hbrt_fast_invoke(h, word, pra, __builtin_return_address(0), &code)
#define FAST_remote_handle_invoke FAST_remote_handle64_invoke

HBRT_CALLS(HBRT_FUNCTION, FAST_FUNCTION)
