/* The domains available to programs, with their URI suffixes.
 *
 * Source: programs that use it, https://github.com/ggml-org/ggml, for names
 */
#ifndef HBRT_FASTRPC_DOMAIN_H
#define HBRT_FASTRPC_DOMAIN_H

#include "remote.h"

__attribute__((unused)) static domain supported_domains[] = {
    {ADSP_DOMAIN_ID, ADSP_DOMAIN},
    {MDSP_DOMAIN_ID, MDSP_DOMAIN},
    {SDSP_DOMAIN_ID, SDSP_DOMAIN},
    {CDSP_DOMAIN_ID, CDSP_DOMAIN},
};

#endif
