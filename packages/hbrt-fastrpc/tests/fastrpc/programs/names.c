/* Every C name of FastRPC but the queues', as a program uses them, on the image images/plain.py. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "AEEStdErr.h"
#include "domain_default.h"
#include "os_defines.h"
#include "remote.h"
#include "rpcmem.h"
#include "is.h"

static const char URI[] = "file:///libcalc_skel.so?calc_skel_handle_invoke&_modver=1.0";
static _Atomic int told, last_result, events[8], event_count;

static void ended(fastrpc_async_jobid job, void *context, int result) {
  IS(job > 0 && context == &told, 1);
  last_result = result;
  told++;
}

static int notify(void *context, int domain, int session, remote_rpc_status_flags_t status) {
  IS(context == events && domain == CDSP_DOMAIN_ID && session == 1, 1);
  if (event_count < 8) events[event_count++] = (int)status;
  return 0;
}

static int session(uint32_t req, void *data, uint32_t size) { return remote_session_control(req, data, size); }
#define SESSION(req, data) session(req, &(data), sizeof(data))

static void memory(remote_handle64 handle) {
  char *whole = rpcmem_alloc(RPCMEM_HEAP_ID_SYSTEM, RPCMEM_DEFAULT_FLAGS, 8192);
  IS(whole != NULL && (uintptr_t)whole % 4096 == 0, 1);
  int fd = rpcmem_to_fd(whole);
  IS(fd >= 0, 1);
  IS(rpcmem_to_fd(whole + 1), -1);
  char *again = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  IS(again != MAP_FAILED, 1);
  uint32_t block[] = {4, 4, 2, 0, 0};
  memcpy(again, block, sizeof block); /* by the other mapping */
  memset(whole + 128, 1, 4);
  remote_arg pra[] = {{.buf = {whole, sizeof block}}, {.buf = {whole + 128, 4}}, {.buf = {whole + 128, 4}}, {.buf = {whole + 256, 2}}};
  IS(remote_handle64_invoke(handle, REMOTE_SCALARS_MAKE(2, 3, 1), pra), 0);
  IS(again[256] == 8 && again[257] == 9, 1);

  fastrpc_async_descriptor_t desc = {.type = FASTRPC_ASYNC_POLL};
  int result = 77;
  IS(remote_handle64_invoke_async(handle, &desc, REMOTE_SCALARS_MAKE(2, 3, 1), pra), 0);
  IS(fastrpc_async_get_status(desc.jobid, -1, &result), 0);
  IS(result, 0);
  IS(fastrpc_release_async_job(desc.jobid), 0);
  IS(fastrpc_release_async_job(desc.jobid), AEE_ENOSUCHJOB);
  IS(fastrpc_async_get_status(desc.jobid, 0, NULL), AEE_ENOSUCHJOB);
  {
    fastrpc_async_descriptor_t called = {.type = FASTRPC_ASYNC_CALLBACK, .cb = {ended, &told}};
    IS(remote_handle_invoke_async((remote_handle)handle, &called, REMOTE_SCALARS_MAKE(20, 0, 0), NULL), 0);
    fastrpc_async_jobid job = called.jobid;
    memset(&called, 0xff, sizeof called); /* the library has copied what it needs */
    wait_for(&told, 1);
    IS(last_result, HBRT_FASTRPC_ON_DSP(AEE_EUNSUPPORTED));
    IS(fastrpc_release_async_job(job), 0);
  }
  IS(remote_handle64_invoke_async(handle, NULL, 0, NULL), AEE_EBADPARM);
  char outside[2];
  pra[3].buf.pv = outside;
  IS(remote_handle64_invoke_async(handle, &desc, REMOTE_SCALARS_MAKE(2, 3, 1), pra), AEE_EBADPARM);
  IS(munmap(again, 8192), 0);
  rpcmem_free(whole);
  rpcmem_free(whole);
  IS(rpcmem_alloc2(RPCMEM_HEAP_ID_SYSTEM, 0, 0) == NULL, 1);
  IS(rpcmem_alloc(RPCMEM_HEAP_ID_SYSTEM, 0, -1) == NULL, 1);
}

