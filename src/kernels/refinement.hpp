// Color refinement (1-WL) of each graph, with 64-bit hashes as colors.
//
// The next color of a vertex is a hash of its own color and of the sum of the mixed colors of its
// in-neighbors. So a round costs one addition per arc, and colors mean the same in every graph. Two
// vertices of one graph of n vertices collide with a chance below rounds n^2 / 2^65.
#pragma once

#include <numeric>

#include "graphs.hpp"
#include "hashing.hpp"
#include "pulse.hpp"

namespace fdgnn {

constexpr i64 MOST_WORK = i64(1) << 26;  // vertices and arcs of a graph times rounds: a quarter second
constexpr i64 FEW_ROUNDS = 16;           // that a graph of any size may have

struct Refined {
    std::vector<i32> classes;     // (N,) the class of each vertex, by ascending color in its graph
    std::vector<i64> n_classes;   // (n,)
    std::vector<i64> rounds;      // (n,)
    std::vector<u64> signatures;  // (n,) a hash of the colors with their counts
};

// Number the distinct colors as they appear; return how many there are. The table, of at least
// table_size entries, is all -1 before and after.
inline i32 number_colors(Span<const u64> color, i32* table, u64* distinct, i32* classes) {
    const i64 size = table_size(color.size);
    const u64 mask = static_cast<u64>(size - 1);
    i32 count = 0;
    for (i64 v = 0; v < color.size; v++) {
        u64 slot = color[v] & mask;
        while (table[slot] >= 0 && distinct[table[slot]] != color[v]) slot = (slot + 1) & mask;
        if (table[slot] < 0) {
            table[slot] = count;
            distinct[count++] = color[v];
        }
        classes[v] = table[slot];
    }
    std::fill(table, table + size, -1);
    return count;
}

// Gives the vertices of one graph after another their next colors; its memory serves all of them.
class ColorStep {
public:
    ColorStep(const Structure& s, Span<const u64> weight_bits)
        : s(s),
          weight_bits(weight_bits),
          mixed(longest(s.vertex_offsets)),
          running(FEW_ARCS * std::min(STRIP, longest(s.vertex_offsets)) + 1) {}

    // Take the step for the graph whose vertices begin at v0.
    void take(i64 v0, Span<u64> color) {
        pulse.spend(2 * color.size);
        for (i64 v = 0; v < color.size; v++) mixed[v] = mix(color[v]);
        for (i64 v = 0; v < color.size; v += STRIP) {
            const i64 last = std::min(v + STRIP, color.size);
            const i64 n_arcs = s.indptr[v0 + last] - s.indptr[v0 + v];
            pulse.spend(n_arcs);
            if (n_arcs <= FEW_ARCS * (last - v))
                at_once(s.indptr.part(v0 + v, v0 + last + 1), color.part(v, last));
            else
                one_by_one(s.indptr.part(v0 + v, v0 + last + 1), color.part(v, last));
        }
    }

private:
    static constexpr i64 FEW_ARCS = 8;  // of a vertex, on average

    const Structure& s;
    Span<const u64> weight_bits;
    std::vector<u64> mixed, running;
    Pulse pulse;

    u64 carried(i64 arc) const {
        const u64 there = mixed[s.neighbors[arc]];
        return weight_bits.empty() ? there : mix(there ^ weight_bits[arc]);
    }

    // Where vertices have few arcs, a loop over those of each would be mispredicted at its end. Sums
    // are differences of one running sum instead, exact because they wrap around.
    void at_once(Span<const i64> indptr, Span<u64> color) {
        const i64 first = indptr[0], n_arcs = indptr[color.size] - first;
        for (i64 a = 0; a < n_arcs; a++) running[a + 1] = running[a] + carried(first + a);
        for (i64 v = 0; v < color.size; v++) {
            const u64 total = running[indptr[v + 1] - first] - running[indptr[v] - first];
            color[v] = mix(color[v] ^ mix(total));
        }
    }

