// A block: some quotient graphs side by side, laid out for vector instructions.
#pragma once

#include <cmath>

#include "graphs.hpp"
#include "reservoir.hpp"

namespace fdgnn {

constexpr i64 WHOLE_ROWS = 64;  // rows are allocated in multiples of this: whole vectors, unrolled

// Rows of a block are padded to whole vectors. One allocation serves all blocks of a chunk.
template <class T>
class Block {
public:
    i64 capacity;                  // rows of the largest block, padded
    i64 n = 0;                     // rows of the block at hand, padded
    i64 n_graphs = 0;
    std::vector<i64> graphs;       // the quotients in the block
    std::vector<i64> starts;       // their first rows in the block, and the end
    std::vector<i64> rows;         // the place of each row in the quotients
    T* x;                          // the state of the neuron at hand
    std::vector<T> squares;

    // Make room for the largest of the blocks `first` to `last`.
    Block(i64 first, i64 last, Span<const i64> block_offsets, Span<const i64> blocks,
          const Quotients& q, const Inputs& inputs)
        : q(q), inputs(inputs) {
        i64 most_rows = 0, most_arcs = 0, most_graphs = 0;
        for (i64 b = first; b < last; b++) {
            i64 n_rows = 0, n_arcs = 0;
            for (i64 g : blocks.part(block_offsets[b], block_offsets[b + 1])) {
                n_rows += q.row_offsets[g + 1] - q.row_offsets[g];
                n_arcs += q.indptr[q.row_offsets[g + 1]] - q.indptr[q.row_offsets[g]];
                half = std::max(half, q.bands[g]);
            }
            most_rows = std::max(most_rows, n_rows);
            most_arcs = std::max(most_arcs, n_arcs);
            most_graphs = std::max(most_graphs, block_offsets[b + 1] - block_offsets[b]);
        }
        capacity = rounded_up(most_rows, WHOLE_ROWS);
        graphs.resize(most_graphs);
        starts.assign(most_graphs + 1, 0);
        size_starts.resize(most_graphs);
        sizes.assign(capacity + STRANDS * most_graphs, T(0));
        rows.assign(capacity, 0);
        codes.assign(inputs.codes.empty() ? 0 : capacity, -1);
        offsets.resize(2 * half + 4);
        place.resize(2 * half + 1);
        diagonals.assign((2 * half + 4) * capacity, T(0));
        outside.reserve(most_arcs);
        padded.assign(capacity + 2 * half + STRANDS, T(0));
        x = padded.data() + half;
        squares.assign(capacity + STRANDS, T(0));
    }

    // Lay the quotients `some` side by side, in rows padded to a multiple of `lanes`.
    void load(Span<const i64> some, i64 lanes) {
        i64 filled = 0;
        n = 0;
        n_graphs = some.size;
        for (i64 k = 0; k < n_graphs; k++) {
            const i64 r0 = q.row_offsets[some[k]], m = q.row_offsets[some[k] + 1] - r0;
            graphs[k] = some[k];
            size_starts[k] = filled;
            for (i64 r = 0; r < m; r++) {
                sizes[filled + r] = static_cast<T>(q.sizes[r0 + r]);
                rows[n + r] = r0 + r;
                if (!codes.empty()) codes[n + r] = inputs.codes[r0 + r];
            }
            n += m;
            filled += rounded_up(m, STRANDS);
            std::fill(sizes.begin() + size_starts[k] + m, sizes.begin() + filled, T(0));
            starts[k + 1] = n;
        }
        n = rounded_up(n, lanes);
        find_diagonals();
        load_arcs();
    }

    // d = W_I u + bias for neuron h. The input u is the one-hot code or the features, where they are
    // given for the first layer, else the states of the layer below.
    void drive(i64 h, const Wiring<T>& W, const T* bias, bool is_first, const Table<T>& below,
               T* RESTRICT d) const {
        const i64 C = W.sources.columns;
        if (!is_first) {
            const T w = W.values[h][0], b = bias[h];
            const T* RESTRICT s = below[W.sources[h][0]];
            for (i64 v = 0; v < n; v++) d[v] = b + w * s[v];
            for (i64 k = 1; k < C; k++) add_scaled(n, W.values[h][k], below[W.sources[h][k]], d);
        } else if (!codes.empty()) {
            const i32* RESTRICT code = codes.data();
            const T there = bias[h] + W.values[h][0], b = bias[h];
            const i32 source = W.sources[h][0];
            for (i64 v = 0; v < n; v++) d[v] = code[v] == source ? there : b;
            for (i64 k = 1; k < C; k++) {
                const T w = W.values[h][k];
                const i32 other = W.sources[h][k];
                for (i64 v = 0; v < n; v++) d[v] = code[v] == other ? d[v] + w : d[v];
            }
        } else {
            for (i64 v = 0; v < starts[n_graphs]; v++) {
                double total = bias[h];
                for (i64 k = 0; k < C; k++)
                    total += W.values[h][k] * inputs.features[rows[v]][W.sources[h][k]];
                d[v] = static_cast<T>(total);
            }
            std::fill(d + starts[n_graphs], d + n, bias[h]);
        }
    }

