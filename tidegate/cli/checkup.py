"""Looks at this installation and tries it: what ``tidegate doctor`` reports, as data."""

from __future__ import annotations

import platform
import queue
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version

import msgspec

from tidegate.actors.supervisor.io import WorkerIo
from tidegate.cli.extras import EXTRAS
from tidegate.daemon.config.load import InvalidConfig, load, referred
from tidegate.daemon.config.sources import misspelt
from tidegate.errors import ConfigurationError, TidegateError
from tidegate.lab import Lab, chat
from tidegate.local.weights import SMOLLM2, locate
from tidegate.protocol.attempts import WorkerReady
from tidegate.protocol.base import Generation
from tidegate.protocol.endpoints import Endpoint
from tidegate.protocol.knobs import said_in
from tidegate.protocol.policy import Policy, Settings
from tidegate.protocol.requests import Request
from tidegate.protocol.wires import preload_of
from tidegate.protocol.workers import WorkerLost
from tidegate.runtime import Runtime
from tidegate.settings import environment


PACKAGES = ("pykka", "msgspec", "openai", "anthropic", "boto3", "aiohttp", "cyclopts", "rich")
KEYS = (
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "AWS_ACCESS_KEY_ID",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AWS_PROFILE",
)
"""The variables in which the SDKs look for keys."""

_WITHOUT = {"daemon": "the daemon", "local": "a local model"}
WORKER_S = 60.0
WORDS = ("The ", "gate ", "holds.")


class Problem(msgspec.Struct, frozen=True):
    """What is wrong and what to do about it; ``grave`` if turns cannot work."""

    what: str
    hint: str
    grave: bool = False


class Trial(msgspec.Struct, frozen=True):
    """A turn against a scripted provider on loopback.

    Attributes:
        detail: the answer, or what went wrong.
        first_delta_s: from the start to the first delta, with a warm worker.
    """

    passed: bool
    detail: str
    first_delta_s: float | None = None


