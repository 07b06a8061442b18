/* An image with the forward pass of a TDNN-F: in uint8 throughout at 0x1200, in float at 0x1201.
 *
 *     hbrt cc --dsp -o tdnnf.so tdnnf_image.c
 *     hbrt start --image tdnnf.so
 *
 * With -DTDNNF_FASTRPC, and the output of 'hbrt idl tdnnf.idl', it has the interface of tdnnf.idl as well.
 *
 * A call runs some operations of the network, from one to all: the next call continues where it stopped, since tensors
 * stay in a block of DDR. Rows and panels of weights come into TCM by iDMA: while a panel of 32 columns is used, the
 * next one arrives. A DSP's hardware threads process the panels in four parts; here the parts run one after the other.
 */
#include <xtensa/xos.h>

#include "cv/core.h"
#include "hb_dsp.h"
#include "nn/core.h"
#include "tdnnf_steps.h"

#define UINT8 0x1200
#define FLOAT 0x1201
#define ROWS_BYTES KB(64)
#define PANEL_BYTES KB(48)

uint8_t HB_ALIGN64 dram0_pool[HB_DSP_DRAM0_POOL_SIZE] _HB_LOCAL_DRAM0_;
uint8_t HB_ALIGN64 dram1_pool[HB_DSP_DRAM1_POOL_SIZE] _HB_LOCAL_DRAM1_;

static void await(int handle) {
  while (idma_desc_done(handle) != 1) {
  }
}

/* Bring rows of a tensor into TCM, each next to the one `stride` rows below it. */
static int bring_rows(const uint8_t *source, uint8_t *tile, uint32_t row_bytes, uint32_t rows, uint32_t stride) {
  const uint32_t width = stride ? 2 * row_bytes : row_bytes;
  int first, second;
  first = idma_copy_2d_desc(tile, source, row_bytes, DESC_NOTIFY_W_INT, rows, row_bytes, width);
  if (first < 0) return first;
  await(first);
  if (!stride) return 0;
  second = idma_copy_2d_desc(tile + row_bytes, source + stride * row_bytes, row_bytes, DESC_NOTIFY_W_INT, rows, row_bytes,
                             width);
  if (second < 0) return second;
  await(second);
  return 0;
}

FOR_EACH_CPU void row_sums(const uint8_t *rows, uint32_t terms, uint32_t count, uint32_t *sums) {
  for (uint32_t row = 0; row < count; row++, rows += terms) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < terms; i++) sum += rows[i];
    sums[row] = sum;
  }
}

FOR_EACH_CPU void float_block(const float *a, uint32_t terms, const float *w, float sums[BLOCK_ROWS][BLOCK_COLUMNS]) {
  memset(sums, 0, sizeof(float[BLOCK_ROWS][BLOCK_COLUMNS]));
  for (uint32_t term = 0; term < terms; term++, w += BLOCK_COLUMNS)
    for (uint32_t row = 0; row < BLOCK_ROWS; row++)
      for (uint32_t column = 0; column < BLOCK_COLUMNS; column++) sums[row][column] += a[row * terms + term] * w[column];
}

