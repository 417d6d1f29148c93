// Fixed points in the order of a schedule, on blocks of quotient graphs that stay in cache.
#pragma once

#include <cmath>
#include <limits>

#include "amplification.hpp"
#include "blocks.hpp"
#include "plan.hpp"

namespace fdgnn {

constexpr double LARGEST = std::numeric_limits<double>::max();
constexpr double MARGIN = 1e-2;  // cycles are solved this much finer than tol
constexpr i64 MOST_CYCLE_STEPS =
    5000;  // even close to the limit of stability some hundreds suffice

// Solves certified quotients in one precision.
template <class T>
class BlockSolver {
  public:
    // Make room for the blocks `first` to `last`. `plans` are those of all quotients.
    BlockSolver(i64 first, i64 last, Span<const i64> block_offsets, Span<const i64> blocks,
                const Task& task, const Program& program, Span<Plan> plans, const Outputs& out)
        : weights(program.weights<T>()),
          schedule(program.schedule()),
          radii(program.radii),
          tol(task.tol),
          graph_of(task.graphs.graphs),
          plans(plans),
          out(out),
          block(first, last, block_offsets, blocks, task.graphs.quotients, task.inputs),
          pooled(block.graphs.size()),
          X{Table<T>(weights.n_units(), block.capacity),
            Table<T>(weights.n_units(), block.capacity)},
          S(weights.n_units(), block.capacity),
          D(longest(schedule.components) + 1, block.capacity),
          scratch(D[longest(schedule.components)]),
          active(block.capacity),
          moves(block.graphs.size()),
          moved(block.graphs.size()),
          farther(block.graphs.size()),
          farthest(block.graphs.size()),
          near(block.graphs.size()),
          resolution(block.graphs.size()),
          stopped(rounded_up(block.graphs.size(), WHOLE_ROWS), 0.0f),
          rho(block.graphs.size()),
          checked_rho(stopped.size(), 0.0f),
          exact_weights(program.weights<double>()) {}

    // Solve a block of quotients through all layers. Those for which this precision does not
    // suffice get a new plan.
    void solve(Span<const i64> quotients) {
        block.load(quotients);
        bool provisional = false;
        for (i64 k = 0; k < block.n_graphs; k++) {
            const Plan& own = plans[block.graphs[k]];
            resolution[k] = own.resolution * (std::is_same_v<T, float> ? 1.0 : FINER);
            rho[k] = own.rho;
            checked_rho[k] = own.provisional ? static_cast<float>(own.rho) : 0.0f;
            provisional |= own.provisional;
        }
        std::fill(checked_rho.begin() + block.n_graphs, checked_rho.end(), 0.0f);
        checks_slopes = provisional && std::is_same_v<T, float>;
        if (checks_slopes && !bound) bound.emplace(exact_weights, stopped.size());
        for (layer = 0; layer < weights.n_layers(); layer++) {
            if (checks_slopes)
                bound->begin(layer, rounded_up(block.n_graphs, WHOLE_ROWS), checked_rho);
            solve_layer();
            if (checks_slopes) check_errors();
        }
    }

    i64 n_infinite = 0;  // sums of states that are infinite or NaN

  private:
    const Weights<T>& weights;
    const Schedule& schedule;
    const Span<const double> radii;  // (L,) rho(|W_H|)
    const double tol;
    const Span<const i64> graph_of;  // the first graph of each quotient
    const Span<Plan> plans;
    const Outputs& out;
    Block<T> block;
    i64 layer = 0;
    std::vector<double*> pooled;  // of each graph: its sums of this layer's states
    Table<T> X[2];                // states of this layer and of the one below
    Table<T> S;                   // A X
    Table<T> D;                   // W_I u + bias of a component, and a row of scratch space
    T* scratch;
    Row<T> active;                   // of each row: 1 as long as its graph moves
    std::vector<char> moves;         // of each graph: the same
    std::vector<double> moved;       // of each graph: the square of how far a sweep moved it
    std::vector<double> farther;     // of each graph: how much farther the fixed point may be
    std::vector<double> farthest;    // of each graph: a longer move may leave errors above tol / 2
    std::vector<double> near;        // of each graph: no larger square of a move can be near enough
    std::vector<double> resolution;  // of each graph: what rounding may seem to move it
    Row<float> stopped;              // of each graph: how far its last sweep moved it
    std::vector<double> rho;         // of each graph: rho(|A|)
    Row<float> checked_rho;          // the same, 0 where float32 is known to suffice
    const Weights<double>& exact_weights;
    bool checks_slopes = false;  // whether float32 suffices for all graphs is still to be seen
    std::optional<SlopeBound> bound;

    Table<T>& here() { return X[layer % 2]; }

    // Solve one layer on the block: its components in topological order.
    void solve_layer() {
        for (i64 k = 0; k < block.n_graphs && schedule.slots[layer] >= 0; k++)
            pooled[k] = out.pooled[schedule.slots[layer]][graph_of[block.graphs[k]]];
        i64 c = schedule.layers[layer];
        const i64 end = schedule.layers[layer + 1];
        while (c < end) {
            if (schedule.n_checked[c] > 0) {
                iterate_component(c++);
            } else {  // a unit that does not read itself: all that it reads is final
                evaluate(schedule.order[schedule.components[c]]);
                c++;
            }
        }
    }

    void drive(i64 h, T* d) {
        block.drive(h, weights.input(layer), weights.bias[layer], layer == 0, X[(layer + 1) % 2],
                    d);
    }

