/* The operations of a TDNN-F over tensors in a block of memory, for the images tdnnf_image.c and tdnnf_hvx.c, which
 * include this file and define product(). */
#ifndef TDNNF_STEPS_H
#define TDNNF_STEPS_H

#include "hb_dsp.h"
#include "uint8_matrix.h"

#define SUM_DENOMINATOR 256
#define TENSORS 4

#define ERROR_STEP (-1001)   /* an operation does not fit its tensors */
#define ERROR_LOST (-1002)   /* with this L, the numbers would be lost */
#define ERROR_OUTPUT (-1003) /* the output block is too small */

enum kind { PRODUCT, ADD_ROW, RELU, MULTIPLY_ROW, ADD_SCALED };

struct step {
  uint32_t kind, source, target, other, stride;
  uint32_t terms, columns; /* of the weights */
  uint32_t zero_point;
  double scale;     /* of the weights, or the factor of ADD_SCALED */
  uint64_t weights; /* offset in the block of weights, or the physical address of their own block */
};

struct param {
  uint64_t steps, weights, tensors; /* physical addresses; weights is 0 if each step has its own */
  uint32_t weights_bytes, tensors_bytes;
  uint32_t first, count;      /* operations of this call, among those in the block */
  uint32_t sums;              /* offset of the int32 in the block of tensors */
  uint32_t denominator, is_exact;
  uint32_t output_bytes;      /* of the output block: its header, and the values if there is room for them */
};

struct head {
  struct tensor tensor;
  uint32_t least_multiplier, maps;
};

/* Shared by the operations of one call. */
struct call {
  const struct param *param;
  uint8_t *tensors;
  int32_t *sums;
  xvTileManager *tm;
  uint32_t maps;
};

static uint8_t *values_of(const struct call *call, const struct tensor *tensor) { return call->tensors + tensor->offset; }

/* PRODUCT: into the sums, or as float into the target. Weights are panels of 32 columns: terms rows of 32, then, in
 * uint8, the 32 column sums. */
static int product(const struct call *call, const struct step *step, const struct tensor *x, const uint8_t *weights,
                   int is_float, void *out);

/* One operation in uint8; `weights` is NULL for operations that have none. Lowers *least to its L1. */
static int step_uint8(struct call *call, const struct step *step, const uint8_t *weights, int32_t *least) {
  struct tensor *all = (struct tensor *)call->tensors, *x = &all[step->source], *y = &all[step->target];
  const uint8_t *in = values_of(call, x);
  const struct tensor row = {step->scale, step->zero_point, 1, step->columns, 0};
  double scale = 0;
  y->rows = x->rows - (step->kind == PRODUCT ? step->stride : 0);
  y->columns = step->kind == PRODUCT ? step->columns : x->columns;
  switch (step->kind) {
    case PRODUCT: {
      const int status = product(call, step, x, weights, 0, call->sums);
      if (status) return status;
      scale = x->scale * step->scale;
      break;
    }
    case ADD_ROW: scale = add(x, in, &row, weights, 1, SUM_DENOMINATOR, call->sums); break;
    case MULTIPLY_ROW: scale = multiply(x, in, &row, weights, call->sums); break;
    case ADD_SCALED: {
      const struct tensor *other = &all[step->other];
      const uint8_t *moved = values_of(call, other) + (uint64_t)step->stride * other->columns;
      scale = add(x, in, other, moved, step->scale, SUM_DENOMINATOR, call->sums);
      break;
    }
    default: { /* RELU */
      const uint64_t count = (uint64_t)x->rows * x->columns;
      uint8_t *out = values_of(call, y);
      y->scale = x->scale;
      y->zero_point = x->zero_point;
      at_least(in, out, count, (uint8_t)x->zero_point);
      hb_dsp_charge(count, 8, (struct hb_dsp_operations){.load = 1, .alu = 1, .store = 1});
      return 0;
    }
  }
  if (scale == 0) return ERROR_LOST;
  const int32_t multiplier =
      requantize(call->sums, scale, call->param->denominator, (int)call->param->is_exact, y, values_of(call, y));
  *least = XT_MIN(*least, multiplier);
  return multiplier ? 0 : ERROR_LOST;
}

/* The same operation in float. */
static int step_float(struct call *call, const struct step *step, const uint8_t *weights, int32_t *least) {
  struct tensor *all = (struct tensor *)call->tensors, *x = &all[step->source], *y = &all[step->target];
  const float *in = (const float *)values_of(call, x), *row = (const float *)weights;
  float *out = (float *)values_of(call, y);
  (void)least;
  y->scale = 1;
  y->zero_point = 0;
  y->rows = x->rows - (step->kind == PRODUCT ? step->stride : 0);
  y->columns = step->kind == PRODUCT ? step->columns : x->columns;
  if (step->kind == PRODUCT) return product(call, step, x, weights, 1, out);
  const uint32_t columns = x->columns, count = x->rows * columns;
  const float factor = (float)step->scale;
  const struct tensor *second = &all[step->other];
  const float *other = (const float *)values_of(call, second) + (uint64_t)step->stride * columns;
  for (uint32_t i = 0; i < count; i++) {
    switch (step->kind) {
      case ADD_ROW: out[i] = in[i] + row[i % columns]; break;
      case MULTIPLY_ROW: out[i] = in[i] * row[i % columns]; break;
      case ADD_SCALED: out[i] = in[i] + factor * other[i]; break;
      default: out[i] = XT_MAX(in[i], 0); break;
    }
  }
  hb_dsp_charge(count, 32, (struct hb_dsp_operations){.load = 2, .mul = 1, .store = 1});
  return 0;
}

