/* The echo op of the benchmarks' boards, in C. */
#include <string.h>

#include "hb_dsp.h"

static int echo(void *input, void *output, void *tm) {
  (void)tm;
  memcpy(output, input, 64);
  return 0;
}

int main(void) {
  hb_dsp_env_init();
  hb_dsp_register_fn(0x1001, echo, 0);
  return hb_dsp_start();
}
