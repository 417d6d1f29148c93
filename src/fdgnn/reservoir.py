"""Deep reservoirs: drawing their untrained weights, and running graphs to fixed points.

========================  =================================  ======================
paper                     here                               shape
========================  =================================  ======================
L, H, C                   n_layers, n_units, n_connections
rho = rho(W_H) k          effective_spectral_radius          (leak-free; times k)
omega(1), omega           input_scaling, inter_layer_scaling
k                         degree
epsilon, nu               tol, max_iter
W_I                       layers[i].input_weights            (H, U)
W_H                       layers[i].recurrent_weights        (H, H)
bias                      layers[i].bias                     (H,)
X                         states, rows are vertices          (n_vertices, H)
sum_v x(v)                pooled                             (n_graphs, H)
========================  =================================  ======================

Graphs with ``rho(|W_H|) rho(|A|) < 1`` in every layer have one fixed point, which any order of
evaluation finds. `fdgnn.kernels.solve_graphs` computes it, in float32 where that is fine enough for
the tolerance, else in float64. For the other graphs the result is by definition the paper's: the
state after epsilon or nu steps from zero.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from fdgnn.arrays import Array, Floats, frozen, offsets_of
from fdgnn.exceptions import GraphError, ModelFileError
from fdgnn.graphs import GraphBatch, checks
from fdgnn.graphs.colors import discrete, quotients
from fdgnn.limits import MAX_NUMBER
from fdgnn.records import cached_property
from fdgnn.seeds import Matrix, stream, stream_words
from fdgnn.stability import wiring_radii
from fdgnn.threads import n_threads, over_chunks

_LARGEST_SINGLE = 1e30  # states are not computed in float32 if a weight or a sum is larger
_NO_CODES, _NO_FEATURES = np.empty(0, dtype=np.int32), np.empty((0, 1))
_NO_STATES = np.empty((0, 0, 0))
_NO_DEGREES = np.empty(0)
_ALL_BLOCKS = -1
FEW_VERTICES = 512  # of all graphs together: as many as have their states in cache
FEW_STATES = 2**20  # vertices times units, about a millisecond: threads save less than they take


class Layer(NamedTuple):
    """The fixed weights of one layer."""

    input_weights: sp.csr_array  # W_I (H, U)
    recurrent_weights: sp.csr_array  # W_H (H, H)
    bias: Floats  # (H,)


class Weights(NamedTuple):
    """The weights of all layers, stacked, C entries per row."""

    first_sources: npt.NDArray[np.int32]  # (H, C of the first layer)
    first_values: Array
    in_sources: npt.NDArray[np.int32]  # (L - 1, H, C)
    in_values: Array
    rec_sources: npt.NDArray[np.int32]  # (L, H, C)
    rec_values: Array
    bias: Array  # (L, H)


@dataclass(frozen=True, eq=False)
class DeepReservoir:
    """A stack of layers, and the labels of its first layer; read-only.

    Radii and schedules, which follow from the weights, are computed on first use and cached.

    Parameters
    ----------
    weights : Weights
        In float64.
    n_inputs : int
        U, the columns of the first input matrix.
    vocabulary : tuple, optional
        The vertex labels behind these columns. None if the input is real features or, for graphs
        with neither labels nor features, the constant 1.
    blank_unknown : bool, default=False
        Whether a vertex whose label is not in the vocabulary has no input, only the bias; else
        such a graph is an error.
    """

    weights: Weights
    n_inputs: int
    vocabulary: tuple[Any, ...] | None = None
    blank_unknown: bool = False

    def __post_init__(self) -> None:
        frozen(*self.weights)

    def __reduce__(self) -> tuple[type[DeepReservoir], tuple[Any, ...]]:
        # By the constructor, so that the arrays of a copy are read-only as well.
        return DeepReservoir, (self.weights, self.n_inputs, self.vocabulary, self.blank_unknown)

    # ------------------------------------------------------------------ ways in and out

    @classmethod
    def from_arrays(
        cls,
        config: ReservoirConfig,
        arrays: Mapping[str, Array],
        n_inputs: int,
        vocabulary: tuple[Any, ...] | None = None,
    ) -> DeepReservoir:
        """Return the reservoir of the arrays that `arrays` returned, for instance from a file.

        Raises
        ------
        ModelFileError
            If an array is missing, or has another shape or type than a reservoir of this size
            needs, or entries that are not finite, or sources that do not exist. The kernels
            check nothing of this again.
        """
        L, H, C = config.n_layers, config.n_units, config.n_connections
        first, others = min(C, n_inputs), min(C, H)
        above = (L - 1, H, others if L > 1 else 1)
        shapes = [(H, first)] * 2 + [above] * 2 + [(L, H, others)] * 2 + [(L, H)]
        columns = {"first_sources": n_inputs, "in_sources": H, "rec_sources": H}
        if unknown := sorted(set(arrays) - set(Weights._fields)):
            raise ModelFileError(f"unexpected array {unknown[0][:40]!r}, which no reservoir has")
        for name, shape in zip(Weights._fields, shapes, strict=True):
            array, n_columns = arrays.get(name), columns.get(name)
            dtype = np.float64 if n_columns is None else np.int32
            if array is None or array.shape != shape or array.dtype != dtype:
                found = "none" if array is None else f"{array.dtype} of shape {array.shape}"
                wanted = f"{dtype.__name__} of shape {shape}"
                raise ModelFileError(f"array {name} must be {wanted}; found {found}")
            if n_columns is None:
                if not np.isfinite(array).all():
                    raise ModelFileError(f"array {name} has entries that are not finite")
            elif array.size and (
                array.min() < 0 or array.max() >= n_columns or (np.diff(array, axis=-1) <= 0).any()
            ):
                raise ModelFileError(
                    f"array {name} has sources that do not ascend from 0 to {n_columns - 1} at most"
                )
        copies = (np.array(arrays[name], order="C") for name in Weights._fields)
        return cls(Weights(*copies), n_inputs, vocabulary, config.handle_unknown == "ignore")

    def arrays(self) -> dict[str, Array]:
        """Return the weights by name, for `from_arrays`."""
        return self.weights._asdict()

    # ------------------------------------------------------------------ the weights

    @property
    def n_layers(self) -> int:
        """L."""
        return len(self.weights.bias)

    @property
    def n_units(self) -> int:
        """H, the number of units per layer."""
        return int(self.weights.bias.shape[1])

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """The weights layer by layer, as sparse matrices."""
        w, found = self.weights, []
        for i in range(self.n_layers):
            if i == 0:
                W_I = _matrix(w.first_sources, w.first_values, self.n_inputs)
            else:
                W_I = _matrix(w.in_sources[i - 1], w.in_values[i - 1], self.n_units)
            W_H = _matrix(w.rec_sources[i], w.rec_values[i], self.n_units)
            found.append(Layer(W_I, W_H, w.bias[i]))
        return tuple(found)

    # ------------------------------------------------------------------ what follows from them

    @cached_property
    def _facts(self) -> tuple[Floats, float, float]:
        """Radii of layers that have only cycles, and the largest weights in W_H and elsewhere."""
        from fdgnn.kernels import weight_facts

        radii, recurrent, others = weight_facts(self.weights)
        return radii, recurrent, others

    @cached_property
    def radii(self) -> Floats:
        """``rho(|W_H|)`` of each layer, (L,)."""
        radii, w = self._facts[0], self.weights
        if np.isnan(radii).any():  # a component is more than a cycle
            radii = wiring_radii(w.rec_sources, np.abs(w.rec_values))
        return frozen(radii)[0]

    @cached_property
    def fits_single(self) -> bool:
        """Whether no weight is too large for float32.

        W_H is scaled by 1 / k, and k is a sum of arc weights, which can be next to nothing.
        """
        return max(self._facts[1:]) < _LARGEST_SINGLE

    @property
    def largest_recurrent(self) -> float:
        """The largest absolute weight between units of a layer."""
        return self._facts[1]

    @cached_property
    def largest_single_degree(self) -> float:
        """The largest degree of a graph up to which its states can be computed in float32.

        With it, sums over neighbors and their products with W_H stay well inside of float32.
        """
        n_connections = self.weights.rec_values.shape[2]
        return float(_LARGEST_SINGLE / max(1.0, n_connections * self.largest_recurrent))

    def program(self, wanted: tuple[int, ...]) -> Any:
        """Return what kernels run if the states of the layers `wanted` (ascending) count.

        That is the weights in both precisions, and the order of evaluation.
        """
        if wanted not in self._programs:
            from fdgnn.kernels import bind_program

            # The place of each layer among those that are wanted, or -1.
            slots = np.full(self.n_layers, -1, dtype=np.int64)
            slots[list(wanted)] = np.arange(len(wanted))
            self._programs[wanted] = bind_program(self.weights, slots, self.radii, self.fits_single)
        return self._programs[wanted]

    @cached_property
    def _programs(self) -> dict[tuple[int, ...], Any]:
        return {}


def _matrix(sources: Array, values: Array, n_sources: int) -> sp.csr_array:
    """Return the matrix (H, n_sources) with ``values[h]`` in row h and columns ``sources[h]``."""
    H, C = sources.shape
    indptr = np.arange(0, H * C + 1, C)
    return sp.csr_array((values.ravel(), sources.ravel(), indptr), (H, n_sources))


@dataclass(eq=False, repr=False)
class ReservoirConfig:
    """The parameters of a reservoir and its solver, as in `fdgnn.GraphReservoir`."""

    n_layers: int = 3
    n_units: int = 50
    n_connections: int = 1
    effective_spectral_radius: float = 0.9
    input_scaling: float = 1.0
    inter_layer_scaling: float = 1.0
    bias_scaling: float | None = None
    degree: str | float = "average"
    tol: float = 1e-3
    max_iter: int = 50
    solver: str = "auto"
    handle_unknown: str = "ignore"


def draw_reservoir(
    config: ReservoirConfig, graphs: GraphBatch, degree: float, seed: np.random.SeedSequence
) -> DeepReservoir:
    """Draw a reservoir for the kind of vertices that `graphs` have.

    Layer i depends on the seed and its own number only, so a shallower reservoir is the
    beginning of a deeper one.
    """
    vocabulary, n_inputs = None, 1
    if graphs.label_values is not None:
        vocabulary = tuple(graphs.label_values.tolist())
        n_inputs = len(vocabulary)
    elif graphs.features is not None:
        n_inputs = graphs.features.shape[1]
    draw = _draw_cycles if config.n_connections == 1 else _draw_wiring
    # Graphs without arcs have k = 0. There W_H multiplies nothing, so any scale will do.
    weights = draw(config, n_inputs, seed, degree or 1.0)
    reservoir = DeepReservoir(weights, n_inputs, vocabulary, config.handle_unknown == "ignore")
    if MAX_NUMBER.is_below(reservoir.largest_recurrent):  # a k next to zero makes weights large
        raise GraphError(
            f"k, the reservoir's degree, is {degree:g}, so that its recurrent weights would be "
            f"{reservoir.largest_recurrent:g}; {MAX_NUMBER.in_words}; rescale the edges' weights, "
            "or give `degree` as a larger number"
        )
    return reservoir


def _draw_cycles(
    config: ReservoirConfig, n_inputs: int, seed: np.random.SeedSequence, k: float
) -> Weights:
    """Draw weights of units with one connection from the input and one from the layer."""
    from fdgnn.kernels import draw_layers

    drawn = draw_layers(
        stream_words(seed),
        int(config.n_layers),  # it may be a NumPy integer of few bits
        int(config.n_units),
        n_inputs,
        float(config.effective_spectral_radius),
        k,
        float(config.input_scaling),
        float(config.inter_layer_scaling),
        math.nan if config.bias_scaling is None else float(config.bias_scaling),
    )
    sources, values, rec_sources, rec_values = (array[:, :, None] for array in drawn[:4])
    return Weights(
        sources[0], values[0], sources[1:], values[1:], rec_sources, rec_values, drawn[4]
    )


def _draw_wiring(
    config: ReservoirConfig, n_inputs: int, seed: np.random.SeedSequence, k: float
) -> Weights:
    """Draw the weights for any number of connections.

    Numbers are drawn in [-1, 1]. Then W_I and bias are scaled to [-omega, omega], and W_H so that
    ``rho(W_H) k`` is the effective spectral radius.
    """
    L, H, C = int(config.n_layers), int(config.n_units), int(config.n_connections)
    first = _connect(stream(seed, 0, Matrix.INPUT), H, n_inputs, C)
    inputs = [_connect(stream(seed, i, Matrix.INPUT), H, H, C) for i in range(1, L)]
    recurrent = [_connect(stream(seed, i, Matrix.RECURRENT), H, H, C) for i in range(L)]
    bias = np.array([stream(seed, i, Matrix.BIAS).uniform(-1, 1, size=H) for i in range(L)])
    in_sources, in_values = np.empty((0, H, 1), dtype=np.int32), np.empty((0, H, 1))
    if inputs:
        in_sources, in_values = (np.array(each) for each in zip(*inputs, strict=True))
    rec_sources, rec_values = (np.array(each) for each in zip(*recurrent, strict=True))
    omega = np.full(L, float(config.inter_layer_scaling))
    omega[0] = config.input_scaling
    radii = wiring_radii(rec_sources, rec_values)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # see `draw_reservoir`
        factors = config.effective_spectral_radius / (radii * k)
        rec_values = rec_values * factors[:, None, None]
    bias *= omega[:, None] if config.bias_scaling is None else float(config.bias_scaling)
    return Weights(
        first[0], first[1] * omega[0],
        in_sources, in_values * float(config.inter_layer_scaling),
        rec_sources, rec_values, bias,
    )  # fmt: skip


def _connect(rng: np.random.Generator, rows: int, columns: int, C: int) -> tuple[Array, Floats]:
    """Draw C sources among the columns for each row, and weights uniform in [-1, 1]."""
    C = min(C, columns)
    if C == 1:
        sources = rng.integers(columns, size=(rows, 1))
    else:
        sources = np.sort(np.argsort(rng.random((rows, columns)), axis=1)[:, :C], axis=1)
    return sources.astype(np.int32), rng.uniform(-1, 1, size=(rows, C))


# ---------------------------------------------------------------------- fixed points


class Embedding(NamedTuple):
    """Pooled states of a batch, with iterations and residuals; kernels fill these arrays.

    ``pooled[i, g]`` is the sum of layer i's states over the vertices of graph g. `n_iter` and
    `residual` are the number of iterations and the last change of each layer on each graph. For the
    paper's iteration they are its steps and the distance of the last two states. For a certified
    graph with ``solver="auto"`` they are the steps of its slowest cycle of units and a bound on the
    distance of the cycle from the fixed point. `contractions` determines which graphs are certified
    to have one fixed point.
    """

    pooled: Floats  # (n_layers, n_graphs, H), the requested layers
    n_iter: npt.NDArray[np.int32]  # (n_layers, n_graphs), all layers
    residual: Floats  # (n_layers, n_graphs), all layers
    states: Floats  # (n_vertices, n_layers, H), the requested layers; of length 0 if not kept


def _zeros(n_slots: int, reservoir: DeepReservoir, n_graphs: int, n_rows: int) -> Embedding:
    """Return arrays for the pooled states of `n_slots` layers, and `n_rows` states."""
    L, H = reservoir.weights.bias.shape
    return Embedding(
        np.zeros((n_slots, n_graphs, H)),
        np.zeros((L, n_graphs), dtype=np.int32),
        np.zeros((L, n_graphs)),
        np.zeros((n_rows, n_slots, H)),
    )


def contractions(reservoir: DeepReservoir, graphs: GraphBatch) -> Floats:
    """Return ``rho(|W_H|) rho(|A|)``, (n_layers, n_graphs); below 1 a graph is certified."""
    return reservoir.radii[:, None] * graphs.spectral_radii


# ---------------------------------------------------------------------- solver="auto"


def solve_counted(
    graphs: GraphBatch,
    reservoir: DeepReservoir,
    tol: float,
    max_iter: int,
    wanted: tuple[int, ...],
    quotient: bool = True,
    n_jobs: int | None = None,
    keep_states: bool = False,
) -> tuple[Embedding, tuple[int, int, int]]:
    """Embed a batch; also return how many quotients were solved in which way.

    `wanted` are the layers with pooled states that are wanted, ascending; for all else see `embed`.
    The ways are float32, float64, and the paper's steps.
    """
    from fdgnn.kernels import solve_graphs

    q = graphs.quotients if quotient else quotients(graphs.structure, discrete(graphs.structure))
    n_rows = len(q.arrays.sizes) if keep_states else 0
    out = _zeros(len(wanted), reservoir, len(graphs), n_rows)
    fits = _fits_single(graphs, reservoir)
    arguments = (
        q.bound,
        graphs.spectral_radii,
        _NO_DEGREES if fits else graphs.max_degrees,
        reservoir.largest_single_degree,
        graphs.directed,
        *_inputs(graphs, reservoir),
        reservoir.program(wanted),
        float(tol),
        int(max_iter),
        out,
    )
    few = graphs.n_vertices * reservoir.weights.bias.size <= FEW_STATES
    if few or n_threads(n_jobs) == 1:
        found = [solve_graphs(0, _ALL_BLOCKS, *arguments)]
    else:
        # The work is about the arcs of all quotients, and some for each row.
        a = q.arrays
        each = np.diff(a.indptr[a.row_offsets] + 8 * a.row_offsets)
        work = offsets_of(each[a.blocks])[a.block_offsets]
        found = over_chunks(solve_graphs, len(work) - 1, n_jobs, arguments, lambda: work)
    n_single, n_double, n_steps, n_infinite = map(sum, zip(*found, strict=True))
    if keep_states:
        out = out._replace(states=out.states[q.arrays.row_of_vertex])
    if n_steps or n_infinite:
        _check_finite(out)
    return out, (n_single, n_double, n_steps)


def _fits_single(graphs: GraphBatch, reservoir: DeepReservoir) -> bool:
    """Return whether no sum over neighbors is too large for float32, whatever the degrees are."""
    small = graphs.weights is None and graphs.n_vertices <= reservoir.largest_single_degree
    return small and reservoir.fits_single


def solve_few(
    graphs: GraphBatch,
    reservoirs: Sequence[DeepReservoir],
    wanted: Sequence[tuple[int, ...]],
    tol: float,
) -> list[Embedding | None]:
    """Embed a few graphs by several reservoirs, all in one call: most of their time is in calls.

    The reservoirs have the same labels. Results are those of `solve_counted`, or None for a
    reservoir by which not all graphs are certified.
    """
    from fdgnn.kernels import solve_few

    if not all(_fits_single(graphs, each) for each in reservoirs):
        return [None] * len(reservoirs)
    pairs = zip(reservoirs, wanted, strict=True)
    found: list[Any] = solve_few(
        graphs.structure,
        graphs.first_colors,
        *_inputs(graphs, reservoirs[0]),
        [each.program(layers) for each, layers in pairs],
        float(tol),
        graphs.directed,
    )
    return [own and Embedding(own[0], own[1], own[2], _NO_STATES) for own in found]


def _check_finite(found: Embedding) -> None:
    """Raise GraphError if a sum of states is not finite."""
    if not np.isfinite(found.pooled).all():
        checks.check_finite(found.pooled.sum(axis=(0, 2)), "the sum of its states")


def _inputs(graphs: GraphBatch, reservoir: DeepReservoir) -> tuple[npt.NDArray[np.int32], Floats]:
    """Return the inputs of the first layer: (label codes, none) or (none, features).

    The code of a label is the column of W_I that its vertices read, or -1 if they have no input.
    """
    if reservoir.vocabulary is not None:
        codes = graphs.encode_labels(reservoir.vocabulary, blank=reservoir.blank_unknown)
        return codes, _NO_FEATURES
    if graphs.features is not None:
        return _NO_CODES, graphs.features
    return np.zeros(graphs.n_vertices, dtype=np.int32), _NO_FEATURES


# ---------------------------------------------------------------------- solver="paper"


def iterate(
    graphs: GraphBatch,
    reservoir: DeepReservoir,
    tol: float,
    max_iter: int,
    wanted: Sequence[int],
    n_jobs: int | None,
    keep_states: bool,
) -> Embedding:
    """Run the paper's loop, literally."""
    from fdgnn.kernels import iterate_layers

    n_rows = graphs.n_vertices if keep_states else 0
    out = _zeros(reservoir.n_layers, reservoir, len(graphs), n_rows)
    rows, row_of_vertex = first_drive(graphs, reservoir)
    drive = np.ascontiguousarray(rows)
    arguments = (
        graphs.structure, drive, row_of_vertex, reservoir.weights, float(tol), int(max_iter), out,
    )  # fmt: skip
    work = graphs.vertex_offsets + graphs.indptr[graphs.vertex_offsets]
    over_chunks(iterate_layers, len(graphs), n_jobs, arguments, lambda: work)
    found = out._replace(pooled=out.pooled[list(wanted)], states=out.states[:, list(wanted)])
    _check_finite(found)
    return found


