// Quotient graphs: one row per class of equal WL labels, with neighbors close together.
#pragma once

#include <cmath>
#include <numeric>

#include "refinement.hpp"

namespace fdgnn {

constexpr double DIAGONAL_LANES = 16.0;  // a diagonal takes about one cycle for so many rows ...
constexpr double OUTSIDE_ARC = 1.2;      // ... and an arc outside the band about so many cycles
// The states of a unit take 2 kB, the sums of a layer of 500 stay in cache. A bundle of tall graphs may
// have more rows, up to LANES times MOST_BUNDLED, and is a block of its own.
constexpr i64 ROWS_PER_BLOCK = 512;

struct BuiltQuotients {
    std::vector<i64> quotient_of, graphs;
    std::vector<i64> row_of_vertex, row_offsets, representatives;
    std::vector<double> sizes;
    std::vector<i64> indptr;
    std::vector<i32> sources;
    std::vector<double> multiplicities;
    std::vector<i64> bands;
    std::vector<i64> block_offsets, blocks;
};

inline BoundQuotients views_of(const BuiltQuotients& q) {
    return {{span(q.row_offsets), span(q.sizes), span(q.indptr), span(q.sources),
             span(q.multiplicities), span(q.bands)},
            span(q.quotient_of),
            span(q.graphs),
            span(q.row_of_vertex),
            span(q.representatives),
            span(q.block_offsets),
            span(q.blocks)};
}

// One graph with its classes: what the functions below share.
struct ColoredGraph {
    const Structure& s;
    Span<const i32> classes;  // of all vertices of the batch
    i64 v0, v1;
    i64 n_classes;

    i64 class_of(i64 arc) const { return classes[v0 + s.neighbors[arc]]; }
};

// Sort a list that is usually short.
template <class T>
void sort_short(T* first, T* last) {
    if (last - first > 16) return std::sort(first, last);
    for (T* next = first + 1; next < last; next++) {
        const T value = *next;
        T* at = next;
        for (; at > first && value < at[-1]; at--) *at = at[-1];
        *at = value;
    }
}

// Orders the classes of one graph after another; all graphs share its memory.
class RowOrder {
  public:
    // Fill the rows of a graph, from r0 on, in the last three arguments.
    void find(const ColoredGraph& g, i64 r0, std::vector<i64>& places,
              std::vector<i64>& representatives, std::vector<double>& sizes,
              Interrupts& interrupts) {
        first.resize(g.n_classes);
        size.assign(g.n_classes, 0.0);
        for (i64 v = g.v1 - 1; v >= g.v0; v--) {
            size[g.classes[v]] += 1.0;
            first[g.classes[v]] = v;
        }
        sort_by_degree(g);
        breadth_first(g, interrupts);
        for (i64 i = 0; i < g.n_classes; i++) {
            places[r0 + order[i]] = i;
            representatives[r0 + i] = first[order[i]];
            sizes[r0 + i] = size[order[i]];
        }
    }

  private:
    std::vector<i64> first, by_degree, rank, order, starts;
    std::vector<double> size;
    std::vector<char> queued;

    // By degree, then by number: by_degree has the classes, rank the place of each.
    void sort_by_degree(const ColoredGraph& g) {
        const auto degree = [&](i64 c) { return g.s.indptr[first[c] + 1] - g.s.indptr[first[c]]; };
        i64 largest = 0;
        for (i64 c = 0; c < g.n_classes; c++) largest = std::max(largest, degree(c));
        starts.assign(largest + 2, 0);
        for (i64 c = 0; c < g.n_classes; c++) starts[degree(c) + 1]++;
        std::partial_sum(starts.begin(), starts.end(), starts.begin());
        by_degree.resize(g.n_classes);
        rank.resize(g.n_classes);
        for (i64 c = 0; c < g.n_classes; c++) {
            rank[c] = starts[degree(c)]++;
            by_degree[rank[c]] = c;
        }
    }

