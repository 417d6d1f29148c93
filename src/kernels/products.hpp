// Products of all pairs of rows of a sparse matrix, added to a dense one.
#pragma once

#include "interrupts.hpp"

namespace fdgnn {

// A sparse matrix: by its rows, or by its columns.
template <class T>
struct Sparse {
    Span<const i64> starts;
    Span<const i32> places;
    Span<const T> values;
};

// out (n, n) += X X^T, for X given by its rows and by its columns.
template <class T>
void add_row_products(const Sparse<T>& rows, const Sparse<T>& columns, Grid<T> out) {
    Interrupts interrupts;
    for (i64 i = 0; i < out.rows; i++) {
        T* own = out[i];
        for (i64 a = rows.starts[i]; a < rows.starts[i + 1]; a++) {
            const i64 p = rows.places[a];
            const T x = rows.values[a];
            interrupts.count(columns.starts[p + 1] - columns.starts[p]);
            for (i64 b = columns.starts[p]; b < columns.starts[p + 1]; b++)
                own[columns.places[b]] += x * columns.values[b];
        }
    }
}

}  // namespace fdgnn
