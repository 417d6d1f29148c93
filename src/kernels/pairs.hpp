// Counts of vertex pairs by their labels and their distance, as rows of a sparse matrix.
//
// A breadth-first search from each source s visits the vertices v at a distance d of at most
// max_distance. Each visit counts the key of (label(s), label(v), d). In undirected graphs, the
// labels are unordered, so each pair is visited twice if all vertices are sources. A graph with
// more than max_sources vertices has that many sources, evenly spaced among its vertices in the
// order of their labels, and their counts are scaled up.
//
// A count m is unary-encoded: one feature for each level up to m, the square root of the step to
// this level, so that the product of two graphs' features is the smaller count. Levels are all
// integers up to EXACT, then those of four significant binary digits.
#pragma once

#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "graphs.hpp"
#include "hashing.hpp"
#include "interrupts.hpp"

namespace fdgnn {

constexpr i64 EXACT = 16;  // counts up to which each has a level of its own

// The level after this one.
inline i64 next_level(i64 level) {
    i64 step = 1;
    while (level >= EXACT * step) step *= 2;
    return level + (level >= EXACT ? step : 1);
}

struct PairRules {
    i64 max_distance, max_sources;
    bool directed;
    u64 mask;  // the number of columns, a power of two, less one
};

// Counts of keys in one graph, in an open hash table that grows.
class KeyCounts {
  public:
    KeyCounts() { clear(); }

    // Remove all keys, and start with a small table, because the next graph may be small.
    void clear() {
        keys.resize(64);
        counts.assign(64, 0);
        n_used = 0;
    }

    void add(u64 key, i64 times) {
        const size_t slot = place(key);
        if (counts[slot] == 0) {
            keys[slot] = key;
            if (2 * ++n_used > counts.size()) {
                counts[slot] += times;
                grow();
                return;
            }
        }
        counts[slot] += times;
    }

    // Where a key is, or would be.
    size_t place(u64 key) const {
        size_t slot = key & (counts.size() - 1);
        while (counts[slot] != 0 && keys[slot] != key) slot = (slot + 1) & (counts.size() - 1);
        return slot;
    }

    std::vector<u64> keys;
    std::vector<i64> counts;  // 0: the slot is free

  private:
    void grow() {
        std::vector<u64> old_keys(2 * keys.size());
        std::vector<i64> old_counts(2 * counts.size(), 0);
        old_keys.swap(keys);
        old_counts.swap(counts);
        for (size_t i = 0; i < old_counts.size(); i++)
            if (old_counts[i] != 0) {
                const size_t slot = place(old_keys[i]);
                keys[slot] = old_keys[i];
                counts[slot] = old_counts[i];
            }
    }

    size_t n_used = 0;
};

inline u64 pair_key(u64 source, u64 vertex, i64 distance, bool directed) {
    if (!directed && source > vertex) std::swap(source, vertex);
    return mix(mix(source ^ mix(static_cast<u64>(distance))) ^ mix(vertex));
}

// Breadth-first searches in one graph.
class PairSearch {
  public:
    // Call visit(s, v, distance) for each source and all vertices near to it, itself first.
    template <class Visit>
    void each(const Structure& s, i64 v0, i64 n, const u64* labels, const PairRules& rules,
              Visit visit) {
        mark.assign(n, -1);
        queue.resize(n);
        choose_sources(n, labels, rules.max_sources);
        for (i64 source : sources) {
            i64 first = 0, last = 1, end = 1;  // of this distance: queue[first] up to queue[last]
            queue[0] = static_cast<i32>(source);
            mark[source] = source;
            visit(source, source, 0);
            for (i64 d = 1; d <= rules.max_distance && first < last && end < n;
                 d++, first = last, last = end)
                for (i64 i = first; i < last && end < n; i++) {
                    const i64 u = v0 + queue[i];
                    interrupts.count(s.indptr[u + 1] - s.indptr[u] + 1);
                    for (i64 a = s.indptr[u]; a < s.indptr[u + 1]; a++) {
                        const i32 v = s.neighbors[a];
                        if (mark[v] == source) continue;
                        mark[v] = source;
                        queue[end++] = v;
                        visit(source, v, d);
                    }
                }
        }
    }

    std::vector<i64> sources;  // of the last graph

  private:
    void choose_sources(i64 n, const u64* labels, i64 most) {
        sources.resize(n);
        std::iota(sources.begin(), sources.end(), 0);
        if (n <= most) return;
        std::stable_sort(sources.begin(), sources.end(),
                         [&](i64 a, i64 b) { return labels[a] < labels[b]; });
        for (i64 i = 0; i < most; i++) sources[i] = sources[i * n / most];
        sources.resize(most);
    }

