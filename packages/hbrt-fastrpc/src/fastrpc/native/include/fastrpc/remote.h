/* FastRPC: handles, scalar words, arguments; for programs ('hbrt cc') and images ('hbrt cc --dsp').
 *
 * Source: qualcomm/fastrpc, remote.h, for names, values and layouts, https://github.com/qualcomm/fastrpc
 * Emulator: everything that begins with hbrt_ or HBRT_.
 */
#ifndef HBRT_FASTRPC_REMOTE_H
#define HBRT_FASTRPC_REMOTE_H

#include <stddef.h>
#include <stdint.h>

/* Programs rename functions and declare their linkage with these. */
#ifndef __QAIC_REMOTE
#define __QAIC_REMOTE(name) name
#endif
#ifndef __QAIC_REMOTE_EXPORT
#define __QAIC_REMOTE_EXPORT
#endif
#ifndef __QAIC_REMOTE_ATTRIBUTE
#define __QAIC_REMOTE_ATTRIBUTE
#endif
#ifndef __QAIC_RETURN
#define __QAIC_RETURN
#define __QAIC_IN
#define __QAIC_IN_CHAR
#define __QAIC_IN_LEN(length)
#define __QAIC_OUT
#define __QAIC_INT64PTR uint64_t
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t remote_handle;
typedef uint64_t remote_handle64;

/* A buffer: its address and its size in bytes. */
typedef struct {
  void *pv;
  size_t nLen;
} remote_buf;

/* Part of a shared memory: its file descriptor, and its offset. */
typedef struct {
  int32_t fd;
  uint32_t offset;
} remote_dma_handle;

/* An argument of an invocation: a buffer, or a handle. */
typedef union {
  remote_buf buf;
  remote_handle h;
  remote_handle64 h64;
  remote_dma_handle dma;
} remote_arg;

/* The scalar word: 3 bits of attributes, 5 of the method, 8 each for input and output buffers, 4 each for handles. */
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

#define REMOTE_SCALARS_METHOD_ATTR(word) ((uint32_t)(word) >> 29 & 0x7)
#define REMOTE_MAX_HANDLES 15
#define ITRANSPORT_PREFIX "'\":;./\\"

#define ADSP_DOMAIN_ID 0
#define MDSP_DOMAIN_ID 1
#define SDSP_DOMAIN_ID 2
#define CDSP_DOMAIN_ID 3
#define CDSP1_DOMAIN_ID 4
#define GDSP0_DOMAIN_ID 5
#define GDSP1_DOMAIN_ID 6

#define ADSP_DOMAIN_NAME "adsp"
#define MDSP_DOMAIN_NAME "mdsp"
#define SDSP_DOMAIN_NAME "sdsp"
#define CDSP_DOMAIN_NAME "cdsp"
#define CDSP1_DOMAIN_NAME "cdsp1"
#define GDSP0_DOMAIN_NAME "gdsp0"
#define GDSP1_DOMAIN_NAME "gdsp1"

#define ADSP_DOMAIN "&_dom=adsp"
#define MDSP_DOMAIN "&_dom=mdsp"
#define SDSP_DOMAIN "&_dom=sdsp"
#define CDSP_DOMAIN "&_dom=cdsp"
#define CDSP1_DOMAIN "&_dom=cdsp1"
#define GDSP0_DOMAIN "&_dom=gdsp0"
#define GDSP1_DOMAIN "&_dom=gdsp1"

#define MAX_DOMAIN_URI_SIZE 12
/* Longer than the domain part of any URI. */
#define MAX_DOMAIN_NAMELEN 30
/* A domain: its number, and its URI suffix. */
typedef struct domain {
  int id;
  char uri[MAX_DOMAIN_URI_SIZE];
} domain_t;
typedef domain_t domain;

/* -- programs: calls. Each returns 0, or a code of AEEStdErr.h. */

/* Open an interface on the domain named by its URI; the form without 64 opens it on cdsp if the URI names no domain. */
int remote_handle_open(const char *name, remote_handle *ph);
int remote_handle64_open(const char *name, remote_handle64 *ph);
/* Run a method: input buffers, then output buffers. Any thread may call this, concurrently. */
int remote_handle_invoke(remote_handle h, uint32_t dwScalars, remote_arg *pra);
int remote_handle64_invoke(remote_handle64 h, uint32_t dwScalars, remote_arg *pra);
int remote_handle_close(remote_handle h);
int remote_handle64_close(remote_handle64 h);

/* -- programs: asynchronous calls, whose outputs are in registered memory */

