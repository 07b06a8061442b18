/* The result of a call.
 *
 * Source: qualcomm/fastrpc, AEEStdDef.h, for the name, https://github.com/qualcomm/fastrpc
 */
#ifndef HBRT_FASTRPC_AEESTDDEF_H
#define HBRT_FASTRPC_AEESTDDEF_H

typedef int AEEResult;

#endif
