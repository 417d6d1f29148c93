// Color refinement (1-WL) of each graph, with 64-bit hashes as WL labels (`colors`).
//
// The next label of a vertex is a hash of its own label and of the sum of the mixed labels of its
// in-neighbors: one addition per arc and iteration (`round`), and labels mean the same in every
// graph. Two labels of a graph of n vertices collide with a probability below rounds n^2 / 2^65.
#pragma once

#include <numeric>

#include "graphs.hpp"
#include "hashing.hpp"
#include "interrupts.hpp"

namespace fdgnn {

constexpr i64 MOST_WORK =
    i64(1) << 26;               // vertices and arcs of a graph times iterations: a quarter second
constexpr i64 FEW_ROUNDS = 16;  // that a graph of any size may have

struct Refined {
    std::vector<i32> classes;     // (N,) the class of each vertex, by ascending label in its graph
    std::vector<i64> n_classes;   // (n,)
    std::vector<i64> rounds;      // (n,)
    std::vector<u64> signatures;  // (n,) a hash of the labels with their counts
};

// Numbers the distinct labels of one list after another, in the memory for the longest list.
class Classes {
  public:
    explicit Classes(i64 longest)
        : table(table_size(longest), -1), distinct(longest), leaders(longest), slots(longest) {}

    i64 count = 0;

    // Number the labels in order of appearance.
    void find(Span<const u64> color, i32* classes) {
        begin(color.size);
        count = 0;
        for (i64 v = 0; v < color.size; v++) classes[v] = number_of(color[v], v);
        clear(0);
    }

    // Take the next labels of the same vertices. Classes only split: the few vertices that differ
    // from the first of their class form new classes.
    void split(Span<const u64> color, i32* classes) {
        const i64 before = count;
        for (i64 c = 0; c < before; c++) distinct[c] = color[leaders[c]];
        for (i64 v = 0; v < color.size; v++)
            if (color[v] != distinct[classes[v]]) classes[v] = number_of(color[v], v);
        clear(before);
    }

    // Number the classes by ascending label instead.
    void sort(Span<i32> classes) {
        numbers.resize(count);
        if (count > FEW_CLASSES) {
            order.resize(count);
            std::iota(order.begin(), order.end(), 0);
            std::sort(order.begin(), order.end(),
                      [&](i32 a, i32 b) { return distinct[a] < distinct[b]; });
            for (i64 c = 0; c < count; c++) numbers[order[c]] = static_cast<i32>(c);
        } else {  // without a branch, which is faster than sorting
            for (i64 c = 0; c < count; c++) {
                i32 smaller = 0;
                for (i64 other = 0; other < count; other++)
                    smaller += distinct[other] < distinct[c];
                numbers[c] = smaller;
            }
        }
        for (i32& each : classes) each = numbers[each];
    }

  private:
    static constexpr i64 FEW_CLASSES = 48;
    u64 mask = 0;
    std::vector<i32> table;     // of class numbers, all -1 between calls
    std::vector<u64> distinct;  // the label of each class
    std::vector<i64> leaders;   // its first vertex
    std::vector<u64> slots;     // its place in the table
    std::vector<i32> order, numbers;

    void begin(i64 n) { mask = static_cast<u64>(table_size(n) - 1); }

    i32 number_of(u64 color, i64 v) {
        u64 slot = color & mask;
        while (table[slot] >= 0 && distinct[table[slot]] != color) slot = (slot + 1) & mask;
        if (table[slot] < 0) {
            table[slot] = static_cast<i32>(count);
            distinct[count] = color;
            leaders[count] = v;
            slots[count++] = slot;
        }
        return table[slot];
    }

    // Empty the table of the classes from `first` on.
    void clear(i64 first) {
        for (i64 c = first; c < count; c++) table[slots[c]] = -1;
    }
};

// Computes the next labels of the vertices of one graph after another; all graphs share its memory.
class LabelStep {
  public:
    LabelStep(const Structure& s, Span<const u64> weight_bits)
        : s(s),
          weight_bits(weight_bits),
          mixed(longest(s.vertex_offsets)),
          running(FEW_ARCS * std::min(STRIP, longest(s.vertex_offsets)) + 1) {}

    // Take the step for the graph whose vertices begin at v0.
    void take(i64 v0, Span<u64> color) {
        interrupts.count(2 * color.size);
        for (i64 v = 0; v < color.size; v++) mixed[v] = mix(color[v]);
        for (i64 v = 0; v < color.size; v += STRIP) {
            const i64 last = std::min(v + STRIP, color.size);
            const i64 n_arcs = s.indptr[v0 + last] - s.indptr[v0 + v];
            interrupts.count(n_arcs);
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
    Interrupts interrupts;

    u64 carried(i64 arc) const {
        const u64 there = mixed[s.neighbors[arc]];
        return weight_bits.empty() ? there : mix(there ^ weight_bits[arc]);
    }

    // If vertices have few arcs, the end of a loop over the arcs of each would be mispredicted. Sums
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

// Hash the labels of a graph, in any order, and the number of iterations.
inline u64 signature(Span<const u64> color, i64 n_rounds) {
    u64 total = static_cast<u64>(color.size);
    for (u64 each : color) total += mix(each);
    return mix(total ^ static_cast<u64>(n_rounds));
}

// Refine each graph until no class splits, for at least n_rounds iterations. `colors` (N,) has the
// first labels and receives the last; weight_bits (n_arcs,), or none.
//
// A path of n vertices takes n / 2 iterations. A graph for which this is too much work is not
// refined: each vertex is a class of its own, and no other graph has its signature.
inline Refined refine(const Structure& s, Span<const u64> weight_bits, Span<u64> colors,
                      i64 n_rounds) {
    const i64 n = s.vertex_offsets.size - 1, largest = longest(s.vertex_offsets);
    Refined found{std::vector<i32>(colors.size), std::vector<i64>(n), std::vector<i64>(n),
                  std::vector<u64>(n)};
    Classes classes(largest);
    LabelStep step(s, weight_bits);
    for (i64 g = 0; g < n; g++) {
        const i64 v0 = s.vertex_offsets[g], v1 = s.vertex_offsets[g + 1];
        const Span<u64> color = colors.part(v0, v1);
        const Span<const u64> fixed{color.at, color.size};
        i32* class_of = found.classes.data() + v0;
        classes.find(fixed, class_of);
        i64 before = -1, t = 0;
        const i64 work = std::max<i64>(1, color.size + s.indptr[v1] - s.indptr[v0]);
        const i64 most_rounds = std::max(FEW_ROUNDS, MOST_WORK / work);
        while ((classes.count != before || t < n_rounds) && t < most_rounds) {
            step.take(v0, color);
            t++;
            before = classes.count;
            classes.split(fixed, class_of);
        }
        found.rounds[g] = t;
        found.signatures[g] = signature(fixed, t);
        found.n_classes[g] = classes.count == before ? classes.count : color.size;
        if (classes.count == before) {
            classes.sort({class_of, color.size});
        } else {
            std::iota(class_of, class_of + color.size, 0);
            found.signatures[g] = mix(found.signatures[g] ^ mix(static_cast<u64>(g)));
        }
    }
    return found;
}

}  // namespace fdgnn