/* Bytes of an operation's weights. */
static uint64_t weights_bytes(const struct step *step, int is_float) {
  if (step->kind == RELU || step->kind == ADD_SCALED) return 0;
  if (is_float) return (uint64_t)step->terms * step->columns * sizeof(float);
  return step->kind == PRODUCT ? (uint64_t)(step->terms + 4) * step->columns : step->columns;
}

/* Whether this many numbers of a tensor are in the block of tensors, after its headers. */
static int has(const struct param *param, uint64_t offset, uint64_t rows, uint64_t columns, uint64_t size) {
  return offset >= TENSORS * sizeof(struct tensor) && rows <= UINT16_MAX && columns <= UINT16_MAX &&
         offset + rows * columns * size <= param->tensors_bytes;
}

/* Whether an operation fits its tensors: a program may have written anything. */
static int is_good(const struct param *param, const struct step *step, const struct tensor *all, int is_float) {
  if (step->source >= TENSORS || step->target >= TENSORS || step->other >= TENSORS || step->source == step->target) return 0;
  const struct tensor *x = &all[step->source], *y = &all[step->target], *other = &all[step->other];
  const uint64_t size = is_float ? sizeof(float) : 1;
  const uint32_t columns = step->kind == PRODUCT ? step->columns : x->columns;
  if (step->kind > ADD_SCALED || (step->kind != PRODUCT && step->kind != ADD_SCALED && step->stride)) return 0;
  if (step->kind == ADD_SCALED && (other->columns != columns || other->rows < x->rows + (uint64_t)step->stride ||
                                   !has(param, other->offset, other->rows, columns, size)))
    return 0;
  if ((step->kind == ADD_ROW || step->kind == MULTIPLY_ROW) && (step->columns != columns || step->terms != 1)) return 0;
  return has(param, x->offset, x->rows, x->columns, size) && has(param, y->offset, x->rows, columns, size) &&
         has(param, param->sums, x->rows, columns, sizeof(int32_t));
}

/* The operations of a call, over mapped memory. `shared` is NULL if each operation has its own weights. */
static int run(struct call *call, const struct step *steps, const uint8_t *shared, int is_float, void *output) {
  const struct param *param = call->param;
  const struct tensor *all = (const struct tensor *)call->tensors;
  const uint32_t l = param->denominator;
  PRT_IF_COND_RETURN(l < 1 << 8 || l > 1 << 16 || (l & (l - 1)), ERROR_STEP)
  int32_t least = INT32_MAX;
  for (uint64_t at = param->first; at < (uint64_t)param->first + param->count; at++) {
    const struct step *step = &steps[at];
    const uint64_t bytes = weights_bytes(step, is_float);
    if (!is_good(param, step, all, is_float) || (shared && step->weights + bytes > param->weights_bytes)) {
      DSP_ERR("operation %u does not fit its tensors or weights", (uint32_t)at);
      return ERROR_STEP;
    }
    uint8_t *own = NULL;
    if (bytes && !shared) {
      own = hb_dsp_mem_map(step->weights, (int64_t)bytes);
      PRT_IF_COND_RETURN(own == MAP_FAILED, HB_ERR_MMAP_FAILED)
      call->maps++;
    }
    const uint8_t *weights = shared ? shared + step->weights : own;
    const int status = (is_float ? step_float : step_uint8)(call, step, weights, &least);
    if (own) hb_dsp_mem_unmap((uint32_t)own);
    if (status == ERROR_LOST) DSP_ERR("operation %u: with L = %u its numbers would be lost", (uint32_t)at, l);
    if (status) return status;
  }
  if (!param->count) return 0;
  const struct tensor *last = &all[steps[param->first + param->count - 1].target];
  const uint64_t bytes = (uint64_t)last->rows * last->columns * (is_float ? sizeof(float) : 1);
  const struct head head = {*last, (uint32_t)least, call->maps};
  if (param->output_bytes < sizeof head + (param->output_bytes > sizeof head ? bytes : 0)) return ERROR_OUTPUT;
  memcpy(output, &head, sizeof head);
  if (param->output_bytes > sizeof head) memcpy((uint8_t *)output + sizeof head, values_of(call, last), bytes);
  return 0;
}

#endif /* TDNNF_STEPS_H */
