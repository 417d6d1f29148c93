// The paper's iteration in float64, evaluating only the states that its result depends on.
//
// The literal loop gives the states after T steps from zero. A unit outside the core (see
// `tree_heights`) needs the state of its source one step earlier, which needs that of its own source
// another step earlier, and so on down to the core. So it is evaluated at a few last steps only. The
// core is followed step by step. T is that of the literal loop: as long as the core alone moves by
// epsilon or more, the loop has not stopped. When it no longer does, all units are brought to that
// step and from there iterated literally.
#pragma once

#include <limits>
#include <numeric>

#include "blocks.hpp"
#include "plan.hpp"

namespace fdgnn {

// Follows quotients in float64.
class Follower {
  public:
    Follower(Span<const i64> quotients, const Task& task, const Program& program,
             const Outputs& out)
        : weights(program.weights<double>()),
          schedule(program.every()),
          trees(program.trees()),
          tol(task.tol),
          max_iter(task.max_iter),
          slots(program.schedule().slots),
          graph_of(task.graphs.graphs),
          out(out),
          one_each(quotients.size + 1),
          block(0, quotients.size, numbered(one_each), quotients, task.graphs.quotients,
                task.inputs),
          D(weights.n_units() + 1, block.capacity),
          scratch(D[weights.n_units()]),
          X{Table<double>(weights.n_units(), block.capacity),
            Table<double>(weights.n_units(), block.capacity)},
          S{Table<double>(weights.n_units(), block.capacity),
            Table<double>(weights.n_units(), block.capacity)},
          past(trees.n_rows, block.capacity) {}

    // Follow one quotient through all layers.
    void follow(Span<const i64> quotient) {
        block.load(quotient);
        const i64 g = graph_of[quotient[0]];
        for (layer = 0; layer < weights.n_layers(); layer++) {
            start();
            follow_core();
            follow_trees();
            follow_all();
            out.n_iter[layer][g] = static_cast<i32>(step);
            out.residual[layer][g] = std::sqrt(square);
            if (slots[layer] >= 0) pool(slots[layer]);
        }
    }

  private:
    const Weights<double>& weights;
    const Schedule& schedule;
    const Trees& trees;
    const double tol;
    const i64 max_iter;
    const Span<const i64> slots;     // of the requested layers
    const Span<const i64> graph_of;  // the first graph of each quotient
    const Outputs& out;
    std::vector<i64> one_each;
    Block<double> block;
    Table<double> D;  // W_I u + bias of all units, and a row of scratch space
    double* scratch;
    Table<double> X[2];  // the last states of this layer and of the one below
    Table<double> S[2];  // A X of this step and of the one before, if all are iterated
    Table<double> past;  // A X at earlier steps
    i64 layer = 0;
    i64 step = 0;
    double square = 0.0;  // how far the last step moved the states, squared

    static Span<const i64> numbered(std::vector<i64>& values) {
        std::iota(values.begin(), values.end(), 0);
        return {values.data(), static_cast<i64>(values.size())};
    }

    Span<const i64> units() const {
        return schedule.order.part(schedule.components[schedule.layers[layer]],
                                   schedule.components[schedule.layers[layer + 1]]);
    }
    const i32* sources(i64 h) const { return weights.rec_sources[layer][h]; }
    i64 first_row(i64 h) const { return trees.first_rows[layer][h]; }
    bool in_core(i64 h) const { return trees.core[layer][h]; }
    bool goes_on() const { return step < max_iter && square >= tol * tol; }
    Table<double>& here() { return X[layer % 2]; }

    // D = W_I u + bias of all units; the states start from zero.
    void start() {
        here().clear(block.n);
        past.clear(block.n);
        for (i64 h : units())
            block.drive(h, weights.input(layer), weights.bias[layer], layer == 0,
                        X[(layer + 1) % 2], D[h]);
        step = 0;
        square = std::numeric_limits<double>::infinity();
    }

    // x = tanh(D_h + sum_k W_H[h, s] row_k), eq. 2.
    template <class Rows>
    void activate(i64 h, Rows row) {
        block.activate(D[h], weights.rec_values[layer][h], weights.rec_sources.columns, row,
                       scratch);
    }

    // Set the state of unit h to x; return the squared distance that it moved, over all vertices.
    double move(i64 h) {
        squared_step(block.n, block.x, here()[h], block.squares.data());
        std::copy(block.x, block.x + block.n, here()[h]);
        return block.sum_graphs(block.squares.data())[0];
    }

    // Iterate the core, x' = tanh(D + W_H A x), as long as it moves by eps or more.
    void follow_core() {
        while (goes_on()) {
            step++;
            square = 0.0;
            for (i64 h : units()) {
                if (!in_core(h)) continue;
                activate(h, [&](i64 k) {
                    return past[first_row(sources(h)[k]) + (step - 1) % trees.window];
                });
                square += move(h);
                block.sum_neighbors(past[first_row(h) + step % trees.window]);
            }
        }
    }

    // Evaluate the trees from the core outward, at the last steps that those farther out need.
    void follow_trees() {
        for (i64 h : units()) {
            if (in_core(h)) continue;
            const i64 height = trees.heights[layer][h];
            for (i64 ago = std::min(height + 1, step - 1); ago >= 0; ago--) {
                activate(h, [&](i64 k) {
                    const i64 s = sources(h)[k];
                    const i64 when = in_core(s) ? (step - ago - 1) % trees.window : ago;
                    return past[first_row(s) + when];
                });
                if (ago == 0) {
                    square += move(h);
                    continue;
                }
                std::copy(block.x, block.x + block.n, here()[h]);
                if (height > 0) block.sum_neighbors(past[first_row(h) + ago - 1]);
            }
        }
    }

    // Iterate all units literally, if the loop continues.
    void follow_all() {
        Table<double>*before = &S[0], *after = &S[1];
        if (goes_on())
            for (i64 h : units()) {
                std::copy(here()[h], here()[h] + block.n, block.x);
                block.sum_neighbors((*before)[h]);
            }
        while (goes_on()) {
            step++;
            square = 0.0;
            for (i64 h : units()) {
                activate(h, [&](i64 k) { return (*before)[sources(h)[k]]; });
                square += move(h);
                if (schedule.summed[layer][h]) block.sum_neighbors((*after)[h]);
            }
            std::swap(before, after);
        }
    }

    // Sum the last states over the vertices, and write them if they are requested.
    void pool(i64 slot) {
        for (i64 h = 0; h < weights.n_units(); h++) {
            std::copy(here()[h], here()[h] + block.n, block.x);
            out.pooled[slot][graph_of[block.graphs[0]]][h] = block.sum_graphs(block.x)[0];
            block.write(block.x, h, slot, out);
        }
    }
};

// Follow quotients through all layers; fill `out`.
inline void follow_graphs(Span<const i64> quotients, const Task& task, const Program& program,
                          const Outputs& out) {
    Follower follower(quotients, task, program, out);
    for (i64 k = 0; k < quotients.size; k++) follower.follow(quotients.part(k, k + 1));
}

}  // namespace fdgnn
