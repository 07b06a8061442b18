/* FastRPC for images and generated skeletons; remote.h includes this. Emulator: all but adsp_mmap_fd_getinfo. */
#ifndef HBRT_FASTRPC_SKELETON_H
#define HBRT_FASTRPC_SKELETON_H

#include "remote.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int (*hbrt_fastrpc_invoke)(remote_handle64 h, uint32_t sc, remote_arg *pra);

/* Serve an interface with its skeleton's function. has_handle: methods 0 and 1 open and close an object. The generated
 * NAME_skel_register() calls this. Returns 0. */
int hbrt_fastrpc_register(const char *symbol, hbrt_fastrpc_invoke invoke, int has_handle);

/* Generated skeletons announce themselves with this: an image without its own main() serves all announced skeletons. */
void hbrt_fastrpc_offer(int (*register_interface)(void));
int hbrt_fastrpc_main(void);

/* Whether a stub's URI requires a newer IDL version than the skeleton's, or names no version; called by generated
 * skeletons. */
int hbrt_fastrpc_is_newer(const char *uri, const char *version);

/* The size of the memory behind a program's descriptor; generated skeletons call this for a dmahandle. Returns 0, or -1
 * if there is none. */
int adsp_mmap_fd_getinfo(int fd, uint32_t *len);

/* How an error code of the DSP side arrives at the CPU; in an image, most have the offset already. */
#define HBRT_FASTRPC_ON_DSP(code) ((int)(0x80000400u | (unsigned)(code)))

#ifdef __cplusplus
}
#endif

#endif
