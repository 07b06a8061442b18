"""Directives of an IDL file: conditions, macros and the text of included files."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fastrpc.idl.model import IdlError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

KNOWN_FILES: Final = ("AEEStdDef.idl", "AEEStdErr.idl", "remote.idl")
"""Files whose declarations are always available: their headers are part of hbrt."""
MAX_DEPTH: Final = 64
_MARK: Final = re.compile(r'#line (\d+)(?: "(.*)")?')


class Text(NamedTuple):
    """Text without directives.

    Attributes:
        text: The text.
        places: For each of its lines, the file and line of origin.
        included: Files of ``KNOWN_FILES`` that are included.
        notes: Of each directive without effect, a sentence with its place.
    """

    text: str
    places: list[tuple[str, int]]
    included: set[str]
    notes: list[str]


def preprocess(text: str, file: str, folders: Iterable[Path] = ()) -> Text:
    """Process the directives of an IDL file like a C compiler.

    Args:
        text: The file's contents.
        file: Its name, for error messages; includes are searched for next to it.
        folders: More folders to search for includes.

    Raises:
        IdlError: a directive is wrong, or an included file was not found.
    """
    reader = _reader(file)
    for folder in (Path(file).parent, *folders):
        reader.add_path(str(folder))
    out = io.StringIO()
    try:
        reader.parse(text, file)
        reader.write(out)
    except IdlError:
        raise
    except RecursionError:
        raise IdlError(f"{file}:1:1: Conditions or macros are nested too deeply.") from None
    except Exception as error:  # noqa: BLE001 - the library raises whatever its own parser raises
        raise IdlError(f"{file}:1:1: The preprocessor cannot read the file: {error}.") from None
    return _placed(out.getvalue(), file, reader)


def _reader(file: str) -> Any:
    """A preprocessor that raises its errors and skips known files."""
    from pcpp import Preprocessor

    class Reader(Preprocessor):  # type: ignore[misc] # has no types
        """Errors are raised; known files are skipped."""

        def __init__(self) -> None:
            super().__init__()
            self.included: set[str] = set()
            self.notes: list[str] = []
            self.depth = 0

        def on_error(self, source: str, line: int, sentence: str) -> None:
            raise IdlError(f"{source if line else file}:{max(line, 1)}:1: {sentence}.")

        def on_directive_unknown(self, directive: Any, *rest: Any) -> Any:
            place = f"{directive.source}:{directive.lineno}:1"
            said = "".join(one.value for one in rest[0]).strip() if rest else ""
            if directive.value == "error":
                raise IdlError(f"{place}: #error {said}")
            if directive.value == "pragma":
                self.notes.append(f"{place}: Ignored #pragma {said}: it has no effect in an IDL file.")
                return True
            return super().on_directive_unknown(directive, *rest)

        def include(self, tokens: list[Any], original_line: list[Any]) -> Iterator[Any]:
            name = "".join(one.value for one in tokens).strip().strip('"<>').rpartition("/")[2]
            if name in KNOWN_FILES:
                self.included.add(name)
                return
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise IdlError(f"{tokens[0].source}:{tokens[0].lineno}:1: Files include each other endlessly.")
            yield from super().include(tokens, original_line)
            self.depth -= 1

        def on_include_not_found(self, *given: Any) -> str:
            at, (is_malformed, *_, name) = self.lastdirective, given
            what = "has no name" if is_malformed else f"was not found: {name}; add its folder with -I"
            raise IdlError(f"{at.source}:{at.lineno}:1: The included file {what}.")

    return Reader()


def _placed(text: str, file: str, reader: Any) -> Text:
    lines: list[str] = []
    places: list[tuple[str, int]] = []
    source, number = file, 1
    own = Path(file).resolve()
    for line in text.split("\n"):
        mark = _MARK.fullmatch(line)
        if mark is not None:
            source, number = mark[2] or source, int(mark[1])
            source = file if Path(source).resolve() == own else source
            continue
        lines.append(line)
        places.append((source, number))
        number += 1
    return Text("\n".join(lines), places, reader.included, reader.notes)
