// A block: some quotient graphs side by side, laid out for vector instructions.
#pragma once

#include <cmath>

#include "interrupts.hpp"
#include "reservoir.hpp"

namespace fdgnn {

constexpr i64 FEWEST_BUNDLED = 4;  // fewer quotients in a block stand one after the other

// Graphs that stand in a block together: each in a lane of its own, or one alone. Row r of its k-th
// graph is at first + stride r + k.
struct Bundle {
    i64 first;        // row of the block
    i64 height;       // rows of the tallest graph, padded to a multiple of STRANDS if it is alone
    i64 first_graph;  // of the block
    i64 n_graphs;
};

// One allocation serves all blocks of a chunk. Rows that belong to no graph have size 0.
//
// Where a block has several small graphs, they are interleaved: the same row of LANES graphs is one
// vector. So a diagonal of their matrices reads x at a distance of a whole number of vectors, and
// LANES graphs are summed at once. The results of a graph do not depend on its position in the
// block.
template <class T>
class Block {
  public:
    i64 capacity;  // rows of the largest block, padded
    i64 n = 0;     // rows of the block at hand, padded
    i64 n_graphs = 0;
    std::vector<i64> graphs;  // the quotients in the block
    T* x;                     // the state of the current unit
    Row<T> squares;

    // Make room for the largest of the blocks `first` to `last`.
    Block(i64 first, i64 last, Span<const i64> block_offsets, Span<const i64> blocks,
          const Quotients& q, const Inputs& inputs)
        : q(q), inputs(inputs) {
        i64 most_rows = 0, most_arcs = 0, most_graphs = 0, widest = 0;
        for (i64 b = first; b < last; b++) {
            const Span<const i64> some = blocks.part(block_offsets[b], block_offsets[b + 1]);
            i64 n_arcs = 0;
            for (i64 g : some) {
                n_arcs += q.indptr[q.row_offsets[g + 1]] - q.indptr[q.row_offsets[g]];
                half = std::max(half, q.bands[g]);
            }
            lay_out(some);
            most_rows = std::max(most_rows, n);
            most_arcs = std::max(most_arcs, n_arcs);
            most_graphs = std::max(most_graphs, some.size);
            widest = std::max(widest, stride);
        }
        capacity = rounded_up(most_rows, WHOLE_ROWS);
        graphs.resize(most_graphs);
        sizes.assign(capacity, T(0));
        rows.assign(capacity, -1);
        codes.assign(inputs.codes.empty() ? 0 : capacity, -1);
        places.resize(2 * half + 1);
        number.resize(2 * half + 1);
        inside.resize(most_arcs);
        outside.reserve(most_arcs);
        halo = rounded_up(half * widest, WHOLE_ROWS);
        padded.assign(capacity + 2 * halo, T(0));
        x = padded.data() + halo;
        squares.assign(capacity, T(0));
        sums.resize(most_graphs + LANES);
        steepest.assign(rounded_up(most_graphs, WHOLE_ROWS), 0.0f);
    }

    // Lay the quotients `some` side by side.
    void load(Span<const i64> some) {
        lay_out(some);
        n = rounded_up(n, WHOLE_ROWS);
        std::copy(some.begin(), some.end(), graphs.begin());
        n_graphs = some.size;
        std::fill_n(sizes.begin(), n, T(0));
        std::fill_n(rows.begin(), n, -1);
        std::fill_n(x, n, T(0));
        for (i64 k = 0; k < n_graphs; k++) {
            const i64 r0 = q.row_offsets[graphs[k]], m = q.row_offsets[graphs[k] + 1] - r0;
            interrupts.count(m + q.indptr[r0 + m] - q.indptr[r0]);
            const i64 first = place(k, 0);
            for (i64 r = 0; r < m; r++) {
                const i64 v = first + stride * r;
                sizes[v] = static_cast<T>(q.sizes[r0 + r]);
                rows[v] = r0 + r;
                if (!codes.empty()) codes[v] = inputs.codes[inputs.vertices[r0 + r]];
            }
        }
        find_arcs();
        fill_diagonals();
    }

    // d = W_I u + bias for unit h. The input u is the one-hot code or the features, if they are
    // given (first layer), else the states of the layer below.
    void drive(i64 h, const Wiring<T>& W, const T* bias, bool is_first, const Table<T>& below,
               T* RESTRICT d) const {
        const i64 C = W.sources.columns;
        if (!is_first) {
            const T w = W.values[h][0], b = bias[h];
            const T* RESTRICT s = below[W.sources[h][0]];
            for (i64 v = 0; v < n; v++) d[v] = fused(w, s[v], b);
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
            for (i64 v = 0; v < n; v++) {
                double total = bias[h];
                if (rows[v] >= 0) {
                    const double* features = inputs.features[inputs.vertices[rows[v]]];
                    for (i64 k = 0; k < C; k++) total += W.values[h][k] * features[W.sources[h][k]];
                }
                d[v] = static_cast<T>(total);
            }
        }
    }