class WorkerStart(msgspec.Struct, frozen=True):
    """How workers come to be here.

    Attributes:
        method: ``zygote`` or ``exec``.
        first_s: until the first worker was ready, the SDKs' import included.
        further_s: until a further one was.
    """

    method: str
    first_s: float
    further_s: float


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All that is to be said.

    Attributes:
        packages: name and version of what tidegate needs; None for what is missing.
        extras: the same for what it can do without, below the name of each extra.
        weights: the path of the local model's weights.
        keys: names of the variables that hold keys, never their values.
        variables: names of the variables that change tidegate's settings.
        workers: None if none could be started.
    """

    python: str
    system: str
    tidegate: str | None
    packages: dict[str, str | None]
    extras: dict[str, dict[str, str | None]]
    weights: str | None
    keys: tuple[str, ...]
    variables: tuple[str, ...]
    workers: WorkerStart | None
    self_test: Trial
    problems: tuple[Problem, ...]


def examine() -> Report:
    """Look at everything; takes some seconds."""
    environ = environment()
    problems: list[Problem] = []
    packages = {name: _version(name) for name in PACKAGES}
    problems += [
        Problem(f"{name} is not installed", "run `pip install tidegate` again", grave=True)
        for name, found in packages.items()
        if found is None
    ]
    extras = {name: {each: _version(each) for each in brings} for name, brings in EXTRAS.items()}
    absent = {name for name, found in extras.items() if None in found.values()}
    problems += [
        Problem(
            f"the extra `{name}` is not installed",
            f"run `pip install 'tidegate[{name}]'`, unless you do without {_WITHOUT[name]}",
        )
        for name in sorted(absent)
    ]
    problems += _slips(environ)
    weights = _weights(problems, with_extra="local" not in absent)
    workers = _worker_start(problems)
    trial = try_turn()
    if not trial.passed:
        hint = "what was logged is above; `tidegate run` will fail in the same way"
        problems.append(Problem(f"the self-test failed: {trial.detail}", hint, grave=True))
    return Report(
        python=platform.python_version(),
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        tidegate=_version("tidegate"),
        packages=packages,
        extras=extras,
        weights=weights,
        keys=_set_among(KEYS, environ),
        variables=tuple(sorted(said_in(environ))),
        workers=workers,
        self_test=trial,
        problems=tuple(problems),
    )


def try_turn() -> Trial:
    """Run a turn from a scripted provider's socket to an answer."""
    with Lab([chat.answer(*WORDS), chat.answer(*WORDS)]) as lab:
        request = Request(
            Endpoint.chat(lab.url, "no-key"),
            {"model": "lab", "messages": [{"role": "user", "content": "Does it hold?"}]},
            policy=Policy(deadline_s=WORKER_S),
        )
        try:
            with Runtime(workers=1) as runtime:
                runtime.run(request)  # the first one waits for the worker
                began_s = time.monotonic()
                delays_s: list[float] = []
                answer = runtime.run(request, lambda _: delays_s.append(time.monotonic() - began_s))
        except TidegateError as error:
            return Trial(passed=False, detail=f"{type(error).__name__}: {error}")
    if answer.text != "".join(WORDS):
        return Trial(passed=False, detail=f"the answer was {answer.text!r}")
    return Trial(passed=True, detail=answer.text, first_delta_s=delays_s[1])


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _set_among(names: tuple[str, ...], environ: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(name for name in names if environ.get(name, "").strip())


def _slips(environ: Mapping[str, str]) -> Iterator[Problem]:
    """Tell of variables that nobody reads; which hold keys, only the configuration says."""
    try:
        named = referred(load().config)
    except InvalidConfig as error:
        hint = "see `tidegate config check`; the library works without it"
        yield Problem(f"the daemon cannot start: {error}", hint)
        return
    except ConfigurationError:  # without the extra, which is told of by itself
        named = frozenset()
    for note in misspelt(environ, named):
        yield Problem(note, "give it that name, or unset it")


def _weights(problems: list[Problem], *, with_extra: bool) -> str | None:
    try:
        return str(locate(SMOLLM2.name))
    except ConfigurationError as error:
        if with_extra:
            problems.append(Problem(str(error).partition(": ")[0], "run `tidegate local fetch`"))
        return None


def _worker_start(problems: list[Problem]) -> WorkerStart | None:
    told: queue.SimpleQueue[object] = queue.SimpleQueue()
    try:
        with _workers(told) as workers:
            first_s = _start(workers, Generation(1), told)
            further_s = _start(workers, Generation(2), told)
            zygote = workers.zygote
    except (ConfigurationError, OSError, RuntimeError) as error:
        hint = "what was logged is above; without a worker there is no turn"
        problems.append(Problem(f"no worker could be started: {error}", hint, grave=True))
        return None
    if zygote is not None:
        hint = "workers still start, and import by themselves what is missing"
        problems += [Problem(complaint, hint) for complaint in zygote.complaints]
    return WorkerStart("zygote" if zygote else "exec", first_s, further_s)


@contextmanager
def _workers(told: queue.SimpleQueue[object]) -> Iterator[WorkerIo]:
    def tell(messages: list[object]) -> None:
        for message in messages:
            told.put(message)

    workers = WorkerIo(deliver=tell, crashed=told.put, preload=preload_of(Settings().preload))
    workers.start()
    try:
        yield workers
    finally:
        workers.stop()
        workers.join()


def _start(workers: WorkerIo, generation: Generation, told: queue.SimpleQueue[object]) -> float:
    began_s = time.monotonic()
    workers.spawn(generation)
    while True:
        try:
            message = told.get(timeout=WORKER_S)
        except queue.Empty:
            raise RuntimeError(f"it was not ready within {WORKER_S:g} s") from None
        match message:
            case WorkerReady():
                return time.monotonic() - began_s
            case WorkerLost(detail=detail):
                raise RuntimeError(detail)
            case BaseException():
                raise RuntimeError(repr(message)) from message
            case _:
                continue  # what else there is to say about workers is not asked here
