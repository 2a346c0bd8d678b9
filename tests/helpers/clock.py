"""A clock in place of the module `time`."""

from __future__ import annotations


class Clock:
    """Only what sleeps takes any time, and keeps the CPU busy; what waits leaves the CPU to others."""

    def __init__(self) -> None:
        self.now = self.busy = 0.0

    def perf_counter(self) -> float:
        return self.now

    def process_time(self) -> float:
        return self.busy

    thread_time = process_time

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.busy += seconds

    def wait(self, seconds: float) -> None:
        self.now += seconds
