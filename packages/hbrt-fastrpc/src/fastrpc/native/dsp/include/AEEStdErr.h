/* Codes of FastRPC on the DSP, out of fastrpc/wire/aee.py.
 *
 * Source: qualcomm/fastrpc, AEEStdErr.h, for names and values, https://github.com/qualcomm/fastrpc
 */
#ifndef HBRT_FASTRPC_AEESTDERR_H
#define HBRT_FASTRPC_AEESTDERR_H

#define AEE_EOFFSET 0x80000400
#define AEE_SUCCESS 0 /* The call succeeded. */
#define AEE_EUNKNOWN (-1) /* Unknown error. */
#define AEE_EFAILED ((int)(AEE_EOFFSET + 1u)) /* The call failed. */
#define AEE_ENOMEMORY ((int)(AEE_EOFFSET + 2u)) /* Out of memory. */
#define AEE_EVERSIONNOTSUPPORT ((int)(AEE_EOFFSET + 4u)) /* The version is not supported. */
#define AEE_EUNABLETOLOAD ((int)(AEE_EOFFSET + 6u)) /* The skeleton cannot be loaded. */
#define AEE_EEXPIRED ((int)(AEE_EOFFSET + 12u)) /* Timed out. */
#define AEE_EBADSTATE ((int)(AEE_EOFFSET + 13u)) /* The call is invalid in this state. */
#define AEE_EBADPARM ((int)(AEE_EOFFSET + 14u)) /* Invalid argument. */
#define AEE_EBADITEM ((int)(AEE_EOFFSET + 16u)) /* Invalid item. */
#define AEE_EUNSUPPORTED ((int)(AEE_EOFFSET + 20u)) /* The call, or the method, is not supported. */
#define AEE_ERESOURCENOTFOUND ((int)(AEE_EOFFSET + 22u)) /* A resource was not found. */
#define AEE_EALREADY ((int)(AEE_EOFFSET + 26u)) /* Already done. */
#define AEE_EITEMBUSY ((int)(AEE_EOFFSET + 32u)) /* The item is in use. */
#define AEE_EBUFFERTOOSMALL ((int)(AEE_EOFFSET + 38u)) /* A buffer is too small. */
#define AEE_ENOSUCH 39 /* Item not found. */
#define AEE_EINVALIDITEM ((int)(AEE_EOFFSET + 42u)) /* Invalid item. */
#define AEE_ENOTALLOWED ((int)(AEE_EOFFSET + 43u)) /* Not allowed. */
#define AEE_EINVHANDLE ((int)(AEE_EOFFSET + 44u)) /* Invalid handle. */
#define AEE_EOUTOFHANDLES ((int)(AEE_EOFFSET + 45u)) /* Out of handles. */
#define AEE_EINTERRUPTED 46 /* The call was interrupted. */
#define AEE_ENOMORE ((int)(AEE_EOFFSET + 47u)) /* No more items. */
#define AEE_EINVALIDDOMAIN ((int)(AEE_EOFFSET + 57u)) /* Invalid domain. */
#define AEE_EINVALIDFD ((int)(AEE_EOFFSET + 58u)) /* Invalid file descriptor. */
#define AEE_EINVALIDDEVICE ((int)(AEE_EOFFSET + 59u)) /* Invalid device. */
#define AEE_ENOSUCHMOD ((int)(AEE_EOFFSET + 62u)) /* Module not found. */
#define AEE_ENOSUCHSYMBOL ((int)(AEE_EOFFSET + 66u)) /* Symbol not found. */
#define AEE_ENOSUCHFILE ((int)(AEE_EOFFSET + 69u)) /* File not found. */
#define AEE_ENOSUCHHANDLE ((int)(AEE_EOFFSET + 70u)) /* Handle not found. */
#define AEE_ENOSUCHMAP ((int)(AEE_EOFFSET + 72u)) /* Mapping not found. */
#define AEE_EBADDOMAIN ((int)(AEE_EOFFSET + 75u)) /* The domain is not valid for this call. */
#define AEE_EBADOFFSET ((int)(AEE_EOFFSET + 76u)) /* Invalid offset. */
#define AEE_EBADSIZE ((int)(AEE_EOFFSET + 77u)) /* Invalid size. */
#define AEE_EBADFD ((int)(AEE_EOFFSET + 79u)) /* The file descriptor does not refer to shared memory. */
#define AEE_EBADMEMALIGN ((int)(AEE_EOFFSET + 85u)) /* The memory is not aligned. */
#define AEE_EMMAP ((int)(AEE_EOFFSET + 101u)) /* Mapping failed. */
#define AEE_EIONMAP ((int)(AEE_EOFFSET + 102u)) /* Mapping shared memory failed. */
#define AEE_EIONALLOC ((int)(AEE_EOFFSET + 103u)) /* Allocating shared memory failed. */
#define AEE_ECONNRESET 104 /* The domain of the handle has ended. */
#define AEE_ENORPCMEMORY ((int)(AEE_EOFFSET + 104u)) /* Out of shared memory. */
#define AEE_ENOTINITIALIZED ((int)(AEE_EOFFSET + 107u)) /* Not initialized. */
#define AEE_EUNSUPPORTEDAPI ((int)(AEE_EOFFSET + 108u)) /* The call is not supported here. */
#define AEE_EMAXBUFS ((int)(AEE_EOFFSET + 112u)) /* Too many buffers. */
#define AEE_EINVARGS ((int)(AEE_EOFFSET + 113u)) /* The arguments do not fit the scalar word. */
#define AEE_ECONNREFUSED ((int)(AEE_EOFFSET + 114u)) /* The domain accepts no connections. */
#define AEE_EUNSIGNEDMOD ((int)(AEE_EOFFSET + 129u)) /* The module is not signed. */
#define AEE_ENOSUCHJOB ((int)(AEE_EOFFSET + 132u)) /* Job not found. */
#define AEE_ENOSESSION ((int)(AEE_EOFFSET + 138u)) /* Session not found. */
#define AEE_EINVALIDJOB ((int)(AEE_EOFFSET + 386u)) /* Invalid job. */
#define AEE_EBUSY ((int)(AEE_EOFFSET + 387u)) /* The job has not finished. */
#define AEE_ESTUBSKELVERMISMATCH 404 /* Stub and skeleton have different versions. */
#define AEE_ERPC ((int)(AEE_EOFFSET + 512u)) /* The remote call failed. */
#define AEE_EFILE ((int)(AEE_EOFFSET + 513u)) /* A file could not be used. */
#define AEE_EWOULDBLOCK 516 /* The call would block. */
#define AEE_ECLASSNOTSUPPORT ((int)(AEE_EOFFSET + 3u)) /* The class is not supported. */
#define AEE_EALREADYLOADED ((int)(AEE_EOFFSET + 5u)) /* Already loaded. */
#define AEE_EUNABLETOUNLOAD ((int)(AEE_EOFFSET + 7u)) /* Cannot be unloaded. */
#define AEE_EALARMPENDING ((int)(AEE_EOFFSET + 8u)) /* An alarm is pending. */
#define AEE_EINVALIDTIME ((int)(AEE_EOFFSET + 9u)) /* Invalid time. */
#define AEE_EBADCLASS ((int)(AEE_EOFFSET + 10u)) /* Invalid class. */
#define AEE_EBADMETRIC ((int)(AEE_EOFFSET + 11u)) /* Invalid metric. */
#define AEE_ESCHEMENOTSUPPORTED ((int)(AEE_EOFFSET + 15u)) /* The scheme is not supported. */
#define AEE_EINVALIDFORMAT ((int)(AEE_EOFFSET + 17u)) /* Invalid format. */
#define AEE_EINCOMPLETEITEM ((int)(AEE_EOFFSET + 18u)) /* An item is incomplete. */
#define AEE_ENOPERSISTMEMORY ((int)(AEE_EOFFSET + 19u)) /* Out of persistent memory. */
#define AEE_EPRIVLEVEL ((int)(AEE_EOFFSET + 21u)) /* Insufficient privileges. */
#define AEE_EREENTERED ((int)(AEE_EOFFSET + 23u)) /* The call was reentered. */
#define AEE_EBADTASK ((int)(AEE_EOFFSET + 24u)) /* Invalid task. */
#define AEE_EALLOCATED ((int)(AEE_EOFFSET + 25u)) /* Memory is still allocated. */
#define AEE_EADSAUTHBAD ((int)(AEE_EOFFSET + 27u)) /* The server refused the authentication. */
#define AEE_ENEEDSERVICEPROG ((int)(AEE_EOFFSET + 28u)) /* The service must be programmed first. */
#define AEE_EMEMPTR ((int)(AEE_EOFFSET + 29u)) /* Invalid pointer. */
#define AEE_EHEAP ((int)(AEE_EOFFSET + 30u)) /* The heap is damaged. */
#define AEE_EIDLE ((int)(AEE_EOFFSET + 31u)) /* The other side is idle. */
#define AEE_EBADSID ((int)(AEE_EOFFSET + 33u)) /* Invalid system identifier. */
#define AEE_ENOTYPE ((int)(AEE_EOFFSET + 34u)) /* Unknown type. */
#define AEE_ENEEDMORE ((int)(AEE_EOFFSET + 35u)) /* More data is needed. */
#define AEE_EADSCAPS ((int)(AEE_EOFFSET + 36u)) /* Insufficient capabilities. */
#define AEE_EBADSHUTDOWN ((int)(AEE_EOFFSET + 37u)) /* It was not shut down properly. */
#define AEE_EACKPENDING ((int)(AEE_EOFFSET + 40u)) /* An acknowledgement is pending. */
#define AEE_ENOTOWNER ((int)(AEE_EOFFSET + 41u)) /* The caller does not own it. */
#define AEE_ECPUEXCEPTION ((int)(AEE_EOFFSET + 48u)) /* The processor raised an exception. */
#define AEE_EREADONLY ((int)(AEE_EOFFSET + 49u)) /* Not writable. */
#define AEE_EINVALIDMSG ((int)(AEE_EOFFSET + 50u)) /* Invalid message. */
#define AEE_EINVALIDTHREAD ((int)(AEE_EOFFSET + 51u)) /* Invalid thread. */
#define AEE_EINVALIDPROCESS ((int)(AEE_EOFFSET + 52u)) /* Invalid process. */
#define AEE_EINVALIDFILENAME ((int)(AEE_EOFFSET + 53u)) /* Invalid file name. */
#define AEE_EINVALIDDIGESTSIZE ((int)(AEE_EOFFSET + 54u)) /* Invalid digest size. */
#define AEE_EINVALIDSEGS ((int)(AEE_EOFFSET + 55u)) /* Invalid segments. */
#define AEE_EINVALIDSIGNATURE ((int)(AEE_EOFFSET + 56u)) /* Invalid signature. */
#define AEE_EINVALIDMODE ((int)(AEE_EOFFSET + 60u)) /* Invalid mode. */
#define AEE_EINVALIDPROCNAME ((int)(AEE_EOFFSET + 61u)) /* Invalid process name. */
#define AEE_ENOSUCHINSTANCE ((int)(AEE_EOFFSET + 63u)) /* Instance not found. */
#define AEE_ENOSUCHTHREAD ((int)(AEE_EOFFSET + 64u)) /* Thread not found. */
#define AEE_ENOSUCHPROCESS ((int)(AEE_EOFFSET + 65u)) /* Process not found. */
#define AEE_ENOSUCHDEVICE ((int)(AEE_EOFFSET + 67u)) /* Device not found. */
#define AEE_ENOSUCHPROP ((int)(AEE_EOFFSET + 68u)) /* Property not found. */
#define AEE_ENOSUCHSTREAM ((int)(AEE_EOFFSET + 71u)) /* Stream not found. */
#define AEE_ENOSUCHREGISTER ((int)(AEE_EOFFSET + 73u)) /* Register not found. */
#define AEE_ENOSUCHCLIENT ((int)(AEE_EOFFSET + 74u)) /* Client not found. */
#define AEE_EBADPERMS ((int)(AEE_EOFFSET + 78u)) /* Invalid permissions. */
#define AEE_EBADPID ((int)(AEE_EOFFSET + 80u)) /* Invalid process identifier. */
#define AEE_EBADTID ((int)(AEE_EOFFSET + 81u)) /* Invalid thread identifier. */
#define AEE_EBADELF ((int)(AEE_EOFFSET + 82u)) /* Invalid ELF file. */
#define AEE_EBADASID ((int)(AEE_EOFFSET + 83u)) /* Invalid address space. */
#define AEE_EBADCONTEXT ((int)(AEE_EOFFSET + 84u)) /* Invalid context. */
#define AEE_EIOCTL ((int)(AEE_EOFFSET + 86u)) /* An ioctl failed. */
#define AEE_EFOPEN ((int)(AEE_EOFFSET + 87u)) /* A file could not be opened. */
#define AEE_EFGETS ((int)(AEE_EOFFSET + 88u)) /* A file could not be read. */
#define AEE_EFFLUSH ((int)(AEE_EOFFSET + 89u)) /* A file could not be flushed. */
#define AEE_EFCLOSE ((int)(AEE_EOFFSET + 90u)) /* A file could not be closed. */
#define AEE_EEOF ((int)(AEE_EOFFSET + 91u)) /* End of file. */
#define AEE_EFREAD ((int)(AEE_EOFFSET + 92u)) /* A file could not be read. */
#define AEE_EFWRITE ((int)(AEE_EOFFSET + 93u)) /* A file could not be written. */
#define AEE_EFGETPOS ((int)(AEE_EOFFSET + 94u)) /* A file's position could not be read. */
#define AEE_EFSETPOS ((int)(AEE_EOFFSET + 95u)) /* A file's position could not be set. */
#define AEE_EFTELL ((int)(AEE_EOFFSET + 96u)) /* A file's position could not be read. */
#define AEE_EFSEEK ((int)(AEE_EOFFSET + 97u)) /* A file's position could not be set. */
#define AEE_EFLEN ((int)(AEE_EOFFSET + 98u)) /* A file's length could not be read. */
#define AEE_EGETENV ((int)(AEE_EOFFSET + 99u)) /* An environment variable could not be read. */
#define AEE_ESETENV ((int)(AEE_EOFFSET + 100u)) /* An environment variable could not be set. */
#define AEE_ENOROOTOFTRUST ((int)(AEE_EOFFSET + 105u)) /* No root of trust. */
#define AEE_ENOTLOCKED ((int)(AEE_EOFFSET + 106u)) /* Not locked. */
#define AEE_EUNPACK ((int)(AEE_EOFFSET + 109u)) /* The arguments could not be unpacked. */
#define AEE_EPOLL ((int)(AEE_EOFFSET + 110u)) /* Polling failed. */
#define AEE_EEVENTREAD ((int)(AEE_EOFFSET + 111u)) /* An event could not be read. */
#define AEE_EINVALIDHASH ((int)(AEE_EOFFSET + 130u)) /* Invalid hash. */
#define AEE_EBADVA ((int)(AEE_EOFFSET + 131u)) /* Invalid virtual address. */
#define AEE_ENOSUCHGROUP ((int)(AEE_EOFFSET + 132u)) /* Group not found. */
#define AEE_EBADMAPREFCNT ((int)(AEE_EOFFSET + 133u)) /* Invalid map count. */
#define AEE_EBADPAGECNT ((int)(AEE_EOFFSET + 134u)) /* Invalid number of pages. */
#define AEE_EMAPALREADYPRESENT ((int)(AEE_EOFFSET + 135u)) /* Already mapped. */
#define AEE_ENOFREESECTION ((int)(AEE_EOFFSET + 136u)) /* No free section. */
#define AEE_U2GCLIENT_OPEN ((int)(AEE_EOFFSET + 137u)) /* A client of the guest is open. */
#define AEE_EGLINK_OFFSET ((int)(AEE_EOFFSET + 256u)) /* The transport failed. */
#define AEE_EGLINKBADPACKET ((int)(AEE_EOFFSET + 257u)) /* The transport failed: a packet is not valid. */
#define AEE_EGLINKALREADYOPEN ((int)(AEE_EOFFSET + 258u)) /* The transport failed: it is already open. */
#define AEE_EGLINKOPENFAILED ((int)(AEE_EOFFSET + 259u)) /* The transport failed: it could not be opened. */
#define AEE_EGLINKWRITE ((int)(AEE_EOFFSET + 260u)) /* The transport failed: it could not be written. */
#define AEE_EGLINKREGISTER ((int)(AEE_EOFFSET + 261u)) /* The transport failed: it could not register. */
#define AEE_ESMD_OFFSET ((int)(AEE_EOFFSET + 256u)) /* The transport failed. */
#define AEE_ESMDBADPACKET ((int)(AEE_EOFFSET + 257u)) /* The transport failed: a packet is not valid. */
#define AEE_ESMDALREADYOPEN ((int)(AEE_EOFFSET + 258u)) /* The transport failed: it is already open. */
#define AEE_ESMDOPENFAILED ((int)(AEE_EOFFSET + 259u)) /* The transport failed: it could not be opened. */
#define AEE_EDAL_OFFSET ((int)(AEE_EOFFSET + 288u)) /* A device of the DSP failed. */
#define AEE_EDALDEVATTACH ((int)(AEE_EOFFSET + 289u)) /* A device of the DSP failed: it could not be attached. */
#define AEE_EDALINTREGISTER ((int)(AEE_EOFFSET + 290u)) /* A device of the DSP failed: an interrupt could not be registered. */
#define AEE_EDALINTUNREGISTER ((int)(AEE_EOFFSET + 291u)) /* A device of the DSP failed: an interrupt could not be released. */
#define AEE_EDALGETPROP ((int)(AEE_EOFFSET + 292u)) /* A device of the DSP failed: a property could not be read. */
#define AEE_EDALGETVAL ((int)(AEE_EOFFSET + 293u)) /* A device of the DSP failed: a value could not be read. */
#define AEE_EDCVSREQUEST ((int)(AEE_EOFFSET + 294u)) /* A request for a clock failed. */
#define AEE_EQURT_OFFSET ((int)(AEE_EOFFSET + 320u)) /* The kernel of the DSP failed. */
#define AEE_EQURTREGIONCREATE ((int)(AEE_EOFFSET + 321u)) /* The kernel of the DSP failed: a region could not be created. */
#define AEE_EQURTCACHECLEAN ((int)(AEE_EOFFSET + 322u)) /* The kernel of the DSP failed: a cache could not be cleaned. */
#define AEE_EQURTREGIONGETATTR ((int)(AEE_EOFFSET + 323u)) /* The kernel of the DSP failed: the attributes of a region could not be read. */
#define AEE_EQURTBADREGIONPERMS ((int)(AEE_EOFFSET + 324u)) /* The kernel of the DSP failed: the permissions of a region are not valid. */
#define AEE_EQURTMEMPOOLADD ((int)(AEE_EOFFSET + 325u)) /* The kernel of the DSP failed: memory could not be added to a pool. */
#define AEE_EQURTREGISTERDEV ((int)(AEE_EOFFSET + 326u)) /* The kernel of the DSP failed: a device could not be registered. */
#define AEE_EQURTMEMPOOLCREATE ((int)(AEE_EOFFSET + 327u)) /* The kernel of the DSP failed: a pool could not be created. */
#define AEE_EQURTGETVA ((int)(AEE_EOFFSET + 328u)) /* The kernel of the DSP failed: a virtual address could not be read. */
#define AEE_EQURTREGIONDELETE ((int)(AEE_EOFFSET + 329u)) /* The kernel of the DSP failed: a region could not be deleted. */
#define AEE_EQURTMEMPOOLATTACH ((int)(AEE_EOFFSET + 330u)) /* The kernel of the DSP failed: a pool could not be attached. */
#define AEE_EQURTTHREADCREATE ((int)(AEE_EOFFSET + 331u)) /* The kernel of the DSP failed: a thread could not be created. */
#define AEE_EQURTCOPYTOUSER ((int)(AEE_EOFFSET + 332u)) /* The kernel of the DSP failed: data could not be copied to the user. */
#define AEE_EQURTMEMMAPCREATE ((int)(AEE_EOFFSET + 333u)) /* The kernel of the DSP failed: a mapping could not be created. */
#define AEE_EQURTINVHANDLE ((int)(AEE_EOFFSET + 334u)) /* The kernel of the DSP failed: the handle is not valid. */
#define AEE_EQURTBADASID ((int)(AEE_EOFFSET + 335u)) /* The kernel of the DSP failed: the address space is not valid. */
#define AEE_EQURTOPENFAILED ((int)(AEE_EOFFSET + 336u)) /* The kernel of the DSP failed: it could not be opened. */
#define AEE_EQURTCOPYFROMUSER ((int)(AEE_EOFFSET + 337u)) /* The kernel of the DSP failed: data could not be copied from the user. */
#define AEE_EQURTLINELOCK ((int)(AEE_EOFFSET + 338u)) /* The kernel of the DSP failed: a cache line could not be locked. */
#define AEE_EQURTQDIDEFMETHOD ((int)(AEE_EOFFSET + 339u)) /* The kernel of the DSP failed: a method is not defined. */
#define AEE_EQURTCREATEHANDLE ((int)(AEE_EOFFSET + 340u)) /* The kernel of the DSP failed: a handle could not be created. */
#define AEE_EQURTWRITABLEMEM ((int)(AEE_EOFFSET + 341u)) /* The kernel of the DSP failed: memory is not writable. */
#define AEE_EQURTTHREADCREATEDEF ((int)(AEE_EOFFSET + 342u)) /* The kernel of the DSP failed: a thread could not be created. */
#define AEE_EQURTLOOKUPVA ((int)(AEE_EOFFSET + 343u)) /* The kernel of the DSP failed: a virtual address could not be found. */
#define AEE_EQURTLOOKUPPA ((int)(AEE_EOFFSET + 344u)) /* The kernel of the DSP failed: a physical address could not be found. */
#define AEE_EQURTMIGRATESECURE ((int)(AEE_EOFFSET + 345u)) /* The kernel of the DSP failed: it could not switch to secure mode. */
#define AEE_EQURTQDIOPEN ((int)(AEE_EOFFSET + 352u)) /* The kernel of the DSP failed: it could not be opened. */
#define AEE_EQURTMAPREMOVE ((int)(AEE_EOFFSET + 353u)) /* The kernel of the DSP failed: a mapping could not be removed. */
#define AEE_EQURTQDICLOSE ((int)(AEE_EOFFSET + 354u)) /* The kernel of the DSP failed: it could not be closed. */
#define AEE_EQURTWAIT ((int)(AEE_EOFFSET + 355u)) /* The kernel of the DSP failed: waiting failed. */
#define AEE_EMMPM_OFFSET ((int)(AEE_EOFFSET + 368u)) /* The power manager failed. */
#define AEE_EMMPMREQUEST ((int)(AEE_EOFFSET + 369u)) /* The power manager failed: a request failed. */
#define AEE_EMMPMRELEASE ((int)(AEE_EOFFSET + 370u)) /* The power manager failed: a release failed. */
#define AEE_EMMPMSETPARAM ((int)(AEE_EOFFSET + 371u)) /* The power manager failed: a parameter could not be set. */
#define AEE_EMMPMREGISTER ((int)(AEE_EOFFSET + 372u)) /* The power manager failed: it could not register. */
#define AEE_EMMPMGETINFO ((int)(AEE_EOFFSET + 373u)) /* The power manager failed: it did not answer. */
#define AEE_EMAX_MMPM_CLIENTS ((int)(AEE_EOFFSET + 374u)) /* Too many clients of the power manager. */
#define AEE_EDCVSREGISTER ((int)(AEE_EOFFSET + 375u)) /* A client of the clocks could not register. */
#define AEE_PDRREGFAIL ((int)(AEE_EOFFSET + 376u)) /* A client of restarts could not register. */
#define AEE_DEFAULT_PROCESS ((int)(AEE_EOFFSET + 384u)) /* It is the default process. */
#define AEE_ENULLCONTEXT ((int)(AEE_EOFFSET + 385u)) /* The context is NULL. */
#define E_APPS_BUSY_RETRY_LATER ((int)(AEE_EOFFSET + 400u)) /* The processor is busy; call again later. */
#define E_HLOS_CAP_REACHED ((int)(AEE_EOFFSET + 401u)) /* The operating system is out of memory. */
#define E_DPOOL_CAP_REACHED ((int)(AEE_EOFFSET + 402u)) /* The pool is exhausted. */
#define E_NO_MORE_FREE_SECTIONS ((int)(AEE_EOFFSET + 403u)) /* No free section. */
#define AEE_EBADHANDLE ((int)(AEE_EOFFSET + 44u)) /* Invalid handle. */

#endif