/* How the end of an asynchronous invocation is reported. */
enum fastrpc_async_notify_type {
  FASTRPC_ASYNC_NO_SYNC = 0,
  FASTRPC_ASYNC_CALLBACK = 1,
  FASTRPC_ASYNC_POLL = 2,
};
typedef uint64_t fastrpc_async_jobid;
/* The callback at the end of an invocation. */
typedef struct fastrpc_async_callback {
  void (*fn)(fastrpc_async_jobid jobid, void *context, int result);
  void *context;
} fastrpc_async_callback_t;
/* How the end of an asynchronous invocation is reported, and its job. */
typedef struct fastrpc_async_descriptor {
  enum fastrpc_async_notify_type type;
  fastrpc_async_jobid jobid; /* out */
  fastrpc_async_callback_t cb;
} fastrpc_async_descriptor_t;

int remote_handle_invoke_async(remote_handle h, fastrpc_async_descriptor_t *desc, uint32_t dwScalars, remote_arg *pra);
int remote_handle64_invoke_async(remote_handle64 h, fastrpc_async_descriptor_t *desc, uint32_t dwScalars,
                                 remote_arg *pra);
/* Get the result of a finished job; AEE_EBUSY if it has not finished. 0 us polls, below 0 waits forever. */
int fastrpc_async_get_status(fastrpc_async_jobid jobid, int timeout_us, int *result);
/* Release a job; once per job, after its end. */
int fastrpc_release_async_job(fastrpc_async_jobid jobid);

/* -- programs: handle requests; datalen is the size of the request's structure */

/* Handle requests. */
enum handle_control_req_id {
  DSPRPC_RESERVED = 0,
  DSPRPC_CONTROL_LATENCY = 1,
  DSPRPC_GET_DSP_INFO = 2,
  DSPRPC_CONTROL_WAKELOCK = 3,
  DSPRPC_GET_DOMAIN = 4,
  DSPRPC_SET_PATH = 5,
  DSPRPC_GET_PATH = 6,
  DSPRPC_SMMU_SUPPORT = 7,
  DSPRPC_KALLOC_SUPPORT = 8,
  DSPRPC_PM = 9,
  DSPRPC_RPC_POLL = 10,
  DSPRPC_ASYNC_WAKE = 11,
  DSPRPC_NOTIF_WAKE = 12,
  DSPRPC_REMOTE_PROCESS_KILL = 13,
  DSPRPC_SET_MODE = 14,
};
/* How a program waits. */
enum remote_rpc_latency_flags { RPC_DISABLE_QOS = 0, RPC_PM_QOS = 1, RPC_ADAPTIVE_QOS = 2, RPC_POLL_QOS = 3 };
/* How a program waits: 0 for the default, 1 to 3 with a latency in microseconds. */
struct remote_rpc_control_latency {
  uint32_t enable;
  uint32_t latency; /* microseconds */
};
/* Attributes for remote_dsp_capability. */
enum remote_dsp_attributes {
  DOMAIN_SUPPORT = 0,
  UNSIGNED_PD_SUPPORT = 1,
  HVX_SUPPORT_64B = 2,
  HVX_SUPPORT_128B = 3,
  VTCM_PAGE = 4,
  VTCM_COUNT = 5,
  ARCH_VER = 6,
  HMX_SUPPORT_DEPTH = 7,
  HMX_SUPPORT_SPATIAL = 8,
  ASYNC_FASTRPC_SUPPORT = 9,
  STATUS_NOTIFICATION_SUPPORT = 10,
  MCID_MULTICAST = 11,
};
/* A capability query for a domain, and its answer. */
typedef struct remote_dsp_capability {
  uint32_t domain;
  uint32_t attribute_ID;
  uint32_t capability; /* out */
} fastrpc_capability;
#define FASTRPC_WAKELOCK_CONTROL_SUPPORTED 1
/* Whether calls keep the CPU awake. */
struct remote_rpc_control_wakelock {
  uint32_t enable;
};
/* The effective domain of a handle. */
typedef struct remote_rpc_get_domain {
  int domain; /* out */
} remote_rpc_get_domain_t;
/* The path of a key: passed in, or written to value of value_size bytes. */
struct remote_control_custom_path {
  int32_t value_size; /* including the NUL */
  const char *path;
  char *value;
};

int remote_handle_control(uint32_t req, void *data, uint32_t datalen);
int remote_handle64_control(remote_handle64 h, uint32_t req, void *data, uint32_t datalen);

/* -- programs: domain requests; a domain is an effective one, or -1 for all sessions of cdsp where stated */

