"""Device memory is asked for before it is taken: what does not fit is refused in a sentence, not by a crash.

Only devices that report their memory are asked (CUDA does, JAX's CPU does not). A process that keeps memory on the
same device without JAX's knowledge is not seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spinbench.errors import UnsupportedError

if TYPE_CHECKING:
    import jax


def free_bytes(device: jax.Device) -> int | None:
    """Bytes that the device's allocator may still give out; None where the device does not tell."""
    stats = device.memory_stats() or {}
    if "bytes_limit" not in stats:
        return None
    return int(stats["bytes_limit"]) - int(stats.get("bytes_in_use", 0))


def bytes_taken(program: jax.stages.Compiled) -> int:
    """What a call of a compiled JAX program takes beside its arguments: results and temporary arrays."""
    analysis = program.memory_analysis()
    if analysis is None:
        return 0
    results = analysis.output_size_in_bytes - analysis.alias_size_in_bytes
    return int(analysis.temp_size_in_bytes + results)


def require(need: int, device: jax.Device, purpose: str) -> None:
    """Raises UnsupportedError if `need` bytes for `purpose` are more than the device has free."""
    free = free_bytes(device)
    if free is not None and need > free:
        raise UnsupportedError(
            f"backend jax: {purpose} need {_size(need)} on {device.device_kind}, where {_size(free)} are free; "
            "fewer chains, a smaller model or precision=float32 take less"
        )


def raise_if_exhausted(error: Exception, device: jax.Device) -> None:
    """Raises UnsupportedError if an error of JAX says that the device has no memory left, which no prediction saw."""
    if "RESOURCE_EXHAUSTED" in str(error):
        raise UnsupportedError(
            f"backend jax: {device.device_kind} is out of memory ({str(error).splitlines()[0]}); fewer chains, a "
            "smaller model or precision=float32 take less"
        ) from error


def _size(count: int) -> str:
    if count >= 2**27:
        return f"{count / 2**30:.2f} GiB"
    return f"{count / 2**20:.2f} MiB"