    // x = tanh(d + sum_k w_k s_k), eq. 1. `scratch` has room for a row, or is d itself, which is then
    // overwritten.
    template <class Rows>
    void activate(T* d, const T* w, i64 C, Rows row, T* scratch) {
        d = with_others(d, w, C, row, scratch);
        tanh_sum(n, d, w[C - 1], row(C - 1), x);
    }

    // The same for a unit that is iterated: its state moves to x where it is active, and x is the
    // state elsewhere. If the move is checked, its squares are kept.
    template <class Rows>
    void move(T* d, const T* w, i64 C, Rows row, T* scratch, const T* active, T* state,
              bool is_checked) {
        d = with_others(d, w, C, row, scratch);
        const auto step = is_checked ? &tanh_move<true, T> : &tanh_move<false, T>;
        step(n, d, w[C - 1], row(C - 1), active, state, x, squares.data());
    }

    // x = tanh(W_I u + bias + w s) for unit h, in one pass: false if this needs several.
    bool activate_at_once(i64 h, const Wiring<T>& W, const T* bias, bool is_first,
                          const Table<T>& below, T w, const T* s) {
        if (W.sources.columns > 1 || (is_first && codes.empty())) return false;
        interrupts.count(n);
        const T b = bias[h], u = W.values[h][0];
        const i32 source = W.sources[h][0];
        if (is_first)
            tanh_sum(n, codes.data(), source, b + u, b, w, s, x);
        else
            tanh_sum(n, b, u, below[source], w, s, x);
        return true;
    }

    // s = A x: the diagonals of the band first, some at a time, then the arcs outside it.
    void sum_neighbors(T* s) {
        interrupts.count(static_cast<i64>(outside.size()) + n_diagonals * n / WHOLE_ROWS);
        if (passes.empty()) std::fill_n(s, n, T(0));
        for (const Pass& pass : passes)
            pass.add(n, diagonals.data() + pass.first * WHOLE_ROWS, pitch, x,
                     places.data() + pass.first, s);
        for (const Arc& arc : outside)
            s[arc.row] = fused(arc.weight, x[arc.row + arc.from], s[arc.row]);
    }

    // sum_v size_v y_v over the rows of each graph, in float64.
    const double* sum_graphs(const T* y) {
        for (const Bundle& b : bundles)
            if (stride == 1)
                sums[b.first_graph] = weighted_sum(b.height, sizes.data() + b.first, y + b.first);
            else
                weighted_sums(b.height, sizes.data() + b.first, y + b.first,
                              sums.data() + b.first_graph);
        return sums.data();
    }

    // The largest slope of tanh, 1 - y^2, over the rows of each graph, with some room for rounding.
    const Row<float>& slopes(const T* y) {
        for (const Bundle& b : bundles) {
            const i64 n_vectors = stride == 1 ? b.height / LANES : b.height;
            float largest[LANES];
            largest_slopes(n_vectors, sizes.data() + b.first, y + b.first, largest);
            if (stride == 1)
                steepest[b.first_graph] = *std::max_element(largest, largest + LANES);
            else
                std::copy_n(largest, LANES, steepest.begin() + b.first_graph);
        }
        return steepest;
    }

    // Set what a row vector has in all rows of graph k.
    void fill_graph(i64 k, T value, T* y) const {
        const Bundle& b = bundle_of(k);
        for (i64 r = 0; r < b.height; r++) y[b.first + stride * r + k - b.first_graph] = value;
    }

    // Write the states of a unit, if they are requested.
    void write(const T* y, i64 h, i64 slot, const Outputs& out) const {
        if (out.states.layers == 0) return;
        for (i64 v = 0; v < n; v++)
            if (rows[v] >= 0) out.states[rows[v]][slot][h] = y[v];
    }

  private:
    struct Arc {
        u32 row;   // of the block
        i32 from;  // its source: so many rows on, of its graph (inside) or of the block (outside)
        T weight;
    };

    struct Pass {
        i64 first;  // diagonal
        AddDiagonals<T> add;
    };

    const Quotients& q;
    const Inputs& inputs;
    Interrupts interrupts;
    i64 stride = 1;  // rows from one row of a graph to the next
    std::vector<Bundle> bundles;
    Row<T> sizes;           // vertices in the class of each row
    std::vector<i64> rows;  // the place of each row in the quotients, or -1
    Row<i32> codes;         // of each row, or none
    i64 half = 0;           // half-width of the widest band
    i64 halo = 0;           // zeros on both sides of x
    i64 n_diagonals = 0;
    std::vector<Pass> passes;  // over the diagonals, each over some of them
    std::vector<i64> places;   // where each diagonal takes x from: so many rows on
    std::vector<i64> number;   // of each diagonal, or -1
    i64 pitch = 0;             // from one stripe to the next
    Row<T> diagonals;          // (stripes, n_diagonals, WHOLE_ROWS)
    i64 n_inside = 0;
    Row<Arc> inside;           // the first n_inside are the arcs in the band of their graph ...
    std::vector<Arc> outside;  // ... and these the others
    Row<T> padded;             // zeros, x, zeros
    std::vector<double> sums;  // of each graph
    Row<float> steepest;       // of each graph: the largest slope