    void one_by_one(Span<const i64> indptr, Span<u64> color) {
        for (i64 v = 0; v < color.size; v++) {
            u64 total = 0;
            for (i64 a = indptr[v]; a < indptr[v + 1]; a++) total += carried(a);
            color[v] = mix(color[v] ^ mix(total));
        }
    }
};

// Numbers the classes of one graph after another by ascending color.
class ClassOrder {
public:
    void sort(Span<const u64> distinct, Span<i32> classes) {
        order.resize(distinct.size);
        number.resize(distinct.size);
        std::iota(order.begin(), order.end(), 0);
        std::sort(order.begin(), order.end(),
                  [&](i32 a, i32 b) { return distinct[a] < distinct[b]; });
        for (i64 c = 0; c < distinct.size; c++) number[order[c]] = static_cast<i32>(c);
        for (i32& each : classes) each = number[each];
    }

private:
    std::vector<i32> order, number;
};

// Tell whether vertices of one class have one color still; the classes then have these colors. A class
// only ever splits, so that nothing has to be numbered again if none did.
inline bool keeps_classes(Span<const u64> color, const i32* classes, i64 count, u64* distinct) {
    i64 known = 0;
    for (i64 v = 0; v < color.size; v++) {
        if (classes[v] == known) distinct[known++] = color[v];  // numbered as they appear
        if (distinct[classes[v]] != color[v]) return false;
    }
    return known == count;
}

// Hash the colors of a graph, in any order, and how long it was refined.
inline u64 signature(Span<const u64> color, i64 n_rounds) {
    u64 total = static_cast<u64>(color.size);
    for (u64 each : color) total += mix(each);
    return mix(total ^ static_cast<u64>(n_rounds));
}

// Refine each graph until no class splits, and for n_rounds at least. `colors` (N,) holds the
// first colors and gets the last; weight_bits (n_arcs,), or none.
//
// A path of n vertices takes n / 2 rounds. A graph for which that is too much work is left as it is:
// each vertex is a class of its own, and the graph is like no other.
inline Refined refine(const Structure& s, Span<const u64> weight_bits, Span<u64> colors,
                      i64 n_rounds) {
    const i64 n = s.vertex_offsets.size - 1, largest = longest(s.vertex_offsets);
    Refined found{std::vector<i32>(colors.size), std::vector<i64>(n), std::vector<i64>(n),
                  std::vector<u64>(n)};
    std::vector<u64> distinct(largest);
    std::vector<i32> table(table_size(largest), -1);
    ColorStep step(s, weight_bits);
    ClassOrder order;
    for (i64 g = 0; g < n; g++) {
        const i64 v0 = s.vertex_offsets[g], v1 = s.vertex_offsets[g + 1];
        const Span<u64> color = colors.part(v0, v1);
        const Span<const u64> fixed{color.at, color.size};
        i32* classes = found.classes.data() + v0;
        i64 count = number_colors(fixed, table.data(), distinct.data(), classes);
        i64 before = -1, t = 0;
        const i64 work = std::max<i64>(1, color.size + s.indptr[v1] - s.indptr[v0]);
        const i64 most_rounds = std::max(FEW_ROUNDS, MOST_WORK / work);
        while ((count != before || t < n_rounds) && t < most_rounds) {
            step.take(v0, color);
            t++;
            before = count;
            if (!keeps_classes(fixed, classes, count, distinct.data()))
                count = number_colors(fixed, table.data(), distinct.data(), classes);
        }
        found.rounds[g] = t;
        found.signatures[g] = signature(fixed, t);
        found.n_classes[g] = count == before ? count : color.size;
        if (count == before) {
            order.sort({distinct.data(), count}, {classes, color.size});
        } else {
            std::iota(classes, classes + color.size, 0);
            found.signatures[g] = mix(found.signatures[g] ^ mix(static_cast<u64>(g)));
        }
    }
    return found;
}

}  // namespace fdgnn
