"""Files for other build tools: hbrt.pc for pkg-config, and hbrtConfig.cmake and toolchain.cmake for CMake.

With the toolchain file, a board's CMakeLists.txt builds unchanged: it finds the vendors' headers and libraries by name
wherever it looks for them, even those that it links by their paths; the board's SoC reads as S100, TARGET_SOC as rk3588
unless it is given. A compiler that is not here is replaced by CMake's choice, and options that only a compiler for ARM
has are left out on other machines.
"""

from __future__ import annotations

import sys
from pathlib import Path

from hbrt import __version__
from hbrt.cc.toolchain import IS_ARM, NOT_OFFERED, OF_ARM, arm_flags, vendor_libraries
from hbrt.native.elf import machine_of
from hbrt.native.files import library, library_folders

_PKG_CONFIG = """\
Name: hbrt
Description: ARM programs for an emulated ARM-DSP board
Version: {version}
Cflags: {compile}
Libs: {link}
"""

_CMAKE = """\
set(hbrt_VERSION {version})
if(NOT TARGET hbrt::hbrt)
  add_library(hbrt::hbrt SHARED IMPORTED)
  set_target_properties(hbrt::hbrt PROPERTIES
    IMPORTED_LOCATION "{library}"
    INTERFACE_INCLUDE_DIRECTORIES "{folders}"
    INTERFACE_COMPILE_OPTIONS "{options}"
    INTERFACE_LINK_LIBRARIES "{libraries}")
endif()
"""

_TOOLCHAIN = """\
if(NOT DEFINED TARGET_SOC) # what builds for Rockchip's chips ask for
  set(TARGET_SOC rk3588)
endif()
foreach(language C CXX)
  if(CMAKE_${{language}}_COMPILER)
    find_program(hbrt_named_${{language}} "${{CMAKE_${{language}}_COMPILER}}" NO_CACHE)
    if(NOT hbrt_named_${{language}})
      message(STATUS "This machine has no ${{CMAKE_${{language}}_COMPILER}}: its own compiler is used.")
      unset(CMAKE_${{language}}_COMPILER)
    endif()
  endif()
endforeach()
list(APPEND CMAKE_PREFIX_PATH "{prefix}")
list(APPEND CMAKE_LIBRARY_PATH {lib})
list(APPEND CMAKE_INCLUDE_PATH {headers})
list(APPEND CMAKE_BUILD_RPATH {lib})
list(APPEND CMAKE_INSTALL_RPATH {lib})
get_property(is_trial GLOBAL PROPERTY IN_TRY_COMPILE)
if(NOT is_trial) # else CMake takes our folder for one of the linker's own
  set(CMAKE_PROJECT_INCLUDE "{folder}/board.cmake")
  foreach(language C CXX)
    set(CMAKE_${{language}}_COMPILER_LAUNCHER "{folder}/launch")
    set(CMAKE_${{language}}_LINKER_LAUNCHER "{folder}/launch")
  endforeach()
endif()
"""
# Runs a compiler without the options that only one for ARM has.
_LAUNCH = """\
#!/bin/sh
for one; do
  shift
  case $one in
{dropped}    *) set -- "$@" "$one" ;;
  esac
done
exec "$@"
"""
# After project(): CMake's own modules use the original file().
_BOARD = """\
cmake_policy(SET CMP0054 NEW)
include_directories(SYSTEM {headers})
add_compile_options({options})
link_directories({lib})
if(NOT COMMAND _target_link_libraries)
  function(hbrt_own given result) # what to link instead of a board's files, as given
{refusals}    string(REGEX MATCHALL "[^;<>:]*/lib[A-Za-z0-9_]+[.](so|a)[.0-9]*" paths "${{given}}")
    foreach(path IN LISTS paths)
      set(machine "")
      if(EXISTS "${{path}}" AND NOT IS_DIRECTORY "${{path}}")
        _file(READ "${{path}}" data HEX)
        string(FIND "${{data}}" "7f454c46" header) # ELF; of an archive, its first member
        if(NOT header EQUAL -1)
          math(EXPR header "${{header}} + 36")
          string(SUBSTRING "${{data}}" ${{header}} 4 machine)
        endif()
      endif()
      if(machine STREQUAL "{machine}"{and_own} OR path MATCHES "/liblog[.]a$")
        continue()
      endif()
      get_filename_component(name "${{path}}" NAME_WE)
      foreach(own {own})
        if(NOT path STREQUAL own AND own MATCHES "/${{name}}[.]so$")
          message(STATUS "${{path}} is replaced by hbrt's own ${{name}}.so.")
          string(REPLACE "${{path}}" "${{own}}" given "${{given}}")
        endif()
      endforeach()
    endforeach()
    set(${{result}} "${{given}}" PARENT_SCOPE)
  endfunction()
  function(target_link_libraries)
    hbrt_own("${{ARGV}}" arguments)
    _target_link_libraries(${{arguments}})
    foreach(one IN LISTS ARGN)
      if(TARGET "${{one}}")
        get_target_property(given ${{one}} IMPORTED_LOCATION)
        hbrt_own("${{given}}" own)
        if(NOT own STREQUAL given)
          set_property(TARGET ${{one}} PROPERTY IMPORTED_LOCATION "${{own}}")
        endif()
      endif()
    endforeach()
  endfunction()
  function(link_libraries)
    hbrt_own("${{ARGV}}" arguments)
    _link_libraries(${{arguments}})
  endfunction()
endif()
if(NOT COMMAND _file)
  function(file)
    if("${{ARGV0}}" STREQUAL "READ" AND "${{ARGV1}}" STREQUAL "/sys/class/boardinfo/soc_name")
      set(${{ARGV2}} "S100")
{calls}    endif()
    foreach(argument IN LISTS ARGV)
      if("${{argument}}" MATCHES "^[A-Za-z_][A-Za-z0-9_]*$" AND DEFINED "${{argument}}")
        set("${{argument}}" "${{${{argument}}}}" PARENT_SCOPE)
      endif()
    endforeach()
  endfunction()
endif()
"""
_MAX_ARGUMENTS = 16  # arguments of file(), each quoted separately, so that lists stay lists


