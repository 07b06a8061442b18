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
#include "rknn_api.h"
#include "rknn_custom_op.h"
#include "rknn_matmul_api.h"
#include "rpcmem.h"
#include "sp_codec.h"
#include "sp_display.h"
#include "sp_sys.h"
#include "sp_vio.h"

#include <pthread.h>

#define NUMBER(result, name, refusal, parameters, arguments, signature) NUMBER_##name,
#define ENTRY(result, name, refusal, parameters, arguments, signature) {#name, signature, 0},
#define FUNCTION(result, name, refusal, parameters, arguments, signature)                                                        \
  __attribute__((visibility("default"))) result name parameters {                                                     \
    BY_PYTHON(result, name, refusal, parameters, arguments)                                                           \
  }
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
    BY_PYTHON(result, name, refusal, parameters, arguments)                                                           \
  }
/* For functions here that call another one: report the program's line, not ours. */
__thread void *hbrt_caller;
#define FROM (hbrt_caller ? hbrt_caller : __builtin_return_address(0))
#define BY_PYTHON(result, name, refusal, parameters, arguments)                                                       \
  struct hbrt_call call;                                                                                              \
  void *from = FROM, *caller = hbrt_caller;                                                                           \
  hbrt_caller = NULL; /* calls from a callback have their own line */                                                            \
  result(*function) parameters =                                                                                      \
      (result(*) parameters)hbrt_enter(&call, NUMBER_##name, from);                            \
  if (function) {                                                                                                     \
    function arguments;                                                                                               \
    hbrt_leave(&call);                                                                                                \
  }                                                                                                                   \
  hbrt_caller = caller;                                                                                               \
  if (!function) return refusal;                                                                                      \
  return call.has_answer ? (result)(intptr_t)call.answer : refusal;
#define FAST_hbDSPRpc hbrt_fast_rpc
#define FAST_hbDSPWaitTaskDone(task, timeout) hbrt_fast_wait(task, timeout, FROM)
#define FAST_hbDSPReleaseTask hbrt_fast_release

#define FAST_remote_handle64_invoke(h, word, pra) hbrt_fast_invoke(h, word, pra, __builtin_return_address(0), &code)
#define FAST_remote_handle_invoke FAST_remote_handle64_invoke

enum { HBRT_CALLS(NUMBER, NUMBER) ENTRY_COUNT };

struct hbrt_entry hbrt_entries[] = {HBRT_CALLS(ENTRY, ENTRY)};
const int32_t hbrt_entry_count = ENTRY_COUNT;

HBRT_CALLS(FUNCTION, FAST_FUNCTION)