/* Domain requests. */
enum session_control_req_id {
  FASTRPC_RESERVED_1 = 0,
  FASTRPC_THREAD_PARAMS = 1,
  DSPRPC_CONTROL_UNSIGNED_MODULE = 2,
  FASTRPC_RESERVED_2 = 3,
  FASTRPC_RELATIVE_THREAD_PRIORITY = 4,
  FASTRPC_RESERVED_3 = 5,
  FASTRPC_REMOTE_PROCESS_KILL = 6,
  FASTRPC_SESSION_CLOSE = 7,
  FASTRPC_CONTROL_PD_DUMP = 8,
  FASTRPC_REMOTE_PROCESS_EXCEPTION = 9,
  FASTRPC_REMOTE_PROCESS_TYPE = 10,
  FASTRPC_REGISTER_STATUS_NOTIFICATIONS = 11,
  FASTRPC_PD_INITMEM_SIZE = 12,
  FASTRPC_RESERVE_NEW_SESSION = 13,
  FASTRPC_GET_EFFECTIVE_DOMAIN_ID = 14,
  FASTRPC_GET_URI = 15,
  FASTRPC_MAX_THREAD_PARAM = 16,
  FASTRPC_CONTEXT_CREATE = 17,
  FASTRPC_CONTEXT_DESTROY = 18,
};
/* Parameters of a domain's threads. */
struct remote_rpc_thread_params {
  int domain;     /* or -1 */
  int prio;       /* 1 (the highest) to 255, or -1 */
  int stack_size; /* 16 KiB to 8 MiB, or -1 */
};
/* Whether unsigned skeletons may be loaded. */
struct remote_rpc_control_unsigned_module {
  int domain; /* or -1 */
  int enable;
};
/* Offset of a domain's thread priority from the default, 192. */
struct remote_rpc_relative_thread_priority {
  int domain;                   /* or -1 */
  int relative_thread_priority; /* to 192; below 0 for a higher priority */
};
/* The domain whose process is to be ended. */
struct remote_rpc_process_clean_params {
  int domain;
};
/* The domain whose session is to be closed. */
struct remote_rpc_session_close {
  int domain; /* or -1 */
};
/* Whether a crashing domain leaves a dump. */
struct remote_rpc_control_pd_dump {
  int domain; /* or -1 */
  int enable;
};
typedef struct remote_rpc_process_clean_params remote_rpc_process_exception;
/* Values of remote_process_type. */
enum fastrpc_process_type { PROCESS_TYPE_SIGNED = 0, PROCESS_TYPE_UNSIGNED = 1 };
/* A process-type query for a domain, and its answer. */
struct remote_process_type {
  int domain;
  int process_type; /* out: PROCESS_TYPE_SIGNED or PROCESS_TYPE_UNSIGNED */
};
/* Domain states reported to a notifier. */
typedef enum remote_rpc_status_flags {
  FASTRPC_USER_PD_UP = 0,
  FASTRPC_USER_PD_EXIT = 1,
  FASTRPC_USER_PD_FORCE_KILL = 2,
  FASTRPC_USER_PD_EXCEPTION = 3,
  FASTRPC_DSP_SSR = 4,
} remote_rpc_status_flags_t;
/* Called for each change of a domain's state. */
typedef int (*fastrpc_notif_fn_t)(void *context, int domain, int session, remote_rpc_status_flags_t status);
/* The callback for each state of a domain. */
typedef struct remote_rpc_notif_register {
  void *context;
  int domain;
  fastrpc_notif_fn_t notifier_fn;
} remote_rpc_notif_register_t;
/* Memory of a process domain at its start. */
struct remote_rpc_pd_initmem_size {
  int domain;               /* or -1 */
  uint32_t pd_initmem_size; /* 3 to 200 MiB */
};
/* Reserve a session on a domain. Lengths of names and URIs exclude the NUL. */
typedef struct remote_rpc_reserve_new_session {
  char *domain_name;
  uint32_t domain_name_len;
  char *session_name;
  uint32_t session_name_len;
  uint32_t effective_domain_id; /* out */
  uint32_t session_id;          /* out */
} remote_rpc_reserve_new_session_t;
/* The effective domain of a domain and a session. */
typedef struct remote_rpc_effective_domain_id {
  char *domain_name;
  uint32_t domain_name_len;
  uint32_t session_id;
  uint32_t effective_domain_id; /* out */
} remote_rpc_effective_domain_id_t;
/* The URI that opens an interface on a given domain and session. */
typedef struct remote_rpc_get_uri {
  char *domain_name;
  uint32_t domain_name_len;
  uint32_t session_id;
  char *module_uri;
  uint32_t module_uri_len;
  char *uri; /* out */
  uint32_t uri_len;
} remote_rpc_get_uri_t;
/* Parameters of an unsigned process domain's threads. */
struct remote_rpc_set_max_thread {
  int domain;
  unsigned int max_num_threads; /* 128 to 256 */
};
/* Effective domains, and one identifier for all of them. */
typedef struct fastrpc_context_create {
  uint32_t *effec_domain_ids;
  uint32_t num_domain_ids;
  uint64_t flags;
  uint64_t ctx; /* out */
} fastrpc_context_create;
/* The identifier from fastrpc_context_create. */
typedef struct fastrpc_context_destroy {
  uint64_t ctx;
  uint64_t flags;
} fastrpc_context_destroy;

