#include <stdlib.h>
#include <string.h>
#include "all.h"
#include "hb_dsp.h"
int all_open(const char *uri, remote_handle64 *h) { (void)uri; int *calls = calloc(1, sizeof *calls); *h = (uintptr_t)calls; return 0; }
int all_close(remote_handle64 h) { free((void *)(uintptr_t)h); return 0; }
int all_forward(remote_handle64 _h, const uint8_t *in, int inLen, const uint8_t *w, int wLen, uint8_t *out, int outLen, int32_t svd, int32_t hidden) {
  (void)_h; int total = svd * hidden;
  for (int i = 0; i < inLen; i++) total += in[i];
  for (int i = 0; i < wLen; i++) total += w[i];
  for (int i = 0; i < outLen; i++) out[i] = (uint8_t)(total + i);
  return 0;
}
int all_values(remote_handle64 _h, uint8_t a, char b, bool c, int16_t d, uint16_t e, int64_t f, uint32_t g, float h, double i, all_Mode m, double *sum) {
  (void)_h; *sum = (double)a + b + c + d + e + (double)f + g + h + i + m; return 0;
}
int all_strings(remote_handle64 _h, const char *s, char *t, int tLen) {
  (void)_h; if ((int)strlen(s) >= tLen) return AEE_EBUFFERTOOSMALL; strcpy(t, s); return 0;
}
int all_pairs(remote_handle64 _h, const all_Pair *p, all_Point *q, const all_Point *many, int manyLen, all_Pair *back, int backLen, all_Pair *one) {
  (void)_h; *one = *p; one->id = manyLen; q->x += 1;
  for (int i = 0; i < backLen; i++) { back[i] = *p; if (i < manyLen) back[i].a = many[i]; }
  return 0;
}
int all_scale(remote_handle64 _h, float *v, int vLen, float *k) { (void)_h; for (int i = 0; i < vLen; i++) v[i] *= *k; *k += 1; return 0; }
int all_nothing(remote_handle64 _h) { (void)_h; return 0; }
int all_later(remote_handle64 _h, fastrpc_async_descriptor_t *desc, const uint8_t *v, int vLen, int32_t add, uint8_t *sums, int sumsLen) {
  (void)_h; if (desc || vLen != sumsLen) return AEE_EBADPARM;
  for (int i = 0; i < vLen; i++) sums[i] = (uint8_t)(v[i] + add);
  return 0;
}
int plain_add(int32_t a, int32_t b, int64_t *sum) { *sum = (int64_t)a + b; return 0; }
int plain_fail(int32_t code) { return code; }
int main() { hb_dsp_env_init(); all_skel_register(); plain_skel_register(); hb_dsp_start(); return -1; }
