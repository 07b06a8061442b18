/* Pass frames on from one object of libspcdev to another. A function returns 0, or -1.
 *
 * Source: RDK documentation, C multimedia interface, SYS, https://github.com/HorizonRDK/rdk_x3_doc; the numbers as
 * https://github.com/D-Robotics/x5-hobot-spdev has them (Apache 2.0).
 */
#ifndef HBRT_SP_SYS_H
#define HBRT_SP_SYS_H

#include <stdint.h>

#define SP_MTYPE_VIO 0
#define SP_MTYPE_ENCODER 1
#define SP_MTYPE_DECODER 2
#define SP_MTYPE_DISPLAY 3

#ifdef __cplusplus
extern "C" {
#endif

int32_t sp_module_bind(void *src, int32_t src_type, void *dst, int32_t dst_type);
int32_t sp_module_unbind(void *src, int32_t src_type, void *dst, int32_t dst_type);

#ifdef __cplusplus
}
#endif

#endif
