// The paper's iteration, eq. 2, literally: all units of a layer, step by step, per graph.
#pragma once

#include <cmath>
#include <limits>

#include "graphs.hpp"
#include "interrupts.hpp"
#include "reservoir.hpp"

namespace fdgnn {

// D = bias + X W^T for a W with C entries in each row.
inline void add_sources(i64 n, const double* bias, const Wiring<double>& W, const Table<double>& X,
                        Table<double>& D) {
    for (i64 v = 0; v < n; v++)
        for (i64 h = 0; h < W.sources.rows; h++) {
            double total = bias[h];
            for (i64 k = 0; k < W.sources.columns; k++)
                total = fused(W.values[h][k], X[v][W.sources[h][k]], total);
            D[v][h] = total;
        }
}

// X_new = tanh(D + A X W_H^T) for the graph whose vertices begin at v0; returns the Frobenius norm of
// X_new - X. S (H,) is scratch space: a row of A X.
inline double step_literally(const Structure& s, i64 v0, i64 n, const Table<double>& D,
                             const Wiring<double>& W, const Table<double>& X, Table<double>& X_new,
                             std::vector<double>& S, Interrupts& interrupts) {
    const i64 H = W.sources.rows;
    double square = 0.0;
    for (i64 v = 0; v < n; v++) {
        interrupts.count((s.indptr[v0 + v + 1] - s.indptr[v0 + v] + 4) * H);
        std::fill(S.begin(), S.end(), 0.0);
        for (i64 a = s.indptr[v0 + v]; a < s.indptr[v0 + v + 1]; a++) {
            const double w = s.weights.empty() ? 1.0 : s.weights[a];
            add_scaled(H, w, X[s.neighbors[a]], S.data());
        }
        for (i64 h = 0; h < H; h++) {
            double total = D[v][h];
            for (i64 k = 0; k < W.sources.columns; k++)
                total = fused(W.values[h][k], S[W.sources[h][k]], total);
            X_new[v][h] = std::tanh(total);
            const double step = X_new[v][h] - X[v][h];
            square = fused(step, step, square);
        }
    }
    return std::sqrt(square);
}

// Run the graphs `first` to `last` through all layers; fill `out`, which has all layers. The first
// layer has the drive first_drive[row_of_vertex[v]]: (rows, H) and (N,).
inline void iterate_layers(i64 first, i64 last, const Structure& s, Grid<const double> first_drive,
                           Span<const i32> row_of_vertex, const Weights<double>& weights,
                           double eps, i64 max_iter, const Outputs& out) {
    const i64 H = weights.n_units(), largest = longest(s.vertex_offsets.part(first, last + 1));
    Table<double> D(largest, H), X(largest, H), X_new(largest, H);
    std::vector<double> S(H);
    Interrupts interrupts;
    for (i64 g = first; g < last; g++) {
        const i64 v0 = s.vertex_offsets[g], n = s.vertex_offsets[g + 1] - v0;
        for (i64 i = 0; i < weights.n_layers(); i++) {
            if (i > 0)
                add_sources(n, weights.bias[i], weights.input(i), X, D);
            else
                for (i64 v = 0; v < n; v++)
                    std::copy_n(&first_drive[row_of_vertex[v0 + v]][0], H, D[v]);
            std::fill_n(X.entries.begin(), n * H, 0.0);
            double distance = std::numeric_limits<double>::infinity();
            i64 t = 0;
            for (; t < max_iter && distance >= eps; t++) {
                distance =
                    step_literally(s, v0, n, D, weights.recurrent(i), X, X_new, S, interrupts);
                std::swap(X.entries, X_new.entries);
            }
            out.n_iter[i][g] = static_cast<i32>(t);
            out.residual[i][g] = distance;
            for (i64 v = 0; v < n; v++) {
                for (i64 h = 0; h < H; h++) out.pooled[i][g][h] += X[v][h];
                if (out.states.layers > 0) std::copy_n(X[v], H, &out.states[v0 + v][i][0]);
            }
        }
    }
}

}  // namespace fdgnn