def first_drive(
    graphs: GraphBatch, reservoir: DeepReservoir
) -> tuple[Floats, npt.NDArray[np.int32]]:
    """``U W_I^T + bias`` of the first layer, as distinct rows, and the row of each vertex.

    One-hot labels never become a dense matrix: the row of a label is a column of W_I.
    """
    first, (codes, features) = reservoir.layers[0], _inputs(graphs, reservoir)
    if len(codes) < graphs.n_vertices:
        rows = np.asarray(features @ first.input_weights.T) + first.bias
        return rows, np.arange(graphs.n_vertices, dtype=np.int32)
    rows = np.concatenate([first.input_weights.T.toarray(), np.zeros((1, len(first.bias)))])
    return rows + first.bias, np.where(codes < 0, np.int32(reservoir.n_inputs), codes)


def embed(
    graphs: GraphBatch,
    reservoir: DeepReservoir,
    *,
    tol: float = 1e-3,
    max_iter: int = 50,
    solver: str = "auto",
    layers: Sequence[int] | Literal["all", "last"] = "all",
    quotient: bool = True,
    n_jobs: int | None = None,
    keep_states: bool = False,
) -> Embedding:
    """Run every graph through all layers, each to its fixed point, and sum over vertices.

    Per layer and graph, from X = 0 (eq. 2, rows are vertices)::

        repeat  X' = tanh(U W_I^T + bias + A X W_H^T)
        until   ||X' - X||_F < tol, or max_iter steps

    The result of a graph depends on that graph alone, not on its batch or on `n_jobs`.

    Parameters
    ----------
    graphs : GraphBatch
    reservoir : DeepReservoir
    tol, max_iter : float, int
        The paper's epsilon and nu.
    solver : {"auto", "paper"}, default="auto"
        "paper" runs the loop above, literally, in float64. "auto" finds the fixed point of a
        graph that is certified to have just one by a shorter way (`fdgnn.reservoir`), to
        within `tol`. It computes in float32 or, where that is too coarse, in float64. The other
        graphs get the result of the loop.
    layers : "all", "last" or sequence of int, default="all"
        The layers whose pooled states (and states) are returned. Fewer layers are faster.
    quotient : bool, default=True
        Whether "auto" computes vertices that look alike, and graphs that do, only once.
    n_jobs : int, optional
    keep_states : bool, default=False
    """
    L = reservoir.n_layers
    chosen = {"all": range(L), "last": [L - 1]}[layers] if isinstance(layers, str) else layers
    positions = [range(L)[i] for i in chosen]
    wanted = tuple(sorted(set(positions)))
    if solver == "paper":
        result = iterate(graphs, reservoir, tol, max_iter, wanted, n_jobs, keep_states)
    else:
        result, _ = solve_counted(
            graphs, reservoir, tol, max_iter, wanted, quotient, n_jobs, keep_states
        )
    if positions != list(wanted):
        places = [wanted.index(i) for i in positions]
        return result._replace(pooled=result.pooled[places], states=result.states[:, places])
    return result
