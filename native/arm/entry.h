/** For libraries of C names: each name is a jump into Python, through libhbrt.so.
 *
 * A library passes HBRT_FUNCTION to a list of functions: result, name, answer without a board, parameters, arguments,
 * signature. arm_client/c_library/prototypes.py reads the signatures. */
#ifndef HBRT_ARM_ENTRY_H
#define HBRT_ARM_ENTRY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HBRT_EXPORT __attribute__((visibility("default")))
#ifdef HBRT_CORE /* what libhbrt.so has for other libraries; its own calls of that are direct */
#define HBRT_SHARED __attribute__((visibility("protected")))
#else
#define HBRT_SHARED
#endif

typedef void (*hbrt_function)(void);

/** One function of a library: its types in Python, and its Python function once it has been looked up. */
struct hbrt_entry {
  const char *name;
  const char *signature;
  hbrt_function function;
};

/** The thread state that a call changes, to be restored afterwards. */
struct hbrt_call {
  void *site; /* of the call within which this one is made, such as from a callback */
  void *caller; /* hbrt_caller of host.h */
  struct hbrt_call *outer; /* that of the outer call */
  int64_t answer;          /* Python's result; ctypes returns no value if a signal handler raises at its start */
  bool has_answer;
  bool is_pipe_blocked;
  int cancel_state; /* cancellation of the thread waits for the call's end, which releases locks */
  int32_t wait; /* from hbrt_wait_begins; -1 for a call that does not wait */
};

/** The function behind an entry, or NULL, with a message on standard error; `site` is where the program calls. */
HBRT_SHARED hbrt_function hbrt_enter(struct hbrt_call *call, struct hbrt_entry *entry, void *site);

/** Undo an hbrt_enter that returned a function. */
HBRT_SHARED void hbrt_leave(const struct hbrt_call *call);

#define HBRT_FUNCTION(result, name, refusal, parameters, arguments, signature) \
  HBRT_EXPORT result name parameters { HBRT_BY_PYTHON(result, name, refusal, parameters, arguments, signature) }
/** The same, but FAST_name comes first, which returns whether it is done: then the result is its `code`. */
#define HBRT_FAST_FUNCTION(result, name, refusal, parameters, arguments, signature)                                       \
  HBRT_EXPORT result name parameters {                                                                                    \
    int32_t code = 0;                                                                                                     \
    int cancel_state; /* as between hbrt_enter and hbrt_leave */                                                          \
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);                                                        \
    const bool is_done = FAST_##name arguments;                                                                           \
    pthread_setcancelstate(cancel_state, NULL);                                                                           \
    if (is_done) return code;                                                                                             \
    HBRT_BY_PYTHON(result, name, refusal, parameters, arguments, signature)                                               \
  }
#define HBRT_BY_PYTHON(result, name, refusal, parameters, arguments, signature)                                           \
  static struct hbrt_entry entry = {#name, signature, 0};                                                                 \
  struct hbrt_call call;                                                                                                  \
  result(*function) parameters = (result(*) parameters)hbrt_enter(&call, &entry, __builtin_return_address(0));            \
  if (!function) return refusal;                                                                                          \
  function arguments;                                                                                                     \
  hbrt_leave(&call);                                                                                                      \
  return call.has_answer ? (result)(intptr_t)call.answer : refusal;

#endif
