// Weisfeiler-Lehman labels of every iteration, and their counts in a graph as rows of a sparse matrix.
//
// An iteration is the reservoir's layer in exact arithmetic: with 64-bit integers instead of states, and
// a fixed hash function `mix` instead of weights and tanh:
//
//     total(v)  = sum over arcs (u, v) of mix(mix(label(u)) ^ arc)
//     label'(v) = mix(label(v) ^ mix(total(v)))
//
// Sums do not depend on the order of neighbors, so labels do not depend on the numbering of vertices.
// In directed graphs, the arcs that leave v are summed separately.
#pragma once

#include "graphs.hpp"
#include "hashing.hpp"
#include "interrupts.hpp"

namespace fdgnn {

constexpr u64 OUTWARD =
    0xD1B54A32D192ED03u;         // distinguishes arcs that leave a vertex from arcs that enter it
constexpr i64 SHORT_ROW = 64;    // entries up to which sorting by comparison is faster
constexpr i64 MUCH_LONGER = 32;  // times as long: then searching a list is faster

// Hashed labels or weights of the arcs of a batch, and whether arcs are directed.
struct Arcs {
    Span<const u64> bits;  // (n_arcs,), or none
    bool directed;
};

// Compute the next label of each vertex of one graph; `outward` is zero before and after.
inline void next_labels(const Structure& s, const Arcs& arcs, i64 v0, i64 n, const u64* before,
                        u64* after, u64* mixed, u64* outward, Interrupts& interrupts) {
    const bool carrying = !arcs.bits.empty();
    interrupts.count(n);
    for (i64 v = 0; v < n; v++) mixed[v] = mix(before[v]);
    for (i64 v = 0; v < n; v++) {
        u64 total = 0;
        if (v % STRIP == 0) interrupts.count(arcs_of_strip(s, v0, n, v));
        for (i64 a = s.indptr[v0 + v]; a < s.indptr[v0 + v + 1]; a++) {
            const i64 u = s.neighbors[a];
            const u64 bits = carrying ? arcs.bits[a] : 0;
            total += carrying ? mix(mixed[u] ^ bits) : mixed[u];
            if (arcs.directed) outward[u] += mix(mixed[v] ^ bits ^ OUTWARD);
        }
        after[v] = mix(before[v] ^ mix(total));
    }
    if (!arcs.directed) return;
    for (i64 v = 0; v < n; v++) {
        after[v] = mix(after[v] ^ outward[v]);
        outward[v] = 0;
    }
}

// Label the graphs g0 to g1, channel by channel. `labels` (T, n), with T the sum of n_iterations + 1 and
// n the vertices of these graphs: a channel has its first labels, which are given, and then one row
// for each iteration.
inline void wl_labels(i64 g0, i64 g1, const Structure& s, const Arcs& arcs,
                      Span<const i64> n_iterations, Grid<u64> labels) {
    const i64 base = s.vertex_offsets[g0];
    const i64 largest = longest(s.vertex_offsets.part(g0, g1 + 1));
    std::vector<u64> mixed(largest), outward(largest, 0);
    Interrupts interrupts;
    for (i64 g = g0; g < g1; g++) {
        const i64 v0 = s.vertex_offsets[g], n = s.vertex_offsets[g + 1] - v0;
        i64 row = 0;
        for (i64 iterations : n_iterations) {
            for (i64 t = 0; t < iterations; t++, row++)
                next_labels(s, arcs, v0, n, labels[row] + v0 - base, labels[row + 1] + v0 - base,
                            mixed.data(), outward.data(), interrupts);
            row++;
        }
    }
}

// Count, for each vertex of one graph, the vertices before it that have its label. `table` has at
// least table_size entries; it is all -1 before and after.
inline void occurrences(Span<const u64> label, i32* table, i32* number) {
    const i64 size = table_size(label.size);
    const u64 mask = static_cast<u64>(size - 1);
    for (i64 v = 0; v < label.size; v++) {
        u64 slot = label[v] & mask;
        while (table[slot] >= 0 && label[table[slot]] != label[v]) slot = (slot + 1) & mask;
        number[v] = table[slot] < 0 ? 0 : number[table[slot]] + 1;
        table[slot] = static_cast<i32>(v);  // the last one seen knows the count
    }
    std::fill(table, table + size, -1);
}

// Fill numbers (T, n) with `occurrences`, for labels (T, n) of the graphs g0 to g1.
inline void number_occurrences(i64 g0, i64 g1, Span<const i64> vertex_offsets,
                               Grid<const u64> labels, Grid<i32> numbers) {
    const i64 base = vertex_offsets[g0];
    std::vector<i32> table(table_size(longest(vertex_offsets.part(g0, g1 + 1))), -1);
    Interrupts interrupts;
    for (i64 g = g0; g < g1; g++) {
        const i64 a = vertex_offsets[g] - base, n = vertex_offsets[g + 1] - vertex_offsets[g];
        for (i64 t = 0; t < labels.rows; t++) {
            interrupts.count(n);
            occurrences({labels[t] + a, n}, table.data(), numbers[t] + a);
        }
    }
}

// Radix sort by ten bits at a time, the lowest first: in linear time.
inline void sort_by_digits(Span<i32> values, i32* spare, u64 largest) {
    std::vector<i64> starts(1025);
    for (int shift = 0; (largest >> shift) > 0; shift += 10) {
        std::fill(starts.begin(), starts.end(), 0);
        for (i32 value : values) starts[((value >> shift) & 1023) + 1]++;
        for (int i = 0; i < 1024; i++) starts[i + 1] += starts[i];
        for (i32 value : values) spare[starts[(value >> shift) & 1023]++] = value;
        std::copy(spare, spare + values.size, values.at);
    }
}

// Add up entries of one column in a sorted row of this length; return how many are left.
inline i64 merge_columns(i32* indices, double* data, i64 n, bool present) {
    i64 last = -1;
    for (i64 i = 0; i < n; i++) {
        if (last >= 0 && indices[last] == indices[i]) {
            if (!present) data[last] += 1.0;
        } else {
            indices[++last] = indices[i];
            data[last] = 1.0;
        }
    }
    return last + 1;
}

// Rows of a sparse matrix that are being written.
struct PackedRows {
    Span<i32> indices;
    Span<double> data;
    Span<i64> lengths;  // (n_graphs,)
};

// Write the features of the graphs g0 to g1 as rows of a sparse matrix, columns ascending.
//
// A vertex gives one feature for each row of labels (T, n): the label, or, where there are numbers
// (T, n), "there are more than this number of vertices of this label". The row of g0 begins at
// T * vertex_offsets[g0], each other one where the one before ends. With `present` all entries are 1.
inline void pack_rows(i64 g0, i64 g1, Span<const i64> vertex_offsets, Grid<const u64> labels,
                      Grid<const i32> numbers, u64 mask, bool present, const PackedRows& rows) {
    const i64 base = vertex_offsets[g0], T = labels.rows;
    std::vector<i32> spare(T * longest(vertex_offsets.part(g0, g1 + 1)));
    i64 start = T * base;
    Interrupts interrupts;
    for (i64 g = g0; g < g1; g++) {
        interrupts.count(T * (vertex_offsets[g + 1] - vertex_offsets[g]));
        i32* row = rows.indices.at + start;
        i64 n = 0;
        for (i64 t = 0; t < T; t++)
            for (i64 v = vertex_offsets[g] - base; v < vertex_offsets[g + 1] - base; v++) {
                const u64 number = numbers.empty() ? 0 : static_cast<u64>(numbers[t][v]);
                row[n++] = static_cast<i32>(mix(labels[t][v] + number) & mask);
            }
        if (n > SHORT_ROW)
            sort_by_digits({row, n}, spare.data(), mask);
        else
            std::sort(row, row + n);
        rows.lengths[g] = merge_columns(row, rows.data.at + start, n, present);
        start += rows.lengths[g];
    }
}

// Count the triangles at each vertex of the graphs g0 to g1; loops are left out. Neighbor lists
// ascend. For a directed graph the arcs that enter a vertex are its neighbors.
//
// The list of a neighbor is read in full, or, if it is much longer than the vertex's own list,
// searched for the entries of that list: each leaf of a star would otherwise read all leaves.
inline void count_triangles(i64 g0, i64 g1, Span<const i64> vertex_offsets, Span<const i64> indptr,
                            Span<const i32> neighbors, Span<i64> counts) {
    std::vector<i64> marked(longest(vertex_offsets.part(g0, g1 + 1)), -1);
    Interrupts interrupts;
    for (i64 g = g0; g < g1; g++) {
        const i64 v0 = vertex_offsets[g], n = vertex_offsets[g + 1] - v0;
        for (i64 v = 0; v < n; v++) {
            const Span<const i32> row = neighbors.part(indptr[v0 + v], indptr[v0 + v + 1]);
            for (i32 u : row) marked[u] = v0 + v;
            marked[v] = -1;
            i64 found = 0;
            for (i32 u : row) {
                if (u == v) continue;
                const Span<const i32> there = neighbors.part(indptr[v0 + u], indptr[v0 + u + 1]);
                if (there.size > MUCH_LONGER * row.size) {
                    interrupts.count(MUCH_LONGER * row.size);
                    for (i32 w : row)
                        found +=
                            w != u && w != v && std::binary_search(there.begin(), there.end(), w);
                } else {
                    interrupts.count(there.size);
                    for (i32 w : there) found += marked[w] == v0 + v && w != u;
                }
            }
            counts[v0 + v] = found / 2;
        }
    }
}

}  // namespace fdgnn
