// Upper bounds of the spectral radius of each graph's adjacency matrix.
#pragma once

#include <cmath>
#include <limits>

#include "graphs.hpp"
#include "interrupts.hpp"

namespace fdgnn {

constexpr i64 PATIENCE = 4;  // steps over which the bound must still fall by PROGRESS to go on
constexpr double PROGRESS = 1e-3;
constexpr i64 MOST_STEPS = 500;
constexpr double FLOOR =
    1e-150;  // keeps x positive where a component vanishes relative to a larger one

inline double size_of(const Structure& s, i64 arc) {
    return s.weights.empty() ? 1.0 : std::abs(s.weights[arc]);
}

// The largest absolute row sum of the matrix of a graph.
inline double largest_row(const Structure& s, i64 v0, i64 v1) {
    double largest = 0.0;
    for (i64 v = v0; v < v1; v++) {
        double total = 0.0;
        for (i64 a = s.indptr[v]; a < s.indptr[v + 1]; a++) total += size_of(s, a);
        largest = std::max(largest, total);
    }
    return largest;
}

// An upper bound of rho(|A|) for each graph, tight to about half a percent.
//
// For a non-negative matrix and any positive x, rho(A) <= max_v (A x)_v / x_v (Collatz-Wielandt).
// The bound never rises under x <- (A + I) x, so it holds whenever the iteration is stopped.
inline void spectral_radii(const Structure& s, Span<double> radii) {
    const i64 largest = longest(s.vertex_offsets);
    std::vector<double> x(largest), y(largest);
    Interrupts interrupts;
    for (i64 g = 0; g < radii.size; g++) {
        const i64 v0 = s.vertex_offsets[g], n = s.vertex_offsets[g + 1] - v0;
        radii[g] = 0.0;
        if (n == 0) continue;
        std::fill(x.begin(), x.begin() + n, 1.0);
        const double scale = largest_row(s, v0, v0 + n) + 1.0;  // keeps x in range between checks
        double bound = std::numeric_limits<double>::infinity();
        for (i64 step = 0; step < MOST_STEPS; step++) {
            const bool checked = step % PATIENCE == 0;
            double ratio = 0.0;
            interrupts.count(s.indptr[v0 + n] - s.indptr[v0] + n);
            for (i64 v = 0; v < n; v++) {
                double total = 0.0;
                for (i64 a = s.indptr[v0 + v]; a < s.indptr[v0 + v + 1]; a++)
                    total += x[s.neighbors[a]] * size_of(s, a);
                if (checked) ratio = std::max(ratio, total / x[v]);
                y[v] = (total + x[v]) / scale;
            }
            std::swap(x, y);
            if (!checked) continue;
            const bool done = ratio > bound * (1.0 - PROGRESS);
            bound = std::min(bound, ratio);
            if (done) break;
            const double peak = *std::max_element(x.begin(), x.begin() + n);
            for (i64 v = 0; v < n; v++) x[v] = std::max(x[v] / peak, FLOOR);
        }
        radii[g] = bound * (1.0 + 1e-12);  // above the rounding of the sums
    }
}

// The same for graphs that are known by their quotients, which have the same radii.
inline std::vector<double> radii_of_graphs(const BoundQuotients& b) {
    const Quotients& q = b.quotients;
    std::vector<double> own(b.graphs.size), radii(b.quotient_of.size);
    spectral_radii({q.row_offsets, q.indptr, q.sources, q.multiplicities},
                   {own.data(), b.graphs.size});
    for (i64 g = 0; g < b.quotient_of.size; g++) radii[g] = own[b.quotient_of[g]];
    return radii;
}

}  // namespace fdgnn
