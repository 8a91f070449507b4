"""Who reads and who runs: hand-over between the main thread and the helper, on a queue in place of a socket."""
import subprocess
import sys
import unittest

# Reading.run never returns, so each test that needs it runs in a process of its own.
PROLOGUE = """
import os, queue, sys, threading, time
sys.path[:0] = %r
from nereid_host.reading import TICK_S, Reading
main = threading.get_ident()
frames = queue.SimpleQueue()
awaited = [False]
readers = []
def read_one():
    frame = frames.get()
    readers.append("main" if threading.get_ident() == main else "helper")
    return frame
def finish(text):
    print(text, flush=True)
    os._exit(0)
reading = Reading(read_one, lambda: awaited[0])
threading.Timer(10, lambda: os._exit(3)).start()
"""


def run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROLOGUE % (sys.path,) + program], stdout=subprocess.PIPE, timeout=20, check=True
    )
    return done.stdout.decode().strip()


class ReadingTest(unittest.TestCase):
    def test_short_jobs_are_read_and_run_by_the_main_thread_alone(self):
        text = run(
            """
ran = []
def job():
    ran.append(threading.get_ident() == main)
    if len(ran) == 200:
        finish("%s %s" % (all(ran), set(readers)))
for _ in range(200):
    frames.put(job)
reading.run()
"""
        )
        self.assertEqual(text, "True {'main'}")

    def test_while_a_job_runs_long_the_helper_reads_and_then_gives_the_turn_back(self):
        text = run(
            """
cancelled = threading.Event()
def short():
    return None
def last():
    finish(" ".join(readers))
def long():
    # What is not for the main thread is dealt with where it is read.
    heard = cancelled.wait(5)
    frames.put(short)
    time.sleep(3 * TICK_S)
    frames.put(last) if heard else finish("not heard")
class Cancel:
    pass
def read_one():
    frame = frames.get()
    readers.append("main" if threading.get_ident() == main else "helper")
    if isinstance(frame, Cancel):
        cancelled.set()
        return None
    return frame
reading = Reading(read_one, lambda: awaited[0])
frames.put(long)
frames.put(Cancel())
reading.run()
"""
        )
        self.assertEqual(text.split()[:3], ["main", "helper", "helper"])

    def test_the_result_that_the_main_thread_waits_for_is_read(self):
        text = run(
            """
results = queue.SimpleQueue()
def result():
    results.put("answer")
    return None
def read_one():
    frame = frames.get()
    readers.append("main" if threading.get_ident() == main else "helper")
    return result() if frame == "result" else frame
reading = Reading(read_one, lambda: awaited[0])
def ask():
    awaited[0] = True
    threading.Timer(0.005, lambda: frames.put("result")).start()
    answer = reading.wait_for(results)
    awaited[0] = False
    finish("%s %s" % (answer, " ".join(readers)))
frames.put(ask)
reading.run()
"""
        )
        # By itself, or by the helper where that has just been woken.
        self.assertIn(text, ("answer main main", "answer main helper"))

    def test_results_for_other_threads_are_read_while_the_main_thread_computes(self):
        text = run(
            """
results = queue.SimpleQueue()
def read_one():
    frame = frames.get()
    if frame == "result":
        results.put("answer")
        return None
    return frame
reading = Reading(read_one, lambda: awaited[0])
def other():
    awaited[0] = True
    reading.attend()
    frames.put("result")
    began = time.monotonic()
    answer = reading.wait_for(results)
    awaited[0] = False
    finish("%s %s" % (answer, time.monotonic() - began < 5))
def compute():
    threading.Thread(target=other).start()
    time.sleep(8)
frames.put(compute)
reading.run()
"""
        )
        self.assertEqual(text, "answer True")

    def test_notes_are_seen_to_while_the_main_thread_waits_for_a_frame(self):
        text = run(
            """
threading.Timer(5 * TICK_S, lambda: reading.later(lambda: finish("noted"))).start()
reading.run()
"""
        )
        self.assertEqual(text, "noted")

    def test_an_idle_helper_sleeps_and_is_woken_by_the_next_long_job(self):
        text = run(
            """
seen = threading.Event()
def long():
    finish("read" if seen.wait(5) else "not read")
def read_one():
    frame = frames.get()
    if frame == "ping":
        seen.set()
        return None
    return frame
reading = Reading(read_one, lambda: awaited[0])
def later():
    time.sleep(10 * TICK_S)
    asleep = reading._is_helper_asleep
    frames.put(long if asleep else lambda: finish("awake"))
    frames.put("ping")
threading.Thread(target=later).start()
reading.run()
"""
        )
        self.assertEqual(text, "read")


class TurnTest(unittest.TestCase):
    def test_nothing_is_lost_between_many_hand_overs(self):
        """Jobs of random length from a feeder, each run once, in order, on the main thread."""
        text = run(
            """
import random
rng = random.Random(7)
ran = []
def make(number, seconds):
    def job():
        time.sleep(seconds)
        ran.append(number)
        if number == 299:
            finish("%s %d" % (ran == list(range(300)), len(ran)))
    return job
def feed():
    for number in range(300):
        frames.put(make(number, rng.choice([0, 0, 0, 0.001, 2.5 * TICK_S if number % 20 == 0 else 0])))
        if rng.random() < 0.2:
            time.sleep(0.002)
        if rng.random() < 0.1:
            reading.later(lambda: None)
threading.Thread(target=feed).start()
reading.run()
"""
        )
        self.assertEqual(text, "True 300")


if __name__ == "__main__":
    unittest.main()
