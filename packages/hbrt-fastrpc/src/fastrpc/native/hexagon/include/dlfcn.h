/* What Hexagon programs expect from this header but musl lacks. A program is one static file: it finds only the
 * functions linked into it, and nothing is loaded at run time.
 *
 * Source: the header of this name in Hexagon SDKs, for names, https://github.com/AlayaBright/HexagonSDK
 */
#ifndef HBRT_HEXAGON_DLFCN_H
#define HBRT_HEXAGON_DLFCN_H

#include_next <dlfcn.h>

#include "qurt.h" /* the vendor's system headers include it */

#ifndef RTLD_SELF
#define RTLD_SELF RTLD_DEFAULT
#endif

#endif
