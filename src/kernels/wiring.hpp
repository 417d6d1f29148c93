// Strongly connected components of a wiring, in the order in which they can be evaluated.
#pragma once

#include <cmath>

#include "views.hpp"

namespace fdgnn {

// Where the rows of a matrix with C entries in each of its H rows begin, and the end.
inline std::vector<i64> regular_offsets(i64 H, i64 C) {
    std::vector<i64> offsets(H + 1);
    for (i64 h = 0; h <= H; h++) offsets[h] = h * C;
    return offsets;
}

struct Components {
    std::vector<i64> order;    // (H,) units, each component after all that it reads from
    std::vector<i64> offsets;  // (n_components + 1,)
};

// Order units so that each component comes after all that it reads from. Row h of the CSR
// structure lists the units that h reads. Inside a component that is one cycle, each unit stands
// right after the one it reads, and the first reads the last (Tarjan's algorithm, with its stack
// unwound from the top).
inline Components strong_components(Span<const i64> indptr, Span<const i32> sources) {
    const i64 H = indptr.size - 1;
    std::vector<i64> index(H, -1), low(H), stack(H), path(H);  // path: of the depth-first search
    std::vector<i64> next_arc(indptr.begin(), indptr.begin() + H);
    std::vector<char> on_stack(H, 0);
    Components found{{}, {0}};
    found.order.reserve(H);
    i64 n_visited = 0, n_stacked = 0;
    for (i64 root = 0; root < H; root++) {
        if (index[root] >= 0) continue;
        i64 depth = 0;
        path[0] = root;
        while (depth >= 0) {
            const i64 h = path[depth];
            if (index[h] < 0) {
                index[h] = low[h] = n_visited++;
                stack[n_stacked++] = h;
                on_stack[h] = 1;
            }
            if (next_arc[h] < indptr[h + 1]) {
                const i64 s = sources[next_arc[h]++];
                if (index[s] < 0)
                    path[++depth] = s;
                else if (on_stack[s])
                    low[h] = std::min(low[h], index[s]);
                continue;
            }
            if (low[h] == index[h]) {
                i64 s;
                do {
                    s = stack[--n_stacked];
                    on_stack[s] = 0;
                    found.order.push_back(s);
                } while (s != h);
                found.offsets.push_back(static_cast<i64>(found.order.size()));
            }
            depth--;
            if (depth >= 0) low[path[depth]] = std::min(low[path[depth]], low[h]);
        }
    }
    return found;
}

inline std::vector<i64> component_of(Span<const i64> order, Span<const i64> offsets) {
    std::vector<i64> component(order.size);
    for (i64 c = 0; c + 1 < offsets.size; c++)
        for (i64 j = offsets[c]; j < offsets[c + 1]; j++) component[order[j]] = c;
    return component;
}

struct InnerArcs {
    std::vector<i64> counts;
    std::vector<double> log_sums;
};

// Count each component's own arcs, and sum the logarithms of their absolute values.
inline InnerArcs inner_arcs(Span<const i64> indptr, Span<const i32> sources,
                            Span<const double> values, Span<const i64> order,
                            Span<const i64> offsets) {
    const i64 n = offsets.size - 1;
    const std::vector<i64> component = component_of(order, offsets);
    InnerArcs found{std::vector<i64>(n, 0), std::vector<double>(n, 0.0)};
    for (i64 h = 0; h < order.size; h++)
        for (i64 a = indptr[h]; a < indptr[h + 1]; a++)
            if (component[sources[a]] == component[h]) {
                found.counts[component[h]]++;
                found.log_sums[component[h]] += std::log(std::abs(values[a]));
            }
    return found;
}

// rho(|W|) of each layer (L, H, C), the largest geometric mean of |w| along a cycle; NaN where a
// component has more arcs than one cycle.
inline std::vector<double> cycle_radii(Cube<const i32> sources, Cube<const double> values) {
    const std::vector<i64> indptr = regular_offsets(sources.rows, sources.columns);
    std::vector<double> radii(sources.layers, 0.0);
    for (i64 i = 0; i < sources.layers; i++) {
        const Components found = strong_components(span(indptr), flat(sources[i]));
        const InnerArcs inner = inner_arcs(span(indptr), flat(sources[i]), flat(values[i]),
                                           span(found.order), span(found.offsets));
        for (size_t c = 0; c < inner.counts.size(); c++) {
            const i64 size = found.offsets[c + 1] - found.offsets[c];
            if (inner.counts[c] > size) radii[i] = std::nan("");
            if (inner.counts[c] == size)
                radii[i] =
                    std::max(radii[i], std::exp(inner.log_sums[c] / static_cast<double>(size)));
        }
    }
    return radii;
}

struct NeededComponents {
    std::vector<i64> order, offsets, n_checked, period;
};

// Remove unused components; determine how each of the others converges.
//
// sources (H, C). In `needed` (H,) all that needed units read is marked as well. n_checked and
// period: see `Schedule`.
inline NeededComponents needed_components(Grid<const i32> sources, const Components& found,
                                          std::vector<char>& needed) {
    const Span<const i64> order = span(found.order), offsets = span(found.offsets);
    const i64 n = offsets.size - 1;
    const std::vector<i64> component = component_of(order, offsets);
    std::vector<char> wanted(n, 0);
    std::vector<i64> inner(n, 0);       // arcs inside the component
    for (i64 c = n - 1; c >= 0; c--) {  // readers before what they read
        for (i64 j = offsets[c]; j < offsets[c + 1]; j++) wanted[c] |= needed[order[j]];
        for (i64 j = offsets[c]; j < offsets[c + 1]; j++) {
            const i64 h = order[j];
            needed[h] = wanted[c];
            for (i64 k = 0; k < sources.columns; k++) {
                const i64 s = sources[h][k];
                needed[s] |= wanted[c];
                inner[c] += component[s] == c;
            }
        }
    }
    NeededComponents kept{{}, {0}, {}, {}};
    for (i64 c = 0; c < n; c++) {
        if (!wanted[c]) continue;
        const i64 size = offsets[c + 1] - offsets[c];
        kept.order.insert(kept.order.end(), order.at + offsets[c], order.at + offsets[c + 1]);
        kept.offsets.push_back(static_cast<i64>(kept.order.size()));
        const bool is_cycle = inner[c] == size;  // its first unit stands for all
        kept.n_checked.push_back(is_cycle ? 1 : inner[c] > size ? size : 0);
        kept.period.push_back(is_cycle ? size : 1);
    }
    return kept;
}

// The orders of all layers end to end; see `Schedule`.
struct Order {
    std::vector<i64> units, components{0}, layers{0}, n_checked, period;

