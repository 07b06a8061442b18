/* Votes for clocks and units of the DSP. Emulator: votes are accepted and stored, but do not change the speed. Votes
 * for voltage corners, and for mipsPerThread (taken as MHz), change the clock that HAP_power_get reports and
 * HAP_perf_get_pcycles counts by: the highest vote wins, up to the profile's clock. Assumed, as no figures are public:
 * SVS2 is 35 % of it, SVS 50 %, SVS_PLUS 62 %, NOM 75 %, NOM_PLUS 85 %, and TURBO and above 100 %.
 *
 * Source: programs that call it, https://github.com/haozixu/htp-ops-lib, https://github.com/ggml-org/llama.cpp, for names
 * and fields
 */
#ifndef HBRT_FASTRPC_HAP_POWER_H
#define HBRT_FASTRPC_HAP_POWER_H

#include <stdlib.h>
#include <string.h>

#include "AEEStdDef.h"
#include "AEEStdErr.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  HAP_POWER_ERR_UNKNOWN = -1,
  HAP_POWER_ERR_INVALID_PARAM = -2,
  HAP_POWER_ERR_UNSUPPORTED_API = -3,
} HAP_power_error_codes;

typedef struct {
  boolean set_mips;
  unsigned int mipsPerThread, mipsTotal;
  boolean set_bus_bw;
  uint64 bwBytePerSec;
  unsigned short busbwUsagePercentage;
  boolean set_latency;
  int latency;
} HAP_power_mips_bw_payload;

typedef enum { HAP_FREQ_AT_LEAST, HAP_FREQ_AT_MOST, HAP_FREQ_CLOSEST, HAP_FREQ_EXACT, HAP_FREQ_MAX_COUNT } HAP_freq_match_type;

typedef struct {
  boolean set_bus_bw;
  uint64 bwBytePerSec;
  unsigned short busbwUsagePercentage;
} HAP_power_bus_bw;

typedef struct {
  boolean set_clk;
  unsigned int clkFreqHz;
  HAP_freq_match_type freqMatch;
  HAP_power_bus_bw dma_ext, hcp_ext, dma_int, hcp_int;
} HAP_power_vapss_payload;

typedef struct {
  boolean set_dma_clk, set_hcp_clk;
  unsigned int dmaClkFreqHz, hcpClkFreqHz;
  HAP_freq_match_type freqMatch;
  HAP_power_bus_bw dma_ext, hcp_ext, dma_int, hcp_int;
} HAP_power_vapss_payload_v2;

typedef struct {
  boolean power_up;
} HAP_power_hvx_payload;
typedef HAP_power_hvx_payload HAP_power_hmx_payload;

/* The matrix unit's own corners and clock. Values are assumed: only names are public. Accepted, without effect. */
#define HAP_POWER_SET_HMX_V2_DEFINED 1
enum { HAP_CLK_PERF_HIGH };
enum { HAP_DCVS_EXP_VCORNER_DISABLE, HAP_DCVS_EXP_VCORNER_TUR = 0x200, HAP_DCVS_EXP_VCORNER_MAX = 0xffff };
typedef struct {
  boolean set_power, power_up, set_clock, pick_default;
  uint32 target_corner, min_corner, max_corner, perf_mode, freq_mhz, floor_freq_mhz;
} HAP_power_hmx_v2_payload;

typedef enum {
  HAP_POWER_UNKNOWN_CLIENT_CLASS = 0x00,
  HAP_POWER_AUDIO_CLIENT_CLASS = 0x01,
  HAP_POWER_VOICE_CLIENT_CLASS = 0x02,
  HAP_POWER_COMPUTE_CLIENT_CLASS = 0x04,
  HAP_POWER_STREAMING_1HVX_CLIENT_CLASS = 0x08,
  HAP_POWER_STREAMING_2HVX_CLIENT_CLASS = 0x10,
} HAP_power_app_type_payload;

