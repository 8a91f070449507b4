"""The event loop on which an LLM engine lives, on a thread of its own beside the host's. Used by vllm_model.py and
tensorrtllm_model.py: `execute` only hands a request over, and its answers are sent from here."""
import asyncio
import threading
from typing import Any, Awaitable, Callable, Coroutine, Dict

# How often cancelled requests are looked for. One that waits in the engine's queue has no output to notice it by.
CANCEL_CHECK_S = 0.1


class EngineThread:
    def __init__(self, name: str, cancel_check_s: float = CANCEL_CHECK_S) -> None:
        self._loop = asyncio.new_event_loop()
        self._cancel_check_s = cancel_check_s
        # Requests under way: what tells whether nobody waits any more, and what ends them.
        self._watched: Dict[object, Any] = {}
        self._watch: Any = None
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def call(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Runs it on the loop and waits for its result. Not to be called on the loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def submit(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        """Runs it on the loop; it must answer its request whatever happens."""
        asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def watch(self, key: object, is_cancelled: Callable[[], bool], abort: Callable[[], Awaitable[None]]) -> None:
        """On the loop: calls `abort` once when the request is cancelled, unless `unwatch` comes first."""
        self._watched[key] = (is_cancelled, abort)
        if self._watch is None:
            self._watch = asyncio.get_running_loop().create_task(self._check_cancelled())

    def unwatch(self, key: object) -> None:
        self._watched.pop(key, None)

    async def _check_cancelled(self) -> None:
        while self._watched:
            await asyncio.sleep(self._cancel_check_s)
            for key, (is_cancelled, abort) in list(self._watched.items()):
                if is_cancelled():
                    self.unwatch(key)
                    await abort()
        self._watch = None

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