    void append(const NeededComponents& part) {
        const i64 before = static_cast<i64>(units.size());
        units.insert(units.end(), part.order.begin(), part.order.end());
        for (size_t c = 1; c < part.offsets.size(); c++)
            components.push_back(before + part.offsets[c]);
        layers.push_back(static_cast<i64>(components.size()) - 1);
        n_checked.insert(n_checked.end(), part.n_checked.begin(), part.n_checked.end());
        period.insert(period.end(), part.period.begin(), part.period.end());
    }
};

// Order the units of a stack of layers for evaluation, without unused ones.
//
// recurrent (L, H, C) and inputs (L - 1, H, C) are the units that each one reads in its own layer
// and in the one below; wanted (L,) are the layers whose states count. Marks, in arrays (L, H) of
// false: in `summed` what other units of the layer read, in `kept` what the next layer reads.
inline Order order_layers(Cube<const i32> recurrent, Cube<const i32> inputs,
                          Span<const bool> wanted, Grid<bool> summed, Grid<bool> kept) {
    const i64 L = recurrent.layers, H = recurrent.rows;
    const std::vector<i64> indptr = regular_offsets(H, recurrent.columns);
    std::vector<NeededComponents> parts(L);
    std::vector<char> needed(H, 0);
    for (i64 i = L - 1; i >= 0; i--) {
        const Grid<const i32> sources = recurrent[i];
        if (i < L - 1)
            for (i64 h = 0; h < H; h++)
                for (i64 k = 0; k < inputs.columns && needed[h]; k++)
                    kept[i][inputs[i][h][k]] = true;
        for (i64 h = 0; h < H; h++) needed[h] = wanted[i] || kept[i][h];
        const Components found = strong_components(span(indptr), flat(sources));
        parts[i] = needed_components(sources, found, needed);
        for (i64 h = 0; h < H; h++)
            for (i64 k = 0; k < sources.columns && needed[h]; k++) summed[i][sources[h][k]] = true;
    }
    Order order;
    for (const NeededComponents& part : parts) order.append(part);
    return order;
}

// Divide the units into the core, which has dynamics, and the trees that depend on it.
//
// The core is the components that are iterated, with all that they read, directly or not. The height
// of a unit is the largest number of units outside the core that its state travels over.
inline void tree_heights(Grid<const i32> sources, Span<const i64> order, Span<const i64> offsets,
                         Span<const i64> n_checked, Span<bool> core, Span<i64> heights) {
    std::fill(core.begin(), core.end(), false);
    std::fill(heights.begin(), heights.end(), 0);
    for (i64 c = offsets.size - 2; c >= 0; c--) {  // readers before what they read
        for (i64 j = offsets[c]; j < offsets[c + 1]; j++) core[order[j]] |= n_checked[c] > 0;
        for (i64 j = offsets[c]; j < offsets[c + 1]; j++) {
            const i64 h = order[j];
            for (i64 k = 0; k < sources.columns; k++) {
                const i64 s = sources[h][k];
                core[s] |= core[h];
                if (!core[h]) heights[s] = std::max(heights[s], heights[h] + 1);
            }
        }
    }
}

}  // namespace fdgnn
