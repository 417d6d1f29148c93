// The weights of a reservoir, and what the engine fills.
#pragma once

#include <cstdint>
#include <new>
#include <utility>

#include "rows.hpp"

namespace fdgnn {

// A matrix with C entries in each of its H rows.
template <class T>
struct Wiring {
    Grid<const i32> sources;
    Grid<const T> values;
};

// `fdgnn.reservoir.weights.Weights`, in the precision of the states.
template <class T>
struct Weights {
    Wiring<T> first;             // W_I of the first layer
    Cube<const i32> in_sources;  // (L - 1, H, C) W_I of the others
    Cube<const T> in_values;
    Cube<const i32> rec_sources;  // (L, H, C) W_H
    Cube<const T> rec_values;
    Grid<const T> bias;  // (L, H)

    i64 n_layers() const { return bias.rows; }
    i64 n_units() const { return bias.columns; }
    Wiring<T> input(i64 i) const {
        return i == 0 ? first : Wiring<T>{in_sources[i - 1], in_values[i - 1]};
    }
    Wiring<T> recurrent(i64 i) const { return {rec_sources[i], rec_values[i]}; }
};

// The order of evaluation of a stack of layers; the arrays of all layers lie end to end.
struct Schedule {
    Span<const i64> order;  // units in the order of evaluation, without unused ones
    Span<const i64>
        components;          // c has the units order[components[c]] up to order[components[c + 1]]
    Span<const i64> layers;  // i has the components layers[i] up to layers[i + 1]
    // How many units, from the first of a component on, show whether it has converged: 0 for a unit
    // that is evaluated once, 1 for a cycle, all for a denser component.
    Span<const i64> n_checked;
    Span<const i64> period;   // steps of the dynamics in one sweep of a component: m for a cycle
    Grid<const bool> summed;  // (L, H) has a sum over neighbors that another unit reads
    Grid<const bool> kept;    // (L, H) is read by the next layer
    Span<const i64> slots;    // (L,) the place of each layer among the requested layers, or -1

    Span<const i64> units_of(i64 c) const { return order.part(components[c], components[c + 1]); }
    bool is_cycle(i64 c) const { return n_checked[c] == 1; }
    // Whether no component is more than one cycle.
    bool has_only_cycles() const {
        return std::none_of(n_checked.begin(), n_checked.end(), [](i64 n) { return n > 1; });
    }
};

// What the first layer reads at each vertex: a one-hot code, or real features. A row of a quotient reads
// what its vertex does.
struct Inputs {
    Span<const i32> codes;        // (n_vertices,), or none
    Grid<const double> features;  // (n_vertices, U), or none
    Span<const i64> vertices;     // (n_rows,)
};

// `fdgnn.reservoir.engine.Outputs`.
struct Outputs {
    Cube<double> pooled;    // (n_slots, n_graphs, H)
    Grid<i32> n_iter;       // (L, n_graphs)
    Grid<double> residual;  // (L, n_graphs)
    Cube<double> states;    // (n_rows, n_slots, H), or none
};

// Memory that begins at a whole vector of any processor. It is not initialized unless requested:
// `Row<T>(n)` has n numbers that other code will write.
template <class T>
struct Aligned {
    using value_type = T;
    static constexpr std::size_t WHOLE = 64;

    Aligned() = default;
    template <class U>
    Aligned(const Aligned<U>&) {}
    // Aligned operator new bypasses glibc's cache of freed memory, which small graphs notice. The byte
    // before the array says how far it is from the start of its memory.
    T* allocate(std::size_t n) {
        char* const start = static_cast<char*>(::operator new(n * sizeof(T) + WHOLE));
        const std::size_t shift = WHOLE - reinterpret_cast<std::uintptr_t>(start) % WHOLE;
        start[shift - 1] = static_cast<char>(shift);
        return reinterpret_cast<T*>(start + shift);
    }
    void deallocate(T* at, std::size_t) {
        char* const shifted = reinterpret_cast<char*>(at);
        ::operator delete(shifted - shifted[-1]);
    }
    template <class U>
    void construct(U* at) {
        ::new (static_cast<void*>(at)) U;
    }
    template <class U, class... Given>
    void construct(U* at, Given&&... given) {
        ::new (static_cast<void*>(at)) U(std::forward<Given>(given)...);
    }
    template <class U>
    bool operator==(const Aligned<U>&) const {
        return true;
    }
    template <class U>
    bool operator!=(const Aligned<U>&) const {
        return false;
    }
};

template <class T>
using Row = std::vector<T, Aligned<T>>;

// Rows of one layer, one for each unit; their width is a multiple of WHOLE_ROWS.
template <class T>
struct Table {
    i64 width;
    Row<T> entries;

    Table(i64 rows, i64 width) : width(width), entries(rows * width, T(0)) {}
    T* operator[](i64 h) { return entries.data() + h * width; }
    const T* operator[](i64 h) const { return entries.data() + h * width; }
    void clear(i64 n) {  // the first n entries of each row
        for (i64 h = 0; h * width < static_cast<i64>(entries.size()); h++)
            std::fill_n((*this)[h], n, T(0));
    }
};

}  // namespace fdgnn
