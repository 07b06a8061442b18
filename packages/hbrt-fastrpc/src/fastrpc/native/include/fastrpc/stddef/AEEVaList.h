/* Variable argument lists.
 *
 * Source: the header of this name in Hexagon SDKs, for names, https://github.com/peyer/qcom_hexagon_sdk
 */
#ifndef HBRT_FASTRPC_AEEVALIST_H
#define HBRT_FASTRPC_AEEVALIST_H

#include <stdarg.h>

typedef va_list AEEVaList;

#define AEEVA_START(va, v) va_start((va), v)
#define AEEVA_ARG(va, v, t) ((v) = va_arg((va), t))
#define AEEVA_END(va) va_end((va))
#define AEEVA_COPY(dest, src) va_copy((dest), (src))

#endif
