"""Attributes that are members of C structs."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, Generic, NoReturn, Optional, Type, TypeVar, Union, overload

T = TypeVar("T")


class Fields:
    """An object with a C struct. The owner of the struct's texts must live as long."""

    __slots__ = ("_struct",)
    _struct: Any
    #: Names of attributes in other programs, for error messages.
    _other_names: Dict[str, str] = {}

    if not TYPE_CHECKING:
        def __getattr__(self, name):
            other = self._other_names.get(name)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}"
                                 + (f"; it is called {other!r} here" if other else ""))


class Immutable:
    """A copy of an immutable object is the object itself."""

    __slots__ = ()

    def __copy__(self: T) -> T:
        return self

    def __deepcopy__(self: T, memo: Any) -> T:
        return self


class Field(Generic[T]):
    """A member of the struct as a read-only attribute, converted on access."""

    def __init__(self, member: str, convert: Callable[[Any], T], doc: str) -> None:
        self._member, self._convert, self.__doc__ = member, convert, doc

    def __set_name__(self, owner: Type[Any], name: str) -> None:
        self._name = name

    @overload
    def __get__(self, thing: None, owner: Type[Any]) -> Field[T]: ...

    @overload
    def __get__(self, thing: Fields, owner: Type[Any]) -> T: ...

    def __get__(self, thing: Any, owner: Type[Any]) -> Union[T, Field[T]]:
        return self if thing is None else self._convert(getattr(thing._struct, self._member))

    def __set__(self, thing: Any, value: NoReturn) -> None:
        raise AttributeError(f"attribute {self._name!r} of {type(thing).__name__!r} objects is read-only")


def text(value: Optional[bytes]) -> str:
    """Text of the library; names are bytes and need not be UTF-8."""
    return value.decode("utf-8", "surrogateescape") if value else ""
