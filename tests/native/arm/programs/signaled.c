/** A library for a Python program: a call of the client at whose beginning a signal is pending. */
#include <signal.h>

#include "hb_sys.h"
#include "hbrt.h"

int32_t alloc_after_signal(int number, hbSysMem *mem, uint32_t size) {
  raise(number);
  return hbSysAllocMem(mem, size);
}

const char *text_after_signal(int number) {
  raise(number);
  return hbrt_last_error();
}
