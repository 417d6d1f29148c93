// Arcs as users list them, sorted by target, then by source, without duplicates.
#pragma once

#include "graphs.hpp"
#include "interrupts.hpp"

namespace fdgnn {

struct MergedArcs {
    std::vector<i64> indptr;     // (n_vertices + 1,)
    std::vector<i32> neighbors;  // (n_arcs,) numbered inside of their graph
    i64 n_merged = 0;            // listed arcs that were listed before
    // If arcs have data: all arcs as sorted, a mirrored arc as the one that it mirrors.
    std::vector<i64> order;
    std::vector<std::uint8_t> first;  // whether the arc is another one than the one before
};

// An arc into a vertex: its source, and in the last bit whether it is mirrored or listed. A vertex is
// less than 2^31, so that 32 bits are enough.
struct Arriving {
    u32 key;

    Arriving() = default;
    Arriving(i64 source, bool mirrored, i64) : key(2 * static_cast<u32>(source) + mirrored) {}
    i64 source() const { return key / 2; }
    bool mirrored() const { return key % 2; }
    bool operator<(const Arriving& b) const { return key < b.key; }
};

// The same, with its place in the list.
struct Carrying : Arriving {
    i64 place;

    Carrying() = default;
    Carrying(i64 source, bool mirrored, i64 place)
        : Arriving(source, mirrored, place), place(place) {}
    bool operator<(const Carrying& b) const { return key != b.key ? key < b.key : place < b.place; }
};

inline void keep_place(MergedArcs&, const Arriving&, bool) {}
inline void keep_place(MergedArcs& found, const Carrying& arc, bool is_new) {
    found.order.push_back(arc.place);
    found.first.push_back(is_new);
}

// Sort and merge arcs (2, n_listed), sources before targets, of the union of graphs. In undirected
// graphs, each arc is mirrored.
template <class Arc>
MergedArcs merge_arcs(Grid<const i64> arcs, Span<const i64> vertex_offsets, bool directed) {
    const i64 n_listed = arcs.columns, n = vertex_offsets[vertex_offsets.size - 1];
    const i64 *sources = arcs[0], *targets = arcs[1];
    std::vector<i64> next(n + 2, 0);  // where the next arc into v goes, at v + 1
    Interrupts interrupts;
    interrupts.each(n_listed, [&](i64 a) {
        next[targets[a] + 2]++;
        if (!directed) next[sources[a] + 2]++;
    });
    for (i64 v = 0; v < n; v++) next[v + 2] += next[v + 1];
    std::vector<Arc> all(next[n + 1]);
    interrupts.each(n_listed, [&](i64 a) {
        all[next[targets[a] + 1]++] = Arc(sources[a], false, a);
        if (!directed) all[next[sources[a] + 1]++] = Arc(targets[a], true, a);
    });
    MergedArcs found;
    found.indptr.reserve(n + 1);
    found.indptr.push_back(0);
    for (i64 g = 0; g + 1 < vertex_offsets.size; g++)
        for (i64 v = vertex_offsets[g]; v < vertex_offsets[g + 1]; v++) {
            interrupts.count(1 + next[v + 1] - next[v]);
            std::sort(all.begin() + next[v], all.begin() + next[v + 1]);
            i64 before = -1;
            bool listed = false;
            for (i64 i = next[v]; i < next[v + 1]; i++) {
                const bool is_new = all[i].source() != before;
                before = all[i].source();
                if (is_new) {
                    found.neighbors.push_back(static_cast<i32>(before - vertex_offsets[g]));
                    listed = false;
                }
                if (!all[i].mirrored()) {
                    found.n_merged += listed;
                    listed = true;
                }
                keep_place(found, all[i], is_new);
            }
            found.indptr.push_back(static_cast<i64>(found.neighbors.size()));
        }
    found.neighbors.shrink_to_fit();
    return found;
}

}  // namespace fdgnn
