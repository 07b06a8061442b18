/* Codes of FastRPC in programs, out of fastrpc/wire/aee.py.
 *
 * Source: qualcomm/fastrpc, AEEStdErr.h, for names and values, https://github.com/qualcomm/fastrpc
 */
#ifndef HBRT_FASTRPC_AEESTDERR_H
#define HBRT_FASTRPC_AEESTDERR_H

#define AEE_EOFFSET 0
#define AEE_SUCCESS 0 /* The call succeeded. */
#define AEE_EUNKNOWN (-1) /* Unknown error. */
#define AEE_EFAILED 1 /* The call failed. */
#define AEE_ENOMEMORY 2 /* Out of memory. */
#define AEE_EVERSIONNOTSUPPORT 4 /* The version is not supported. */
#define AEE_EUNABLETOLOAD 6 /* The skeleton cannot be loaded. */
#define AEE_EEXPIRED 12 /* Timed out. */
#define AEE_EBADSTATE 13 /* The call is invalid in this state. */
#define AEE_EBADPARM 14 /* Invalid argument. */
#define AEE_EBADITEM 16 /* Invalid item. */
#define AEE_EUNSUPPORTED 20 /* The call, or the method, is not supported. */
#define AEE_ERESOURCENOTFOUND 22 /* A resource was not found. */
#define AEE_EALREADY 26 /* Already done. */
#define AEE_EITEMBUSY 32 /* The item is in use. */
#define AEE_EBUFFERTOOSMALL 38 /* A buffer is too small. */
#define AEE_ENOSUCH 39 /* Item not found. */
#define AEE_EINVALIDITEM 42 /* Invalid item. */
#define AEE_ENOTALLOWED 43 /* Not allowed. */
#define AEE_EINVHANDLE 44 /* Invalid handle. */
#define AEE_EOUTOFHANDLES 45 /* Out of handles. */
#define AEE_EINTERRUPTED 46 /* The call was interrupted. */
#define AEE_ENOMORE 47 /* No more items. */
#define AEE_EINVALIDDOMAIN 57 /* Invalid domain. */
#define AEE_EINVALIDFD 58 /* Invalid file descriptor. */
#define AEE_EINVALIDDEVICE 59 /* Invalid device. */
#define AEE_ENOSUCHMOD 62 /* Module not found. */
#define AEE_ENOSUCHSYMBOL 66 /* Symbol not found. */
#define AEE_ENOSUCHFILE 69 /* File not found. */
#define AEE_ENOSUCHHANDLE 70 /* Handle not found. */
#define AEE_ENOSUCHMAP 72 /* Mapping not found. */
#define AEE_EBADDOMAIN 75 /* The domain is not valid for this call. */
#define AEE_EBADOFFSET 76 /* Invalid offset. */
#define AEE_EBADSIZE 77 /* Invalid size. */
#define AEE_EBADFD 79 /* The file descriptor does not refer to shared memory. */
#define AEE_EBADMEMALIGN 85 /* The memory is not aligned. */
#define AEE_EMMAP 101 /* Mapping failed. */
#define AEE_EIONMAP 102 /* Mapping shared memory failed. */
#define AEE_EIONALLOC 103 /* Allocating shared memory failed. */
#define AEE_ECONNRESET 104 /* The domain of the handle has ended. */
#define AEE_ENORPCMEMORY 104 /* Out of shared memory. */
#define AEE_ENOTINITIALIZED 107 /* Not initialized. */
#define AEE_EUNSUPPORTEDAPI 108 /* The call is not supported here. */
#define AEE_EMAXBUFS 112 /* Too many buffers. */
#define AEE_EINVARGS 113 /* The arguments do not fit the scalar word. */
#define AEE_ECONNREFUSED 114 /* The domain accepts no connections. */
#define AEE_EUNSIGNEDMOD 129 /* The module is not signed. */
#define AEE_ENOSUCHJOB 132 /* Job not found. */
#define AEE_ENOSESSION 138 /* Session not found. */
#define AEE_EINVALIDJOB 386 /* Invalid job. */
#define AEE_EBUSY 387 /* The job has not finished. */
#define AEE_ESTUBSKELVERMISMATCH 404 /* Stub and skeleton have different versions. */
#define AEE_ERPC 512 /* The remote call failed. */
#define AEE_EFILE 513 /* A file could not be used. */
#define AEE_EWOULDBLOCK 516 /* The call would block. */
#define AEE_ECLASSNOTSUPPORT 3 /* The class is not supported. */
#define AEE_EALREADYLOADED 5 /* Already loaded. */
#define AEE_EUNABLETOUNLOAD 7 /* Cannot be unloaded. */
#define AEE_EALARMPENDING 8 /* An alarm is pending. */
#define AEE_EINVALIDTIME 9 /* Invalid time. */
#define AEE_EBADCLASS 10 /* Invalid class. */
#define AEE_EBADMETRIC 11 /* Invalid metric. */
#define AEE_ESCHEMENOTSUPPORTED 15 /* The scheme is not supported. */
#define AEE_EINVALIDFORMAT 17 /* Invalid format. */
#define AEE_EINCOMPLETEITEM 18 /* An item is incomplete. */
#define AEE_ENOPERSISTMEMORY 19 /* Out of persistent memory. */
#define AEE_EPRIVLEVEL 21 /* Insufficient privileges. */
#define AEE_EREENTERED 23 /* The call was reentered. */
#define AEE_EBADTASK 24 /* Invalid task. */
#define AEE_EALLOCATED 25 /* Memory is still allocated. */
#define AEE_EADSAUTHBAD 27 /* The server refused the authentication. */
#define AEE_ENEEDSERVICEPROG 28 /* The service must be programmed first. */
#define AEE_EMEMPTR 29 /* Invalid pointer. */
#define AEE_EHEAP 30 /* The heap is damaged. */
#define AEE_EIDLE 31 /* The other side is idle. */
#define AEE_EBADSID 33 /* Invalid system identifier. */
#define AEE_ENOTYPE 34 /* Unknown type. */
#define AEE_ENEEDMORE 35 /* More data is needed. */
#define AEE_EADSCAPS 36 /* Insufficient capabilities. */
#define AEE_EBADSHUTDOWN 37 /* It was not shut down properly. */
#define AEE_EACKPENDING 40 /* An acknowledgement is pending. */
#define AEE_ENOTOWNER 41 /* The caller does not own it. */
#define AEE_ECPUEXCEPTION 48 /* The processor raised an exception. */
#define AEE_EREADONLY 49 /* Not writable. */
#define AEE_EINVALIDMSG 50 /* Invalid message. */
#define AEE_EINVALIDTHREAD 51 /* Invalid thread. */
#define AEE_EINVALIDPROCESS 52 /* Invalid process. */
#define AEE_EINVALIDFILENAME 53 /* Invalid file name. */
#define AEE_EINVALIDDIGESTSIZE 54 /* Invalid digest size. */
#define AEE_EINVALIDSEGS 55 /* Invalid segments. */
#define AEE_EINVALIDSIGNATURE 56 /* Invalid signature. */
#define AEE_EINVALIDMODE 60 /* Invalid mode. */
#define AEE_EINVALIDPROCNAME 61 /* Invalid process name. */
#define AEE_ENOSUCHINSTANCE 63 /* Instance not found. */
#define AEE_ENOSUCHTHREAD 64 /* Thread not found. */
#define AEE_ENOSUCHPROCESS 65 /* Process not found. */
#define AEE_ENOSUCHDEVICE 67 /* Device not found. */
#define AEE_ENOSUCHPROP 68 /* Property not found. */
#define AEE_ENOSUCHSTREAM 71 /* Stream not found. */
#define AEE_ENOSUCHREGISTER 73 /* Register not found. */
#define AEE_ENOSUCHCLIENT 74 /* Client not found. */
#define AEE_EBADPERMS 78 /* Invalid permissions. */
#define AEE_EBADPID 80 /* Invalid process identifier. */
#define AEE_EBADTID 81 /* Invalid thread identifier. */
#define AEE_EBADELF 82 /* Invalid ELF file. */
#define AEE_EBADASID 83 /* Invalid address space. */
#define AEE_EBADCONTEXT 84 /* Invalid context. */
#define AEE_EIOCTL 86 /* An ioctl failed. */
#define AEE_EFOPEN 87 /* A file could not be opened. */
#define AEE_EFGETS 88 /* A file could not be read. */
#define AEE_EFFLUSH 89 /* A file could not be flushed. */
#define AEE_EFCLOSE 90 /* A file could not be closed. */
#define AEE_EEOF 91 /* End of file. */
#define AEE_EFREAD 92 /* A file could not be read. */
#define AEE_EFWRITE 93 /* A file could not be written. */
#define AEE_EFGETPOS 94 /* A file's position could not be read. */
#define AEE_EFSETPOS 95 /* A file's position could not be set. */
#define AEE_EFTELL 96 /* A file's position could not be read. */
#define AEE_EFSEEK 97 /* A file's position could not be set. */
#define AEE_EFLEN 98 /* A file's length could not be read. */
#define AEE_EGETENV 99 /* An environment variable could not be read. */
#define AEE_ESETENV 100 /* An environment variable could not be set. */
#define AEE_ENOROOTOFTRUST 105 /* No root of trust. */
#define AEE_ENOTLOCKED 106 /* Not locked. */
#define AEE_EUNPACK 109 /* The arguments could not be unpacked. */
#define AEE_EPOLL 110 /* Polling failed. */
#define AEE_EEVENTREAD 111 /* An event could not be read. */
#define AEE_EINVALIDHASH 130 /* Invalid hash. */
#define AEE_EBADVA 131 /* Invalid virtual address. */
#define AEE_ENOSUCHGROUP 132 /* Group not found. */
#define AEE_EBADMAPREFCNT 133 /* Invalid map count. */
#define AEE_EBADPAGECNT 134 /* Invalid number of pages. */
#define AEE_EMAPALREADYPRESENT 135 /* Already mapped. */
#define AEE_ENOFREESECTION 136 /* No free section. */
#define AEE_U2GCLIENT_OPEN 137 /* A client of the guest is open. */
#define AEE_EGLINK_OFFSET 256 /* The transport failed. */
#define AEE_EGLINKBADPACKET 257 /* The transport failed: a packet is not valid. */
#define AEE_EGLINKALREADYOPEN 258 /* The transport failed: it is already open. */
#define AEE_EGLINKOPENFAILED 259 /* The transport failed: it could not be opened. */
#define AEE_EGLINKWRITE 260 /* The transport failed: it could not be written. */
#define AEE_EGLINKREGISTER 261 /* The transport failed: it could not register. */
#define AEE_ESMD_OFFSET 256 /* The transport failed. */
#define AEE_ESMDBADPACKET 257 /* The transport failed: a packet is not valid. */
#define AEE_ESMDALREADYOPEN 258 /* The transport failed: it is already open. */
#define AEE_ESMDOPENFAILED 259 /* The transport failed: it could not be opened. */
#define AEE_EDAL_OFFSET 288 /* A device of the DSP failed. */
#define AEE_EDALDEVATTACH 289 /* A device of the DSP failed: it could not be attached. */
#define AEE_EDALINTREGISTER 290 /* A device of the DSP failed: an interrupt could not be registered. */
#define AEE_EDALINTUNREGISTER 291 /* A device of the DSP failed: an interrupt could not be released. */
#define AEE_EDALGETPROP 292 /* A device of the DSP failed: a property could not be read. */
#define AEE_EDALGETVAL 293 /* A device of the DSP failed: a value could not be read. */
#define AEE_EDCVSREQUEST 294 /* A request for a clock failed. */
#define AEE_EQURT_OFFSET 320 /* The kernel of the DSP failed. */
#define AEE_EQURTREGIONCREATE 321 /* The kernel of the DSP failed: a region could not be created. */
#define AEE_EQURTCACHECLEAN 322 /* The kernel of the DSP failed: a cache could not be cleaned. */
#define AEE_EQURTREGIONGETATTR 323 /* The kernel of the DSP failed: the attributes of a region could not be read. */
#define AEE_EQURTBADREGIONPERMS 324 /* The kernel of the DSP failed: the permissions of a region are not valid. */
#define AEE_EQURTMEMPOOLADD 325 /* The kernel of the DSP failed: memory could not be added to a pool. */
#define AEE_EQURTREGISTERDEV 326 /* The kernel of the DSP failed: a device could not be registered. */
#define AEE_EQURTMEMPOOLCREATE 327 /* The kernel of the DSP failed: a pool could not be created. */
#define AEE_EQURTGETVA 328 /* The kernel of the DSP failed: a virtual address could not be read. */
#define AEE_EQURTREGIONDELETE 329 /* The kernel of the DSP failed: a region could not be deleted. */
#define AEE_EQURTMEMPOOLATTACH 330 /* The kernel of the DSP failed: a pool could not be attached. */
#define AEE_EQURTTHREADCREATE 331 /* The kernel of the DSP failed: a thread could not be created. */
#define AEE_EQURTCOPYTOUSER 332 /* The kernel of the DSP failed: data could not be copied to the user. */
#define AEE_EQURTMEMMAPCREATE 333 /* The kernel of the DSP failed: a mapping could not be created. */
#define AEE_EQURTINVHANDLE 334 /* The kernel of the DSP failed: the handle is not valid. */
#define AEE_EQURTBADASID 335 /* The kernel of the DSP failed: the address space is not valid. */
#define AEE_EQURTOPENFAILED 336 /* The kernel of the DSP failed: it could not be opened. */
#define AEE_EQURTCOPYFROMUSER 337 /* The kernel of the DSP failed: data could not be copied from the user. */
#define AEE_EQURTLINELOCK 338 /* The kernel of the DSP failed: a cache line could not be locked. */
#define AEE_EQURTQDIDEFMETHOD 339 /* The kernel of the DSP failed: a method is not defined. */
#define AEE_EQURTCREATEHANDLE 340 /* The kernel of the DSP failed: a handle could not be created. */
#define AEE_EQURTWRITABLEMEM 341 /* The kernel of the DSP failed: memory is not writable. */
#define AEE_EQURTTHREADCREATEDEF 342 /* The kernel of the DSP failed: a thread could not be created. */
#define AEE_EQURTLOOKUPVA 343 /* The kernel of the DSP failed: a virtual address could not be found. */
#define AEE_EQURTLOOKUPPA 344 /* The kernel of the DSP failed: a physical address could not be found. */
#define AEE_EQURTMIGRATESECURE 345 /* The kernel of the DSP failed: it could not switch to secure mode. */
#define AEE_EQURTQDIOPEN 352 /* The kernel of the DSP failed: it could not be opened. */
#define AEE_EQURTMAPREMOVE 353 /* The kernel of the DSP failed: a mapping could not be removed. */
#define AEE_EQURTQDICLOSE 354 /* The kernel of the DSP failed: it could not be closed. */
#define AEE_EQURTWAIT 355 /* The kernel of the DSP failed: waiting failed. */
#define AEE_EMMPM_OFFSET 368 /* The power manager failed. */
#define AEE_EMMPMREQUEST 369 /* The power manager failed: a request failed. */
#define AEE_EMMPMRELEASE 370 /* The power manager failed: a release failed. */
#define AEE_EMMPMSETPARAM 371 /* The power manager failed: a parameter could not be set. */
#define AEE_EMMPMREGISTER 372 /* The power manager failed: it could not register. */
#define AEE_EMMPMGETINFO 373 /* The power manager failed: it did not answer. */
#define AEE_EMAX_MMPM_CLIENTS 374 /* Too many clients of the power manager. */
#define AEE_EDCVSREGISTER 375 /* A client of the clocks could not register. */
#define AEE_PDRREGFAIL 376 /* A client of restarts could not register. */
#define AEE_DEFAULT_PROCESS 384 /* It is the default process. */
#define AEE_ENULLCONTEXT 385 /* The context is NULL. */
#define E_APPS_BUSY_RETRY_LATER 400 /* The processor is busy; call again later. */
#define E_HLOS_CAP_REACHED 401 /* The operating system is out of memory. */
#define E_DPOOL_CAP_REACHED 402 /* The pool is exhausted. */
#define E_NO_MORE_FREE_SECTIONS 403 /* No free section. */
#define AEE_EBADHANDLE 44 /* Invalid handle. */

#endif
