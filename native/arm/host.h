/** host.c for calls.c: it finds a function in Python, and prepares this thread to call it. */
#ifndef HBRT_ARM_HOST_H
#define HBRT_ARM_HOST_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

typedef void (*hbrt_function)(void);

/** One function of the library: its types in Python, and its Python function once that was looked up. */
struct hbrt_entry {
  const char *name;
  const char *signature;
  hbrt_function function;
};

/** The state of the thread that a call changes, to be restored after it. */
struct hbrt_call {
  void *site; /* of the call that this one is made in, such as from a callback */
  struct hbrt_call *outer; /* that one */
  int64_t answer;          /* Python's answer; ctypes gives no value when a signal's handler raises at its start */
  bool has_answer;
  bool is_pipe_blocked;
  int cancel_state; /* a cancel of the thread waits for the call's end, which releases locks */
  int32_t wait; /* of hbrt_wait_begins; -1 for a call that does not wait */
};

/** Where the program calls a function of the library that calls others; NULL in all other calls. */
extern __thread void *hbrt_caller;

extern struct hbrt_entry hbrt_entries[];
extern const int32_t hbrt_entry_count;

/** The function behind an entry, or NULL, with a sentence on standard error; `site` is where the program calls. */
hbrt_function hbrt_enter(struct hbrt_call *call, int32_t entry, void *site);

/** The sentence of the last call that did not reach Python; "" for none. */
const char *hbrt_said(void);

/** Undo a hbrt_enter that gave a function. */
void hbrt_leave(const struct hbrt_call *call);

/** Have 'hbrt why' see that this thread waits: where the program calls, and for which task (0: not known). */
int32_t hbrt_wait_begins(void *site, uint64_t task);

void hbrt_wait_ends(int32_t wait);

#endif
