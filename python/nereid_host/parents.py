"""Which requests the running code works for, so that the calls it makes end when nobody waits for them any more.

Known in `execute` and in the coroutines it starts, by a context variable. A thread that the model made does not inherit
it: there a call belongs to the request whose `trace()` it was given, and to none without. A batch of several requests is
the parent as a whole: its calls end when all of its clients have gone.
"""
from contextvars import ContextVar
from typing import Tuple

from nereid_host.answer import AnswerKey

_parents: ContextVar[Tuple[AnswerKey, ...]] = ContextVar("nereid_parents", default=())


class working_for:
    """In a `with`: the code there works for these. A class, because a generator costs more than what it does."""

    __slots__ = ("_keys", "_token")

    def __init__(self, keys: Tuple[AnswerKey, ...]) -> None:
        self._keys = keys

    def __enter__(self) -> None:
        self._token = _parents.set(self._keys)

    def __exit__(self, *_: object) -> None:
        _parents.reset(self._token)


def current_parents() -> Tuple[AnswerKey, ...]:
    return _parents.get()