typedef struct {
  void *startAddress;
  uint32 size, throttleBlockSize, throttlePauseUs;
} HAP_power_linelock_payload;
typedef struct {
  void *startAddress;
  uint32 size;
} HAP_power_linelock_nothrottle_payload;

typedef enum { HAP_DCVS_ADJUST_UP_DOWN = 1, HAP_DCVS_ADJUST_ONLY_UP = 2 } HAP_power_dcvs_payload_option;
typedef struct {
  boolean dcvs_enable;
  HAP_power_dcvs_payload_option dcvs_option;
} HAP_power_dcvs_payload;

typedef enum {
  HAP_DCVS_VCORNER_DISABLE,
  HAP_DCVS_VCORNER_SVS2,
  HAP_DCVS_VCORNER_SVS,
  HAP_DCVS_VCORNER_SVS_PLUS,
  HAP_DCVS_VCORNER_NOM,
  HAP_DCVS_VCORNER_NOM_PLUS,
  HAP_DCVS_VCORNER_TURBO,
  HAP_DCVS_VCORNER_TURBO_PLUS,
  HAP_DCVS_VCORNER_TURBO_L2,
  HAP_DCVS_VCORNER_TURBO_L3,
  HAP_DCVS_VCORNER_MAX = 255,
} HAP_dcvs_voltage_corner_t;
#define HAP_DCVS_VCORNER_SVSPLUS HAP_DCVS_VCORNER_SVS_PLUS
#define HAP_DCVS_VCORNER_NOMPLUS HAP_DCVS_VCORNER_NOM_PLUS

typedef struct {
  HAP_dcvs_voltage_corner_t target_corner, min_corner, max_corner;
  uint32 param1, param2, param3;
} HAP_dcvs_params_t;
typedef HAP_dcvs_params_t HAP_core_params_t;
typedef HAP_dcvs_params_t HAP_bus_params_t;
typedef struct {
  uint32 param1, param2, param3, param4, param5, param6;
} HAP_dcvs_v3_params_t;

typedef enum {
  HAP_DCVS_V2_ADJUST_UP_DOWN = 0x1,
  HAP_DCVS_V2_ADJUST_ONLY_UP = 0x2,
  HAP_DCVS_V2_POWER_SAVER_MODE = 0x4,
  HAP_DCVS_V2_POWER_SAVER_AGGRESSIVE_MODE = 0x8,
  HAP_DCVS_V2_PERFORMANCE_MODE = 0x10,
  HAP_DCVS_V2_DUTY_CYCLE_MODE = 0x20,
} HAP_power_dcvs_v2_payload_option;

typedef struct {
  boolean dcvs_enable;
  HAP_power_dcvs_v2_payload_option dcvs_option;
  boolean set_latency;
  uint32 latency;
  boolean set_dcvs_params;
  HAP_dcvs_params_t dcvs_params;
} HAP_power_dcvs_v2_payload;

typedef struct {
  boolean set_dcvs_enable, dcvs_enable;
  HAP_power_dcvs_v2_payload_option dcvs_option;
  boolean set_latency;
  uint32 latency;
  boolean set_core_params;
  HAP_core_params_t core_params;
  boolean set_bus_params;
  HAP_bus_params_t bus_params;
  boolean set_dcvs_v3_params;
  HAP_dcvs_v3_params_t dcvs_v3_params;
  boolean set_sleep_disable;
  boolean sleep_disable;
} HAP_power_dcvs_v3_payload;

typedef enum {
  HAP_power_set_mips_bw = 1,
  HAP_power_set_HVX = 2,
  HAP_power_set_apptype = 3,
  HAP_power_set_linelock = 4,
  HAP_power_set_DCVS = 5,
  HAP_power_set_linelock_nothrottle = 6,
  HAP_power_set_DCVS_v2 = 7,
  HAP_power_set_vapss = 8,
  HAP_power_set_vapss_v2 = 9,
  HAP_power_set_dcvs_v2_update = 10,
  HAP_power_set_streamer = 11,
  HAP_power_set_DCVS_v3 = 12,
  HAP_power_set_HMX = 13,
  HAP_power_set_HMX_v2 = 14,
} HAP_Power_request_type;

