/* Ops that do what a test says. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xtensa/xos.h>

#include "cv/core.h"
#include "hb_dsp.h"
#include "nn/core.h"

uint8_t HB_ALIGN64 dram0_pool[HB_DSP_DRAM0_POOL_SIZE] _HB_LOCAL_DRAM0_;
uint8_t HB_ALIGN64 dram1_pool[HB_DSP_DRAM1_POOL_SIZE] _HB_LOCAL_DRAM1_;

struct param {
  int32_t n;
  int32_t is_32bit;
  uint64_t src;
};

/* output[i] = 2 * src[i], by way of a tile. */
int twice(void *input, void *output, void *tm) {
  const struct param *param = input;
  const int32_t size = param->n * (int32_t)sizeof(float);
  float *src = (float *)hb_dsp_mem_map(param->src, size);
  PRT_IF_COND_RETURN(MAP_FAILED == src, HB_ERR_MMAP_FAILED)
  float *tile = (float *)xvAllocateBuffer((xvTileManager *)tm, size, XV_MEM_BANK_COLOR_1, 64);
  PRT_IF_COND_RETURN(tile == XVTM_ERROR, HB_DSP_OUT_OF_TCM)
  PRT_IF_COND_RETURN((uint8_t *)tile < dram1_pool || (uint8_t *)tile >= dram1_pool + sizeof dram1_pool, -2)
  uint32_t start, end;
  int32_t handle;
  HB_DSP_TIME_STAMP(start);
  IDMA_COPY(handle, src, tile, size)
  while (idma_desc_done(handle) != 1) {
  }
  for (int i = 0; i < param->n; i++) tile[i] *= 2;
  IDMA_COPY(handle, tile, output, size)
  while (idma_desc_done(handle) != 1) {
  }
  TIME_STAMP(end);
  PRT_IF_COND_RETURN(end == start, -3)
  PRT_IF_COND_RETURN(xvFreeBuffer((xvTileManager *)tm, tile), -4)
  if (param->is_32bit) {
    unsigned low = (unsigned)(uintptr_t)src;
    return hb_dsp_mem_unmap(low);
  }
  return hb_dsp_mem_unmap((uint32_t)src);
}

/* A 3 x 5 x 4 box out of a 2 x 6 x 8 one, rows of 3. */
int box(void *input, void *output, void *tm) {
  (void)tm;
  int32_t handle = idma_copy_2d_desc(output, input, 3, DESC_NOTIFY_W_INT, 5, 8, 3);
  while (idma_desc_done(handle) != 1) {
  }
  void *dst = (char *)output + 15, *src = input;
  idma_copy_3d_desc64(0, &dst, &src, DESC_NOTIFY_W_INT, 3, 5, 2, 8, 3, 48, 15);
  idma_hw_wait_all();
  return idma_buffer_status();
}

enum { ASIDE, NO_ADDRESS, ABORT, DIVISION, STACK, LIBC, VALUE, HANDLE, UNCHECKED, LOOP, EXIT, SAY, LEAVE, TILES, FORK, OVERRUN, OWN_INPUT, EARLY, BY_POINTER };

static int write_at(volatile int *place, int value) { return *place = value; }

static int fill_stack(volatile char *before) {
  volatile char frame[4096];
  frame[0] = before[0];
  return before[0] ? fill_stack(frame) + frame[0] : 0;
}

static int way(int which, void *input, void *output, xvTileManager *tm) {
  volatile int zero = 0;
  int32_t handle;
  char *tile;
  switch (which) {
    case NO_ADDRESS: return write_at(NULL, 1);
    case ABORT: abort();
    case DIVISION: return 5 / zero;
    case STACK: return fill_stack((volatile char *)"x");
    case LIBC: return memset((void *)(uintptr_t)(8 + zero), 0, 1 << 20) != NULL;
    case VALUE: return -42;
    case HANDLE: return idma_desc_done(idma_copy_desc(NULL, NULL, 1, 0));
    case UNCHECKED: tile = xvAllocateBuffer(tm, 1 << 20, XV_MEM_BANK_COLOR_0, 64); tile[3] = 1; return 0;
    case LOOP:
      for (;;) pause();
    case EXIT: exit(3);
    case SAY: printf("row %d is ", 3); printf("odd\n"); fprintf(stderr, "scale %g\n", 0.5); puts("done"); return -5;
    case LEAVE:
      tile = xvAllocateBuffer(tm, 64, XV_MEM_BANK_COLOR_0, 64);
      IDMA_COPY(handle, output, tile, 8)
      return handle < 0;
    case TILES:
      tile = xvAllocateBuffer(tm, 100, XV_MEM_BANK_COLOR_0, 64);
      if (xvAllocateBuffer((xvTileManager *)&tile, 8, XV_MEM_BANK_COLOR_0, 64) != XVTM_ERROR) return 1;
      if (xvFreeBuffer(tm, tile + 4) != XVTM_FREE_ERROR || !strstr(xvGetErrorInfo(tm), "free the whole buffer")) return 2;
      if (idma_copy_desc(tile, NULL, 8, 0) >= 0 || !strstr(xvGetErrorInfo(tm), "source is NULL")) return 3;
      if (idma_copy_desc(tile, (char *)output + 1, 1 << 20, 0) >= 0) return 4;
      if (!strstr(xvGetErrorInfo(tm), "past the end of its block")) return 5;
      if (idma_copy_desc(tile, (void *)(uintptr_t)8, 8, 0) >= 0) return 6;
      if (xvFreeBuffer(tm, tile) || xvFreeBuffer(tm, tile) != XVTM_FREE_ERROR) return 7;
      if (idma_copy_desc(tile, output, 8, 0) >= 0 || !strstr(xvGetErrorInfo(tm), "not in a tile")) return 8;
      return 0;
    case FORK:
      if (fork() == 0) { printf("child\n"); return 0; }
      return 0;
    case OVERRUN: ((volatile char *)output)[4096] = 1; return 0;
    case OWN_INPUT: return write_at(input, 0);
    case EARLY:
      tile = xvAllocateBuffer(tm, 4096, XV_MEM_BANK_COLOR_0, 64);
      handle = idma_copy_desc(tile, output, 4096, 0);
      zero = ((volatile char *)tile)[5];
      while (idma_desc_done(handle) != 1) {
      }
      return xvFreeBuffer(tm, tile);
    case BY_POINTER: {
      void *(*volatile allocate)(xvTileManager *, int32_t, int32_t, int32_t) = xvAllocateBuffer;
      return allocate(tm, 64, XV_MEM_BANK_COLOR_1, 64) == NULL;
    }
    default: return 0;
  }
}

int misbehave(void *input, void *output, void *tm) { return way(*(int32_t *)input, input, output, (xvTileManager *)tm); }

int main() {
  xos_set_clock_freq(648000000);
  xos_start_system_timer(0, xos_get_clock_freq() / 100);
  hb_dsp_set_log_level(HB_DSP_LOG_INFO);
  hb_dsp_env_init();
  hb_dsp_init_global_tm(dram0_pool, HB_DSP_DRAM0_POOL_SIZE, dram1_pool, HB_DSP_DRAM1_POOL_SIZE);
  HB_DSP_REGISTER_NN_ALL;
  HB_DSP_REGISTER_CV_ALL;
  hb_dsp_register_fn(0x1000, twice, 0);
  hb_dsp_register_fn(0x1001, &misbehave, 0);
  hb_dsp_register_fn(0x1002, box, 0);
  hb_dsp_register_fn(0x1003, misbehave, 300000);
  DSP_INFO("image of %d ops", 4);
  hb_dsp_start();
  return -1;
}
