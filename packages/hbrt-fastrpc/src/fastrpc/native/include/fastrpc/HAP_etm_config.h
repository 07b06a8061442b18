/* A Hexagon's trace unit, which is not emulated: AEE_EUNSUPPORTED.
 *
 * Source: programs that call it, https://github.com/ggml-org/ggml, for names and parameters
 */
#ifndef HBRT_FASTRPC_HAP_ETM_CONFIG_H
#define HBRT_FASTRPC_HAP_ETM_CONFIG_H

#ifdef __cplusplus
extern "C" {
#endif

int HAP_user_etm_enable(void);
int HAP_user_etm_disable(void);

#ifdef __cplusplus
}
#endif

#endif