static void foreign(remote_handle64 handle) {
  int fd = memfd_create("camera", 0);
  IS(ftruncate(fd, 8192), 0);
  char *mine = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  remote_register_buf_attr(mine, 8192, fd, FASTRPC_ATTR_NONE);
  uint32_t block[] = {1, 1, 1, 0, 0};
  memcpy(mine, block, sizeof block);
  mine[128] = 5;
  remote_arg pra[] = {{.buf = {mine, sizeof block}}, {.buf = {mine + 128, 1}}, {.buf = {mine + 128, 1}}, {.buf = {mine + 256, 1}}};
  IS(remote_handle64_invoke(handle, REMOTE_SCALARS_MAKE(2, 3, 1), pra), 0);
  IS(mine[256], 10);
  remote_register_buf_attr2(mine, 8192, -1, 0);
  char *unseen = remote_register_fd2(fd, 8192);
  IS(unseen != (void *)-1, 1);
  for (int at = 0; at < 4; at++) pra[at].buf.pv = (char *)pra[at].buf.pv - mine + unseen;
  mine[256] = 0;
  IS(remote_handle64_invoke(handle, REMOTE_SCALARS_MAKE(2, 3, 1), pra), 0);
  IS(mine[256], 10);
  remote_register_buf(unseen, 8192, -1);
  IS(remote_register_fd(9999, 8192) == (void *)-1, 1);
  IS(fastrpc_mmap(CDSP_DOMAIN_ID, fd, mine, 0, 8192, FASTRPC_MAP_FD), 0);
  IS(fastrpc_mmap(CDSP_DOMAIN_ID, fd, mine, 0, 8192, FASTRPC_MAP_FD), AEE_EALREADY);
  IS(fastrpc_munmap(CDSP_DOMAIN_ID, fd, mine, 4096), AEE_ENOSUCHMAP);
  IS(fastrpc_munmap(CDSP_DOMAIN_ID, fd, mine, 8192), 0);
  uint64_t remote = 0;
  IS(remote_mem_map(CDSP_DOMAIN_ID, fd, REMOTE_MAP_MEM_STATIC, (uintptr_t)mine, 8192, &remote), 0);
  IS(remote != 0, 1);
  IS(remote_mem_unmap(CDSP_DOMAIN_ID, remote, 8192), 0);
  IS(remote_mem_unmap(CDSP_DOMAIN_ID, remote, 8192), AEE_ENOSUCHMAP);
  IS(remote_mem_map(CDSP_DOMAIN_ID, fd, 1, 0, 8192, &remote), AEE_EBADPARM);
  IS(munmap(mine, 8192), 0);
  close(fd);
}

static void requests(remote_handle64 handle) {
  struct remote_rpc_control_latency latency = {RPC_PM_QOS, 100};
  IS(remote_handle64_control(handle, DSPRPC_CONTROL_LATENCY, &latency, sizeof latency), 0);
  IS(remote_handle64_control(handle, DSPRPC_CONTROL_LATENCY, &latency, 1), AEE_EBADPARM);
  struct remote_rpc_control_wakelock lock = {1};
  IS(remote_handle_control(DSPRPC_CONTROL_WAKELOCK, &lock, sizeof lock), 0);
  remote_rpc_get_domain_t domain = {-1};
  IS(remote_handle64_control(handle, DSPRPC_GET_DOMAIN, &domain, sizeof domain), 0);
  IS(domain.domain, CDSP_DOMAIN_ID);
  fastrpc_capability asked = {CDSP_DOMAIN_ID, STATUS_NOTIFICATION_SUPPORT, 0};
  IS(remote_handle_control(DSPRPC_GET_DSP_INFO, &asked, sizeof asked), 0);
  IS(asked.capability, 1);
  char value[8] = "/tmp";
  struct remote_control_custom_path path = {sizeof value, "skel", value};
  IS(remote_handle_control(DSPRPC_SET_PATH, &path, sizeof path), 0);
  memset(value, 0, sizeof value);
  IS(remote_handle_control(DSPRPC_GET_PATH, &path, sizeof path), 0);
  IS(strcmp(value, "/tmp"), 0);
  path.value_size = 4;
  IS(remote_handle_control(DSPRPC_GET_PATH, &path, sizeof path), AEE_EBADSIZE);
  IS(remote_handle_control(DSPRPC_SMMU_SUPPORT, &lock, sizeof lock), AEE_EUNSUPPORTED);

  struct remote_rpc_thread_params threads = {CDSP_DOMAIN_ID, 100, 1 << 16};
  IS(SESSION(FASTRPC_THREAD_PARAMS, threads), 0);
  threads.prio = 256;
  IS(SESSION(FASTRPC_THREAD_PARAMS, threads), AEE_EBADPARM);
  struct remote_rpc_relative_thread_priority relative = {-1, -10};
  IS(SESSION(FASTRPC_RELATIVE_THREAD_PRIORITY, relative), 0);
  struct remote_rpc_control_unsigned_module unsigned_module = {CDSP_DOMAIN_ID, 1};
  IS(SESSION(DSPRPC_CONTROL_UNSIGNED_MODULE, unsigned_module), AEE_EBADSTATE);
  struct remote_rpc_control_pd_dump dump = {-1, 1};
  IS(SESSION(FASTRPC_CONTROL_PD_DUMP, dump), 0);
  struct remote_process_type type = {CDSP_DOMAIN_ID, 9};
  IS(SESSION(FASTRPC_REMOTE_PROCESS_TYPE, type), 0);
  IS(type.process_type, PROCESS_TYPE_SIGNED);
  struct remote_rpc_pd_initmem_size initmem = {-1, 1};
  IS(SESSION(FASTRPC_PD_INITMEM_SIZE, initmem), AEE_EBADPARM);
  IS(remote_session_control(FASTRPC_MAX_THREAD_PARAM, &type, sizeof type), AEE_EUNSUPPORTED);
  IS(remote_session_control(FASTRPC_THREAD_PARAMS, NULL, sizeof threads), AEE_EBADPARM);

  char name[] = "cdsp", mine[] = "mine", text[128];
  remote_rpc_reserve_new_session_t reserved = {name, 4, mine, 4, 0, 0};
  IS(SESSION(FASTRPC_RESERVE_NEW_SESSION, reserved), 0);
  IS(reserved.session_id, 1);
  IS(reserved.effective_domain_id, 3 + 8);
  remote_rpc_effective_domain_id_t effective = {name, 4, 2, 0};
  IS(SESSION(FASTRPC_GET_EFFECTIVE_DOMAIN_ID, effective), 0);
  IS(effective.effective_domain_id, 3 + 16);
  remote_rpc_get_uri_t uri = {name, 4, 1, (char *)URI, sizeof URI - 1, text, sizeof text};
  IS(SESSION(FASTRPC_GET_URI, uri), 0);
  IS(strcmp(text + sizeof URI - 1, CDSP_DOMAIN "&_session=1"), 0);
  uri.uri_len = 20;
  IS(SESSION(FASTRPC_GET_URI, uri), AEE_EBADSIZE);
  uint32_t domains[] = {3, 11};
  fastrpc_context_create context = {domains, 2, 0, 0};
  IS(SESSION(FASTRPC_CONTEXT_CREATE, context), 0);
  fastrpc_context_destroy destroyed = {context.ctx, 0};
  IS(SESSION(FASTRPC_CONTEXT_DESTROY, destroyed), 0);
  IS(SESSION(FASTRPC_CONTEXT_DESTROY, destroyed), AEE_EBADPARM);
}

