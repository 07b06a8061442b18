/* FastRPC: handles, scalar words, arguments; for programs ('hbrt cc') and images ('hbrt cc --dsp').
 *
 * Source: qualcomm/fastrpc, remote.h, for names, values and layouts, https://github.com/qualcomm/fastrpc
 * Emulator: what begins with hbrt_ or HBRT_.
 */
#ifndef HBRT_FASTRPC_REMOTE_H
#define HBRT_FASTRPC_REMOTE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t remote_handle;
typedef uint64_t remote_handle64;

typedef struct {
  void *pv;
  size_t nLen;
} remote_buf;

typedef struct {
  int32_t fd;
  uint32_t offset;
} remote_dma_handle;

typedef union {
  remote_buf buf;
  remote_handle h;
  remote_handle64 h64;
  remote_dma_handle dma;
} remote_arg;

/* The scalar word: 3 bits of attributes, 5 of the method, 8 and 8 of input and output buffers, 4 and 4 of handles. */
#define REMOTE_SCALARS_MAKEX(attributes, method, in_buffers, out_buffers, in_handles, out_handles)             \
  (((uint32_t)(attributes) & 0x7) << 29 | ((uint32_t)(method) & 0x1f) << 24 | ((uint32_t)(in_buffers) & 0xff) << 16 | \
   ((uint32_t)(out_buffers) & 0xff) << 8 | ((uint32_t)(in_handles) & 0xf) << 4 | ((uint32_t)(out_handles) & 0xf))
#define REMOTE_SCALARS_MAKE(method, in_buffers, out_buffers) \
  REMOTE_SCALARS_MAKEX(0, method, in_buffers, out_buffers, 0, 0)
#define REMOTE_SCALARS_METHOD(word) ((uint32_t)(word) >> 24 & 0x1f)
#define REMOTE_SCALARS_INBUFS(word) ((uint32_t)(word) >> 16 & 0xff)
#define REMOTE_SCALARS_OUTBUFS(word) ((uint32_t)(word) >> 8 & 0xff)
#define REMOTE_SCALARS_INHANDLES(word) ((uint32_t)(word) >> 4 & 0xf)
#define REMOTE_SCALARS_OUTHANDLES(word) ((uint32_t)(word) & 0xf)
#define REMOTE_SCALARS_LENGTH(word)                                                                      \
  (REMOTE_SCALARS_INBUFS(word) + REMOTE_SCALARS_OUTBUFS(word) + REMOTE_SCALARS_INHANDLES(word) + \
   REMOTE_SCALARS_OUTHANDLES(word))

#define ADSP_DOMAIN_ID 0
#define MDSP_DOMAIN_ID 1
#define SDSP_DOMAIN_ID 2
#define CDSP_DOMAIN_ID 3
#define CDSP1_DOMAIN_ID 4

#define ADSP_DOMAIN "&_dom=adsp"
#define MDSP_DOMAIN "&_dom=mdsp"
#define SDSP_DOMAIN "&_dom=sdsp"
#define CDSP_DOMAIN "&_dom=cdsp"
#define CDSP1_DOMAIN "&_dom=cdsp1"

/* -- programs */

/* Open an interface on the domain that its URI names. 0, or a code of AEEStdErr.h, as of all calls here. */
int remote_handle64_open(const char *name, remote_handle64 *ph);
/* Run a method: input buffers, then output buffers. Any thread may, several at once. */
int remote_handle64_invoke(remote_handle64 h, uint32_t dwScalars, remote_arg *pra);
int remote_handle64_close(remote_handle64 h);

/* Register memory that is mapped of a descriptor's first byte on; -1 undoes it. */
void remote_register_buf(void *buf, int size, int fd);

enum fastrpc_map_flags {
  FASTRPC_MAP_STATIC = 0,
  FASTRPC_MAP_FD = 2,
  FASTRPC_MAP_FD_DELAYED = 3,
  FASTRPC_MAP_FD_NOMAP = 16,
};
int fastrpc_mmap(int domain, int fd, void *addr, int offset, size_t length, enum fastrpc_map_flags flags);
int fastrpc_munmap(int domain, int fd, void *addr, size_t length);

/* -- images */

typedef int (*hbrt_fastrpc_invoke)(remote_handle64 h, uint32_t sc, remote_arg *pra);

/* Serve an interface by its skeleton's function. has_handle: methods 0 and 1 open and close an object. The generated
 * NAME_skel_register() calls this. Returns 0. */
int hbrt_fastrpc_register(const char *symbol, hbrt_fastrpc_invoke invoke, int has_handle);

/* How a code of the DSP side arrives at the CPU. */
#define HBRT_FASTRPC_ON_DSP(code) ((int)(0x80000400u + (unsigned)(code)))

#ifdef __cplusplus
}
#endif

#endif
