"""Every AEE code once: number, name, message; and the error that carries one.

A code raised by the DSP side's runtime or by a skeleton arrives at the CPU as ``DSP_ERROR`` plus the code. A code
returned by a method's own implementation arrives unchanged.
"""

from __future__ import annotations

from enum import IntEnum, nonmember
from typing import Final, Self

DSP_ERROR: Final = 0x8000_0400
_MAX_CODE: Final = 0x3FF


class Aee(IntEnum):
    """A code of a FastRPC call; 0 is success.

    Attributes:
        sentence: Its meaning.

    Source: qualcomm/fastrpc, AEEStdErr.h, https://github.com/qualcomm/fastrpc
    """

    sentence: str

    def __new__(cls, code: int, sentence: str = "") -> Self:
        """A row of the table."""
        self = int.__new__(cls, code)
        self._value_, self.sentence = code, sentence
        return self

    AEE_SUCCESS = 0, "The call succeeded."
    AEE_EUNKNOWN = -1, "Unknown error."
    AEE_EFAILED = 1, "The call failed."
    AEE_ENOMEMORY = 2, "Out of memory."
    AEE_EVERSIONNOTSUPPORT = 4, "The version is not supported."
    AEE_EUNABLETOLOAD = 6, "The skeleton cannot be loaded."
    AEE_EEXPIRED = 0xC, "Timed out."
    AEE_EBADSTATE = 0xD, "The call is invalid in this state."
    AEE_EBADPARM = 0xE, "Invalid argument."
    AEE_EBADITEM = 0x10, "Invalid item."
    AEE_EUNSUPPORTED = 0x14, "The call, or the method, is not supported."
    AEE_ERESOURCENOTFOUND = 0x16, "A resource was not found."
    AEE_EALREADY = 0x1A, "Already done."
    AEE_EITEMBUSY = 0x20, "The item is in use."
    AEE_EBUFFERTOOSMALL = 0x26, "A buffer is too small."
    AEE_ENOSUCH = 39, "Item not found."
    AEE_EINVALIDITEM = 0x2A, "Invalid item."
    AEE_ENOTALLOWED = 0x2B, "Not allowed."
    AEE_EINVHANDLE = 0x2C, "Invalid handle."
    AEE_EOUTOFHANDLES = 0x2D, "Out of handles."
    AEE_EINTERRUPTED = 46, "The call was interrupted."
    AEE_ENOMORE = 0x2F, "No more items."
    AEE_EINVALIDDOMAIN = 0x39, "Invalid domain."
    AEE_EINVALIDFD = 0x3A, "Invalid file descriptor."
    AEE_EINVALIDDEVICE = 0x3B, "Invalid device."
    AEE_ENOSUCHMOD = 0x3E, "Module not found."
    AEE_ENOSUCHSYMBOL = 0x42, "Symbol not found."
    AEE_ENOSUCHFILE = 0x45, "File not found."
    AEE_ENOSUCHHANDLE = 0x46, "Handle not found."
    AEE_ENOSUCHMAP = 0x48, "Mapping not found."
    AEE_EBADDOMAIN = 0x4B, "The domain is not valid for this call."
    AEE_EBADOFFSET = 0x4C, "Invalid offset."
    AEE_EBADSIZE = 0x4D, "Invalid size."
    AEE_EBADFD = 0x4F, "The file descriptor does not refer to shared memory."
    AEE_EBADMEMALIGN = 0x55, "The memory is not aligned."
    AEE_EMMAP = 0x65, "Mapping failed."
    AEE_EIONMAP = 0x66, "Mapping shared memory failed."
    AEE_EIONALLOC = 0x67, "Allocating shared memory failed."
    AEE_ECONNRESET = 104, "The domain of the handle has ended."
    AEE_ENORPCMEMORY = 0x68, "Out of shared memory."  # the vendor's header gives both the same number
    AEE_ENOTINITIALIZED = 0x6B, "Not initialized."
    AEE_EUNSUPPORTEDAPI = 0x6C, "The call is not supported here."
    AEE_EMAXBUFS = 0x70, "Too many buffers."
    AEE_EINVARGS = 0x71, "The arguments do not fit the scalar word."
    AEE_ECONNREFUSED = 0x72, "The domain accepts no connections."
    AEE_EUNSIGNEDMOD = 0x81, "The module is not signed."
    AEE_ENOSUCHJOB = 0x84, "Job not found."
    AEE_ENOSESSION = 0x8A, "Session not found."
    AEE_EINVALIDJOB = 0x182, "Invalid job."
    AEE_EBUSY = 0x183, "The job has not finished."
    AEE_ESTUBSKELVERMISMATCH = 0x194, "Stub and skeleton have different versions."
    AEE_ERPC = 0x200, "The remote call failed."
    AEE_EFILE = 0x201, "A file could not be used."
    AEE_EWOULDBLOCK = 516, "The call would block."
    AEE_ECLASSNOTSUPPORT = 0x3, "The class is not supported."
    AEE_EALREADYLOADED = 0x5, "Already loaded."
    AEE_EUNABLETOUNLOAD = 0x7, "Cannot be unloaded."
    AEE_EALARMPENDING = 0x8, "An alarm is pending."
    AEE_EINVALIDTIME = 0x9, "Invalid time."
    AEE_EBADCLASS = 0xA, "Invalid class."
    AEE_EBADMETRIC = 0xB, "Invalid metric."
    AEE_ESCHEMENOTSUPPORTED = 0xF, "The scheme is not supported."
    AEE_EINVALIDFORMAT = 0x11, "Invalid format."
    AEE_EINCOMPLETEITEM = 0x12, "An item is incomplete."
    AEE_ENOPERSISTMEMORY = 0x13, "Out of persistent memory."
    AEE_EPRIVLEVEL = 0x15, "Insufficient privileges."
    AEE_EREENTERED = 0x17, "The call was reentered."
    AEE_EBADTASK = 0x18, "Invalid task."
    AEE_EALLOCATED = 0x19, "Memory is still allocated."
    AEE_EADSAUTHBAD = 0x1B, "The server refused the authentication."
    AEE_ENEEDSERVICEPROG = 0x1C, "The service must be programmed first."
    AEE_EMEMPTR = 0x1D, "Invalid pointer."
    AEE_EHEAP = 0x1E, "The heap is damaged."
    AEE_EIDLE = 0x1F, "The other side is idle."
    AEE_EBADSID = 0x21, "Invalid system identifier."
    AEE_ENOTYPE = 0x22, "Unknown type."
    AEE_ENEEDMORE = 0x23, "More data is needed."
    AEE_EADSCAPS = 0x24, "Insufficient capabilities."
    AEE_EBADSHUTDOWN = 0x25, "It was not shut down properly."
    AEE_EACKPENDING = 0x28, "An acknowledgement is pending."
    AEE_ENOTOWNER = 0x29, "The caller does not own it."
    AEE_ECPUEXCEPTION = 0x30, "The processor raised an exception."
    AEE_EREADONLY = 0x31, "Not writable."
    AEE_EINVALIDMSG = 0x32, "Invalid message."
    AEE_EINVALIDTHREAD = 0x33, "Invalid thread."
    AEE_EINVALIDPROCESS = 0x34, "Invalid process."
    AEE_EINVALIDFILENAME = 0x35, "Invalid file name."
    AEE_EINVALIDDIGESTSIZE = 0x36, "Invalid digest size."
    AEE_EINVALIDSEGS = 0x37, "Invalid segments."
    AEE_EINVALIDSIGNATURE = 0x38, "Invalid signature."
    AEE_EINVALIDMODE = 0x3C, "Invalid mode."
    AEE_EINVALIDPROCNAME = 0x3D, "Invalid process name."
    AEE_ENOSUCHINSTANCE = 0x3F, "Instance not found."
    AEE_ENOSUCHTHREAD = 0x40, "Thread not found."
    AEE_ENOSUCHPROCESS = 0x41, "Process not found."
    AEE_ENOSUCHDEVICE = 0x43, "Device not found."
    AEE_ENOSUCHPROP = 0x44, "Property not found."
    AEE_ENOSUCHSTREAM = 0x47, "Stream not found."
    AEE_ENOSUCHREGISTER = 0x49, "Register not found."
    AEE_ENOSUCHCLIENT = 0x4A, "Client not found."
    AEE_EBADPERMS = 0x4E, "Invalid permissions."
    AEE_EBADPID = 0x50, "Invalid process identifier."
    AEE_EBADTID = 0x51, "Invalid thread identifier."
    AEE_EBADELF = 0x52, "Invalid ELF file."
    AEE_EBADASID = 0x53, "Invalid address space."
    AEE_EBADCONTEXT = 0x54, "Invalid context."
    AEE_EIOCTL = 0x56, "An ioctl failed."
    AEE_EFOPEN = 0x57, "A file could not be opened."
    AEE_EFGETS = 0x58, "A file could not be read."
    AEE_EFFLUSH = 0x59, "A file could not be flushed."
    AEE_EFCLOSE = 0x5A, "A file could not be closed."
    AEE_EEOF = 0x5B, "End of file."
    AEE_EFREAD = 0x5C, "A file could not be read."
    AEE_EFWRITE = 0x5D, "A file could not be written."
    AEE_EFGETPOS = 0x5E, "A file's position could not be read."
    AEE_EFSETPOS = 0x5F, "A file's position could not be set."
    AEE_EFTELL = 0x60, "A file's position could not be read."
    AEE_EFSEEK = 0x61, "A file's position could not be set."
    AEE_EFLEN = 0x62, "A file's length could not be read."
    AEE_EGETENV = 0x63, "An environment variable could not be read."
    AEE_ESETENV = 0x64, "An environment variable could not be set."
    AEE_ENOROOTOFTRUST = 0x69, "No root of trust."
    AEE_ENOTLOCKED = 0x6A, "Not locked."
    AEE_EUNPACK = 0x6D, "The arguments could not be unpacked."
    AEE_EPOLL = 0x6E, "Polling failed."
    AEE_EEVENTREAD = 0x6F, "An event could not be read."
    AEE_EINVALIDHASH = 0x82, "Invalid hash."
    AEE_EBADVA = 0x83, "Invalid virtual address."
    AEE_ENOSUCHGROUP = 0x84, "Group not found."
    AEE_EBADMAPREFCNT = 0x85, "Invalid map count."
    AEE_EBADPAGECNT = 0x86, "Invalid number of pages."
    AEE_EMAPALREADYPRESENT = 0x87, "Already mapped."
    AEE_ENOFREESECTION = 0x88, "No free section."
    AEE_U2GCLIENT_OPEN = 0x89, "A client of the guest is open."
    AEE_EGLINK_OFFSET = 0x100, "The transport failed."
    AEE_EGLINKBADPACKET = 0x101, "The transport failed: a packet is not valid."
    AEE_EGLINKALREADYOPEN = 0x102, "The transport failed: it is already open."
    AEE_EGLINKOPENFAILED = 0x103, "The transport failed: it could not be opened."
    AEE_EGLINKWRITE = 0x104, "The transport failed: it could not be written."
    AEE_EGLINKREGISTER = 0x105, "The transport failed: it could not register."
    AEE_ESMD_OFFSET = 0x100, "The transport failed."
    AEE_ESMDBADPACKET = 0x101, "The transport failed: a packet is not valid."
    AEE_ESMDALREADYOPEN = 0x102, "The transport failed: it is already open."
    AEE_ESMDOPENFAILED = 0x103, "The transport failed: it could not be opened."
    AEE_EDAL_OFFSET = 0x120, "A device of the DSP failed."
    AEE_EDALDEVATTACH = 0x121, "A device of the DSP failed: it could not be attached."
    AEE_EDALINTREGISTER = 0x122, "A device of the DSP failed: an interrupt could not be registered."
    AEE_EDALINTUNREGISTER = 0x123, "A device of the DSP failed: an interrupt could not be released."
    AEE_EDALGETPROP = 0x124, "A device of the DSP failed: a property could not be read."
    AEE_EDALGETVAL = 0x125, "A device of the DSP failed: a value could not be read."
    AEE_EDCVSREQUEST = 0x126, "A request for a clock failed."
    AEE_EQURT_OFFSET = 0x140, "The kernel of the DSP failed."
    AEE_EQURTREGIONCREATE = 0x141, "The kernel of the DSP failed: a region could not be created."
    AEE_EQURTCACHECLEAN = 0x142, "The kernel of the DSP failed: a cache could not be cleaned."
    AEE_EQURTREGIONGETATTR = 0x143, "The kernel of the DSP failed: the attributes of a region could not be read."
    AEE_EQURTBADREGIONPERMS = 0x144, "The kernel of the DSP failed: the permissions of a region are not valid."
    AEE_EQURTMEMPOOLADD = 0x145, "The kernel of the DSP failed: memory could not be added to a pool."
    AEE_EQURTREGISTERDEV = 0x146, "The kernel of the DSP failed: a device could not be registered."
    AEE_EQURTMEMPOOLCREATE = 0x147, "The kernel of the DSP failed: a pool could not be created."
    AEE_EQURTGETVA = 0x148, "The kernel of the DSP failed: a virtual address could not be read."
    AEE_EQURTREGIONDELETE = 0x149, "The kernel of the DSP failed: a region could not be deleted."
    AEE_EQURTMEMPOOLATTACH = 0x14A, "The kernel of the DSP failed: a pool could not be attached."
    AEE_EQURTTHREADCREATE = 0x14B, "The kernel of the DSP failed: a thread could not be created."
    AEE_EQURTCOPYTOUSER = 0x14C, "The kernel of the DSP failed: data could not be copied to the user."
    AEE_EQURTMEMMAPCREATE = 0x14D, "The kernel of the DSP failed: a mapping could not be created."
    AEE_EQURTINVHANDLE = 0x14E, "The kernel of the DSP failed: the handle is not valid."
    AEE_EQURTBADASID = 0x14F, "The kernel of the DSP failed: the address space is not valid."
    AEE_EQURTOPENFAILED = 0x150, "The kernel of the DSP failed: it could not be opened."
    AEE_EQURTCOPYFROMUSER = 0x151, "The kernel of the DSP failed: data could not be copied from the user."
    AEE_EQURTLINELOCK = 0x152, "The kernel of the DSP failed: a cache line could not be locked."
    AEE_EQURTQDIDEFMETHOD = 0x153, "The kernel of the DSP failed: a method is not defined."
    AEE_EQURTCREATEHANDLE = 0x154, "The kernel of the DSP failed: a handle could not be created."
    AEE_EQURTWRITABLEMEM = 0x155, "The kernel of the DSP failed: memory is not writable."
    AEE_EQURTTHREADCREATEDEF = 0x156, "The kernel of the DSP failed: a thread could not be created."
    AEE_EQURTLOOKUPVA = 0x157, "The kernel of the DSP failed: a virtual address could not be found."
    AEE_EQURTLOOKUPPA = 0x158, "The kernel of the DSP failed: a physical address could not be found."
    AEE_EQURTMIGRATESECURE = 0x159, "The kernel of the DSP failed: it could not switch to secure mode."
    AEE_EQURTQDIOPEN = 0x160, "The kernel of the DSP failed: it could not be opened."
    AEE_EQURTMAPREMOVE = 0x161, "The kernel of the DSP failed: a mapping could not be removed."
    AEE_EQURTQDICLOSE = 0x162, "The kernel of the DSP failed: it could not be closed."
    AEE_EQURTWAIT = 0x163, "The kernel of the DSP failed: waiting failed."
    AEE_EMMPM_OFFSET = 0x170, "The power manager failed."
    AEE_EMMPMREQUEST = 0x171, "The power manager failed: a request failed."
    AEE_EMMPMRELEASE = 0x172, "The power manager failed: a release failed."
    AEE_EMMPMSETPARAM = 0x173, "The power manager failed: a parameter could not be set."
    AEE_EMMPMREGISTER = 0x174, "The power manager failed: it could not register."
    AEE_EMMPMGETINFO = 0x175, "The power manager failed: it did not answer."
    AEE_EMAX_MMPM_CLIENTS = 0x176, "Too many clients of the power manager."
    AEE_EDCVSREGISTER = 0x177, "A client of the clocks could not register."
    AEE_PDRREGFAIL = 0x178, "A client of restarts could not register."
    AEE_DEFAULT_PROCESS = 0x180, "It is the default process."
    AEE_ENULLCONTEXT = 0x181, "The context is NULL."
    E_APPS_BUSY_RETRY_LATER = 0x190, "The processor is busy; call again later."
    E_HLOS_CAP_REACHED = 0x191, "The operating system is out of memory."
    E_DPOOL_CAP_REACHED = 0x192, "The pool is exhausted."
    E_NO_MORE_FREE_SECTIONS = 0x193, "No free section."
    AEE_EBADHANDLE = 0x2C, "Invalid handle."

    SENTENCES = nonmember({name: row[1] for name, row in vars().items() if isinstance(row, tuple)})
    """By name: names with the same number share the first one's attribute ``sentence``."""


