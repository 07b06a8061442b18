// The softmax of samples/dsp/softmax_ivp.h, for the tests.
#include "../../../samples/dsp/softmax_ivp.h"

extern "C" float32_t maximum(const float32_t *x, int count) { return vecmaxf(x, count); }
extern "C" float32_t total(const float32_t *x, int count) { return vecsum(x, count); }
extern "C" void power(float32_t *out, const float32_t *x, int count, float32_t less) {
  vecexpf_max(out, x, count, less);
}
extern "C" void softmax(const float32_t *x, int count, float32_t *out) {
  vecexpf_max(out, x, count, vecmaxf(x, count));
  vecmul(out, out, 1 / vecsum(out, count), count);
}
extern "C" uint64_t cycles(void) { return hbrt_cycles_take(); }
