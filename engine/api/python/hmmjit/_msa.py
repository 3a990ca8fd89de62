"""Multiple alignments, found by searches or used to build models."""
from __future__ import annotations

import html
import re
from typing import Any, Dict, Iterator, List, Tuple, Union, overload

from . import _binding as _b
from ._common import PathLike, UsageError


def _check_word(word: Any) -> bytes:
    encoded = _b.encode(word) if isinstance(word, str) else None
    if not encoded or encoded.split() != [encoded]:
        raise UsageError(f"alignments and their rows are named by one word, not {word!r}")
    return encoded


class MSA:
    """A multiple alignment: rows of equal length, by name, in order. Immutable but for its name.

    `rows`: a mapping, or pairs, of names and aligned residues. stockholm() keeps the annotation of an alignment
    that comes from a search or a Stockholm file.
    """

    def __init__(self, rows: Union[Dict[str, str], List[Tuple[str, str]]], name: str = "alignment") -> None:
        self._stockholm = b""
        self._rows: List[Tuple[str, str]] = list(rows.items() if isinstance(rows, dict) else rows)
        if len({len(text) for _, text in self._rows}) > 1:
            raise UsageError("the rows of an alignment have one length")
        for row in self.names:
            _check_word(row)
        self.name = name

    @property
    def name(self) -> str:
        """One word: the name of a model built from the alignment. Can be set."""
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        line = b"#=GF ID " + _check_word(name) + b"\n"
        self._name = name
        others = re.sub(rb"^#=GF[ \t]+ID[ \t].*\n", b"", self._stockholm, flags=re.MULTILINE)
        self._stockholm = re.sub(rb"^\s*# STOCKHOLM.*\n", lambda head: head[0] + line, others, count=1)

    @classmethod
    def _of_stockholm(cls, text: bytes, name: str, comments: Tuple[bytes, ...] = (b"#=", b"# ")) -> MSA:
        # In the library's own alignments, names of rows may begin with # or //.
        rows: Dict[str, List[bytes]] = {}
        for line in map(bytes.strip, text.split(b"\n")):
            if line.startswith(b"#=GF ID "):
                name = _b.text(line.split()[2])
            if line.startswith(comments) or line in (b"", b"#", b"//"):
                continue
            row, *residues = line.split(None, 1)
            rows.setdefault(_b.text(row), []).extend(residues)
        self = cls({row: _b.text(b"".join(pieces)) for row, pieces in rows.items()}, name)
        self._stockholm = text
        return self

    @classmethod
    def load(cls, path: PathLike) -> MSA:
        """Reads a file with one alignment in Stockholm format or aligned FASTA."""
        with open(path, "rb") as file:
            data = file.read()
        if data.lstrip().startswith(b"# STOCKHOLM"):
            if len(re.findall(rb"^//\s*$", data, re.MULTILINE)) > 1:
                raise UsageError(f"{path!r} holds several alignments; Builder.build_all takes them")
            return cls._of_stockholm(data, "alignment", (b"#",))
        text = re.sub("\r\n?", "\n", _b.text(data).lstrip("\ufeff"))
        head, *records = re.split(r"^[ \t]*>", text, flags=re.MULTILINE)
        rows: List[Tuple[str, str]] = []
        for record in records:
            header, _, residues = record.partition("\n")
            rows.append(((header.split() or [""])[0], "".join(residues.split())))
        if head.strip() or not rows:
            raise _b.InputError(f"{path!r} holds no alignment in Stockholm format or aligned FASTA")
        return cls(rows)

    @property
    def names(self) -> List[str]:
        """Names of the rows, in order."""
        return [name for name, _ in self._rows]

    @property
    def columns(self) -> int:
        """Length of each row, gaps included."""
        return len(self._rows[0][1]) if self._rows else 0

    def __len__(self) -> int:
        """Rows."""
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Tuple[str, str]: ...

    @overload
    def __getitem__(self, index: slice) -> List[Tuple[str, str]]: ...

    def __getitem__(self, index: Union[int, slice]) -> Union[Tuple[str, str], List[Tuple[str, str]]]:
        return self._rows[index]

    def __iter__(self) -> Iterator[Tuple[str, str]]:
        return iter(self._rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MSA) and self._rows == other._rows

    def __hash__(self) -> int:
        return hash(tuple(self._rows))

    def stockholm(self) -> bytes:
        """The alignment in Stockholm format, with its original annotation."""
        if self._stockholm:
            return self._stockholm
        wide = max((len(name) for name in self.names), default=0)
        lines = ["# STOCKHOLM 1.0", f"#=GF ID {self.name}", ""]
        lines += [f"{name:{wide}} {text}" for name, text in self._rows] + ["//", ""]
        return "\n".join(lines).encode("utf-8", "surrogateescape")

    def fasta(self) -> bytes:
        """The alignment as aligned FASTA."""
        return "".join(f">{name}\n{text}\n" for name, text in self._rows).encode("utf-8", "surrogateescape")

    def write(self, path: PathLike, format: str = "stockholm") -> None:
        """Writes a file; `format`: "stockholm" or "fasta"."""
        if format not in ("stockholm", "fasta"):
            raise UsageError(f"no alignment format {format!r}: 'stockholm', 'fasta'")
        from ._reports import write_file
        write_file(path, [self.stockholm() if format == "stockholm" else self.fasta()])

    def __str__(self) -> str:
        wide = max((len(name) for name in self.names), default=0)
        return "\n\n".join("\n".join(f"{name:{wide}} {text[at:at + 80]}" for name, text in self._rows)
                           for at in range(0, self.columns, 80))

    def __repr__(self) -> str:
        return f"<hmmjit.MSA {self.name!r}, {len(self)} rows of {self.columns} columns>"

    def _repr_html_(self) -> str:
        shown = MSA(self._rows[:20], self.name)
        more = f"<p>{len(self) - 20} more rows</p>" if len(self) > 20 else ""
        return f"<p>{html.escape(repr(self))}</p><pre>{html.escape(str(shown))}</pre>{more}"
