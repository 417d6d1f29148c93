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

constexpr i64 STRIP = 1024;  // vertices of a graph between two counts of what was done

// How many arcs enter the vertices of a strip that begins at v, of a graph of n vertices from v0 on.
inline i64 arcs_of_strip(const Structure& s, i64 v0, i64 n, i64 v) {
    return s.indptr[v0 + std::min(v + STRIP, n)] - s.indptr[v0 + v];
}

// `fdgnn.graphs.colors.Quotients`, as far as the engine reads them.
struct Quotients {
    Span<const i64> row_offsets;        // (n_quotients + 1,)
    Span<const double> sizes;           // (n_rows,) vertices in the class of each row
    Span<const i64> indptr;             // (n_rows + 1,)
    Span<const i32> sources;            // (n_arcs,)
    Span<const double> multiplicities;  // (n_arcs,)
    Span<const i64> bands;              // (n_quotients,)
};

// All arrays about the quotients of a batch (`fdgnn.graphs.colors.Quotients.bound`).
struct BoundQuotients {
    Quotients quotients;
    Span<const i64> quotient_of;      // (n_graphs,)
    Span<const i64> graphs;           // (n_quotients,) the first graph of each
    Span<const i64> row_of_vertex;    // (n_vertices,)
    Span<const i64> representatives;  // (n_rows,) a vertex of the class of each row
    Span<const i64> block_offsets, blocks;
};

// Small quotients stand in bundles, one in each lane; see `Block`. A row of a bundle is a whole vector of
// float32, so that no load crosses a cache line. Only engines may use LANES, which differs.
#ifdef __AVX512F__
constexpr i64 LANES = 16;
#else
constexpr i64 LANES = 8;
#endif
constexpr i64 MOST_BUNDLED = 64;  // rows of a quotient that may stand in a bundle

}  // namespace fdgnn
