// By which method each quotient graph is solved: float32, float64, or the steps of the paper's loop.
#pragma once

#include <cmath>
#include <limits>

#include "graphs.hpp"
#include "program.hpp"

namespace fdgnn {

enum class Method { NONE, FLOAT32, FLOAT64, LITERAL };

// How far a state near 1 may seem to move in a sweep by rounding alone.
constexpr double ULPS = 8.0 * std::numeric_limits<float>::epsilon();

constexpr double FINER = 0x1p-29;  // the rounding of float64 relative to float32

// How one quotient is solved.
struct Plan {
    Method method = Method::NONE;
    bool provisional =
        false;         // whether float32 suffices depends on the slopes of tanh at the states
    double rho = 0.0;  // rho(|A|)
    double resolution = 0.0;     // how far rounding to float32 may seem to move the graph
    double amplification = 0.0;  // of the errors of cycles, as far as it is known beforehand
};

// The input of the engine: a batch, and the requested results.
struct Task {
    const BoundQuotients& graphs;
    Inputs inputs;
    Span<const double> radii;    // (n_graphs,) rho(|A|)
    Span<const double> degrees;  // (n_graphs,) that may be too large for float32, or none
    double most_degree;          // up to which float32 will do
    bool directed;
    double tol;
    i64 max_iter;
};

// Choose the method for quotient k. It is certified if its contraction rho(|W_H|) rho(|A|) is below 1 in all
// layers. It is computed in float32 if this determines the fixed point to half of tol. If A is not
// symmetric, nothing is proven about errors, so directed graphs are computed in float64.
inline Plan plan(i64 k, const Task& task, const Program& program) {
    const BoundQuotients& b = task.graphs;
    const i64 g = b.graphs[k];
    Plan found;
    found.rho = task.radii[g];
    double largest = 0.0, n_vertices = 0.0;
    bool certified = true;
    for (double radius : program.radii) {
        certified &= radius * found.rho < 1.0;
        largest = std::max(largest, radius * found.rho);
    }
    if (!certified) {
        found.method = Method::LITERAL;
        return found;
    }
    for (i64 r = b.quotients.row_offsets[k]; r < b.quotients.row_offsets[k + 1]; r++)
        n_vertices += b.quotients.sizes[r];
    found.resolution = ULPS * std::sqrt(n_vertices);
    found.amplification = task.directed ? UNBOUNDED : program.amplification(found.rho);
    found.provisional = !(found.resolution * found.amplification < 0.5 * task.tol);
    const bool fits =
        program.fits_single && (task.degrees.empty() || task.degrees[g] <= task.most_degree);
    const bool fine = found.resolution < 0.5 * task.tol * (1.0 - largest) &&
                      (!found.provisional || (!task.directed && program.has_only_cycles));
    found.method = fits && fine ? Method::FLOAT32 : Method::FLOAT64;
    return found;
}

}  // namespace fdgnn
