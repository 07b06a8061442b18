/* The image of benchmarks/conv.py: rows of a picture go through TCM by iDMA, ping and pong. */
#include "conv.h"
#include "hb_dsp.h"

uint8_t HB_ALIGN64 dram0_pool[HB_DSP_DRAM0_POOL_SIZE] _HB_LOCAL_DRAM0_;
uint8_t HB_ALIGN64 dram1_pool[HB_DSP_DRAM1_POOL_SIZE] _HB_LOCAL_DRAM1_;

enum { TILE_ROWS = 24 };

static void await(int handle) {
  while (handle > 0 && idma_desc_done(handle) != 1) {
  }
}

static int conv(void *input, void *output, void *tm) {
  const conv_param *param = input;
  const uint32_t width = param->width, pitch = width + 2, rows = param->rows;
  const int8_t *source = hb_dsp_mem_map(param->source, (int64_t)pitch * (rows + 2));
  PRT_IF_COND_RETURN(MAP_FAILED == source, HB_ERR_MMAP_FAILED)
  int8_t *in[2], *out[2];
  int filled[2] = {0, 0}, drained[2] = {0, 0};
  for (int side = 0; side < 2; side++) {
    const int color = side ? XV_MEM_BANK_COLOR_1 : XV_MEM_BANK_COLOR_0;
    in[side] = xvAllocateBuffer(tm, (TILE_ROWS + 2) * pitch, color, 64);
    out[side] = xvAllocateBuffer(tm, TILE_ROWS * width, color, 64);
    PRT_IF_COND_RETURN(!in[side] || !out[side], HB_DSP_OUT_OF_TCM)
  }
  IDMA_COPY(filled[0], source, in[0], (XT_MIN(TILE_ROWS, rows) + 2) * pitch)
  for (uint32_t first = 0, side = 0; first < rows; first += TILE_ROWS, side ^= 1) {
    const uint32_t here = XT_MIN(TILE_ROWS, rows - first), next = first + TILE_ROWS;
    if (next < rows)
      IDMA_COPY(filled[side ^ 1], source + next * pitch, in[side ^ 1], (XT_MIN(TILE_ROWS, rows - next) + 2) * pitch)
    await(filled[side]);
    await(drained[side]);
    conv_rows(in[side], pitch, out[side], width, width, here, param->weights);
    IDMA_COPY(drained[side], out[side], (int8_t *)output + first * width, here * width)
  }
  idma_hw_wait_all();
  for (int side = 0; side < 2; side++) {
    xvFreeBuffer(tm, in[side]);
    xvFreeBuffer(tm, out[side]);
  }
  hb_dsp_mem_unmap((uint32_t)source);
  return 0;
}

int main() {
  hb_dsp_env_init();
  hb_dsp_init_global_tm(dram0_pool, HB_DSP_DRAM0_POOL_SIZE, dram1_pool, HB_DSP_DRAM1_POOL_SIZE);
  hb_dsp_register_fn(CONV_CMD, conv, 0);
  hb_dsp_start();
  return -1;
}
