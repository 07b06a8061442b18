/* The iDMA engine, the tiles and the mappings for ops in C that run without the runtime's checks.
 *
 * The functions here handle the plain cases, by the rules of dsp_server/hardware and with the costs set by Python. In
 * all other cases (a mistake, a thread of the image's own, a full table), the runtime in Python takes over the state,
 * and handles this call and the op's later ones.
 */
#ifndef HBRT_DSP_ENGINE_H
#define HBRT_DSP_ENGINE_H

#include <stdint.h>

enum { HBRT_COPIES = 64, HBRT_TILES = 64, HBRT_MAPPINGS = 64, HBRT_FREED = 32 };

/* A copy of `rows` rows, in a queue by handle; 0 rows: flat, of `row_bytes`. */
struct hbrt_dsp_copy {
  uint8_t *dst;
  const uint8_t *src;
  uint64_t row_bytes, rows, src_pitch, dst_pitch, end_cycle;
  const char *site;
};
struct hbrt_dsp_tile {
  uint64_t bank, offset, size, align;
  const char *site;
};
struct hbrt_dsp_mapping {
  uint64_t phy_addr, size;
  const char *site;
};

/* dsp_server/c_images/engine.py has the same structure. */
struct hbrt_dsp_engine {
  uint64_t is_on;     /* the engine has the op that runs */
  uint64_t serves;    /* it takes the ops that begin from now on */
  uint64_t is_called; /* Python wants control at the next call of the runtime */
  uint64_t depth;     /* maximum of outstanding copies, HBRT_COPIES or less */
  uint64_t issue_cycles, setup_cycles, row_cycles, bytes_per_cycle, poll_cycles;
  uint64_t bank_start[2], bank_bytes[2];
  uint64_t start_cycle, now, busy_until; /* modeled cycles: at the op's start, of the core, of the engine */
  int64_t first_handle, last_handle, polled; /* before the op's first copy, of the last copy, of the last poll */
  uint64_t copy_count, tile_count, mapping_count, freed_count; /* freed_count continues across ops */
  struct hbrt_dsp_copy copies[HBRT_COPIES];
  struct hbrt_dsp_tile tiles[HBRT_TILES]; /* by bank and offset */
  struct hbrt_dsp_mapping mappings[HBRT_MAPPINGS];
  struct hbrt_dsp_tile freed[HBRT_FREED];
};

extern struct hbrt_dsp_engine hbrt_dsp_engine;

void hbrt_engine_begin(uint32_t client);
/* The op's cycles that Python does not know of; Python takes over what the op leaves behind. */
uint64_t hbrt_engine_end(void);
/* Spend cycles: 1; 0 if Python counts them. */
int hbrt_engine_charge(uint64_t cycles);
/* From now on, Python has the op. */
void hbrt_engine_hand_over(void);

/* The calls in the headers. They return 1 if they are done, 0 if Python must handle them. */
int hbrt_engine_map(const char *site, uint64_t phy_addr, int64_t size, void **mapped);
int hbrt_engine_unmap(uintptr_t mapped);
/* Python has mapped a range for the task that runs: from now on, other libraries' memory is mapped here for its
 * client. */
void hbrt_engine_remember(uint64_t phy_addr, uint64_t size);
int hbrt_engine_allocate(const char *site, const void *tm, int64_t size, int64_t color, int64_t align, void **tile);
int hbrt_engine_free(const void *tm, const void *tile);
/* shape: rows, source pitch, destination pitch, tiles, source tile pitch, destination tile pitch; NULL: flat. */
int hbrt_engine_copy(const char *site, void *dst, const void *src, uint64_t row_bytes, const uint32_t *shape,
                     int32_t *handle);
int hbrt_engine_desc_done(int32_t handle, int32_t *is_done);
int hbrt_engine_status(int is_wait, int32_t *left);
int hbrt_engine_cycles(uint64_t *cycles);

#endif /* HBRT_DSP_ENGINE_H */