    // x = tanh(d + sum_k w_k s_k), eq. 1. `scratch` has room for a row, or is d itself, which is then
    // overwritten.
    template <class Row>
    void activate(T* d, const T* w, i64 C, Row row, T* scratch) {
        if (C > 1 && d != scratch) {
            std::copy(d, d + n, scratch);
            d = scratch;
        }
        for (i64 k = 0; k + 1 < C; k++) add_scaled(n, w[k], row(k), d);
        tanh_sum(n, d, w[C - 1], row(C - 1), x);
    }

    // s = A x: the diagonals of the band first, four at a time, then the arcs outside it.
    void sum_neighbors(T* s) const {
        std::fill(s, s + n, T(0));
        const T *D = diagonals.data(), *from = padded.data();
        for (i64 j = 0; j < n_diagonals; j += 4)  // always whole fours; the last ones may be zero
            add_diagonals(n, D + j * capacity, D + (j + 1) * capacity, D + (j + 2) * capacity,
                          D + (j + 3) * capacity, from + offsets[j], from + offsets[j + 1],
                          from + offsets[j + 2], from + offsets[j + 3], s);
        for (const Outside& arc : outside) s[arc.row] += arc.weight * x[arc.source];
    }

    // sum_v size_v y_v over the rows of graph k, in float64. The sizes of a graph are padded with
    // zeros to a multiple of STRANDS, so the sum may run into the rows of the next graph.
    double sum_graph(i64 k, const T* y) const {
        return weighted_sum(rounded_up(starts[k + 1] - starts[k], STRANDS),
                            sizes.data() + size_starts[k], y + starts[k]);
    }

private:
    struct Outside {
        u32 row, source;
        T weight;
    };

    const Quotients& q;
    const Inputs& inputs;
    std::vector<i64> size_starts;  // where the sizes of each graph begin
    std::vector<T> sizes;          // vertices in the class of each row
    std::vector<i32> codes;        // of each row, or none
    i64 half = 0;                  // half-width of the widest band: zeros on both sides of x
    i64 n_diagonals = 0;
    std::vector<i64> offsets;      // where each diagonal takes x from, in `padded`
    std::vector<i64> place;        // the number of each diagonal, or -1
    std::vector<T> diagonals;      // (n_diagonals, capacity)
    std::vector<Outside> outside;  // arcs outside the band
    std::vector<T> padded;         // zeros, x, zeros

    // Find the diagonals in use, ascending; place[half + d] is the number of diagonal d.
    void find_diagonals() {
        std::fill(place.begin(), place.end(), -1);
        for (i64 k = 0; k < n_graphs; k++) {
            const i64 g = graphs[k], r0 = q.row_offsets[g];
            for (i64 r = r0; r < q.row_offsets[g + 1]; r++)
                for (i64 a = q.indptr[r]; a < q.indptr[r + 1]; a++) {
                    const i64 d = q.sources[a] - (r - r0);
                    if (std::abs(d) <= q.bands[g]) place[half + d] = 0;
                }
        }
        n_diagonals = 0;
        for (i64 d = 0; d < static_cast<i64>(place.size()); d++)
            if (place[d] == 0) {
                place[d] = n_diagonals;
                offsets[n_diagonals++] = d;
            }
        while (n_diagonals % 4 > 0) offsets[n_diagonals++] = 0;
        for (i64 j = 0; j < n_diagonals; j++)
            std::fill_n(diagonals.begin() + j * capacity, n, T(0));
    }

    // Write the arcs into the diagonals, or into the list of those outside the band.
    void load_arcs() {
        outside.clear();
        for (i64 k = 0; k < n_graphs; k++) {
            const i64 g = graphs[k], r0 = q.row_offsets[g];
            for (i64 r = r0; r < q.row_offsets[g + 1]; r++)
                for (i64 a = q.indptr[r]; a < q.indptr[r + 1]; a++) {
                    const i64 d = q.sources[a] - (r - r0), v = starts[k] + r - r0;
                    const T weight = static_cast<T>(q.multiplicities[a]);
                    if (std::abs(d) <= q.bands[g])
                        diagonals[place[half + d] * capacity + v] = weight;
                    else
                        outside.push_back({static_cast<u32>(v),
                                           static_cast<u32>(starts[k] + q.sources[a]), weight});
                }
        }
    }
};

}  // namespace fdgnn