/* The product of `rows` rows in TCM with one panel of weights, into columns of the result. */
static void panel_uint8(const struct tensor *x, const struct step *step, const uint8_t *rows, const uint32_t *sums_of_rows,
                        uint32_t count, const uint8_t *panel, int32_t *out) {
  const uint32_t terms = step->terms, zeros = terms * x->zero_point * step->zero_point;
  const int32_t *of_columns = (const int32_t *)(panel + terms * BLOCK_COLUMNS);
  uint32_t sums[BLOCK_ROWS][BLOCK_COLUMNS];
  for (uint32_t row = 0; row < count; row += BLOCK_ROWS) {
    block_of_sums(rows + row * terms, terms, panel, terms, sums); /* the tile has room for rows after the last one */
    for (uint32_t r = 0; r < XT_MIN(BLOCK_ROWS, count - row); r++) {
      const uint32_t less = sums_of_rows[row + r] * step->zero_point - zeros;
      for (uint32_t c = 0; c < BLOCK_COLUMNS; c++)
        out[(row + r) * step->columns + c] =
            (int32_t)(sums[r][c] - less - x->zero_point * (uint32_t)of_columns[c]);
    }
  }
  const uint64_t products = (uint64_t)((count + BLOCK_ROWS - 1) / BLOCK_ROWS * BLOCK_ROWS) * terms * BLOCK_COLUMNS;
  hb_dsp_charge(products, 8, (struct hb_dsp_operations){.mul = 1}); /* four products per 32-bit lane: 64 per vector */
  hb_dsp_charge(products / BLOCK_ROWS, 8, (struct hb_dsp_operations){.load = 1});
  hb_dsp_charge((uint64_t)count * BLOCK_COLUMNS, 32, (struct hb_dsp_operations){.alu = 2, .store = 1});
}

static void panel_float(const struct step *step, const float *rows, uint32_t count, const float *panel, float *out) {
  float sums[BLOCK_ROWS][BLOCK_COLUMNS];
  for (uint32_t row = 0; row < count; row += BLOCK_ROWS) {
    float_block(rows + row * step->terms, step->terms, panel, sums);
    for (uint32_t r = 0; r < XT_MIN(BLOCK_ROWS, count - row); r++)
      memcpy(out + (row + r) * step->columns, sums[r], sizeof sums[r]);
  }
  const uint64_t products = (uint64_t)count * step->terms * BLOCK_COLUMNS;
  hb_dsp_charge(products, 32, (struct hb_dsp_operations){.mul = 1});
  hb_dsp_charge(products / BLOCK_ROWS, 32, (struct hb_dsp_operations){.load = 1});
}

static int product(const struct call *call, const struct step *step, const struct tensor *x, const uint8_t *weights,
                   int is_float, void *out) {
  const uint32_t size = is_float ? sizeof(float) : 1, row_bytes = x->columns * size;
  const uint32_t width = (step->stride ? 2 : 1) * x->columns, rows = x->rows - step->stride;
  const uint32_t panel_bytes = step->terms * BLOCK_COLUMNS * size + (is_float ? 0 : 4 * BLOCK_COLUMNS);
  if (width != step->terms || x->rows <= step->stride || step->columns % BLOCK_COLUMNS || panel_bytes > 2 * PANEL_BYTES) {
    return ERROR_STEP;
  }
  const int has_two = panel_bytes <= PANEL_BYTES; /* in float, a panel may fill the bank: then the next one comes afterwards */
  const uint32_t at_once = XT_MIN(ROWS_BYTES / (width * size) / BLOCK_ROWS * BLOCK_ROWS, 1024);
  if (!at_once) return ERROR_STEP;
  uint8_t *tile = xvAllocateBuffer(call->tm, ROWS_BYTES, XV_MEM_BANK_COLOR_0, 64);
  uint8_t *panels = xvAllocateBuffer(call->tm, 2 * PANEL_BYTES, XV_MEM_BANK_COLOR_1, 64);
  PRT_IF_COND_RETURN(tile == XVTM_ERROR || panels == XVTM_ERROR, HB_DSP_OUT_OF_TCM)
  uint32_t sums_of_rows[1024];
  const uint32_t count_of_panels = step->columns / BLOCK_COLUMNS;
  int status = 0;
  for (uint32_t row = 0; row < rows && !status; row += at_once) {
    const uint32_t here = XT_MIN(at_once, rows - row);
    int coming;
    status = bring_rows(values_of(call, x) + row * row_bytes, tile, row_bytes, here, step->stride);
    if (!is_float) {
      row_sums(tile, width, here, sums_of_rows);
      hb_dsp_charge((uint64_t)here * width, 8, (struct hb_dsp_operations){.load = 1, .mul = 1});
    }
    IDMA_COPY(coming, weights, panels, panel_bytes)
    for (uint32_t panel = 0; panel < count_of_panels && !status; panel++) {
      if (coming < 0) return coming;
      await(coming);
      const uint8_t *now = panels + (has_two ? panel % 2 * PANEL_BYTES : 0);
      const uint8_t *next = weights + (uint64_t)(panel + 1) * panel_bytes;
      const int has_next = panel + 1 < count_of_panels;
      if (has_next && has_two) IDMA_COPY(coming, next, panels + (panel + 1) % 2 * PANEL_BYTES, panel_bytes)
      const uint64_t at = (uint64_t)row * step->columns + panel * BLOCK_COLUMNS;
      if (is_float) {
        panel_float(step, (const float *)tile, here, (const float *)now, (float *)out + at);
      } else {
        panel_uint8(x, step, tile, sums_of_rows, here, now, (int32_t *)out + at);
      }
      if (has_next && !has_two) IDMA_COPY(coming, next, panels, panel_bytes)
    }
  }
  xvFreeBuffer(call->tm, tile);
  xvFreeBuffer(call->tm, panels);
  return status;
}

