/** The image of calls.c. */
#include <stdint.h>

#include "hb_dsp.h"

static int add_one(void *input, void *output, void *tm) {
  (void)tm;
  for (int i = 0; i < 1000; i++) ((uint8_t *)output)[i] = ((uint8_t *)input)[i] + 1;
  return 0;
}

int main(void) {
  hb_dsp_env_init();
  hb_dsp_init_global_tm(NULL, 0, NULL, 0);
  hb_dsp_register_fn(0x1000, add_one, 0);
  hb_dsp_start();
  return -1;
}
