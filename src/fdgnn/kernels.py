"""The inner loops, compiled ahead of time from the C++ in ``src/kernels``.

They are compiled when fdgnn is installed, never later; in a checkout ``make`` compiles them again
if a source file is newer than the installation. On x86-64 the engine is there three times: for any
processor, for those with AVX2, and for those with AVX-512; the best that this machine can run is
taken. The environment variable ``FDGNN_ENGINE`` can ask for one of them: ``plain``, ``avx2`` or
``avx512``.

Kernels trust their arguments: arrays are of the documented types, contiguous, and checked before.
They run without Python's lock and end early, within a second, if the main thread is interrupted
(Ctrl-C); what they have filled until then is not to be used.
"""

from __future__ import annotations

import os
import threading
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from fdgnn.exceptions import KernelError


def _compiled(name: str) -> Any:
    """Import one of the compiled modules."""
    try:
        return import_module(f"fdgnn.{name}")
    except ModuleNotFoundError:
        raise KernelError(
            f"fdgnn's kernels are not compiled ({name}); install fdgnn with pip, for instance by "
            "'pip install -e .' in its folder, which needs a C++ compiler"
        ) from None
    except ImportError as error:
        raise KernelError(
            f"fdgnn's kernels cannot be loaded on this machine ({error}); install fdgnn again here"
        ) from None


def _is_compiled(engine: str) -> bool:
    return find_spec(f"fdgnn._engine_{engine}") is not None


def engine_module(name: str) -> Any:
    """Return the compiled engine of this name."""
    return _compiled(f"_engine_{name}")


def runnable_engines() -> tuple[str, ...]:
    """Name the engines that are compiled and that this processor can run, the best one last."""
    return ("plain", *filter(_is_compiled, _wide_engines()))


def missing_engines() -> tuple[str, ...]:
    """Name the engines that this processor could run, and that are not compiled."""
    return tuple(name for name in _wide_engines() if not _is_compiled(name))


def _wide_engines() -> list[str]:
    """Return the names of engines, except the plain one, that this processor supports."""
    plain = engine_module("plain")
    wide = {"avx2": plain.has_avx2(), "avx512": plain.has_avx512()}
    return [name for name, runs in wide.items() if runs]


def _chosen() -> str:
    """Return the name of the requested engine, or of the best one."""
    name, runs = os.environ.get("FDGNN_ENGINE"), runnable_engines()
    if not name:
        return runs[-1]
    if name in missing_engines():
        raise KernelError(f"FDGNN_ENGINE is {name!r}, which is not compiled; install fdgnn again")
    if name not in runs:
        raise KernelError(f"FDGNN_ENGINE is {name!r}; this machine can run {', '.join(runs)}")
    return name


#: The engine that is in use.
ENGINE = _chosen()
_engine = engine_module(ENGINE)
_kernels = _compiled("_kernels")
for _module in (_kernels, _engine):
    _module.set_main_thread(threading.main_thread().ident)


class InterruptFlag:
    """A flag that ends the kernels of other threads: only the main thread receives signals."""

    def __init__(self) -> None:
        self._flag = _kernels.interrupt_flag()

    def set(self) -> None:
        """End the kernels of all threads that watch this flag, within a second."""
        _kernels.set_interrupt_flag(self._flag)

    def watch(self) -> None:
        """End the kernels that the current thread runs as soon as this flag is set."""
        for module in (_kernels, _engine):
            module.watch_interrupt_flag(self._flag)


add_normal_products = _engine.add_normal_products
add_row_products = _kernels.add_row_products
bind_program = _engine.bind_program
bind_quotients = _kernels.bind_quotients
build_quotients = _engine.build_quotients
count_pairs = _kernels.count_pairs
count_triangles = _kernels.count_triangles
cycle_radii = _kernels.cycle_radii
draw_layers = _kernels.draw_layers
draw_uniform = _kernels.draw_uniform
inner_arcs = _kernels.inner_arcs
iterate_layers = _engine.iterate_layers
merge_arcs = _kernels.merge_arcs
mix_all = _kernels.mix_all
mix_rows = _kernels.mix_rows
number_occurrences = _kernels.number_occurrences
pack_rows = _kernels.pack_rows
parse_rows = _kernels.parse_rows
quotient_arrays = _kernels.quotient_arrays
radii_of_graphs = _kernels.radii_of_graphs
read_out = _engine.read_out
refine_labels = _engine.refine_labels
share_pairs = _kernels.share_pairs
solve_few = _engine.solve_few
solve_graphs = _engine.solve_graphs
spectral_radii = _kernels.spectral_radii
strong_components = _kernels.strong_components
tanh_all = _engine.tanh_all
tanh_sum = _engine.tanh_sum
weight_facts = _engine.weight_facts
wl_labels = _kernels.wl_labels
