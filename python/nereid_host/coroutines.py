"""The event loop on which `async def execute` runs: one thread per host, made when a model first needs it."""
import asyncio
import threading
from concurrent.futures import Future
from typing import Any, Coroutine


class CoroutineThread:
    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        thread = threading.Thread(target=self._run, name="nereid-coroutines", daemon=True)
        thread.start()

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> "Future[Any]":
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
