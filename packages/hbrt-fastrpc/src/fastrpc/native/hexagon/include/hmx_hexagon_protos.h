/* Intrinsics of the matrix unit, whose instructions no public compiler has. A program that includes this builds, unless
 * a function that is compiled calls one: that is an error of the compiler.
 *
 * Source: programs that call them, https://github.com/haozixu/htp-ops-lib, https://github.com/alibaba/MNN, for names
 */
#ifndef HBRT_HEXAGON_HMX_PROTOS_H
#define HBRT_HEXAGON_HMX_PROTOS_H

#ifdef __cplusplus
extern "C" {
#endif

void hbrt_no_matrix_unit(void) __attribute__((error("HMX instructions are not public: no matrix unit is emulated")));
#define Q6_cvt_hf_acc_R(...) hbrt_no_matrix_unit()
#define __builtin_HEXAGON_M8_mxmem(...) hbrt_no_matrix_unit()
#define Q6_mxclracc(...) hbrt_no_matrix_unit()
#define Q6_mxclracc_hf(...) hbrt_no_matrix_unit()
#define Q6_mxswapacc(...) hbrt_no_matrix_unit()
#define Q6_mxswapacc_hf(...) hbrt_no_matrix_unit()
#define Q6_bias_mxmem_A(...) hbrt_no_matrix_unit()
#define Q6_bias_mxmem2_A(...) hbrt_no_matrix_unit()
#define Q6_mxmem_bias_A(...) hbrt_no_matrix_unit()
#define Q6_mxmem2_bias_A(...) hbrt_no_matrix_unit()
#define Q6_activation_hf_mxmem_RR(...) hbrt_no_matrix_unit()
#define Q6_activation_hf_mxmem_RR_deep(...) hbrt_no_matrix_unit()
#define Q6_weight_hf_mxmem_RR(...) hbrt_no_matrix_unit()
#define Q6_mxmem_AR_after_hf(...) hbrt_no_matrix_unit()
#define Q6_mxmem_cvt_AR(...) hbrt_no_matrix_unit()
#define Q6_mxmem_cvt_RR(...) hbrt_no_matrix_unit()

#ifdef __cplusplus
}
#endif

#endif
