// What kernels read of a batch of graphs.
#pragma once

#include "views.hpp"

namespace fdgnn {

// `fdgnn.graphs.colors.Structure`: the arcs that enter a vertex come from its neighbors, which are
// numbered inside its graph.
struct Structure {
    Span<const i64> vertex_offsets;  // (n_graphs + 1,)
    Span<const i64> indptr;          // (n_vertices + 1,)
    Span<const i32> neighbors;       // (n_arcs,)
    Span<const double> weights;      // (n_arcs,), or none if all are 1
};

// `fdgnn.graphs.colors.Quotients`, as far as the engine reads them.
struct Quotients {
    Span<const i64> row_offsets;         // (n_quotients + 1,)
    Span<const double> sizes;            // (n_rows,) vertices in the class of each row
    Span<const i64> indptr;              // (n_rows + 1,)
    Span<const i32> sources;             // (n_arcs,)
    Span<const double> multiplicities;   // (n_arcs,)
    Span<const i64> bands;               // (n_quotients,)
};

// Small quotients stand in bundles, one in each lane; see `Block`.
constexpr i64 LANES = 8;
constexpr i64 MOST_BUNDLED = 64;  // rows of a quotient that may stand in a bundle

}  // namespace fdgnn
