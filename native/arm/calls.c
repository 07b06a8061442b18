/** Every function of the library: a jump into Python by way of host.c, which three of them mostly do without. */
#include "calls.h"

#include "dnn/hb_dnn.h"
#include "dnn/hb_dnn_ext.h"
#include "dnn/hb_sys.h"
#include "dnn/plugin/hbrt_layer.h"
#include "dsp/hb_dsp.h"
#include "fast.h"
#include "hbrt.h"
#include "host.h"

#define NUMBER(result, name, refusal, parameters, arguments) NUMBER_##name,
#define ENTRY(result, name, refusal, parameters, arguments) {#name, #result, #parameters, 0},
#define FUNCTION(result, name, refusal, parameters, arguments)                                                        \
  __attribute__((visibility("default"))) result name parameters {                                                     \
    BY_PYTHON(result, name, refusal, parameters, arguments)                                                           \
  }
#define FAST_FUNCTION(result, name, refusal, parameters, arguments)                                                   \
  __attribute__((visibility("default"))) result name parameters {                                                     \
    if (FAST_##name arguments) return 0;                                                                              \
    BY_PYTHON(result, name, refusal, parameters, arguments)                                                           \
  }
#define BY_PYTHON(result, name, refusal, parameters, arguments)                                                       \
  struct hbrt_call call;                                                                                              \
  result(*function) parameters =                                                                                      \
      (result(*) parameters)hbrt_enter(&call, NUMBER_##name, __builtin_return_address(0));                            \
  if (!function) return refusal;                                                                                      \
  function arguments;                                                                                                 \
  hbrt_leave(&call);                                                                                                  \
  return call.has_answer ? (result)(intptr_t)call.answer : refusal;
#define FAST_hbDSPRpc hbrt_fast_rpc
#define FAST_hbDSPWaitTaskDone(task, timeout) hbrt_fast_wait(task, timeout, __builtin_return_address(0))
#define FAST_hbDSPReleaseTask hbrt_fast_release

enum { HBRT_CALLS(NUMBER) ENTRY_COUNT };

struct hbrt_entry hbrt_entries[] = {HBRT_CALLS(ENTRY)};
const int32_t hbrt_entry_count = ENTRY_COUNT;

HBRT_OTHER_CALLS(FUNCTION)
HBRT_FAST_CALLS(FAST_FUNCTION)
