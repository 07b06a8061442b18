/* A part of remote.h. */
#include "remote.h"

static domain supported_domains[] = {{ADSP_DOMAIN_ID, ADSP_DOMAIN}, {MDSP_DOMAIN_ID, MDSP_DOMAIN}, {SDSP_DOMAIN_ID, SDSP_DOMAIN}, {CDSP_DOMAIN_ID, CDSP_DOMAIN}};
