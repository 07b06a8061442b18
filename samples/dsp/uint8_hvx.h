/* The loops of uint8_matrix.h and of a product in HVX, with 128-byte vectors and four threads; bit-identical results.
 * Memory and rows are aligned to multiples of 128.
 *
 * Source: Youdao's account of speech recognition on a DSP, 4.2.2, for four threads split by columns, vrmpy after
 * vshuff, blocks of 4 x 32 and a prefetch of 128 bytes, https://segmentfault.com/a/1190000039169471
 */
#ifndef UINT8_HVX_H
#define UINT8_HVX_H

#include <hexagon_protos.h>
#include <hexagon_types.h>
#include <hvx_hexagon_protos.h>

#include "worker_pool.h"

#define VECTOR ((uint32_t)sizeof(HVX_Vector))
#define THREADS 4
#undef hb_dsp_charge
#define hb_dsp_charge(...) ((void)0) /* a call's instructions are counted: see counters() */

/* What a thread has executed: packets, instructions, and HVX instructions among them. */
struct counts {
  uint32_t packets, instructions, vectors;
};

/* QEMU keeps these numbers in control registers 20 to 22, which a board does not have. */
static struct counts counters(void) {
  struct counts now;
  __asm__ volatile(".word 0x6a14c000\n\t%0 = r0" : "=r"(now.packets) : : "r0");
  __asm__ volatile(".word 0x6a15c000\n\t%0 = r0" : "=r"(now.instructions) : : "r0");
  __asm__ volatile(".word 0x6a16c000\n\t%0 = r0" : "=r"(now.vectors) : : "r0");
  return now;
}

static uint64_t executed[3]; /* by all threads */

static void add_since(struct counts start) {
  const struct counts now = counters();
  __atomic_fetch_add(&executed[0], (uint32_t)(now.packets - start.packets), __ATOMIC_RELAXED);
  __atomic_fetch_add(&executed[1], (uint32_t)(now.instructions - start.instructions), __ATOMIC_RELAXED);
  __atomic_fetch_add(&executed[2], (uint32_t)(now.vectors - start.vectors), __ATOMIC_RELAXED);
}

struct part {
  void (*run)(void *job, uint32_t part);
  void *job;
  uint32_t number;
  worker_synctoken_t *left;
};

static void run_part(void *given) {
  struct part *part = given;
  const struct counts start = counters();
  part->run(part->job, part->number);
  add_since(start);
  worker_pool_synctoken_jobdone(part->left);
}

/* Have the DSP's threads run the four parts of a job. */
static void in_parts(void (*run)(void *job, uint32_t part), void *job) {
  worker_synctoken_t left;
  struct part parts[THREADS];
  worker_pool_synctoken_init(&left, THREADS);
  for (uint32_t number = 0; number < THREADS; number++) {
    parts[number] = (struct part){run, job, number, &left};
    worker_pool_submit(NULL, (worker_pool_job_t){run_part, &parts[number]});
  }
  worker_pool_synctoken_wait(&left);
}

/* The first item of a part; the part ends where the next one begins. */
static uint32_t first_of(uint32_t count, uint32_t part) { return (uint32_t)((uint64_t)count * part / THREADS); }

static HVX_Vector product_of_words(HVX_Vector a, HVX_Vector b) {
  return Q6_Vw_vadd_VwVw(Q6_Vw_vmpyie_VwVuh(a, b), Q6_Vw_vasl_VwR(Q6_Vw_vmpyio_VwVh(a, b), 16));
}

/* The sum of a vector's words. */
static int32_t total_of(HVX_Vector words) {
  for (uint32_t bytes = VECTOR / 2; bytes >= 4; bytes /= 2) words = Q6_Vw_vadd_VwVw(words, Q6_V_vror_VR(words, (int)bytes));
  return Q6_R_vextract_VR(words, 0);
}

struct range_job {
  const HVX_Vector *sums;
  uint32_t count;
  int32_t low[THREADS], high[THREADS];
};

static void find_part(void *given, uint32_t part) {
  struct range_job *job = given;
  HVX_Vector low = Q6_V_vzero(), high = Q6_V_vzero(); /* the range includes 0 */
  for (uint32_t at = first_of(job->count, part); at < first_of(job->count, part + 1); at++) {
    low = Q6_Vw_vmin_VwVw(low, job->sums[at]);
    high = Q6_Vw_vmax_VwVw(high, job->sums[at]);
  }
  for (uint32_t bytes = VECTOR / 2; bytes >= 4; bytes /= 2) {
    low = Q6_Vw_vmin_VwVw(low, Q6_V_vror_VR(low, (int)bytes));
    high = Q6_Vw_vmax_VwVw(high, Q6_V_vror_VR(high, (int)bytes));
  }
  job->low[part] = Q6_R_vextract_VR(low, 0);
  job->high[part] = Q6_R_vextract_VR(high, 0);
}