static void lives(void) {
  remote_rpc_notif_register_t listening = {events, 3 + 8, notify};
  IS(SESSION(FASTRPC_REGISTER_STATUS_NOTIFICATIONS, listening), 0);
  memset(&listening, 0xff, sizeof listening);
  char whole[160];
  snprintf(whole, sizeof whole, "%s%s&_session=1", URI, CDSP_DOMAIN);
  remote_handle64 handle;
  IS(remote_handle64_open(whole, &handle), 0);
  struct remote_rpc_process_clean_params domain = {3 + 8};
  IS(SESSION(FASTRPC_REMOTE_PROCESS_KILL, domain), 0);
  wait_for(&event_count, 3);
  int64_t calls = 0;
  remote_arg back = {.buf = {&calls, sizeof calls}};
  IS(remote_handle64_invoke(handle, REMOTE_SCALARS_MAKE(3, 0, 1), &back), AEE_ECONNRESET);
  IS(remote_handle64_close(handle), 0);
  IS(remote_handle64_open(whole, &handle), 0);
  remote_rpc_process_exception raised = {3 + 8};
  IS(SESSION(FASTRPC_REMOTE_PROCESS_EXCEPTION, raised), 0);
  wait_for(&event_count, 6);
  IS(remote_handle64_close(handle), 0);
  IS(remote_handle64_open(whole, &handle), 0);
  struct remote_rpc_session_close closed = {3 + 8};
  IS(SESSION(FASTRPC_SESSION_CLOSE, closed), 0);
  IS(remote_handle64_close(handle), AEE_EINVHANDLE);
  wait_for(&event_count, 8);
  const int expected[] = {FASTRPC_USER_PD_UP, FASTRPC_USER_PD_FORCE_KILL, FASTRPC_DSP_SSR, FASTRPC_USER_PD_UP,
                          FASTRPC_USER_PD_EXCEPTION, FASTRPC_DSP_SSR, FASTRPC_USER_PD_UP, FASTRPC_USER_PD_EXIT};
  for (int at = 0; at < 8; at++) IS(events[at], expected[at]);
}

int main(void) {
  rpcmem_init();
  char whole[160];
  IS(supported_domains[3].id, CDSP_DOMAIN_ID);
  snprintf(whole, sizeof whole, "%s%s", URI, supported_domains[3].uri);
  remote_handle64 handle;
  IS(remote_handle64_open(whole, &handle), 0);
  memory(handle);
  foreign(handle);
  requests(handle);
  IS(remote_handle64_close(handle), 0);
  remote_handle plain;
  IS(remote_handle_open("calc", &plain), 0);
  int64_t calls = 77;
  remote_arg back = {.buf = {&calls, sizeof calls}};
  IS(remote_handle_invoke(plain, REMOTE_SCALARS_MAKE(3, 0, 1), &back), 0);
  IS(calls, 0);
  IS(remote_handle_close(plain), 0);
  IS(remote_handle_close(plain), AEE_EINVHANDLE);
  IS(remote_handle_open(NULL, &plain), AEE_EBADPARM);
  IS(remote_handle_open("calc", NULL), AEE_EBADPARM);
  lives();
  rpcmem_deinit();
  puts("all is well");
  return 0;
}
