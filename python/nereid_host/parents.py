"""Which requests the running code works for, so that the calls it makes end when nobody waits for them any more.

Known in `execute` and in the coroutines it starts, by a context variable. A thread that the model made does not inherit
it: there a call belongs to the request whose `trace()` it was given, and to none without. A batch of several requests is
the parent as a whole: its calls end when all of its clients have gone.
"""
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Iterator, Tuple

from nereid_host.answer import AnswerKey

_parents: ContextVar[Tuple[AnswerKey, ...]] = ContextVar("nereid_parents", default=())


@contextmanager
def working_for(keys: Tuple[AnswerKey, ...]) -> Iterator[None]:
    token = _parents.set(keys)
    try:
        yield
    finally:
        _parents.reset(token)


def current_parents() -> Tuple[AnswerKey, ...]:
    return _parents.get()