static void find_range(const int32_t *sums, uint64_t count, int32_t *low, int32_t *high) {
  struct range_job job = {(const HVX_Vector *)sums, (uint32_t)(count * 4 / VECTOR), {0}, {0}};
  in_parts(find_part, &job);
  *low = *high = 0;
  for (uint32_t part = 0; part < THREADS; part++) {
    *low = XT_MIN(*low, job.low[part]);
    *high = XT_MAX(*high, job.high[part]);
  }
}

struct scale_job {
  const HVX_Vector *sums;
  HVX_Vector *out;
  uint32_t count;
  int32_t multiplier, half, shift, zero;
};

static void scale_part(void *given, uint32_t part) {
  const struct scale_job *job = given;
  const HVX_Vector by = Q6_V_vsplat_R(job->multiplier), half = Q6_V_vsplat_R(job->half), zero = Q6_V_vsplat_R(job->zero);
  for (uint32_t at = first_of(job->count, part); at < first_of(job->count, part + 1); at++) {
    HVX_Vector q[4];
    for (uint32_t i = 0; i < 4; i++) {
      q[i] = Q6_Vw_vadd_VwVw(product_of_words(job->sums[4 * at + i], by), half);
      q[i] = Q6_Vw_vadd_VwVw(Q6_Vw_vasr_VwR(q[i], job->shift), zero);
    }
    const HVX_Vector first = Q6_Vh_vpack_VwVw_sat(q[1], q[0]), last = Q6_Vh_vpack_VwVw_sat(q[3], q[2]);
    job->out[at] = Q6_Vub_vpack_VhVh_sat(last, first);
  }
}

static void scale_down(const int32_t *sums, uint8_t *out, uint64_t count, int32_t multiplier, int32_t half, int shift,
                       int32_t zero) {
  struct scale_job job = {(const HVX_Vector *)sums, (HVX_Vector *)out, (uint32_t)(count / VECTOR), multiplier, half, shift, zero};
  in_parts(scale_part, &job);
}

struct rows_job {
  const uint8_t *a, *b;
  int32_t *sums;
  uint32_t rows, columns, row_step;
  int32_t by_a, by_b, zero_a, zero_b;
};

/* The two halves of 128 numbers, minus their zero point. */
static HVX_VectorPair centered(HVX_Vector values, int32_t zero) {
  const HVX_Vector zeros = Q6_Vh_vsplat_R(zero);
  const HVX_VectorPair wide = Q6_Wuh_vunpack_Vub(values);
  return Q6_W_vcombine_VV(Q6_Vh_vsub_VhVh(Q6_V_hi_W(wide), zeros), Q6_Vh_vsub_VhVh(Q6_V_lo_W(wide), zeros));
}

static void sum_64(HVX_Vector a, HVX_Vector b, const struct rows_job *job, HVX_Vector *sums) {
  const HVX_Vector by_a = Q6_V_vsplat_R(job->by_a), by_b = Q6_V_vsplat_R(job->by_b);
  const HVX_VectorPair a_words = Q6_Ww_vunpack_Vh(a), b_words = Q6_Ww_vunpack_Vh(b);
  sums[0] = Q6_Vw_vadd_VwVw(product_of_words(by_a, Q6_V_lo_W(a_words)), product_of_words(by_b, Q6_V_lo_W(b_words)));
  sums[1] = Q6_Vw_vadd_VwVw(product_of_words(by_a, Q6_V_hi_W(a_words)), product_of_words(by_b, Q6_V_hi_W(b_words)));
}

static void multiply_64(HVX_Vector a, HVX_Vector b, HVX_Vector *sums) {
  const HVX_VectorPair even_odd = Q6_Ww_vmpy_VhVh(a, b);
  const HVX_VectorPair in_order = Q6_W_vshuff_VVR(Q6_V_hi_W(even_odd), Q6_V_lo_W(even_odd), -4);
  sums[0] = Q6_V_lo_W(in_order);
  sums[1] = Q6_V_hi_W(in_order);
}

static void rows_part(void *given, uint32_t part) {
  const struct rows_job *job = given;
  for (uint32_t row = first_of(job->rows, part); row < first_of(job->rows, part + 1); row++) {
    const HVX_Vector *a = (const HVX_Vector *)(job->a + row * job->columns);
    const HVX_Vector *b = (const HVX_Vector *)(job->b + row * job->row_step);
    HVX_Vector *sums = (HVX_Vector *)(job->sums + row * job->columns);
    for (uint32_t at = 0; at < job->columns / VECTOR; at++) {
      const HVX_VectorPair x = centered(a[at], job->zero_a), y = centered(b[at], job->zero_b);
      if (job->by_a) {
        sum_64(Q6_V_lo_W(x), Q6_V_lo_W(y), job, sums + 4 * at);
        sum_64(Q6_V_hi_W(x), Q6_V_hi_W(y), job, sums + 4 * at + 2);
      } else {
        multiply_64(Q6_V_lo_W(x), Q6_V_lo_W(y), sums + 4 * at);
        multiply_64(Q6_V_hi_W(x), Q6_V_hi_W(y), sums + 4 * at + 2);
      }
    }
  }
}

