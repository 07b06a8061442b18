/* A custom op in C: rknn_custom_op MODEL computes cstSwish, x / (1 + exp(-beta x)), and prints the outputs.
 *
 * hbrt cc rknn_custom_op.c -o rknn_custom_op; the sample custom_op_c writes a model for it. The input is 0, 1, 2, ...
 * by channel, row and column. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rknn_api.h"
#include "rknn_custom_op.h"

/* Once per node: read its attributes. */
static int init(rknn_custom_op_context *op_ctx, rknn_custom_op_tensor *inputs, uint32_t n_inputs,
                rknn_custom_op_tensor *outputs, uint32_t n_outputs) {
  (void)inputs, (void)n_inputs, (void)outputs, (void)n_outputs;
  rknn_custom_op_attr attr;
  rknn_custom_op_get_op_attr(op_ctx, "beta", &attr);
  if (attr.n_elems != 1 || attr.dtype != RKNN_TENSOR_FLOAT32) return -1;
  float *beta = malloc(sizeof(float));
  if (beta == NULL) return -1;
  *beta = *(float *)attr.data;
  op_ctx->priv_data = beta;
  return 0;
}

/* In each run: the tensors are NCHW, in the memory that the adjacent layers read and write. */
static int compute(rknn_custom_op_context *op_ctx, rknn_custom_op_tensor *inputs, uint32_t n_inputs,
                   rknn_custom_op_tensor *outputs, uint32_t n_outputs) {
  (void)n_inputs, (void)n_outputs;
  const float *x = (const float *)((char *)inputs[0].mem.virt_addr + inputs[0].mem.offset);
  float *y = (float *)((char *)outputs[0].mem.virt_addr + outputs[0].mem.offset);
  float beta = *(float *)op_ctx->priv_data;
  for (uint32_t at = 0; at < inputs[0].attr.n_elems; at++) y[at] = x[at] / (1 + expf(-beta * x[at]));
  return 0;
}

static int destroy(rknn_custom_op_context *op_ctx) {
  free(op_ctx->priv_data);
  return 0;
}

int main(int argc, char **argv) {
  rknn_context ctx = 0;
  if (argc != 2 || rknn_init(&ctx, argv[1], 0, 0, NULL) != RKNN_SUCC) return 1;

  rknn_custom_op op;
  memset(&op, 0, sizeof op);
  strncpy(op.op_type, "cstSwish", RKNN_MAX_NAME_LEN - 1);
  op.version = 1;
  op.target = RKNN_TARGET_TYPE_CPU;
  op.init = init;
  op.compute = compute;
  op.destroy = destroy;
  if (rknn_register_custom_ops(ctx, &op, 1) != RKNN_SUCC) return 2;

  rknn_tensor_attr attr = {.index = 0};
  if (rknn_query(ctx, RKNN_QUERY_INPUT_ATTR, &attr, sizeof attr) != RKNN_SUCC) return 3;
  float *x = malloc(attr.n_elems * sizeof(float));
  if (x == NULL) return 4;
  for (uint32_t at = 0; at < attr.n_elems; at++) x[at] = (float)at;
  rknn_input input = {.buf = x, .size = attr.n_elems * 4, .type = RKNN_TENSOR_FLOAT32, .fmt = RKNN_TENSOR_NCHW};
  rknn_output output = {.want_float = 1};
  if (rknn_inputs_set(ctx, 1, &input) != RKNN_SUCC || rknn_run(ctx, NULL) != RKNN_SUCC) return 5;
  if (rknn_outputs_get(ctx, 1, &output, NULL) != RKNN_SUCC) return 6;
  for (uint32_t at = 0; at < output.size / 4; at++) printf("%.9g\n", ((float *)output.buf)[at]);
  rknn_outputs_release(ctx, 1, &output);
  free(x);
  return rknn_destroy(ctx) == RKNN_SUCC ? 0 : 7;
}
