// Random numbers: the streams of NumPy's SeedSequence, PCG64 and Generator, bit for bit.
//
// A reservoir has some ten short streams, one for each matrix; in Python, creating one takes longer than
// drawing from it. What is drawn here is also the same with every version of NumPy.
#pragma once

#include "views.hpp"

namespace fdgnn {

#ifdef __SIZEOF_INT128__
using U128 = unsigned __int128;

inline U128 joined(u64 high, u64 low) { return static_cast<U128>(high) << 64 | low; }
inline u64 high_of(U128 a) { return static_cast<u64>(a >> 64); }
inline u64 low_of(U128 a) { return static_cast<u64>(a); }
#else
struct U128 {
    u64 high, low;
};

inline U128 joined(u64 high, u64 low) { return {high, low}; }
inline u64 high_of(U128 a) { return a.high; }
inline u64 low_of(U128 a) { return a.low; }

inline U128 operator+(U128 a, U128 b) {
    const u64 low = a.low + b.low;
    return {a.high + b.high + (low < a.low), low};
}

inline U128 operator*(U128 a, U128 b) {
    constexpr u64 HALF = 0xFFFFFFFFu;
    const u64 a0 = a.low & HALF, a1 = a.low >> 32, b0 = b.low & HALF, b1 = b.low >> 32;
    const u64 first = a0 * b0, second = a1 * b0 + (first >> 32), third = a0 * b1 + (second & HALF);
    return {a1 * b1 + (second >> 32) + (third >> 32) + a.high * b.low + a.low * b.high,
            (third << 32) | (first & HALF)};
}
#endif

// Four words of 64 bits from any number of words of 32 bits: M. E. O'Neill's seed_seq, as in NumPy's
// SeedSequence.
class SeedWords {
  public:
    explicit SeedWords(Span<const u32> entropy, Span<const u32> key) {
        const i64 n = entropy.size + key.size;
        const auto word = [&](i64 i) {
            return i < entropy.size ? entropy[i] : key[i - entropy.size];
        };
        for (i64 i = 0; i < SIZE; i++) pool[i] = hashed(i < n ? word(i) : 0);
        for (i64 from = 0; from < SIZE; from++)
            for (i64 to = 0; to < SIZE; to++)
                if (from != to) pool[to] = merged(pool[to], hashed(pool[from]));
        for (i64 i = SIZE; i < n; i++)
            for (i64 to = 0; to < SIZE; to++) pool[to] = merged(pool[to], hashed(word(i)));
    }

    void fill(u64* words) const {
        u32 factor = 0x8B51F9DDu;
        for (i64 i = 0; i < 2 * SIZE; i++) {
            const u32 before = pool[i % SIZE] ^ factor;
            factor *= 0x58F38DEDu;
            const u32 half = before * factor;
            const u64 word = half ^ (half >> 16);
            words[i / 2] = i % 2 ? words[i / 2] | (word << 32) : word;
        }
    }

  private:
    static constexpr i64 SIZE = 4;
    u32 pool[SIZE];
    u32 constant = 0x43B0D7E5u;

    u32 hashed(u32 value) {
        value ^= constant;
        constant *= 0x931E8875u;
        value *= constant;
        return value ^ (value >> 16);
    }
    static u32 merged(u32 x, u32 y) {
        const u32 found = 0xCA01F9DDu * x - 0x4973F715u * y;
        return found ^ (found >> 16);
    }
};

// PCG64 (M. E. O'Neill's PCG XSL RR 128/64), and what NumPy's Generator makes of it.
class Stream {
  public:
    Stream(Span<const u32> entropy, Span<const u32> key) {
        u64 words[4];
        SeedWords(entropy, key).fill(words);
        step = joined(words[2] << 1 | words[3] >> 63, words[3] << 1 | 1);
        state = step + joined(words[0], words[1]);
        advance();
    }

    // Numbers from -1 to 1.
    void fill_uniform(Span<double> numbers) {
        for (double& number : numbers)
            number = -1.0 + 2.0 * (static_cast<double>(next() >> 11) * (1.0 / 9007199254740992.0));
    }

    // Whole numbers from 0 to n - 1, n below 2^32; halves of 64 bits are used one after the other.
    void fill_below(u32 n, Span<i32> numbers) {
        u64 halves = 0;
        bool has_half = false;
        const auto next_half = [&] {
            halves = has_half ? halves >> 32 : next();
            has_half = !has_half;
            return halves & 0xFFFFFFFFu;
        };
        for (i32& number : numbers) {
            number = 0;
            if (n <= 1) continue;
            u64 product = next_half() * n;  // D. Lemire's method, usually without a division
            if (static_cast<u32>(product) < n)
                for (const u32 least = (0u - n) % n; static_cast<u32>(product) < least;)
                    product = next_half() * n;
            number = static_cast<i32>(product >> 32);
        }
    }

  private:
    U128 state, step;

    void advance() { state = state * joined(0x2360ED051FC65DA4u, 0x4385DF649FCCF645u) + step; }
    u64 next() {
        advance();
        const u64 value = high_of(state) ^ low_of(state), turn = high_of(state) >> 58;
        return value >> turn | value << ((64 - turn) & 63);
    }
};

}  // namespace fdgnn
