/* A skeleton that breaks rules: method 2 changes its input, 3 writes past the end of its output, 6 reads there. 4 is
 * correct, and so is 5, which takes its time. */
#include <string.h>
#include <unistd.h>

#include "AEEStdErr.h"
#include "hb_dsp.h"
#include "remote.h"

static int skeleton(remote_handle64 handle, uint32_t word, remote_arg *pra) {
  (void)handle;
  switch (REMOTE_SCALARS_METHOD(word)) {
    case 0:
    case 1: return 0;
    case 2: ((uint8_t *)pra[0].buf.pv)[5] ^= 1; return 0;
    case 3: memset(pra[1].buf.pv, 7, pra[1].buf.nLen + 3); return 0;
    case 5: usleep(300000); /* fallthrough */
    case 4: memset(pra[1].buf.pv, 7, pra[1].buf.nLen); return 0;
    case 6: return ((volatile uint8_t *)pra[1].buf.pv)[pra[1].buf.nLen + 4096] & 0;
    default: return HBRT_FASTRPC_ON_DSP(AEE_EUNSUPPORTED);
  }
}

int main(void) {
  hb_dsp_env_init();
  hbrt_fastrpc_register("careless_skel_handle_invoke", skeleton, 1);
  hb_dsp_start();
}
