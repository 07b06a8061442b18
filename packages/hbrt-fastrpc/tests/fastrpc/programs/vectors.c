/* Print vectors: a program that needs no board. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define malloc(size) is forbidden /* as programs do whose memory is their own: a later header declares it no more */
#include "HAP_farf.h"

#include "hexagon_protos.h"
#include "hvx_hexagon_protos.h"
#include "qprintf.h"

int main(void) {
  int words[32];
  HVX_Vector x;
  for (int at = 0; at < 32; at++) words[at] = (at << 24 | 0xfe0003) - (at == 31) * 0x20000000;
  memcpy(&x, words, sizeof x);
  qprintf_V("x = %d, all\n", x);
  qprintf_V("bytes %(2)dudd\n", x);
  qprintf_set_mask(QPRINTF_MASK_NONE, QPRINTF_MASK_ODD_16 & 0xff);
  qprintf_V("halves %mdd\n", x);
  qprintf_set_mask(1ull << 60, 0);
  qprintf_V("word %m(1)08x; end\n", x);
  qprintf_V("float [%m.1f]\n", Q6_V_vsplat_R(0x3fc00000));
  qprintf_Q("q = %x\n", Q6_Q_vsetq_R(33));
  return dlsym(RTLD_SELF, "nowhere") != NULL || QURT_HVX_MODE_128B != 1;
}