    // Cuthill-McKee order: by breadth, then by degree, then by number.
    void breadth_first(const ColoredGraph& g, Interrupts& interrupts) {
        order.resize(g.n_classes);
        queued.assign(g.n_classes, 0);
        i64 tail = 0;
        for (i64 root : by_degree) {
            if (queued[root]) continue;
            i64 head = tail;
            order[tail++] = root;
            queued[root] = 1;
            while (head < tail) {
                const i64 v = first[order[head++]], start = tail;
                interrupts.count(1 + g.s.indptr[v + 1] - g.s.indptr[v]);
                for (i64 a = g.s.indptr[v]; a < g.s.indptr[v + 1]; a++) {
                    const i64 c = g.class_of(a);
                    if (queued[c]) continue;
                    queued[c] = 1;
                    order[tail++] = rank[c];
                }
                sort_short(order.data() + start, order.data() + tail);
                for (i64 i = start; i < tail; i++) order[i] = by_degree[order[i]];
            }
        }
    }
};

// The half-width of the band with the least cost of diagonals and arcs outside it. `at_distance` is
// scratch space.
inline i64 best_band(i64 m, const i64* indptr, const std::vector<i32>& sources,
                     std::vector<i64>& at_distance) {
    at_distance.assign(m, 0);
    for (i64 i = 0; i < m; i++)
        for (i64 a = indptr[i]; a < indptr[i + 1]; a++) at_distance[std::abs(i - sources[a])]++;
    i64 outside = indptr[m] - indptr[0], best = -1, n_diagonals = 0;
    double best_cost = OUTSIDE_ARC * static_cast<double>(outside);
    for (i64 d = 0; d < m; d++) {
        if (at_distance[d] == 0) continue;  // it would cost the same
        outside -= at_distance[d];
        n_diagonals += d > 0 ? 2 : 1;
        const double cost = static_cast<double>(n_diagonals * m) / DIAGONAL_LANES +
                            OUTSIDE_ARC * static_cast<double>(outside);
        if (cost < best_cost) {
            best = d;
            best_cost = cost;
        }
    }
    return best;
}

// Fill blocks with quotients of similar bandwidth and size, up to the rows that a block should
// have. Small ones come in whole bundles, in which each takes as many rows as the tallest.
inline void pack_blocks(BuiltQuotients& q) {
    const i64 n = static_cast<i64>(q.bands.size());
    const auto n_rows = [&](i64 k) { return q.row_offsets[k + 1] - q.row_offsets[k]; };
    q.blocks.resize(n);
    std::iota(q.blocks.begin(), q.blocks.end(), 0);
    std::stable_sort(q.blocks.begin(), q.blocks.end(), [&](i64 a, i64 b) {
        if (q.bands[a] != q.bands[b]) return q.bands[a] < q.bands[b];
        // Rows ascend and descend in turn, so neighbors of different bandwidth have similar sizes.
        return q.bands[a] % 2 == 0 ? n_rows(a) < n_rows(b) : n_rows(a) > n_rows(b);
    });
    q.block_offsets.assign(1, 0);
    i64 filled = 0, next = 0;
    for (i64 k = 0; k < n; k = next) {
        i64 tallest = 0;
        for (next = k; next < std::min(n, k + LANES); next++)
            tallest = std::max(tallest, n_rows(q.blocks[next]));
        if (tallest > MOST_BUNDLED) next = k + 1;
        const i64 rows = next == k + 1 ? n_rows(q.blocks[k]) : LANES * tallest;
        if (filled > 0 && filled + rows > ROWS_PER_BLOCK) {
            q.block_offsets.push_back(k);
            filled = 0;
        }
        filled += rows;
    }
    q.block_offsets.push_back(n);
}

// Find the first graph of each signature, ascending, and the number of each graph's own.
inline void find_distinct(Span<const u64> signatures, BuiltQuotients& q) {
    const i64 n = signatures.size;
    std::vector<i32> numbers(n);
    Classes(n).find(signatures, numbers.data());
    q.quotient_of.assign(numbers.begin(), numbers.end());
    for (i64 g = 0; g < n; g++)
        if (numbers[g] == static_cast<i64>(q.graphs.size())) q.graphs.push_back(g);
}

// Build the quotients of graphs; those with one signature have one quotient.
//
// Row r stands for the class of vertex representatives[r]. The multiplicity of an arc is the summed
// weight of all arcs from the source class into one vertex. Rows are in breadth-first order from a
// vertex of low degree (Cuthill-McKee), and most arcs then lie within bands[k] of the diagonal.
inline BuiltQuotients build_quotients(const Structure& s, Span<const i32> classes,
                                      Span<const i64> n_classes, Span<const u64> signatures) {
    BuiltQuotients q;
    find_distinct(signatures, q);
    const i64 n = static_cast<i64>(q.graphs.size());
    q.row_offsets.assign(n + 1, 0);
    i64 largest = 0;
    for (i64 k = 0; k < n; k++) {
        q.row_offsets[k + 1] = q.row_offsets[k] + n_classes[q.graphs[k]];
        largest = std::max(largest, n_classes[q.graphs[k]]);
    }
    const i64 n_rows = q.row_offsets[n];
    std::vector<i64> places(n_rows);  // the row of each class, counted in its quotient
    q.representatives.resize(n_rows);
    q.sizes.resize(n_rows);
    q.indptr.resize(n_rows + 1);
    q.indptr[0] = 0;
    q.sources.resize(s.neighbors.size);
    q.multiplicities.resize(s.neighbors.size);
    q.bands.resize(n);
    std::vector<double> totals(largest);
    std::vector<i64> stamps(largest, -1), at_distance;
    RowOrder rows;
    Interrupts interrupts;
    for (i64 k = 0; k < n; k++) {
        const i64 g = q.graphs[k], r0 = q.row_offsets[k], r1 = q.row_offsets[k + 1];
        const ColoredGraph graph{s, classes, s.vertex_offsets[g], s.vertex_offsets[g + 1],
                                 n_classes[g]};
        interrupts.count(graph.v1 - graph.v0);
        rows.find(graph, r0, places, q.representatives, q.sizes, interrupts);
        for (i64 r = r0; r < r1; r++) {  // the arcs into a vertex, merged by their source's class
            const i64 v = q.representatives[r], start = q.indptr[r];
            i64 end = start;
            interrupts.count(1 + s.indptr[v + 1] - s.indptr[v]);
            for (i64 a = s.indptr[v]; a < s.indptr[v + 1]; a++) {
                const i64 j = places[r0 + graph.class_of(a)];
                if (stamps[j] != v) {
                    stamps[j] = v;
                    totals[j] = 0.0;
                    q.sources[end++] = static_cast<i32>(j);
                }
                totals[j] += s.weights.empty() ? 1.0 : s.weights[a];
            }
            sort_short(q.sources.data() + start, q.sources.data() + end);
            for (i64 a = start; a < end; a++) q.multiplicities[a] = totals[q.sources[a]];
            q.indptr[r + 1] = end;
        }
        q.bands[k] = best_band(r1 - r0, q.indptr.data() + r0, q.sources, at_distance);
    }
    q.sources.resize(q.indptr[n_rows]);
    q.multiplicities.resize(q.indptr[n_rows]);
    q.sources.shrink_to_fit();
    q.multiplicities.shrink_to_fit();
    q.row_of_vertex.resize(classes.size);
    for (i64 g = 0; g < signatures.size; g++) {
        const i64 r0 = q.row_offsets[q.quotient_of[g]];
        for (i64 v = s.vertex_offsets[g]; v < s.vertex_offsets[g + 1]; v++)
            q.row_of_vertex[v] = r0 + places[r0 + classes[v]];
    }
    pack_blocks(q);
    return q;
}

}  // namespace fdgnn
