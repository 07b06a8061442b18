/** host.c for calls.c: finds a function in Python, and prepares this thread to call it. */
#ifndef HBRT_ARM_HOST_H
#define HBRT_ARM_HOST_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

typedef void (*hbrt_function)(void);

/** One function of the library: its types in Python, and its Python function once it has been looked up. */
struct hbrt_entry {
  const char *name;
  const char *signature;
  hbrt_function function;
};

/** The thread state that a call changes, to be restored afterwards. */
struct hbrt_call {
  void *site; /* of the call within which this one is made, such as from a callback */
  struct hbrt_call *outer; /* that of the outer call */
  int64_t answer;          /* Python's result; ctypes returns no value if a signal handler raises at its start */
  bool has_answer;
  bool is_pipe_blocked;
  int cancel_state; /* cancellation of the thread waits for the call's end, which releases locks */
  int32_t wait; /* from hbrt_wait_begins; -1 for a call that does not wait */
};

/** Where the program calls a library function that makes further calls; NULL in all other calls. */
extern __thread void *hbrt_caller;

extern struct hbrt_entry hbrt_entries[];
extern const int32_t hbrt_entry_count;

/** The function behind an entry, or NULL, with a message on standard error; `site` is where the program calls. */
hbrt_function hbrt_enter(struct hbrt_call *call, int32_t entry, void *site);

/** Error message of the last call that did not reach Python; "" if none. */
const char *hbrt_said(void);

/** Undo an hbrt_enter that returned a function. */
void hbrt_leave(const struct hbrt_call *call);

/** Show this thread as waiting in 'hbrt why': where the program calls, and for which task (0: unknown). */
int32_t hbrt_wait_begins(void *site, uint64_t task);

void hbrt_wait_ends(int32_t wait);

#endif
