// Fixed points in the order of a schedule, on blocks of quotient graphs that stay in cache.
#pragma once

#include <cmath>
#include <limits>

#include "amplification.hpp"
#include "blocks.hpp"

namespace fdgnn {

constexpr double LARGEST = std::numeric_limits<double>::max();
constexpr double MARGIN = 1e-2;  // cycles are solved this much finer than tol
constexpr i64 MOST_CYCLE_STEPS = 5000;  // even next to the limit of stability it takes some hundreds

// `fdgnn.reservoir.engine.Goal`: when a component has converged on a certified graph.
struct Goal {
    Grid<const double> contractions;   // (L, n), all below 1
    double tol;
    Span<const double> resolution;     // (n,)
    Span<const double> amplification;  // (n,) of `ErrorBound`
};

template <class T>
class BlockSolver {
public:
    BlockSolver(i64 first, i64 last, Span<const i64> block_offsets, Span<const i64> blocks,
                const Quotients& q, const Inputs& inputs, const Weights<T>& weights,
                const Schedule& schedule, const Goal& goal, const Outputs& out)
        : weights(weights),
          schedule(schedule),
          goal(goal),
          out(out),
          block(first, last, block_offsets, blocks, q, inputs),
          pooled(block.graphs.size()),
          X{Table<T>(weights.n_units(), block.capacity), Table<T>(weights.n_units(), block.capacity)},
          S(weights.n_units(), block.capacity),
          D(longest(schedule.components) + 1, block.capacity),
          scratch(D[longest(schedule.components)]),
          active(block.capacity),
          moves(block.graphs.size()),
          moved(block.graphs.size()),
          farther(block.graphs.size()),
          farthest(block.graphs.size()),
          near(block.graphs.size()) {}

    // Solve a block of quotients through all layers; tell whether all sums of states are finite.
    bool solve(Span<const i64> graphs) {
        n_infinite = 0;
        block.load(graphs);
        for (layer = 0; layer < weights.n_layers(); layer++) solve_layer();
        return n_infinite == 0;
    }

private:
    const Weights<T>& weights;
    const Schedule& schedule;
    const Goal& goal;
    const Outputs& out;
    Block<T> block;
    i64 layer = 0;
    u64 n_infinite = 0;          // sums of states that are infinite or NaN
    std::vector<double*> pooled; // of each graph: its sums of this layer's states
    Table<T> X[2];               // states of this layer and of the one below
    Table<T> S;                  // A X
    Table<T> D;                  // W_I u + bias of a component, and a row of scratch space
    T* scratch;
    Row<T> active;               // of each row: 1 as long as its graph moves
    std::vector<char> moves;     // of each graph: the same
    std::vector<double> moved;   // of each graph: the square of how far a sweep moved it
    std::vector<double> farther; // of each graph: how much farther the fixed point may be
    std::vector<double> farthest;  // of each graph: a longer move may leave errors above tol / 2
    std::vector<double> near;    // of each graph: no larger square of a move can be near enough

    Table<T>& here() { return X[layer % 2]; }

    // Solve one layer on the block: its components in topological order.
    void solve_layer() {
        for (i64 k = 0; k < block.n_graphs && schedule.slots[layer] >= 0; k++)
            pooled[k] = out.sums(schedule.slots[layer], block.graphs[k]);
        i64 c = schedule.layers[layer];
        const i64 end = schedule.layers[layer + 1];
        while (c < end) {
            if (schedule.n_checked[c] > 0) {
                settle(c++);
            } else {  // a neuron that does not read itself: all that it reads is final
                evaluate(schedule.order[schedule.components[c]]);
                c++;
            }
        }
    }

    void drive(i64 h, T* d) {
        block.drive(h, weights.input(layer), weights.bias[layer], layer == 0, X[(layer + 1) % 2], d);
    }

    // x = tanh(d + sum_s W_H[h, s] A x_s), eq. 1.
    void activate(i64 h, T* d) {
        const Wiring<T> W = weights.recurrent(layer);
        const i32* sources = W.sources[h];
        block.activate(d, W.values[h], W.sources.columns, [&](i64 k) { return S[sources[k]]; },
                       scratch);
    }

    // Evaluate a neuron once.
    void evaluate(i64 h) {
        const Wiring<T> W = weights.recurrent(layer);
        if (W.sources.columns > 1 ||
            !block.activate_at_once(h, weights.input(layer), weights.bias[layer], layer == 0,
                                    X[(layer + 1) % 2], W.values[h][0], S[W.sources[h][0]])) {
            drive(h, scratch);
            activate(h, scratch);
        }
        if (schedule.kept[layer][h]) std::copy(block.x, block.x + block.n, here()[h]);
        if (schedule.summed[layer][h]) block.sum_neighbors(S[h]);
        pool(h, block.x);
    }

    // Sum the states of a neuron over each graph, and write them out, if they are wanted.
    void pool(i64 h, const T* x) {
        const i64 slot = schedule.slots[layer];
        if (slot < 0) return;
        const double* sums = block.sum_graphs(x);
        for (i64 k = 0; k < block.n_graphs; k++) n_infinite += !(std::abs(sums[k]) <= LARGEST);
        for (i64 k = 0; k < block.n_graphs; k++) pooled[k][h] = sums[k];
        block.write(x, h, slot, out);
    }

