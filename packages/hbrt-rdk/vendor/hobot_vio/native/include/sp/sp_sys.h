/* Bind libspcdev objects so that frames pass from one to another. Functions return 0, or -1.
 *
 * Source: RDK documentation, C multimedia interface, SYS, https://github.com/HorizonRDK/rdk_x3_doc; the numbers as in
 * https://github.com/D-Robotics/x5-hobot-spdev (Apache 2.0).
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
