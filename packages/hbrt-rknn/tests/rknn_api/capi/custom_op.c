/* A program's own ops: program MODEL registers cstScale and prints its results; exit code: the line that failed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rknn_custom_op.h"

#define CHECK(what) \
  if (!(what)) return __LINE__

static int begun, ended, is_broken;

static int begin(rknn_custom_op_context *op, rknn_custom_op_tensor *in, uint32_t n_in, rknn_custom_op_tensor *out,
                 uint32_t n_out) {
  if (n_in != 1 || n_out != 1 || in->attr.n_elems != 24 || out->attr.size != 96) return 7;
  if (is_broken && begun == is_broken) return 8;
  begun++;
  op->priv_data = malloc(sizeof(float));
  rknn_custom_op_attr offsets;
  rknn_custom_op_get_op_attr(op, "offsets", &offsets);
  if (offsets.n_elems != 3 || offsets.dtype != RKNN_TENSOR_INT64) return 9;
  float sum = 0;
  for (uint32_t at = 0; at < offsets.n_elems; at++) sum += (float)((int64_t *)offsets.data)[at];
  *(float *)op->priv_data = sum;
  return 0;
}

static int prepare(rknn_custom_op_context *op, rknn_custom_op_tensor *in, uint32_t n_in, rknn_custom_op_tensor *out,
                   uint32_t n_out) {
  return op->priv_data == NULL || in == out || n_in != n_out;
}

static int scale(rknn_custom_op_context *op, rknn_custom_op_tensor *in, uint32_t n_in, rknn_custom_op_tensor *out,
                 uint32_t n_out) {
  rknn_custom_op_attr name, mode, gain, none;
  rknn_custom_op_get_op_attr(op, "name", &name);
  rknn_custom_op_get_op_attr(op, "mode", &mode);
  rknn_custom_op_get_op_attr(op, "gain", &gain);
  rknn_custom_op_get_op_attr(op, "no_such", &none);
  if (n_in != 1 || n_out != 1 || none.n_elems != 0 || gain.dtype != RKNN_TENSOR_FLOAT32) return __LINE__;
  if (name.dtype != RKNN_TENSOR_UINT8 || strncmp((char *)name.data, "scale_", 6) != 0) return __LINE__;
  if (mode.n_elems != 5 || strcmp((char *)mode.data, "plain") != 0) return __LINE__;
  if (in->attr.fmt != RKNN_TENSOR_NCHW || in->attr.type != RKNN_TENSOR_FLOAT32 || in->attr.dims[1] != 4) return __LINE__;
  if (in->mem.phys_addr == 0 || rknn_mem_sync(0, &out->mem, RKNN_MEMORY_SYNC_BIDIRECTIONAL) != RKNN_SUCC) return __LINE__;
  const float *x = (const float *)((char *)in->mem.virt_addr + in->mem.offset);
  float *y = (float *)((char *)out->mem.virt_addr + out->mem.offset);
  for (uint32_t at = 0; at < in->attr.n_elems; at++) y[at] = x[at] * *(float *)gain.data + *(float *)op->priv_data;
  return y[0] < 0 ? -5 : 0;
}

static int end(rknn_custom_op_context *op) {
  rknn_custom_op_attr mode, again;
  rknn_custom_op_get_op_attr(op, "mode", &mode);
  rknn_custom_op_get_op_attr(op, "mode", &again);
  if (mode.n_elems != 5 || strcmp((char *)mode.data, "plain") != 0 || again.data != mode.data) return __LINE__;
  free(op->priv_data);
  ended++;
  return 0;
}

static int general(rknn_context ctx, float value) {
  float x[18];
  for (int at = 0; at < 18; at++) x[at] = value;
  rknn_input input = {.buf = x, .size = sizeof x, .type = RKNN_TENSOR_FLOAT32, .fmt = RKNN_TENSOR_NHWC};
  CHECK(rknn_inputs_set(ctx, 1, &input) == RKNN_SUCC);
  if (rknn_run(ctx, NULL) != RKNN_SUCC) return 1;
  rknn_output output = {.want_float = 1};
  CHECK(rknn_outputs_get(ctx, 1, &output, NULL) == RKNN_SUCC && output.size == 96);
  printf("%g\n", ((float *)output.buf)[23]);
  CHECK(rknn_outputs_release(ctx, 1, &output) == RKNN_SUCC);
  return 0;
}

static int zero_copy(rknn_context ctx) {
  rknn_tensor_attr in = {.index = 0}, out = {.index = 0};
  CHECK(rknn_query(ctx, RKNN_QUERY_NATIVE_INPUT_ATTR, &in, sizeof in) == RKNN_SUCC);
  CHECK(rknn_query(ctx, RKNN_QUERY_OUTPUT_ATTR, &out, sizeof out) == RKNN_SUCC);
  in.type = out.type = RKNN_TENSOR_FLOAT32, in.size = in.n_elems * 4, out.size = out.n_elems * 4;
  rknn_tensor_mem *from = rknn_create_mem(ctx, 4 * in.size_with_stride), *to = rknn_create_mem(ctx, out.size);
  CHECK(from != NULL && to != NULL);
  memset(from->virt_addr, 0, from->size);
  CHECK(rknn_set_io_mem(ctx, from, &in) == RKNN_SUCC && rknn_set_io_mem(ctx, to, &out) == RKNN_SUCC);
  CHECK(rknn_run(ctx, NULL) == RKNN_SUCC);
  printf("%g\n", ((float *)to->virt_addr)[0]);
  CHECK(rknn_destroy(ctx) == RKNN_SUCC);
  return rknn_destroy_mem(0, from) || rknn_destroy_mem(0, to);
}

int main(int argc, char **argv) {
  rknn_context ctx = 0, twin = 0;
  CHECK(argc == 2 && rknn_init(&ctx, argv[1], 0, 0, NULL) == RKNN_SUCC);
  CHECK(general(ctx, 1) == 1);
  rknn_custom_op op[2];
  memset(op, 0, sizeof op);
  strcpy(op[0].op_type, "cstScales");
  op[0].target = RKNN_TARGET_TYPE_CPU, op[0].version = 1;
  op[0].init = begin, op[0].prepare = prepare, op[0].compute = scale, op[0].destroy = end;
  CHECK(rknn_register_custom_ops(ctx, op, 1) == RKNN_ERR_PARAM_INVALID);
  strcpy(op[0].op_type, "own.cstScale");
  CHECK(rknn_register_custom_ops(ctx, op, 1) == RKNN_ERR_PARAM_INVALID);
  strcpy(op[0].op_type, "cstScale");
  op[1] = op[0];
  CHECK(rknn_register_custom_ops(ctx, op, 2) == RKNN_ERR_FAIL);
  op[1].compute = NULL;
  CHECK(rknn_register_custom_ops(ctx, op + 1, 1) == RKNN_ERR_PARAM_INVALID);
  op[1].compute_native = op[1].compute = scale;
  CHECK(rknn_register_custom_ops(ctx, op + 1, 1) == RKNN_ERR_PARAM_INVALID);
  op[1].compute_native = NULL, op[1].target = RKNN_TARGET_TYPE_GPU;
  CHECK(rknn_register_custom_ops(ctx, op + 1, 1) == RKNN_ERR_PARAM_INVALID);
  CHECK(rknn_register_custom_ops(ctx, NULL, 1) == RKNN_ERR_PARAM_INVALID && begun == 0);
  is_broken = 1;
  CHECK(rknn_register_custom_ops(ctx, op, 1) == RKNN_ERR_FAIL && begun == 1 && ended == 1);
  is_broken = 0;
  strcpy(op[1].cl_kernel_name, "scale");
  op[1].cl_kernel_source = (char *)"__kernel void scale() {}", op[1].cl_source_size = 24;
  CHECK(rknn_register_custom_ops(ctx, op + 1, 1) == RKNN_SUCC && begun == 3);
  CHECK(rknn_register_custom_ops(ctx, op, 1) == RKNN_ERR_FAIL);
  CHECK(general(ctx, 1) == 0 && general(ctx, -100) == 1 && general(ctx, 2) == 0);
  CHECK(rknn_dup_context(&ctx, &twin) == RKNN_SUCC && begun == 5);
  CHECK(rknn_destroy(ctx) == RKNN_SUCC && ended == 3);
  CHECK(zero_copy(twin) == 0 && ended == 5);
  return 0;
}