typedef struct {
  HAP_Power_request_type type;
  union {
    HAP_power_mips_bw_payload mips_bw;
    HAP_power_vapss_payload vapss;
    HAP_power_vapss_payload_v2 vapss_v2;
    HAP_power_hvx_payload hvx;
    HAP_power_app_type_payload apptype;
    HAP_power_linelock_payload linelock;
    HAP_power_dcvs_payload dcvs;
    HAP_power_dcvs_v2_payload dcvs_v2;
    HAP_power_linelock_nothrottle_payload linelock_nothrottle;
    HAP_power_dcvs_v3_payload dcvs_v3;
    HAP_power_hmx_payload hmx;
    HAP_power_hmx_v2_payload hmx_v2;
  };
} HAP_power_request_t;

typedef enum {
  HAP_power_get_max_mips = 1,
  HAP_power_get_max_bus_bw = 2,
  HAP_power_get_client_class = 3,
  HAP_power_get_clk_Freq = 4,
  HAP_power_get_aggregateAVSMpps = 5,
  HAP_power_get_dcvsEnabled = 6,
  HAP_power_get_hmx_core_clk_Freq = 7, /* clkFreqHz; assumed to be the core's clock */
} HAP_Power_response_type;

typedef struct {
  HAP_Power_response_type type;
  union {
    unsigned int max_mips;
    uint64 max_bus_bw;
    unsigned int client_class, clkFreqHz, aggregateAVSMpps;
    boolean dcvsEnabled;
  };
} HAP_power_response_t;

/* Returns 0, or one of HAP_power_error_codes. */
int HAP_power_set(void *context, HAP_power_request_t *request);
int HAP_power_get(void *context, HAP_power_response_t *response);
/* Withdraw the votes of a context. */
int HAP_power_destroy(void *context);
/* Vote for a clock, in percent of the highest one or in MHz; 0 withdraws the vote. */
int HAP_power_request(int clock, int bus, int latency);
int HAP_power_request_abs(int clock, int bus, int latency);
/* Create a separate context. */
void *HAP_utils_create_context(void);
void HAP_utils_destroy_context(void *context);
int HAP_power_destroy_client(void *context);

/* Shorthands for requests of the type HAP_power_set_DCVS_v3. */
static inline void HAP_power_set_dcvs_v3_init(HAP_power_request_t *request) {
  memset(request, 0, sizeof *request);
  request->type = HAP_power_set_DCVS_v3;
  request->dcvs_v3.set_dcvs_enable = request->dcvs_v3.dcvs_enable = TRUE;
  request->dcvs_v3.dcvs_option = HAP_DCVS_V2_POWER_SAVER_MODE;
  request->dcvs_v3.set_latency = TRUE;
  request->dcvs_v3.latency = 65535;
  request->dcvs_v3.set_core_params = request->dcvs_v3.set_bus_params = TRUE;
  request->dcvs_v3.set_dcvs_v3_params = request->dcvs_v3.set_sleep_disable = TRUE;
}
/* Accepted, without effect: bus corners are not emulated. */
static inline void HAP_set_dcvs_v3_protected_bus_corners(HAP_power_request_t *request, boolean is_protected) {
  (void)request, (void)is_protected;
}
int HAP_power_set_dcvs_option(void *context, boolean dcvs_enable, HAP_power_dcvs_v2_payload_option dcvs_option);
int HAP_power_set_sleep_latency(void *context, uint32 latency);
int HAP_power_set_core_corner(void *context, uint32 target_corner, uint32 min_corner, uint32 max_corner);
int HAP_power_set_bus_corner(void *context, uint32 target_corner, uint32 min_corner, uint32 max_corner);
int HAP_power_set_sleep_mode(void *context, boolean sleep_disable);

#ifdef __cplusplus
}
#endif

#endif
