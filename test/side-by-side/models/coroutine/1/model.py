"""execute as a coroutine: responses are those of the list that it returns."""
import asyncio

from steps import raised, seen, step_of


class TritonPythonModel:
    async def execute(self, requests):
        return [await getattr(self, step_of(request))() for request in requests]

    async def sleeps(self):
        await asyncio.sleep(0.01)
        return seen("slept")

    async def gathers(self):
        async def one(value):
            await asyncio.sleep(0.01 * (3 - value))
            return value

        return seen(await asyncio.gather(*[one(value) for value in range(3)]))

    async def raises(self):
        await asyncio.sleep(0)
        raise ValueError("in a coroutine")

    async def returns_number(self):
        return 1

    async def nested_loop(self):
        coroutine = asyncio.sleep(0)
        text = raised(asyncio.run, coroutine)
        coroutine.close()
        return seen(text)
