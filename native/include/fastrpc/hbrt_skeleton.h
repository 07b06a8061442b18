/* What images and generated skeletons have of FastRPC; remote.h includes it. Emulator: all but adsp_mmap_fd_getinfo. */
#ifndef HBRT_FASTRPC_SKELETON_H
#define HBRT_FASTRPC_SKELETON_H

#include "remote.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int (*hbrt_fastrpc_invoke)(remote_handle64 h, uint32_t sc, remote_arg *pra);

/* Serve an interface by its skeleton's function. has_handle: methods 0 and 1 open and close an object. The generated
 * NAME_skel_register() calls this. Returns 0. */
int hbrt_fastrpc_register(const char *symbol, hbrt_fastrpc_invoke invoke, int has_handle);

/* Generated skeletons offer themselves so: an image without a main() of its own serves all that are offered. */
void hbrt_fastrpc_offer(int (*register_interface)(void));
int hbrt_fastrpc_main(void);

/* Whether the URI of a stub asks for a newer version of its IDL file than a skeleton's, or for none; generated skeletons ask. */
int hbrt_fastrpc_is_newer(const char *uri, const char *version);

/* The bytes behind a descriptor of the program; generated skeletons ask for a dmahandle. Returns 0, or -1 for none. */
int adsp_mmap_fd_getinfo(int fd, uint32_t *len);

/* How a code of the DSP side arrives at the CPU. */
#define HBRT_FASTRPC_ON_DSP(code) ((int)(0x80000400u + (unsigned)(code)))

#ifdef __cplusplus
}
#endif

#endif
