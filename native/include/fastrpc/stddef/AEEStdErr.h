/* Codes of FastRPC, out of fastrpc/wire/aee.py.
 *
 * Source: qualcomm/fastrpc, AEEStdErr.h, for names and values, https://github.com/qualcomm/fastrpc
 */
#ifndef HBRT_FASTRPC_AEESTDERR_H
#define HBRT_FASTRPC_AEESTDERR_H

#define AEE_SUCCESS 0 /* The call succeeded. */
#define AEE_EUNKNOWN (-1) /* The error is not known. */
#define AEE_EFAILED 1 /* The call failed. */
#define AEE_ENOMEMORY 2 /* There is no memory for it. */
#define AEE_EVERSIONNOTSUPPORT 4 /* The version is not supported. */
#define AEE_EUNABLETOLOAD 6 /* The skeleton cannot be loaded. */
#define AEE_EEXPIRED 12 /* The time is over. */
#define AEE_EBADSTATE 13 /* The call does not fit the state. */
#define AEE_EBADPARM 14 /* An argument is not valid. */
#define AEE_EBADITEM 16 /* An item is not valid. */
#define AEE_EUNSUPPORTED 20 /* The call, or the method, is not supported. */
#define AEE_ERESOURCENOTFOUND 22 /* A resource is not there. */
#define AEE_EALREADY 26 /* It was done before. */
#define AEE_EITEMBUSY 32 /* The item is in use. */
#define AEE_EBUFFERTOOSMALL 38 /* A buffer is too small. */
#define AEE_ENOSUCH 39 /* There is no such item. */
#define AEE_EINVALIDITEM 42 /* The item is not valid. */
#define AEE_ENOTALLOWED 43 /* It is not allowed. */
#define AEE_EINVHANDLE 44 /* The handle is not a live one. */
#define AEE_EOUTOFHANDLES 45 /* No handle is left. */
#define AEE_EINTERRUPTED 46 /* The call was interrupted. */
#define AEE_ENOMORE 47 /* There are no more. */
#define AEE_EINVALIDDOMAIN 57 /* The domain is not valid. */
#define AEE_EINVALIDFD 58 /* The file descriptor is not valid. */
#define AEE_EINVALIDDEVICE 59 /* The device is not valid. */
#define AEE_ENOSUCHMOD 62 /* There is no such module. */
#define AEE_ENOSUCHSYMBOL 66 /* There is no such symbol. */
#define AEE_ENOSUCHFILE 69 /* There is no such file. */
#define AEE_ENOSUCHHANDLE 70 /* There is no such handle. */
#define AEE_ENOSUCHMAP 72 /* There is no such mapping. */
#define AEE_EBADDOMAIN 75 /* The domain is not valid for this call. */
#define AEE_EBADOFFSET 76 /* The offset is not valid. */
#define AEE_EBADSIZE 77 /* The size is not valid. */
#define AEE_EBADFD 79 /* The file descriptor is not of shared memory. */
#define AEE_EBADMEMALIGN 85 /* The memory is not aligned. */
#define AEE_EMMAP 101 /* Mapping failed. */
#define AEE_EIONMAP 102 /* Mapping shared memory failed. */
#define AEE_EIONALLOC 103 /* Allocating shared memory failed. */
#define AEE_ECONNRESET 104 /* The domain of the handle has ended. */
#define AEE_ENORPCMEMORY 104 /* The domain of the handle has ended. */
#define AEE_ENOTINITIALIZED 107 /* It was not initialized. */
#define AEE_EUNSUPPORTEDAPI 108 /* The call is not supported here. */
#define AEE_EMAXBUFS 112 /* There are too many buffers. */
#define AEE_EINVARGS 113 /* The arguments do not fit the scalar word. */
#define AEE_ECONNREFUSED 114 /* The domain takes no connection. */
#define AEE_EUNSIGNEDMOD 129 /* The module is not signed. */
#define AEE_ENOSUCHJOB 132 /* There is no such job. */
#define AEE_ENOSESSION 138 /* There is no such session. */
#define AEE_EINVALIDJOB 386 /* The job is not valid. */
#define AEE_EBUSY 387 /* The job has not ended. */
#define AEE_ESTUBSKELVERMISMATCH 404 /* Stub and skeleton are of different versions. */
#define AEE_ERPC 512 /* The remote call failed. */
#define AEE_EFILE 513 /* A file could not be used. */
#define AEE_EWOULDBLOCK 516 /* The call would have to wait. */
#define AEE_ECLASSNOTSUPPORT 3 /* The class is not supported. */
#define AEE_EALREADYLOADED 5 /* It is already loaded. */
#define AEE_EUNABLETOUNLOAD 7 /* It cannot be unloaded. */
#define AEE_EALARMPENDING 8 /* An alarm is pending. */
#define AEE_EINVALIDTIME 9 /* The time is not valid. */
#define AEE_EBADCLASS 10 /* The class is not valid. */
#define AEE_EBADMETRIC 11 /* The metric is not valid. */
#define AEE_ESCHEMENOTSUPPORTED 15 /* The scheme is not supported. */
#define AEE_EINVALIDFORMAT 17 /* The format is not valid. */
#define AEE_EINCOMPLETEITEM 18 /* An item is not complete. */
#define AEE_ENOPERSISTMEMORY 19 /* There is no persistent memory for it. */
#define AEE_EPRIVLEVEL 21 /* The privileges do not suffice. */
#define AEE_EREENTERED 23 /* The call was entered again. */
#define AEE_EBADTASK 24 /* The task is not valid. */
#define AEE_EALLOCATED 25 /* Memory is allocated still. */
#define AEE_EADSAUTHBAD 27 /* The server refused the authentication. */
#define AEE_ENEEDSERVICEPROG 28 /* The service must be programmed first. */
#define AEE_EMEMPTR 29 /* The pointer is not valid. */
#define AEE_EHEAP 30 /* The heap is damaged. */
#define AEE_EIDLE 31 /* The other side is idle. */
#define AEE_EBADSID 33 /* The system identifier is not valid. */
#define AEE_ENOTYPE 34 /* The type is not known. */
#define AEE_ENEEDMORE 35 /* More data is needed. */
#define AEE_EADSCAPS 36 /* The capabilities do not suffice. */
#define AEE_EBADSHUTDOWN 37 /* It was not shut down properly. */
#define AEE_EACKPENDING 40 /* An acknowledgement is pending. */
#define AEE_ENOTOWNER 41 /* The caller does not own it. */
#define AEE_ECPUEXCEPTION 48 /* The processor raised an exception. */
#define AEE_EREADONLY 49 /* It cannot be written. */
#define AEE_EINVALIDMSG 50 /* The message is not valid. */
#define AEE_EINVALIDTHREAD 51 /* The thread is not valid. */
#define AEE_EINVALIDPROCESS 52 /* The process is not valid. */
#define AEE_EINVALIDFILENAME 53 /* The file's name is not valid. */
#define AEE_EINVALIDDIGESTSIZE 54 /* The digest's size is not valid. */
#define AEE_EINVALIDSEGS 55 /* The segments are not valid. */
#define AEE_EINVALIDSIGNATURE 56 /* The signature is not valid. */
#define AEE_EINVALIDMODE 60 /* The mode is not valid. */
#define AEE_EINVALIDPROCNAME 61 /* The process's name is not valid. */
#define AEE_ENOSUCHINSTANCE 63 /* There is no such instance. */
#define AEE_ENOSUCHTHREAD 64 /* There is no such thread. */
#define AEE_ENOSUCHPROCESS 65 /* There is no such process. */
#define AEE_ENOSUCHDEVICE 67 /* There is no such device. */
#define AEE_ENOSUCHPROP 68 /* There is no such property. */
#define AEE_ENOSUCHSTREAM 71 /* There is no such stream. */
#define AEE_ENOSUCHREGISTER 73 /* There is no such register. */
#define AEE_ENOSUCHCLIENT 74 /* There is no such client. */
#define AEE_EBADPERMS 78 /* The permissions are not valid. */
#define AEE_EBADPID 80 /* The process identifier is not valid. */
#define AEE_EBADTID 81 /* The thread identifier is not valid. */
#define AEE_EBADELF 82 /* The ELF file is not valid. */
#define AEE_EBADASID 83 /* The address space is not valid. */
#define AEE_EBADCONTEXT 84 /* The context is not valid. */
#define AEE_EIOCTL 86 /* An ioctl failed. */
#define AEE_EFOPEN 87 /* A file could not be opened. */
#define AEE_EFGETS 88 /* A file could not be read. */
#define AEE_EFFLUSH 89 /* A file could not be flushed. */
#define AEE_EFCLOSE 90 /* A file could not be closed. */
#define AEE_EEOF 91 /* The file ends here. */
#define AEE_EFREAD 92 /* A file could not be read. */
#define AEE_EFWRITE 93 /* A file could not be written. */
#define AEE_EFGETPOS 94 /* A file could not be asked for its position. */
#define AEE_EFSETPOS 95 /* A file could not be set to a position. */
#define AEE_EFTELL 96 /* A file could not be asked for its position. */
#define AEE_EFSEEK 97 /* A file could not be set to a position. */
#define AEE_EFLEN 98 /* A file could not be asked for its length. */
#define AEE_EGETENV 99 /* An environment variable could not be read. */
#define AEE_ESETENV 100 /* An environment variable could not be set. */
#define AEE_ENOROOTOFTRUST 105 /* There is no root of trust. */
#define AEE_ENOTLOCKED 106 /* It is not locked. */
#define AEE_EUNPACK 109 /* The arguments could not be unpacked. */
#define AEE_EPOLL 110 /* Polling failed. */
#define AEE_EEVENTREAD 111 /* An event could not be read. */
#define AEE_EINVALIDHASH 130 /* The hash is not valid. */
#define AEE_EBADVA 131 /* The virtual address is not valid. */
#define AEE_ENOSUCHGROUP 132 /* There is no such job. */
#define AEE_EBADMAPREFCNT 133 /* The count of a mapping is not valid. */
#define AEE_EBADPAGECNT 134 /* The number of pages is not valid. */
#define AEE_EMAPALREADYPRESENT 135 /* It is already mapped. */
#define AEE_ENOFREESECTION 136 /* No section is free. */
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
#define AEE_EQURTMIGRATESECURE 345 /* The kernel of the DSP failed: it could not become secure. */
#define AEE_EQURTQDIOPEN 352 /* The kernel of the DSP failed: it could not be opened. */
#define AEE_EQURTMAPREMOVE 353 /* The kernel of the DSP failed: a mapping could not be removed. */
#define AEE_EQURTQDICLOSE 354 /* The kernel of the DSP failed: it could not be closed. */
#define AEE_EQURTWAIT 355 /* The kernel of the DSP failed: waiting failed. */
#define AEE_EMMPM_OFFSET 368 /* The power manager failed. */
#define AEE_EMMPMREQUEST 369 /* The power manager failed: a request failed. */
#define AEE_EMMPMRELEASE 370 /* The power manager failed: a release failed. */
#define AEE_EMMPMSETPARAM 371 /* The power manager failed: a parameter could not be set. */
#define AEE_EMMPMREGISTER 372 /* The power manager failed: it could not register. */
#define AEE_EMMPMGETINFO 373 /* The power manager failed: it gave no answer. */
#define AEE_EMAX_MMPM_CLIENTS 374 /* There are too many clients of the power manager. */
#define AEE_EDCVSREGISTER 375 /* A client of the clocks could not register. */
#define AEE_PDRREGFAIL 376 /* A client of restarts could not register. */
#define AEE_DEFAULT_PROCESS 384 /* It is the default process. */
#define AEE_ENULLCONTEXT 385 /* The context is NULL. */
#define E_APPS_BUSY_RETRY_LATER 400 /* The processor is busy; call again later. */
#define E_HLOS_CAP_REACHED 401 /* The memory of the operating system is used up. */
#define E_DPOOL_CAP_REACHED 402 /* The pool is used up. */
#define E_NO_MORE_FREE_SECTIONS 403 /* No section is free. */
#define AEE_EBADHANDLE 44 /* The handle is not a live one. */

#endif
