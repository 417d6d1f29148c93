// A fixed hash function of 64 bits, for WL labels.
#pragma once

#include "views.hpp"

namespace fdgnn {

// Mix 64 bits (the finalizer of the SplitMix generator); different inputs have different outputs.
inline u64 mix(u64 z) {
    z += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

// Hash each row of an (n, m) array to 64 bits.
inline void mix_rows(Grid<const u64> rows, Span<u64> colors) {
    for (i64 v = 0; v < rows.rows; v++) {
        u64 z = static_cast<u64>(rows.columns);
        for (i64 j = 0; j < rows.columns; j++) z = mix(z ^ rows[v][j]);
        colors[v] = z;
    }
}

// Scatter the bits of each entry, in place.
inline void mix_all(Span<u64> values) {
    for (u64& value : values) value = mix(value);
}

// The power of two that is at least twice n: room for a hash table of n entries.
inline i64 table_size(i64 n) {
    i64 size = 2;
    while (size < 2 * n) size *= 2;
    return size;
}

}  // namespace fdgnn
