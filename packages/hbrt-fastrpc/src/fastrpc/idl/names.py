"""Names of an IDL file in C and in Python. Pure."""

from __future__ import annotations

import keyword
import re
from typing import Final

NOTE: Final = "Written by hbrt idl: change the IDL file instead."
C_WORDS: Final = frozenset(
    re.findall(
        r"\w+",
        "auto bool break case char const continue default do double else enum extern float for goto if inline int long "
        "register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while",
    )
)
CPP_WORDS: Final = frozenset(
    re.findall(
        r"\w+",
        "alignas alignof and and_eq asm bitand bitor catch char8_t char16_t char32_t class co_await co_return "
        "co_yield compl concept const_cast consteval constexpr constinit decltype delete dynamic_cast "
        "explicit export false friend mutable namespace new noexcept not not_eq nullptr operator or or_eq "
        "private protected public reinterpret_cast requires static_assert static_cast template this "
        "thread_local throw true try typeid typename using virtual wchar_t xor xor_eq",
    )
)
"""Keywords of C++ that are names in C."""
_PYTHON_TAKEN: Final = frozenset(
    {"open", "close", "call", "invoke", "register", "handle", "uri", "self", "INTERFACE", "METHODS"}
)
"""Names that the runtime itself uses besides the methods and parameters of an interface."""


def python_name(name: str) -> str:
    """A name of a method or a parameter in Python: with a trailing _ if Python or the runtime already uses it."""
    return f"{name}_" if keyword.iskeyword(name) or name in _PYTHON_TAKEN else name


def class_name(c: str) -> str:
    """The name of an interface's class: ``my_calc`` is MyCalc."""
    return "".join(part[:1].upper() + part[1:] for part in c.split("_"))


def identifier(name: str) -> str:
    """A file's name as the name of a module or a macro."""
    return re.sub(r"\W|^(?=\d)", "_", name, flags=re.ASCII)