def write_packages(folder: Path | None = None) -> Path:
    """Write them to a folder, by default this environment's ``lib``; returns it.

    Raises:
        NotBuiltError: hbrt was installed without a C compiler. OSError: the environment cannot be written.
    """
    flags = arm_flags()
    folder = folder or Path(sys.prefix) / "lib"
    folders = [flag.removeprefix("-isystem") for flag in flags.compile if flag.startswith("-isystem")]
    values = {
        "version": __version__,
        "compile": " ".join(map(_quoted, flags.compile)),
        "link": " ".join(map(_quoted, flags.link)),
        "library": library("libhbrt.so"),
        "folders": ";".join(folders),
        "options": ";".join(flag for flag in flags.compile if not flag.startswith("-isystem")),
        "headers": " ".join(f'"{one}"' for one in folders),
        "folder": folder / "cmake/hbrt",
        "libraries": ";".join(one for one in flags.link if one.startswith("-")),
        "lib": " ".join(f'"{one}"' for one in library_folders()),
        "prefix": sys.prefix,
        "refusals": "".join(map(_refusal, NOT_OFFERED.items())),
        "and_own": ' AND path MATCHES "[.]a$"' if IS_ARM else "",
        "machine": machine_of(library("libhbrt.so")).to_bytes(2, sys.byteorder).hex(),
        "own": " ".join(f'"{file}"' for file in vendor_libraries().values()),
        "dropped": f'    {" | ".join(OF_ARM)}) echo "hbrt: $one is left out: it is for ARM." >&2 ;;\n'
        if OF_ARM
        else "",
        "calls": "".join(map(_file_call, range(1, _MAX_ARGUMENTS + 1))),
    }
    for file, text in (
        (folder / "pkgconfig" / "hbrt.pc", _PKG_CONFIG),
        (folder / "cmake/hbrt/hbrtConfig.cmake", _CMAKE),
        (folder / "cmake/hbrt/toolchain.cmake", _TOOLCHAIN),
        (folder / "cmake/hbrt/board.cmake", _BOARD),
        (folder / "cmake/hbrt/launch", _LAUNCH),
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.format(**values), encoding="utf-8")
    file.chmod(0o755)
    return folder


def _quoted(flag: str) -> str:
    return flag.replace("\\", "\\\\").replace(" ", "\\ ")


def _refusal(name_and_why: tuple[str, str]) -> str:
    name, why = name_and_why
    return (
        f'    if(given MATCHES "(^|[;/])(lib|-l)?{name}([.]|;|$)")\n'
        f'      message(FATAL_ERROR "Cannot link {name}: {why}")\n    endif()\n'
    )


def _file_call(count: int) -> str:
    arguments = " ".join(f'"${{ARGV{at}}}"' for at in range(count))
    return f'    elseif("${{ARGC}}" EQUAL {count})\n      _file({arguments})\n'