static void weighted_sum(const uint8_t *a, const uint8_t *b, int32_t *sums, uint32_t rows, uint32_t columns, uint32_t row_step,
                         int32_t by_a, int32_t by_b, int32_t zero_a, int32_t zero_b) {
  struct rows_job job = {a, b, sums, rows, columns, row_step, by_a, by_b, zero_a, zero_b};
  in_parts(rows_part, &job);
}

static void products(const uint8_t *a, const uint8_t *b, int32_t *sums, uint32_t rows, uint32_t columns, int32_t zero_a,
                     int32_t zero_b) {
  struct rows_job job = {a, b, sums, rows, columns, 0, 0, 0, zero_a, zero_b}; /* by_a 0: element by element */
  in_parts(rows_part, &job);
}

static void at_least(const uint8_t *in, uint8_t *out, uint64_t count, uint8_t least) {
  const HVX_Vector low = Q6_Vb_vsplat_R(least);
  for (uint64_t at = 0; at < count / VECTOR; at++)
    ((HVX_Vector *)out)[at] = Q6_Vub_vmax_VubVub(((const HVX_Vector *)in)[at], low);
}

/* A product of rows with panels of 32 columns. With a stride, each row is followed by the one that many rows below. */
struct product_job {
  const uint8_t *rows, *panels;
  int32_t *out;
  uint32_t count, columns, stride, terms, of_out; /* rows of the result, columns of the rows and of the result */
  uint32_t zero_rows, zero_panels;
  uint8_t *scratch; /* terms * 32 bytes for each thread */
  int32_t *totals;  /* of all rows */
};

static void totals_part(void *given, uint32_t part) {
  const struct product_job *job = given;
  const uint32_t all = job->count + job->stride;
  for (uint32_t row = first_of(all, part); row < first_of(all, part + 1); row++) {
    const HVX_Vector *values = (const HVX_Vector *)(job->rows + row * job->columns);
    HVX_Vector sums = Q6_V_vzero();
    for (uint32_t at = 0; at < job->columns / VECTOR; at++) sums = Q6_Vuw_vrmpyacc_VuwVubRub(sums, values[at], 0x01010101);
    job->totals[row] = total_of(sums);
  }
}

/* 4 rows by 32 columns, rows [row, row + 4); those past the last are computed like the last. */
static void block_of_rows(const struct product_job *job, uint32_t row, const HVX_Vector *panel, HVX_Vector sums[BLOCK_ROWS]) {
  for (uint32_t r = 0; r < BLOCK_ROWS; r++) sums[r] = Q6_V_vzero();
  for (uint32_t first = 0; first < job->terms; first += job->columns) {
    const uint32_t *a[BLOCK_ROWS], from = row + (first ? job->stride : 0), last = job->count - 1 + (first ? job->stride : 0);
    for (uint32_t r = 0; r < BLOCK_ROWS; r++) a[r] = (const uint32_t *)(job->rows + XT_MIN(from + r, last) * job->columns);
    for (uint32_t at = 0; at < job->columns / 4; at++, panel++)
      for (uint32_t r = 0; r < BLOCK_ROWS; r++) sums[r] = Q6_Vuw_vrmpyacc_VuwVubRub(sums[r], *panel, (int32_t)a[r][at]);
  }
}

static void columns_part(void *given, uint32_t part) {
  const struct product_job *job = given;
  const uint32_t panels = job->of_out / BLOCK_COLUMNS, zeros = job->terms * job->zero_rows * job->zero_panels;
  HVX_Vector *mine = (HVX_Vector *)(job->scratch + part * job->terms * BLOCK_COLUMNS), sums[BLOCK_ROWS];
  for (uint32_t panel = first_of(panels, part); panel < first_of(panels, part + 1); panel++) {
    const HVX_Vector *from = (const HVX_Vector *)(job->panels + panel * (job->terms + 4) * BLOCK_COLUMNS);
    const uint32_t count = job->terms / 4;
    for (uint32_t at = 0; at < count; at++) { /* the four terms of a column side by side */
      Q6_l2fetch_AR((void *)(uintptr_t)&from[at + 1], VECTOR << 16 | VECTOR << 8 | 1);
      mine[at] = Q6_Vb_vshuff_Vb(Q6_Vb_vshuff_Vb(from[at]));
    }
    const HVX_Vector of_columns = Q6_Vw_vmpyi_VwRub(from[count], (int32_t)(job->zero_rows * 0x01010101u));
    for (uint32_t row = 0; row < job->count; row += BLOCK_ROWS) {
      block_of_rows(job, row, mine, sums);
      for (uint32_t r = 0; r < XT_MIN(BLOCK_ROWS, job->count - row); r++) {
        const int32_t *total = job->totals + row + r;
        const uint32_t of_row = (uint32_t)(total[0] + (job->stride ? total[job->stride] : 0)) * job->zero_panels - zeros;
        *(HVX_Vector *)(job->out + (row + r) * job->of_out + panel * BLOCK_COLUMNS) =
            Q6_Vw_vsub_VwVw(sums[r], Q6_Vw_vadd_VwVw(of_columns, Q6_V_vsplat_R((int32_t)of_row)));
      }
    }
  }
}

#endif /* UINT8_HVX_H */