    // x = tanh(d + sum_s W_H[h, s] A x_s), eq. 1.
    void activate(i64 h, T* d) {
        const Wiring<T> W = weights.recurrent(layer);
        const i32* sources = W.sources[h];
        block.activate(
            d, W.values[h], W.sources.columns, [&](i64 k) { return S[sources[k]]; }, scratch);
    }

    // Evaluate a unit once.
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
        if (checks_slopes) bound->evaluate(h, block.slopes(block.x));
        pool(h, block.x);
    }

    // Sum the states of a unit over each graph, and write the sums, if they are requested.
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
    // A cycle is checked by its first unit, from the second sweep on: in the first sweep this unit
    // reads the zeros from which the others start, so its move is not informative.
    void iterate_component(i64 c) {
        const Span<const i64> units = schedule.units_of(c);
        const i64 n_checked = schedule.n_checked[c], period = schedule.period[c], n = block.n;
        std::fill_n(active.begin(), n, T(1));
        std::fill_n(moves.begin(), block.n_graphs, 1);
        for (i64 k = 0; k < block.n_graphs; k++) {
            const double step = radii[layer] * rho[k];
            double sweep = step;
            for (i64 j = 1; j < period; j++) sweep *= step;
            farther[k] = 1.0 / (1.0 - sweep);
            farthest[k] = 0.5 * tol / plans[block.graphs[k]].amplification;
            const double proven = std::min(MARGIN * tol / farther[k], farthest[k]);
            const double limit = std::max(proven, resolution[k]);
            near[k] = limit * limit * (1.0 + 1e-9);  // above all rounding
        }
        for (i64 j = 0; j < units.size; j++) {
            drive(units[j], D[j]);
            std::fill_n(here()[units[j]], n, T(0));
            std::fill_n(S[units[j]], n, T(0));
        }
        const i64 most_sweeps = MOST_CYCLE_STEPS / period + 2;
        const Wiring<T> W = weights.recurrent(layer);
        i64 n_active = block.n_graphs;
        for (i64 sweep = 1; sweep <= most_sweeps && n_active > 0; sweep++)
            for (i64 j = 0; j < units.size; j++) {
                const i64 h = units[j];
                const i32* sources = W.sources[h];
                const bool is_checked = j < n_checked && (sweep > 1 || n_checked == units.size);
                block.move(
                    D[j], W.values[h], W.sources.columns, [&](i64 k) { return S[sources[k]]; },
                    scratch, active.data(), here()[h], is_checked);
                if (is_checked) add_moves(j == 0);
                if (schedule.summed[layer][h]) block.sum_neighbors(S[h]);
                if (is_checked && j + 1 == n_checked) {
                    n_active = freeze(sweep * period, sweep == most_sweeps);
                    if (n_active == 0) break;
                }
            }
        if (checks_slopes)
            bound->solve_cycle(units, stopped,
                               [&](i64 h) -> const auto& { return block.slopes(here()[h]); });
        if (schedule.slots[layer] < 0) return;
        for (i64 h : units) pool(h, here()[h]);
    }

    // Add how far the unit moved, squared, to each graph's sum of the sweep.
    void add_moves(bool is_first) {
        const double* sums = block.sum_graphs(block.squares.data());
        for (i64 k = 0; k < block.n_graphs; k++) moved[k] = sums[k] + (is_first ? 0.0 : moved[k]);
    }

    // Freeze the graphs that are close enough to the fixed point; count the others.
    //
    // One sweep maps the checked units of a cycle to their next states and contracts distances by
    // r = contraction^period. So states that it moves by d were at most d / (1 - r) away from the fixed
    // point, and are no farther now. All other states are within d times the amplification of theirs
    // (`ErrorBound`). If this is too much for float32, sweeps continue to the precision of float32,
    // and `check_errors` decides. A frozen graph no longer changes.
    i64 freeze(i64 n_steps, bool is_last) {
        i64 n_active = 0;
        for (i64 k = 0; k < block.n_graphs; k++) {
            if (!moves[k]) continue;
            if (moved[k] > near[k] && !is_last) {  // most often
                n_active++;
                continue;
            }
            const Plan& own = plans[block.graphs[k]];
            const double step = std::sqrt(moved[k]), distance = step * farther[k];
            const bool proven = distance <= MARGIN * tol && step <= farthest[k];
            if (!proven && step > resolution[k] && !is_last) {
                n_active++;
                continue;
            }
            stopped[k] = static_cast<float>(std::max(step, resolution[k]));
            const i64 g = graph_of[block.graphs[k]];
            i32& n_iter = out.n_iter[layer][g];
            n_iter = std::max(n_iter, static_cast<i32>(n_steps));
            const bool is_bounded =
                own.amplification < UNBOUNDED && !(own.provisional && checks_slopes);
            const double error = is_bounded ? step * own.amplification : distance;
            out.residual[layer][g] = std::max({out.residual[layer][g], distance, error});
            moves[k] = 0;
            block.fill_graph(k, T(0), active.data());
        }
        return n_active;
    }

    // Plan float64 for graphs whose errors in this layer are not proven to be below half of tol.
    void check_errors() {
        for (i64 k = 0; k < block.n_graphs; k++) {
            Plan& own = plans[block.graphs[k]];
            if (!own.provisional) continue;
            const double error = bound->error(k);
            double& residual = out.residual[layer][graph_of[block.graphs[k]]];
            residual = std::max(residual, error);
            if (!(error < 0.5 * tol)) own.method = Method::FLOAT64;
        }
    }
};

}  // namespace fdgnn
