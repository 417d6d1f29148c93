// Integers out of the text of a TU file, at about a nanosecond a byte.
#pragma once

#include "interrupts.hpp"

namespace fdgnn {

constexpr i64 MAX_DIGITS = 18;  // every such number fits an int64

struct Text {
    Span<const std::uint8_t> bytes;
    i64 i = 0;

    bool has(char c) const { return i < bytes.size && bytes[i] == static_cast<std::uint8_t>(c); }
    bool blank() const { return has(' ') || has('\t') || has('\r'); }
    bool digit() const { return i < bytes.size && '0' <= bytes[i] && bytes[i] <= '9'; }
    bool at_end() const { return i == bytes.size || blank() || has('\n') || has(','); }
    void skip_blanks() {
        while (blank()) i++;
    }
};

// Read rows of integers, separated by a comma, blanks or both. The text is rows joined by newlines,
// without one at the end; out (n_columns, n_rows) receives the numbers. Returns how many rows were
// read: if fewer than n_rows, the next one is not n_columns integers.
inline i64 parse_rows(Span<const std::uint8_t> bytes, Grid<i64> out) {
    Text text{bytes};
    Interrupts interrupts;
    for (i64 row = 0; row < out.columns; row++) {
        interrupts.count(8);
        for (i64 column = 0; column < out.rows; column++) {
            text.skip_blanks();
            if (column > 0 && text.has(',')) {
                text.i++;
                text.skip_blanks();
            }
            const bool negative = text.has('-');
            if (negative || text.has('+')) text.i++;
            const i64 start = text.i;
            i64 number = 0;
            for (; text.digit() && text.i - start < MAX_DIGITS; text.i++)
                number = number * 10 + (bytes[text.i] - '0');
            if (text.i == start || !text.at_end()) return row;
            out[column][row] = negative ? -number : number;
        }
        text.skip_blanks();
        if (text.i < bytes.size && !text.has('\n')) return row;
        text.i++;
    }
    return out.columns;
}

}  // namespace fdgnn