/* The op: maps the memory named by the parameters. */
static int forward(void *input, void *output, void *tm, int is_float) {
  const struct param *param = input;
  PRT_IF_COND_RETURN(param->tensors_bytes < TENSORS * sizeof(struct tensor), ERROR_STEP)
  const uint64_t steps_bytes = ((uint64_t)param->first + param->count) * sizeof(struct step);
  struct step *steps = steps_bytes ? hb_dsp_mem_map(param->steps, (int64_t)steps_bytes) : NULL;
  PRT_IF_COND_RETURN(steps == MAP_FAILED, HB_ERR_MMAP_FAILED)
  struct call call = {param, hb_dsp_mem_map(param->tensors, param->tensors_bytes), NULL, tm, 2};
  PRT_IF_COND_RETURN(call.tensors == MAP_FAILED, HB_ERR_MMAP_FAILED)
  call.sums = (int32_t *)(call.tensors + param->sums);
  uint8_t *shared = NULL;
  if (param->weights) {
    shared = hb_dsp_mem_map(param->weights, param->weights_bytes);
    PRT_IF_COND_RETURN(shared == MAP_FAILED, HB_ERR_MMAP_FAILED)
    call.maps++;
  }
  const int status = run(&call, steps, shared, is_float, output);
  if (shared) hb_dsp_mem_unmap((uint32_t)shared);
  hb_dsp_mem_unmap((uint32_t)call.tensors);
  if (steps) hb_dsp_mem_unmap((uint32_t)steps);
  return status;
}

static int tdnnf_uint8(void *input, void *output, void *tm) { return forward(input, output, tm, 0); }

static int tdnnf_float(void *input, void *output, void *tm) { return forward(input, output, tm, 1); }

#ifdef TDNNF_FASTRPC
#include "tdnnf_fastrpc.h"
#endif

int main() {
  xos_set_clock_freq(648000000);
  xos_start_system_timer(0, xos_get_clock_freq() / 100);
  hb_dsp_set_log_level(HB_DSP_LOG_ERROR);
  hb_dsp_env_init();
  hb_dsp_init_global_tm(dram0_pool, HB_DSP_DRAM0_POOL_SIZE, dram1_pool, HB_DSP_DRAM1_POOL_SIZE);
  HB_DSP_REGISTER_NN_ALL;
  HB_DSP_REGISTER_CV_ALL;
  hb_dsp_register_fn(UINT8, tdnnf_uint8, 0);
  hb_dsp_register_fn(FLOAT, tdnnf_float, 0);
#ifdef TDNNF_FASTRPC
  tdnnf_skel_register();
#endif
  hb_dsp_start();
  return -1;
}