    std::vector<i64> mark;
    std::vector<i32> queue;
    Interrupts interrupts;
};

// The number of pairs with a key, from its visits from n_sources of n vertices.
inline i64 pairs_of(i64 visits, i64 n, i64 n_sources) {
    const double scaled = static_cast<double>(visits) * static_cast<double>(n) /
                          (2.0 * static_cast<double>(n_sources));
    return std::max(i64(1), static_cast<i64>(scaled + 0.5));
}

// A visit of a vertex by itself counts twice, and so does one in a directed graph: each is a pair.
inline i64 times(i64 distance, const PairRules& rules) {
    return distance == 0 || rules.directed ? 2 : 1;
}

// Call use(column, value) for each feature of a key with n_pairs pairs.
template <class Use>
void features_of_key(u64 key, i64 n_pairs, u64 mask, Use use) {
    i64 before = 0;
    for (i64 level = 1, i = 0; level <= n_pairs; before = level, level = next_level(level), i++)
        use(static_cast<i32>(mix(key + static_cast<u64>(i)) & mask),
            std::sqrt(static_cast<double>(level - before)));
}

struct PairRows {
    std::vector<i32> indices;
    std::vector<double> data;
    std::vector<i64> lengths;
};

// Count the pairs of the graphs g0 to g1 by each row of labels (C, n_vertices); columns ascend in a row.
inline PairRows count_pairs(i64 g0, i64 g1, const Structure& s, Grid<const u64> labels,
                            const PairRules& rules) {
    PairRows found;
    PairSearch search;
    KeyCounts counts;
    std::vector<std::pair<i32, double>> row;
    for (i64 g = g0; g < g1; g++) {
        const i64 v0 = s.vertex_offsets[g], n = s.vertex_offsets[g + 1] - v0;
        row.clear();
        for (i64 c = 0; c < labels.rows; c++) {
            const u64* label = labels[c] + v0;
            counts.clear();
            search.each(s, v0, n, label, rules, [&](i64 source, i64 v, i64 d) {
                counts.add(pair_key(label[source], label[v], d, rules.directed), times(d, rules));
            });
            const i64 n_sources = static_cast<i64>(search.sources.size());
            for (size_t i = 0; i < counts.counts.size(); i++)
                if (counts.counts[i] != 0)
                    features_of_key(
                        counts.keys[i], pairs_of(counts.counts[i], n, n_sources), rules.mask,
                        [&](i32 column, double value) { row.emplace_back(column, value); });
        }
        std::sort(row.begin(),
                  row.end());  // equal columns by their values, so that sums are the same
        const size_t start = found.indices.size();
        for (const auto& [column, value] : row)
            if (found.indices.size() > start && found.indices.back() == column)
                found.data.back() += value;
            else {
                found.indices.push_back(column);
                found.data.push_back(value);
            }
        found.lengths.push_back(static_cast<i64>(found.indices.size() - start));
    }
    return found;
}

// Add to shares (n,) the product of one graph's features with a direction (n_columns,), divided
// equally among the visits of a key, and equally between the two vertices of a visit.
inline void share_pairs(i64 g, const Structure& s, Grid<const u64> labels, const PairRules& rules,
                        Span<const double> direction, Span<double> shares) {
    PairSearch search;
    KeyCounts counts;
    const i64 v0 = s.vertex_offsets[g], n = s.vertex_offsets[g + 1] - v0;
    for (i64 c = 0; c < labels.rows; c++) {
        const u64* label = labels[c] + v0;
        counts.clear();
        search.each(s, v0, n, label, rules, [&](i64 source, i64 v, i64 d) {
            counts.add(pair_key(label[source], label[v], d, rules.directed), times(d, rules));
        });
        const i64 n_sources = static_cast<i64>(search.sources.size());
        std::vector<double> each(counts.counts.size(), 0.0);  // of one count, for each key
        for (size_t i = 0; i < each.size(); i++)
            if (counts.counts[i] != 0) {
                features_of_key(
                    counts.keys[i], pairs_of(counts.counts[i], n, n_sources), rules.mask,
                    [&](i32 column, double value) { each[i] += value * direction[column]; });
                each[i] /= static_cast<double>(counts.counts[i]);
            }
        search.each(s, v0, n, label, rules, [&](i64 source, i64 v, i64 d) {
            const u64 key = pair_key(label[source], label[v], d, rules.directed);
            const double half =
                0.5 * each[counts.place(key)] * static_cast<double>(times(d, rules));
            shares[source] += half;
            shares[v] += half;
        });
    }
}

}  // namespace fdgnn
