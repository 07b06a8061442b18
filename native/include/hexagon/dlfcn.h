/* What programs of Hexagons find in this header and musl has not. A program is one static file: its own functions are those
 * that it was linked with, and nothing is loaded.
 *
 * Source: the header of this name in Hexagon SDKs, for names, https://github.com/AlayaBright/HexagonSDK
 */
#ifndef HBRT_HEXAGON_DLFCN_H
#define HBRT_HEXAGON_DLFCN_H

#include_next <dlfcn.h>

#include "qurt.h" /* the vendor's system headers have it */

#ifndef RTLD_SELF
#define RTLD_SELF RTLD_DEFAULT
#endif

#endif