    // d + sum_k w_k s_k without the last of C terms, in `scratch` if there are others.
    template <class Rows>
    T* with_others(T* d, const T* w, i64 C, Rows row, T* scratch) {
        interrupts.count(C * n);
        if (C > 1 && d != scratch) {
            std::copy(d, d + n, scratch);
            d = scratch;
        }
        for (i64 k = 0; k + 1 < C; k++) add_scaled(n, w[k], row(k), d);
        return d;
    }

    const Bundle& bundle_of(i64 k) const { return bundles[stride == 1 ? k : k / LANES]; }
    i64 place(i64 k, i64 r) const {
        const Bundle& b = bundle_of(k);
        return b.first + stride * r + k - b.first_graph;
    }

    // Find a place in the block for each of its graphs.
    void lay_out(Span<const i64> some) {
        i64 tallest = 0;
        for (i64 g : some) tallest = std::max(tallest, q.row_offsets[g + 1] - q.row_offsets[g]);
        stride = some.size >= FEWEST_BUNDLED && tallest <= MOST_BUNDLED ? LANES : 1;
        bundles.clear();
        n = 0;
        for (i64 k = 0; k < some.size; k += stride) {
            Bundle b{n, 0, k, std::min(stride, some.size - k)};
            for (i64 g : some.part(k, k + b.n_graphs))
                b.height = std::max(b.height, q.row_offsets[g + 1] - q.row_offsets[g]);
            if (stride == 1) b.height = rounded_up(b.height, STRANDS);
            n += stride * b.height;
            bundles.push_back(b);
        }
    }

    // Find the arcs of all graphs, and which diagonals they use: those have number 0.
    void find_arcs() {
        outside.clear();
        std::fill(number.begin(), number.end(), -1);
        i64* const numbers = number.data() + half;
        Arc* next = inside.data();
        for (i64 k = 0; k < n_graphs; k++) {
            const i64 g = graphs[k], r0 = q.row_offsets[g], n_rows = q.row_offsets[g + 1] - r0;
            const i64 band = q.bands[g];
            i64 v = place(k, 0);
            for (i64 r = 0; r < n_rows; r++, v += stride)
                for (i64 a = q.indptr[r0 + r]; a < q.indptr[r0 + r + 1]; a++) {
                    const i64 d = q.sources[a] - r;
                    const T weight = static_cast<T>(q.multiplicities[a]);
                    if (std::abs(d) <= band) {
                        numbers[d] = 0;
                        *next++ = {static_cast<u32>(v), static_cast<i32>(d), weight};
                    } else {
                        outside.push_back(
                            {static_cast<u32>(v), static_cast<i32>(d * stride), weight});
                    }
                }
        }
        n_inside = next - inside.data();
    }

    // Divide the diagonals among as few passes as possible.
    void find_passes() {
        const i64 n_passes = (n_diagonals + MOST_DIAGONALS - 1) / MOST_DIAGONALS;
        passes.clear();
        for (i64 pass = 0; pass < n_passes; pass++) {
            const i64 a = n_diagonals * pass / n_passes, b = n_diagonals * (pass + 1) / n_passes;
            passes.push_back({a, pass == 0 ? adder_of<true, T>(b - a) : adder_of<false, T>(b - a)});
        }
    }

    // Number the diagonals in use, ascending, and write the arcs into them.
    void fill_diagonals() {
        i64* const numbers = number.data() + half;
        n_diagonals = 0;
        for (i64 d = -half; d <= half; d++)
            if (numbers[d] == 0) {
                numbers[d] = n_diagonals;
                places[n_diagonals++] = stride * d;
            }
        find_passes();
        pitch = n_diagonals * WHOLE_ROWS;
        const size_t room = static_cast<size_t>(n_diagonals * n);
        if (diagonals.size() < room) diagonals.resize(room);
        std::fill_n(diagonals.begin(), room, T(0));
        T* const filled = diagonals.data();
        for (const Arc& arc : Span<const Arc>{inside.data(), n_inside})
            filled[arc.row / WHOLE_ROWS * pitch + numbers[arc.from] * WHOLE_ROWS +
                   arc.row % WHOLE_ROWS] = arc.weight;
    }
};

}  // namespace fdgnn
