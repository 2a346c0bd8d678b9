"""JAX on CPU and GPU: the generic programs, compiled by XLA."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterator, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate

import numpy as np

from spinbench.api import Array, Backend, BackendProfile, Index, Key, Precision
from spinbench.api.backend import Carry, P, R
from spinbench.errors import UnsupportedError
from spinbench.foundation.arithmetic import Accelerated, Arithmetic
from spinbench.foundation.folders import cache_folder
from spinbench.mathematics.heat_bath.tiles import Tiles

if TYPE_CHECKING:
    import jax


def set_variables(variables: dict[str, str], device: str) -> None:
    """Let XLA compute in one thread, keep all that it compiles, and write nothing that is no warning."""
    flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    variables["XLA_FLAGS"] = f"{variables.get('XLA_FLAGS', '')} {flags}".strip()
    variables.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    # Several warm workers may share a GPU, so that none may reserve all of its memory.
    variables.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    variables.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    if device == "cpu":
        variables["JAX_PLATFORMS"] = "cpu"


class JaxArithmetic(Arithmetic):
    """With slices in place of gathers."""

    def window(self, array: Array, start: Index, length: int) -> Array:
        import jax

        return jax.lax.dynamic_slice_in_dim(array, start, length)


def make_tiles(backend: JaxBackend) -> Tiles:
    """Of dense models."""
    from spinbench.backends.jax.dense_tiles import SequentialTiles

    return SequentialTiles(backend)


class JaxBackend(Accelerated, Backend):
    """JAX on all devices of a kind; random numbers are counter-based hashes, see `spinbench.backends.jax.random`.

    Several devices have equal parts of the chains (`split_chains`), and a copy of all else. A random number depends on
    its place in the whole array alone, so that chains are the same on any number of devices.

    64-bit mode and full precision of matrix products (GPUs round float32 factors to 11 bits by default) are switched
    on around each call, never for the whole process.

    On a device that reports its memory (CUDA does, JAX's CPU does not), arrays and compiled programs are refused in a
    sentence before they take more than is free. A process that keeps memory on the same device without JAX's knowledge
    is not seen.
    """

    name = "jax"
    provides = frozenset({"arrays", "compiled", "loop", "grad", "jax", "f32", "f64", "gpu"})
    requires: ClassVar[tuple[str, ...]] = ("jax",)
    install = "pip install jax"
    profile = BackendProfile(
        priority=1,
        packages=("jax", "jaxlib"),
        environment=set_variables,
        compiled="JAX_COMPILATION_CACHE_DIR",
        survives_fork=False,
    )
    _faster: ClassVar[Mapping[Any, Any]] = {Arithmetic: JaxArithmetic, Tiles: make_tiles}

    def __init__(self, *, precision: Precision = "float64", device: str = "cpu") -> None:
        import jax
        import jax.numpy as jnp

        from spinbench.backends.jax import random

        super().__init__(precision=precision, device=device)
        self._device = find_device(jax, self.name, device)
        self._devices = jax.devices(self._device.platform)
        keep_programs(jax)
        self._jax = jax
        self._random = random
        self.xp = jnp
        self.real = np.dtype(precision)

    def scope(self) -> contextlib.ExitStack:
        """64-bit mode as `precision` asks, the device and full precision, for the calls inside."""
        stack = contextlib.ExitStack()
        stack.enter_context(self._jax.enable_x64(self.precision == "float64"))
        stack.enter_context(self._jax.default_device(self._device))
        # By default GPUs round the float32 factors of a matrix product to 10 or 11 bits, too few for fields that sum
        # over many neighbours.
        stack.enter_context(self._jax.default_matmul_precision("highest"))
        return stack

    def to_device(self, array: np.ndarray) -> Array:
        dtype = self.real if np.issubdtype(array.dtype, np.floating) else array.dtype
        # A copy, of which JAX may keep the memory: on a CPU it may alias NumPy's array.
        array = array.astype(np.int32 if dtype == np.int64 else dtype)
        check_memory(array.nbytes, self._device, "the model's tables and states")
        with self.scope(), self._exhaustion_in_words():
            return self._jax.device_put(array, self._placement())

    def split_chains(self, array: Array) -> Array:
        """With equal parts of the last axis on each device, where it divides; otherwise as it is."""
        if self.count_parts(array.shape[-1]) == 1:
            return array
        with self.scope(), self._exhaustion_in_words():
            return self._jax.device_put(array, self._placement(*[None] * (array.ndim - 1), "chains"))

    def count_parts(self, length: int) -> int:
        """In how many parts an axis of chains, or of words of them, lies on the devices."""
        return 1 if length % len(self._devices) else len(self._devices)

    def _placement(self, *axes: str | None) -> jax.Device | jax.sharding.Sharding:
        """The one device; or a copy on each of several, but for an axis of chains."""
        if len(self._devices) == 1:
            return self._device
        sharding = self._jax.sharding
        mesh = sharding.Mesh(np.array(self._devices), ("chains",))
        return sharding.NamedSharding(mesh, sharding.PartitionSpec(*axes))

    def to_host(self, array: Array) -> np.ndarray:
        # Programs run while Python goes on, so that their errors come out here.
        with self._exhaustion_in_words():
            return np.asarray(array)

    def block_until_ready(self, array: Array) -> None:
        with self._exhaustion_in_words():
            array.block_until_ready()

    @contextlib.contextmanager
    def _exhaustion_in_words(self) -> Iterator[None]:
        try:
            yield
        except self._jax.errors.JaxRuntimeError as error:
            raise_if_exhausted(error, self._device)
            raise

    def require_memory(self, need: int, purpose: str) -> None:
        """Raises UnsupportedError if `need` bytes for `purpose` are more than the device has free."""
        check_memory(need, self._device, purpose)

    def compile(self, function: Callable[P, R]) -> Callable[P, R]:
        jitted = self._jax.jit(function)
        compiled: Callable[P, R] = jitted
        if free_bytes(self._device) is not None:
            compiled = self._check_memory_first(jitted)

        def call(*args: P.args, **keywords: P.kwargs) -> R:
            with self.scope(), self._exhaustion_in_words():
                return compiled(*args, **keywords)

        return call

    def _check_memory_first(self, function: jax.stages.Wrapped) -> Callable[..., Any]:
        """A jitted function whose programs are refused before their first call if they do not fit."""
        programs: dict[Hashable, jax.stages.Compiled] = {}

        def call(*args: object, **keywords: object) -> object:
            leaves, structure = self._jax.tree.flatten((args, keywords))
            kinds = (
                structure,
                tuple(
                    (np.shape(leaf), getattr(leaf, "dtype", type(leaf)), getattr(leaf, "sharding", None))
                    for leaf in leaves
                ),
            )
            if kinds not in programs:
                program = function.lower(*args, **keywords).compile()
                need = bytes_taken(program)
                check_memory(need, self._device, "a batch's results and temporary arrays")
                programs[kinds] = program
            return programs[kinds](*args, **keywords)

        return call

    def grad(self, function: Callable[Concatenate[Carry, P], Array]) -> Callable[Concatenate[Carry, P], Carry]:
        gradient: Callable[Concatenate[Carry, P], Carry] = self._jax.grad(function)
        return gradient

    def fori_loop(self, lower: Index, upper: Index, body: Callable[[Index, Carry], Carry], carry: Carry) -> Carry:
        ended: Carry = self._jax.lax.fori_loop(lower, upper, body, carry)
        return ended

    def while_loop(self, condition: Callable[[Carry], Array], body: Callable[[Carry], Carry], carry: Carry) -> Carry:
        ended: Carry = self._jax.lax.while_loop(condition, body, carry)
        return ended

    def key(self, seed: int) -> Key:
        with self.scope():
            return self._random.new_key(seed)

    def fold_in(self, key: Key, index: Index) -> Key:
        return self._random.fold_in(key, index)

    def uniform(self, key: Key, shape: tuple[int, ...]) -> Array:
        return self._random.uniform(key, shape, self.real)

    def normal(self, key: Key, shape: tuple[int, ...]) -> Array:
        return self._random.normal(key, shape, self.real)

    def update(self, array: Array, index: Index | slice, values: Array, *, donate: bool = False) -> Array:
        return array.at[index].set(values)

    def take(self, array: Array, indices: Index) -> Array:
        if self.xp.ndim(indices):
            return self.xp.take(array, indices, axis=0)
        return array[indices]


def find_device(framework: ModuleType, backend: str, device: str) -> jax.Device:
    """JAX's first device of this kind.

    Raises:
        UnsupportedError: there is none, as the backend of that name says.
    """
    try:
        first: jax.Device = framework.devices({"gpu": "cuda"}.get(device, device))[0]
    except RuntimeError as error:
        raise UnsupportedError(
            f"backend {backend} finds no device={device} here ({str(error).splitlines()[0]}); device=cpu always works, "
            "device=gpu needs an NVIDIA GPU and pip install 'spinbench[cuda]'"
        ) from error
    return first


def keep_programs(jax: ModuleType) -> None:
    """Compiled programs are kept on the disk, as Numba's are, unless the process has a folder of its own for them.

    JAX finds them by their content; every `run` compiles its program anew, since tables of other sizes may be static.
    """
    if not jax.config.jax_compilation_cache_dir:
        jax.config.update("jax_compilation_cache_dir", str(cache_folder() / "compiled" / "jax"))
        # By default JAX caches only programs that took a second to compile; test suites compile many small ones.
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


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


def check_memory(need: int, device: jax.Device, purpose: str) -> None:
    """Raises UnsupportedError if `need` bytes for `purpose` are more than the device has free."""
    free = free_bytes(device)
    if free is not None and need > free:
        raise UnsupportedError(
            f"backend jax: {purpose} need {_size(need)} on {device.device_kind}, where {_size(free)} are free; "
            "fewer chains, a smaller model or precision=float32 take less"
        )


def raise_if_exhausted(error: Exception, device: jax.Device, backend: str = "jax") -> None:
    """Raises UnsupportedError if an error of JAX says that the device has no memory left, which no prediction saw."""
    if "RESOURCE_EXHAUSTED" in str(error):
        raise UnsupportedError(
            f"backend {backend}: {device.device_kind} is out of memory ({str(error).splitlines()[0]}); fewer chains, a "
            "smaller model or precision=float32 take less"
        ) from error


def _size(count: int) -> str:
    if count >= 2**27:
        return f"{count / 2**30:.2f} GiB"
    return f"{count / 2**20:.2f} MiB"
