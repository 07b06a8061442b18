/* The image of the benchmark in C, for this machine and for a Hexagon: an op that does nothing, and a method that does
 * nothing. */
#include "hb_dsp.h"
#include "remote.h"

enum { OP_CMD = 0x1000, OPEN = 0 };

int hbrt_fastrpc_register(const char *symbol, int (*invoke)(remote_handle64, uint32_t, remote_arg *), int has_handle);

static int nothing(void *input, void *output, void *tm) { return (void)input, (void)output, (void)tm, 0; }

static int invoke(remote_handle64 handle, uint32_t word, remote_arg *arguments) {
  (void)handle;
  if (REMOTE_SCALARS_METHOD(word) == OPEN) *(remote_handle64 *)arguments[2].buf.pv = 1;
  return 0;
}

int main(void) {
  hb_dsp_env_init();
  hb_dsp_register_fn(OP_CMD, nothing, 0);
  hbrt_fastrpc_register("raw_skel_handle_invoke", invoke, 1);
  return hb_dsp_start();
}
