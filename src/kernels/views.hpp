// Arrays owned by other code: a pointer and a shape, rows end to end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace fdgnn {

using i32 = std::int32_t;
using i64 = std::int64_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

// Checked builds (CMake's option FDGNN_SANITIZE) end with a message where an index or a part is out of bounds.
#ifdef FDGNN_CHECKED
inline void check_bounds(bool holds, i64 index, i64 size) {
    if (holds) return;
    std::fprintf(stderr, "kernel: index %lld is out of bounds for size %lld\n",
                 static_cast<long long>(index), static_cast<long long>(size));
    std::abort();
}
#else
inline void check_bounds(bool, i64, i64) {}
#endif

template <class T>
struct Span {
    T* at;
    i64 size;

    T& operator[](i64 i) const {
        check_bounds(0 <= i && i < size, i, size);
        return at[i];
    }
    T* begin() const { return at; }
    T* end() const { return at + size; }
    bool empty() const { return size == 0; }
    Span part(i64 first, i64 last) const {
        check_bounds(0 <= first && first <= last && last <= size, last, size);
        return {at + first, last - first};
    }
};

// A row of a grid: a pointer, with its bounds in debug builds.
#ifdef FDGNN_CHECKED
template <class T>
struct GridRow {
    T* at;
    i64 size;

    T& operator[](i64 i) const {
        check_bounds(0 <= i && i < size, i, size);
        return at[i];
    }
    operator T*() const { return at; }
};
#else
template <class T>
using GridRow = T*;
#endif

template <class T>
struct Grid {
    T* at;
    i64 rows, columns;

    GridRow<T> operator[](i64 i) const {
        check_bounds(0 <= i && i < rows, i, rows);
#ifdef FDGNN_CHECKED
        return {at + i * columns, columns};
#else
        return at + i * columns;
#endif
    }
    bool empty() const { return rows == 0; }
};

template <class T>
Span<const T> span(const std::vector<T>& values) {
    return {values.data(), static_cast<i64>(values.size())};
}

// All entries of a grid.
template <class T>
Span<T> flat(const Grid<T>& grid) {
    return {grid.at, grid.rows * grid.columns};
}

template <class T>
struct Cube {
    T* at;
    i64 layers, rows, columns;

    Grid<T> operator[](i64 i) const {
        check_bounds(0 <= i && i < layers, i, layers);
        return {at + i * rows * columns, rows, columns};
    }
};

// All entries of a cube.
template <class T>
Span<T> flat(const Cube<T>& cube) {
    return {cube.at, cube.layers * cube.rows * cube.columns};
}

// The largest absolute value, NaN if there is one, 0 of none.
inline double largest_of(Span<const double> values) {
    double largest = 0.0;
    for (double value : values) {
        if (value != value) return value;
        largest = std::max(largest, value < 0 ? -value : value);
    }
    return largest;
}

// The length of the longest list; list i is from offsets[i] to offsets[i + 1].
inline i64 longest(Span<const i64> offsets) {
    i64 most = 0;
    for (i64 i = 0; i + 1 < offsets.size; i++) most = std::max(most, offsets[i + 1] - offsets[i]);
    return most;
}

inline i64 rounded_up(i64 n, i64 step) { return (n + step - 1) / step * step; }

}  // namespace fdgnn