int remote_session_control(uint32_t req, void *data, uint32_t datalen);

/* -- programs: the domains of a system; this system reports none */

/* Domain types. */
typedef enum { ALL_DOMAINS, NSP, LPASS, SDSP, MODEM, HPASS } fastrpc_domain_type;
/* Their newer names. */
#define FASTRPC_ALL_DOMAINS ALL_DOMAINS
#define FASTRPC_NSP NSP
#define FASTRPC_LPASS LPASS
#define FASTRPC_SDSP SDSP
#define FASTRPC_MODEM MODEM
#define FASTRPC_HPASS HPASS
/* A domain of a system. */
typedef struct fastrpc_domain {
  int id;
  char name[MAX_DOMAIN_NAMELEN];
  fastrpc_domain_type type;
  int status; /* 0 if it is down */
  uint32_t card;
  uint32_t soc_id;
} fastrpc_domain;
/* Query for domains of a type. */
typedef struct fastrpc_domains_info {
  fastrpc_domain *domains; /* out: max_domains of them */
  int max_domains;
  int num_domains; /* out */
  uint64_t flags;  /* the type */
} fastrpc_domains_info;
/* System requests. */
typedef enum { FASTRPC_GET_DOMAINS = 0 } system_req_id;
/* A system request. */
typedef struct system_req_payload {
  system_req_id id;
  union {
    fastrpc_domains_info sys;
  };
} system_req_payload;

int remote_system_request(system_req_payload *req);

/* -- programs: memory */

#define FASTRPC_ATTR_NONE 0
#define FASTRPC_ATTR_NON_COHERENT 2
#define FASTRPC_ATTR_COHERENT 4
#define FASTRPC_ATTR_KEEP_MAP 8
#define FASTRPC_ATTR_NOMAP 16
#define FASTRPC_ATTR_FORCE_NOFLUSH 32
#define FASTRPC_ATTR_FORCE_NOINVALIDATE 64
#define FASTRPC_ATTR_TRY_MAP_STATIC 128

/* Register memory that is mapped from a descriptor's first byte on; -1 undoes it. Attributes are ignored. */
void remote_register_buf(void *buf, int size, int fd);
void remote_register_buf_attr(void *buf, int size, int fd, int attr);
void remote_register_buf_attr2(void *buf, size_t size, int fd, int attr);
/* An address that stands for a descriptor's memory in calls, but is not readable by the program; -1 on failure. */
void *remote_register_fd(int fd, int size);
void *remote_register_fd2(int fd, size_t size);

/* Mapping modes of fastrpc_mmap. */
enum fastrpc_map_flags {
  FASTRPC_MAP_STATIC = 0,
  FASTRPC_MAP_FD = 2,
  FASTRPC_MAP_FD_DELAYED = 3,
  FASTRPC_MAP_FD_NOMAP = 16,
};
int fastrpc_mmap(int domain, int fd, void *addr, int offset, size_t length, enum fastrpc_map_flags flags);
int fastrpc_munmap(int domain, int fd, void *addr, size_t length);

/* The older forms: memory of the default domain, given its descriptor. */
int remote_mmap(int fd, uint32_t flags, uint32_t vaddrin, int size, uint32_t *vaddrout);
int remote_munmap(uint32_t vaddrout, int size);
int remote_mmap64(int fd, uint32_t flags, uint64_t vaddrin, int64_t size, uint64_t *vaddrout);
int remote_munmap64(uint64_t vaddrout, int64_t size);
/* The size of the memory behind a descriptor passed in a call; generated stubs call this for a dmahandle. */
int remote_register_dma_handle(int fd, uint32_t len);
int remote_register_dma_handle_attr(int fd, uint32_t len, uint32_t attr);

#define REMOTE_MODE_PARALLEL 0
#define REMOTE_MODE_SERIAL 1
/* Accepted; calls run concurrently in both modes. */
int remote_set_mode(uint32_t mode);

/* Mapping modes of remote_mem_map. */
enum remote_mem_map_flags { REMOTE_MAP_MEM_STATIC = 0 };
/* Like fastrpc_mmap, but returns the physical address. */
int remote_mem_map(int domain, int fd, int flags, uint64_t virtAddr, size_t size, uint64_t *remoteVirtAddr);
int remote_mem_unmap(int domain, uint64_t remoteVirtAddr, size_t size);

#ifdef __cplusplus
}
#endif

#include "hbrt_skeleton.h"

#endif
