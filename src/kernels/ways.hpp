// Which way each quotient graph goes: float32, float64, or the steps of the paper's loop.
#pragma once

#include <cmath>
#include <limits>

#include "graphs.hpp"

namespace fdgnn {

enum Way : i64 { SINGLE, DOUBLE, STEPS };

// So much a state near 1 may seem to move by rounding in a sweep that moves nothing.
constexpr double ULPS = 8.0 * std::numeric_limits<float>::epsilon();

struct Ways {
    std::vector<i64> ways;            // (n,)
    std::vector<i64> counts;          // (3,) how many quotients go each way
    std::vector<double> contractions; // (L, n) the bounds of the quotients
    std::vector<double> resolution;   // (n,) how far rounding to float32 may seem to move a graph
};

// Choose a way for each quotient. bounds (L, n_graphs) are the certificates; graphs (n,) is the first
// graph of each quotient. A quotient is certified if all its bounds are below 1. It is computed in
// float32 if that is fine enough to tell the fixed point to half of tol.
inline Ways choose_ways(Grid<const double> bounds, Span<const i64> graphs,
                        Span<const i64> row_offsets, Span<const double> sizes, double tol,
                        bool fits_single) {
    const i64 L = bounds.rows, n = graphs.size;
    Ways found{std::vector<i64>(n), std::vector<i64>(3, 0), std::vector<double>(L * n),
               std::vector<double>(n)};
    for (i64 k = 0; k < n; k++) {
        bool certified = true;
        double largest = 0.0, n_vertices = 0.0;
        for (i64 i = 0; i < L; i++) {
            const double bound = bounds[i][graphs[k]];
            found.contractions[i * n + k] = bound;
            certified &= bound < 1.0;
            largest = std::max(largest, bound);
        }
        for (i64 r = row_offsets[k]; r < row_offsets[k + 1]; r++) n_vertices += sizes[r];
        found.resolution[k] = ULPS * std::sqrt(n_vertices);
        const bool fine = fits_single && found.resolution[k] < 0.5 * tol * (1.0 - largest);
        found.ways[k] = !certified ? STEPS : fine ? SINGLE : DOUBLE;
        found.counts[found.ways[k]]++;
    }
    return found;
}

}  // namespace fdgnn
