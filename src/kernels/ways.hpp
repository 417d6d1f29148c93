// Which way each quotient graph goes: float32, float64, or the steps of the paper's loop.
#pragma once

#include <cmath>
#include <limits>

#include "amplification.hpp"
#include "graphs.hpp"

namespace fdgnn {

enum Way : i64 { SINGLE, DOUBLE, STEPS };

// So much a state near 1 may seem to move by rounding in a sweep that moves nothing.
constexpr double ULPS = 8.0 * std::numeric_limits<float>::epsilon();

constexpr double FINER = 0x1p-29;  // the rounding of float64 beside that of float32

struct Ways {
    std::vector<i64> ways;              // (n,)
    std::vector<i64> counts;            // (3,) how many quotients go each way
    std::vector<double> contractions;   // (L, n) rho(|W_H|) rho(|A|) of the quotients
    std::vector<double> resolution;     // (n,) how far rounding to float32 may seem to move a graph
    std::vector<double> amplification;  // (n,) error of the states for each unit that a sweep moves
};

// Amplification by spectral radius. It is computed on a grid of contractions q = 1 - 2^(-k / 8) that
// does not depend on the graphs of a batch, and rounded up, because it grows with the radius.
template <class T>
class Amplifications {
public:
    explicit Amplifications(const Program<T>& program) : bound(program) {
        for (double radius : program.radii) largest = std::max(largest, radius);
    }

    double at(double rho) {
        const double q = largest * rho;
        if (q == 0.0) return 0.0;  // no component is swept, or no vertex has neighbors
        const i64 k = static_cast<i64>(std::ceil(-8.0 * std::log2(1.0 - q)));
        if (k >= static_cast<i64>(known.size())) known.resize(k + 1, -1.0);
        if (known[k] < 0.0) {
            const double upper = std::max(q, 1.0 - std::exp2(-static_cast<double>(k) / 8.0));
            known[k] = bound.amplification(upper / largest);
        }
        return known[k];
    }

private:
    ErrorBound<T> bound;
    double largest = 0.0;  // rho(|W_H|) of all layers
    std::vector<double> known;
};

// Choose a way for each quotient. radii (n_graphs,) are rho(|A|); graphs (n,) is the first graph of each
// quotient. A quotient is certified if its contraction is below 1 in all layers. It is computed in
// float32 if that is fine enough to tell the fixed point to half of tol. Where A is not symmetric
// nothing is proven about errors, so directed graphs are computed in float64.
template <class T>
Ways choose_ways(Span<const double> radii, const Program<T>& program, Span<const i64> graphs,
                 Span<const i64> row_offsets, Span<const double> sizes, double tol,
                 bool fits_single, bool directed) {
    const i64 L = program.radii.size, n = graphs.size;
    Ways found{std::vector<i64>(n), std::vector<i64>(3, 0), std::vector<double>(L * n),
               std::vector<double>(n), std::vector<double>(n, 0.0)};
    Amplifications<T> amplifications(program);
    for (i64 k = 0; k < n; k++) {
        bool certified = true;
        double largest = 0.0, n_vertices = 0.0;
        for (i64 i = 0; i < L; i++) {
            const double bound = program.radii[i] * radii[graphs[k]];
            found.contractions[i * n + k] = bound;
            certified &= bound < 1.0;
            largest = std::max(largest, bound);
        }
        for (i64 r = row_offsets[k]; r < row_offsets[k + 1]; r++) n_vertices += sizes[r];
        found.resolution[k] = ULPS * std::sqrt(n_vertices);
        if (certified)
            found.amplification[k] = directed ? UNBOUNDED : amplifications.at(radii[graphs[k]]);
        const bool fine = fits_single &&
                          found.resolution[k] < 0.5 * tol * (1.0 - largest) &&
                          found.resolution[k] * found.amplification[k] < 0.5 * tol;
        found.ways[k] = !certified ? STEPS : fine ? SINGLE : DOUBLE;
        found.counts[found.ways[k]]++;
    }
    return found;
}

}  // namespace fdgnn
