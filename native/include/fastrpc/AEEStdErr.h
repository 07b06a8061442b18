/* Codes of FastRPC, out of hbrt/fastrpc/aee.py.
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
#define AEE_ENOTINITIALIZED 107 /* It was not initialised. */
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

#endif
