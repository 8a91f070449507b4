"""execute as a coroutine of a decoupled model: executions run side by side."""
import asyncio

from steps import FINAL, seen, step_of

EVENTS = {}


class TritonPythonModel:
    async def execute(self, requests):
        for request in requests:
            await getattr(self, step_of(request))(request.get_response_sender())

    async def counts(self, sender):
        for value in range(3):
            await asyncio.sleep(0.01)
            sender.send(seen(value))
        sender.send(flags=FINAL)

    async def waits_for_next(self, sender):
        """Answered only when the next request has come, so two executions must run at a time."""
        EVENTS["next"] = asyncio.Event()
        await asyncio.wait_for(EVENTS["next"].wait(), 5)
        sender.send(seen("waited"), FINAL)

    async def next(self, sender):
        while "next" not in EVENTS:
            await asyncio.sleep(0.01)
        EVENTS.pop("next").set()
        sender.send(seen("next"), FINAL)

    async def raises(self, sender):
        sender.send(seen("first"))
        await asyncio.sleep(0.01)
        raise ValueError("in a decoupled coroutine")
