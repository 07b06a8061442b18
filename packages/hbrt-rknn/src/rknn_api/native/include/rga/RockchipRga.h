/* The 2D engine's older interface in C++, on top of RgaApi.h. DRM buffers are not emulated.
 *
 * Source: librga (Apache 2.0), https://github.com/airockchip/librga
 */
#ifndef _rockchip_rga_h_
#define _rockchip_rga_h_

#include "RgaApi.h"
#include "RgaUtils.h"

typedef struct rga_info rga_info;

class RockchipRga {
 public:
  static RockchipRga &get() {
    static RockchipRga one;
    return one;
  }
  static RockchipRga &getInstance() { return get(); }
  int RkRgaInit() { return c_RkRgaInit(); }
  void RkRgaDeInit() { c_RkRgaDeInit(); }
  void RkRgaGetContext(void **ctx) { c_RkRgaGetContext(ctx); }
  int RkRgaBlit(rga_info *src, rga_info *dst, rga_info *src1) { return c_RkRgaBlit(src, dst, src1); }
  int RkRgaCollorFill(rga_info *dst) { return c_RkRgaColorFill(dst); }
  int RkRgaFlush() { return c_RkRgaFlush(); }
  void RkRgaSetLogOnceFlag(int) {}
  void RkRgaSetAlwaysLogFlag(bool) {}
  bool RkRgaIsReady() { return true; }
};

#endif