class AeeError(Exception):
    """A call of FastRPC failed.

    Attributes:
        code: As seen by the CPU: a code, ``DSP_ERROR`` plus a code, or a method's return value.
        sentence: What was wrong, and what to do.
    """

    def __init__(self, code: int, sentence: str = "") -> None:
        """``sentence``: empty for the code's own."""
        self.code = int(code)
        self.sentence = sentence or describe(code)
        super().__init__(f"{self.sentence} [{name_of(code)}]")


def on_dsp(code: int) -> int:
    """The value as which a code of the DSP side arrives at the CPU."""
    return DSP_ERROR + code if 0 < code <= _MAX_CODE else code


def of_status(status: int) -> int:
    """A task's status, a signed 32-bit integer, as a code; codes of the DSP side are above 2^31."""
    unsigned = status & 0xFFFF_FFFF
    return unsigned if DSP_ERROR <= unsigned <= DSP_ERROR + _MAX_CODE else status


def name_of(code: int) -> str:
    """The name of a code, with ``DSP side`` if it came from there; just the number if it is not a known code."""
    if DSP_ERROR < code <= DSP_ERROR + _MAX_CODE:
        return f"{name_of(code - DSP_ERROR)} from the DSP side, {code:#x}"
    try:
        return Aee(code).name
    except ValueError:
        return f"{code:#x}" if code >= 0 else str(code)


def describe(code: int) -> str:
    """The message for a code; an unknown number came from a method."""
    if DSP_ERROR < code <= DSP_ERROR + _MAX_CODE:
        return describe(code - DSP_ERROR)
    try:
        return Aee(code).sentence
    except ValueError:
        return f"The method returned {name_of(code)}."
