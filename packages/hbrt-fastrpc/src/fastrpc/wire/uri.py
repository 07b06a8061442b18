"""URIs of interfaces, domains and sessions. Pure."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from fastrpc.wire.aee import Aee, AeeError

DOMAINS: Final = ("adsp", "mdsp", "sdsp", "cdsp", "cdsp1", "gdsp0", "gdsp1")
"""Names of domains; the place of one is its number."""
DEFAULT_DOMAIN: Final = DOMAINS.index("cdsp")
SESSIONS: Final = 4
"""Sessions that a process may have with a domain."""
_STEP: Final = 8
_FORM = re.compile(r"(?:file:///)?(?P<file>[^?]*)\?(?P<symbol>[^&?]*)(?P<rest>.*)", re.DOTALL)
_VERSION = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){0,2}")
_FIELD = re.compile(r"&(\w+)=([^&]*)")


class Uri(NamedTuple):
    """The parts of an interface's URI.

    Attributes:
        file: The skeleton's library, such as libcalc_skel.so.
        symbol: Its function, such as calc_skel_handle_invoke.
        domain: 0..6.
        session: 0..3.
    """

    file: str
    symbol: str
    domain: int
    session: int

    @property
    def effective_domain(self) -> int:
        """Domain and session in one number."""
        return effective_domain(self.domain, self.session)


def of_interface(name: str, library: str = "", version: str = "") -> str:
    """The URI of an interface, without a domain, as the IDL compiler writes it.

    Args:
        name: The interface's name in C.
        library: The name of its IDL file, as in the skeleton's library; empty for the interface's name.
        version: The IDL file's constant IDL_VERSION; empty without one.

    Source: qualcomm/fastrpc, generated stubs, https://github.com/qualcomm/fastrpc
    """
    known = f"&_idlver={version}" if version else ""
    return f"file:///lib{library or name}_skel.so?{symbol_of(name)}&_modver=1.0{known}"


def check_version(uri: str, version: str) -> None:
    """Refuse the URI of a stub that is newer than a skeleton, or of no version.

    Args:
        uri: As ``of_interface``.
        version: Of the skeleton, as MAJOR.MINOR.PATCH.

    Raises:
        AeeError: AEE_ESTUBSKELVERMISMATCH.

    Skeletons that the vendor's compiler wrote check it so: https://github.com/zhouwg/ggml-hexagon has one.
    """
    asked = dict(_FIELD.findall(uri)).get("_idlver", "")
    if not _VERSION.fullmatch(asked) or _numbers(asked) > _numbers(version):
        raise AeeError(
            Aee.AEE_ESTUBSKELVERMISMATCH,
            f"The skeleton has version {version} of its IDL file, but the URI {uri!r} requires {asked or 'none'}; "
            "build both from the same file.",
        )


def _numbers(version: str) -> list[int]:
    return [*map(int, version.split(".")), 0, 0][:3]


def symbol_of(name: str) -> str:
    """The function of a skeleton that takes the invocations of an interface."""
    return f"{name}_skel_handle_invoke"


def effective_domain(domain: int, session: int = 0) -> int:
    """Domain and session in one number.

    Raises:
        AeeError: AEE_EINVALIDDOMAIN or AEE_ENOSESSION.
    """
    if not 0 <= domain < len(DOMAINS):
        raise AeeError(
            Aee.AEE_EINVALIDDOMAIN,
            f"Unknown domain {domain}; domains are {', '.join(f'{at} {name}' for at, name in enumerate(DOMAINS))}.",
        )
    if not 0 <= session < SESSIONS:
        raise AeeError(Aee.AEE_ENOSESSION, f"Unknown session {session}; a domain has the sessions 0 to {SESSIONS - 1}.")
    return domain + _STEP * session


def split_domain(effective: int) -> tuple[int, int]:
    """Domain and session of an effective domain. Raises as ``effective_domain``."""
    domain, session = effective % _STEP, effective // _STEP
    effective_domain(domain, session)
    return domain, session


def suffix(domain: int, session: int = 0) -> str:
    """The suffix of an interface's URI that selects a domain and, unless 0, a session."""
    effective_domain(domain, session)
    return f"&_dom={DOMAINS[domain]}" + (f"&_session={session}" if session else "")


def parse(uri: str, default_domain: int | None = None) -> Uri:
    """What a URI says.

    Args:
        uri: Like ``of_interface``, followed by a domain.
        default_domain: Domain for a URI that names none; None refuses such a URI.

    Raises:
        AeeError: AEE_EBADPARM: it has another form, or names no known domain; AEE_ENOSESSION.
    """
    form = _FORM.fullmatch(uri)
    if form is None or not form["symbol"]:
        raise AeeError(
            Aee.AEE_EBADPARM,
            f"{uri!r} is not a URI of an interface; write {of_interface('NAME')}{suffix(DEFAULT_DOMAIN)}.",
        )
    fields = dict(_FIELD.findall(form["rest"]))
    name, number = fields.get("_dom"), fields.get("_session", "0")
    if name is None and default_domain is not None:
        domain = default_domain
    elif name in DOMAINS:
        domain = DOMAINS.index(name)
    else:
        raise AeeError(
            Aee.AEE_EBADPARM,
            f"{uri!r} names {'no domain' if name is None else f'the domain {name!r}'}; "
            f"append &_dom= and one of {', '.join(DOMAINS)}.",
        )
    if not re.fullmatch(r"[0-9]{1,3}", number):
        raise AeeError(Aee.AEE_EBADPARM, f"{uri!r} names the session {number!r}; write 0 to {SESSIONS - 1}.")
    effective_domain(domain, int(number))
    return Uri(form["file"], form["symbol"], domain, int(number))
