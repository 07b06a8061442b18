/* The forward pass of tdnnf.idl as Hexagon code, with HVX: an image that serves only FastRPC.
 *
 *     hbrt idl tdnnf.idl
 *     hbrt cc --dsp --target hexagon tdnnf_hvx.c tdnnf_skel.c -o libtdnnf_skel.so
 *
 * The operations are those of tdnnf_image.c, and so are their results, bit for bit. Threads keep the panels that they
 * use in vector memory.
 */
#include "HAP_vtcm_mgr.h"
#include "tdnnf_steps.h"

#define SCRATCH_BYTES KB(256)
#define MAX_TOTALS 4096

static uint8_t *scratch;
static int32_t totals[MAX_TOTALS];

static int product(const struct call *call, const struct step *step, const struct tensor *x, const uint8_t *weights,
                   int is_float, void *out) {
  if (is_float || x->rows <= step->stride || x->rows > MAX_TOTALS || (step->stride ? 2 : 1) * x->columns != step->terms ||
      THREADS * step->terms * BLOCK_COLUMNS > SCRATCH_BYTES)
    return ERROR_STEP;
  struct product_job job = {.rows = values_of(call, x), .panels = weights, .out = out, .count = x->rows - step->stride,
                            .columns = x->columns, .stride = step->stride, .terms = step->terms, .of_out = step->columns,
                            .zero_rows = x->zero_point, .zero_panels = step->zero_point, .scratch = scratch, .totals = totals};
  in_parts(totals_part, &job);
  in_parts(columns_part, &job);
  return 0;
}

/* Whether rows and weights are multiples of the 128-byte vectors. */
static int fits_vectors(const struct step *steps, uint32_t count, const uint8_t *weights) {
  uint32_t rest = (uint32_t)(uintptr_t)weights;
  for (uint32_t at = 0; at < count; at++) {
    const uint32_t of_row = steps[at].terms / (steps[at].stride ? 2 : 1);
    rest |= (uint32_t)steps[at].weights | steps[at].columns | (steps[at].kind == PRODUCT ? of_row : 0);
  }
  return rest % VECTOR == 0;
}

/* run(), with the vector memory; resets the counters of what all threads execute. */
static int run_counted(struct call *call, const struct step *steps, const uint8_t *weights, void *output) {
  const struct counts start = counters();
  memset(executed, 0, sizeof executed);
  if (!fits_vectors(steps, call->param->count, weights)) return ERROR_STEP;
  scratch = HAP_request_VTCM(SCRATCH_BYTES, 1);
  if (!scratch) return HB_DSP_OUT_OF_TCM;
  const int status = run(call, steps, weights, 0, output);
  HAP_release_VTCM(scratch);
  add_since(start);
  return status;
}

#include "tdnnf_fastrpc.h"