    // Sweep over a component that reads itself, until each graph is near its fixed point.
    //
    // A cycle is checked by its first neuron, and from the second sweep on: in the first one that neuron
    // reads the zeros from which the others start, and its move says nothing about them.
    void settle(i64 c) {
        const Span<const i64> neurons =
            schedule.order.part(schedule.components[c], schedule.components[c + 1]);
        const i64 n_checked = schedule.n_checked[c], period = schedule.period[c], n = block.n;
        std::fill_n(active.begin(), n, T(1));
        std::fill_n(moves.begin(), block.n_graphs, 1);
        for (i64 k = 0; k < block.n_graphs; k++) {
            const i64 g = block.graphs[k];
            const double step = goal.contractions[layer][g];
            const double sweep = period == 1 ? step : std::pow(step, static_cast<double>(period));
            farther[k] = 1.0 / (1.0 - sweep);
            farthest[k] = 0.5 * goal.tol / goal.amplification[g];
            const double proven = std::min(MARGIN * goal.tol / farther[k], farthest[k]);
            const double limit = std::max(proven, goal.resolution[g]);
            near[k] = limit * limit * (1.0 + 1e-9);  // above all rounding
        }
        for (i64 j = 0; j < neurons.size; j++) {
            drive(neurons[j], D[j]);
            std::fill_n(here()[neurons[j]], n, T(0));
            std::fill_n(S[neurons[j]], n, T(0));
        }
        const i64 most_sweeps = MOST_CYCLE_STEPS / period + 2;
        const Wiring<T> W = weights.recurrent(layer);
        i64 n_active = block.n_graphs;
        for (i64 sweep = 1; sweep <= most_sweeps && n_active > 0; sweep++)
            for (i64 j = 0; j < neurons.size; j++) {
                const i64 h = neurons[j];
                const i32* sources = W.sources[h];
                block.move(D[j], W.values[h], W.sources.columns,
                           [&](i64 k) { return S[sources[k]]; }, scratch, active.data(), here()[h],
                           j < n_checked);
                if (j < n_checked) add_moves(j == 0);
                if (schedule.summed[layer][h]) block.sum_neighbors(S[h]);
                if (j + 1 == n_checked && (sweep > 1 || n_checked == neurons.size)) {
                    n_active = freeze(sweep * period, sweep == most_sweeps);
                    if (n_active == 0) break;
                }
            }
        if (schedule.slots[layer] < 0) return;
        for (i64 h : neurons) pool(h, here()[h]);
    }

    // Add how far the neuron moved, squared, to each graph's sum of the sweep.
    void add_moves(bool is_first) {
        const double* sums = block.sum_graphs(block.squares.data());
        for (i64 k = 0; k < block.n_graphs; k++) moved[k] = sums[k] + (is_first ? 0.0 : moved[k]);
    }

    // Freeze the graphs that are close enough to the fixed point; count the others.
    //
    // One sweep maps the checked neurons of a cycle to their next states and contracts distances by
    // r = contraction^period. So states that it moves by d were at most d / (1 - r) away from the fixed
    // point, and are no farther now. All other states are within d times the amplification of theirs,
    // which `ErrorBound` derives. A frozen graph stays as it is, however long others in the block go on.
    i64 freeze(i64 n_steps, bool is_last) {
        i64 n_active = 0;
        for (i64 k = 0; k < block.n_graphs; k++) {
            if (!moves[k]) continue;
            if (moved[k] > near[k] && !is_last) {  // most often
                n_active++;
                continue;
            }
            const i64 g = block.graphs[k];
            const double step = std::sqrt(moved[k]), bound = step * farther[k];
            const bool proven = bound <= MARGIN * goal.tol && step <= farthest[k];
            if (!proven && step > goal.resolution[g] && !is_last) {
                n_active++;
                continue;
            }
            i32& n_iter = out.n_iter[layer][g];
            n_iter = std::max(n_iter, static_cast<i32>(n_steps));
            const double amplification = goal.amplification[g];
            const double error = amplification < UNBOUNDED ? step * amplification : bound;
            out.residual[layer][g] = std::max({out.residual[layer][g], bound, error});
            moves[k] = 0;
            block.fill_graph(k, T(0), active.data());
        }
        return n_active;
    }
};

// Solve the blocks `first` to `last` through all layers; fill `out`, and tell whether all sums of states
// are finite. Block b has the quotients blocks[block_offsets[b]:block_offsets[b + 1]].
template <class T>
bool solve_blocks(i64 first, i64 last, Span<const i64> block_offsets, Span<const i64> blocks,
                  const Quotients& q, const Inputs& inputs, const Weights<T>& weights,
                  const Schedule& schedule, const Goal& goal, const Outputs& out) {
    BlockSolver<T> solver(first, last, block_offsets, blocks, q, inputs, weights, schedule, goal,
                          out);
    bool finite = true;
    for (i64 b = first; b < last; b++)
        finite &= solver.solve(blocks.part(block_offsets[b], block_offsets[b + 1]));
    return finite;
}

}  // namespace fdgnn
