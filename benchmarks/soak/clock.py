"""Steps of the wall clock of chosen processes, by a library loaded before libc.

It needs no privileges, and the machine's clock is not touched. Monotonic clocks and the times of files are
those of the kernel.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path

SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static volatile long long *offset;
static int (*real_clock_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("SOAK_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    void *place = file < 0 ? MAP_FAILED : mmap(0, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
    offset = place == MAP_FAILED ? 0 : place;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    if (!real_clock_gettime) real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real_clock_gettime(clock, now);
    int wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
    if (!result && offset && wall) now->tv_sec += *offset;
    return result;
}

time_t time(time_t *place) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (place) *place = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *place, void *zone) {
    struct timespec now;
    int result = clock_gettime(CLOCK_REALTIME, &now);
    place->tv_sec = now.tv_sec;
    place->tv_usec = now.tv_nsec / 1000;
    return result;
}
"""
STEP = 3600


class SteppedClock:
    """The wall clock of the processes that are started with `environment`.

    Args:
        folder: Where the library and the offset are kept.
    """

    def __init__(self, folder: Path) -> None:
        self._offset = folder / "clock"
        self._library = folder / "clock.so"
        self._offset.write_bytes(struct.pack("q", 0))
        self.missing = self._build(folder / "clock.c")
        """Why the clock cannot be stepped; empty if it can."""

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a process whose clock is stepped; none if it cannot be."""
        if self.missing:
            return {}
        return {"LD_PRELOAD": str(self._library), "SOAK_CLOCK": str(self._offset)}

    def step(self, seconds: int) -> None:
        """Set the clock to this many seconds from the true time, for all its processes at once."""
        with self._offset.open("r+b", buffering=0) as file:
            file.write(struct.pack("q", seconds))

    def _build(self, source: Path) -> str:
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None or not sys.platform.startswith("linux"):
            return "there is no C compiler" if compiler is None else "only Linux is supported"
        source.write_text(SOURCE, encoding="ascii")
        command = [compiler, "-shared", "-fPIC", "-O1", "-o", self._library, source, "-ldl"]
        made = subprocess.run(command, capture_output=True, check=False)
        if made.returncode:
            return "the library that steps it does not compile"
        self.missing = ""
        self.step(STEP)
        told = subprocess.run(
            [sys.executable, "-c", "import time; print(time.time())"],
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            check=False,
        )
        self.step(0)
        moved = told.returncode == 0 and float(told.stdout) - time.time() > STEP / 2
        return "" if moved else "the interpreter does not ask the C library for the time"
