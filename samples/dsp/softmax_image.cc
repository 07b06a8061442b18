// An image in C++ in the shape of the vendor's template: every packaged op, and its own softmax at 0x400.
//
//     hbrt cc --dsp -o vdsp0.so softmax_image.cc
//     hbrt start --image vdsp0.so
//
// The op makes three passes over the row. Of two tiles in TCM, iDMA fills one while the op computes in the other.
#include <xtensa/xos.h>

#include "cv/core.h"
#include "hb_dsp.h"
#include "nn/core.h"
#include "softmax_ivp.h"

#define TILE_FLOATS KB(12)

struct hbDSPSoftmaxParam {  // as laid out by the ARM program
  int32_t data_size;        // bytes
  uint64_t input;           // physical address
};

uint8_t HB_ALIGN64 dram0_pool[HB_DSP_DRAM0_POOL_SIZE] _HB_LOCAL_DRAM0_;
uint8_t HB_ALIGN64 dram1_pool[HB_DSP_DRAM1_POOL_SIZE] _HB_LOCAL_DRAM1_;

// The row's state so far.
struct Row {
  float32_t largest, sum;
};

static void find_largest(float32_t *tile, int count, Row &row) { row.largest = XT_MAX(row.largest, vecmaxf(tile, count)); }

static void take_powers(float32_t *tile, int count, Row &row) {
  vecexpf_max(tile, tile, count, row.largest);
  row.sum += vecsum(tile, count);
}

static void divide(float32_t *tile, int count, Row &row) { vecmul(tile, tile, 1 / row.sum, count); }

static int await(int handle) {
  if (handle < 0) return handle;
  while (idma_desc_done(handle) != 1) {
  }
  return 0;
}

// One pass: each tile arrives, is processed, and goes to dst unless that is NULL. A tile is refilled once its results
// have left it. Returns 0, or the code of a failed copy.
static int pass(float32_t *dst, const float32_t *src, float32_t *const tiles[2], int count,
                void (*compute)(float32_t *, int, Row &), Row &row) {
  const int size = TILE_FLOATS;
  int in[2], status = 0;
  IDMA_COPY(in[0], src, tiles[0], XT_MIN(size, count) * sizeof(float32_t))
  for (int first = 0, now = 0; first < count && !status; first += size, now ^= 1) {
    const int here = XT_MIN(size, count - first), next = XT_MIN(size, count - first - size);
    if (next > 0) IDMA_COPY(in[now ^ 1], src + first + size, tiles[now ^ 1], next * sizeof(float32_t))
    if ((status = await(in[now]))) break;
    compute(tiles[now], here, row);
    if (dst) {
      int out;
      IDMA_COPY(out, tiles[now], dst + first, here * sizeof(float32_t))
      status = await(out);
    }
  }
  return status;
}

int hb_dsp_softmax(void *input, void *output, void *tm) {
  const hbDSPSoftmaxParam *param = (const hbDSPSoftmaxParam *)input;
  xvTileManager *manager = (xvTileManager *)tm;
  float32_t *src = (float32_t *)hb_dsp_mem_map(param->input, param->data_size), *dst = (float32_t *)output;
  PRT_IF_COND_RETURN(src == MAP_FAILED, HB_ERR_MMAP_FAILED)
  const int count = param->data_size / sizeof(float32_t), bytes = TILE_FLOATS * sizeof(float32_t);
  float32_t *tiles[] = {(float32_t *)xvAllocateBuffer(manager, bytes, XV_MEM_BANK_COLOR_0, 64),
                        (float32_t *)xvAllocateBuffer(manager, bytes, XV_MEM_BANK_COLOR_1, 64)};
  PRT_IF_COND_RETURN(!tiles[0] || !tiles[1], HB_DSP_OUT_OF_TCM)
  uint32_t start, end;
  HB_DSP_TIME_STAMP(start);
  Row row = {minus_inff_.f, 0};
  int status = pass(NULL, src, tiles, count, find_largest, row);
  if (!status) status = pass(dst, src, tiles, count, take_powers, row);
  if (!status) status = pass(dst, dst, tiles, count, divide, row);
  HB_DSP_TIME_STAMP(end);
  DSP_DBG("softmax of %d floats: %u cycles", count, end - start);
  for (float32_t *tile : tiles) xvFreeBuffer(manager, tile);
  hb_dsp_mem_unmap((uint32_t)src);
  return status;
}

int main() {
  xos_set_clock_freq(648000000);
  xos_start_system_timer(0, xos_get_clock_freq() / 100);
  hb_dsp_set_log_level(HB_DSP_LOG_WARNING);
  hb_dsp_env_init();
  hb_dsp_init_global_tm(dram0_pool, HB_DSP_DRAM0_POOL_SIZE, dram1_pool, HB_DSP_DRAM1_POOL_SIZE);
  HB_DSP_REGISTER_NN_ALL;
  HB_DSP_REGISTER_CV_ALL;
  hb_dsp_register_fn(0x400, hb_dsp_softmax, 0);
  hb_dsp_start();
  return -1;
}
