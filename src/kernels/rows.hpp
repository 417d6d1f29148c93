// One unit over all rows of a block: a contiguous vector.
//
// All loops here are plain passes that the compiler turns into vector instructions. Terms are added
// in an order that depends on the graph alone, and products are fused with sums only where the
// source requests it (-ffp-contract=off), so a graph has the same bits at every position.
#pragma once

#include <cmath>

#include "graphs.hpp"

#define RESTRICT __restrict

namespace fdgnn {

constexpr i64 STRANDS = 16;         // the rows of a graph are summed in so many partial sums
constexpr i64 WHOLE_ROWS = 16;      // rows are padded to a multiple of this: whole vectors
constexpr i64 MOST_DIAGONALS = 12;  // in one pass: about as many addresses as fit in registers

// a b + c, rounded once, with the same bits on all processors. Without such an instruction, it is a
// slow call of the C library.
template <class T>
inline T fused(T a, T b, T c) {
    return std::fma(a, b, c);
}

// c_0 + c_1 y + c_2 y^2 + ...
template <class T>
inline T polynomial(T, T c) {
    return c;
}
template <class T, class... More>
inline T polynomial(T y, T c, More... more) {
    return fused(y, polynomial(y, more...), c);
}

template <class T>
struct Tanh;

// tanh(z) = z P(z^2) / Q(z^2), fitted for the smallest relative error on [0, 8.5].
//
// The limits are volatile to hide them from the compiler. Otherwise GCC computes in advance what follows
// from a limit, and selects for each vector between this and its own result, which takes twice the time.
template <>
struct Tanh<float> {
    inline static const volatile float limits[] = {8.5f * 8.5f, 1.0f};
    const float largest_square = limits[0], one = limits[1];

    float operator()(float z) const {
        const float y = std::min(z * z, largest_square);
        const float p = z * polynomial(y, 9.9999998818e-01f, 1.3413245299e-01f, 3.5340249526e-03f,
                                       2.1251014349e-05f, 1.4269189622e-08f);
        const float q = polynomial(y, 1.0f, 4.6746568033e-01f, 2.6022744024e-02f, 3.3488617438e-04f,
                                   8.1451070264e-07f);
        return std::min(std::max(p / q, -one), one);
    }
};

// Lambert's continued fraction for tanh(z / 8), seven terms deep, then three doublings. With
// tanh = p / q, doubling the angle is p, q = 2 p q, p^2 + q^2: one division in all.
template <>
struct Tanh<double> {
    inline static const volatile double limits[] = {19.1, 1.0};
    const double largest = limits[0], one = limits[1];

    double operator()(double z) const {
        z = std::min(std::max(z, -largest), largest) * 0.125;
        const double y = z * z;
        double p = z * polynomial(y, 1.0, 5.0 / 39, 2.0 / 715, 1.0 / 135135);
        double q = polynomial(y, 1.0, 6.0 / 13, 10.0 / 429, 4.0 / 19305);
        for (int doubling = 0; doubling < 3; doubling++) {
            const double product = 2.0 * p * q;
            q = fused(p, p, q * q);
            p = product;
        }
        return std::min(std::max(p / q, -one),
                        one);  // without fused products it may be more than 1
    }
};

// x = tanh(d + w s).
template <class T>
void tanh_sum(i64 n, const T* RESTRICT d, T w, const T* RESTRICT s, T* RESTRICT x) {
    const Tanh<T> tanh;
    for (i64 v = 0; v < n; v++) x[v] = tanh(fused(w, s[v], d[v]));
}

// x = tanh(b + u y + w s).
template <class T>
void tanh_sum(i64 n, T b, T u, const T* RESTRICT y, T w, const T* RESTRICT s, T* RESTRICT x) {
    const Tanh<T> tanh;
    for (i64 v = 0; v < n; v++) x[v] = tanh(fused(w, s[v], fused(u, y[v], b)));
}

// x = tanh(d + w s), where d is `there` or `elsewhere`, as the codes say.
template <class T>
void tanh_sum(i64 n, const i32* RESTRICT codes, i32 code, T there, T elsewhere, T w,
              const T* RESTRICT s, T* RESTRICT x) {
    const Tanh<T> tanh;
    for (i64 v = 0; v < n; v++) x[v] = tanh(fused(w, s[v], codes[v] == code ? there : elsewhere));
}

// x = tanh(x).
template <class T>
void tanh_all(i64 n, T* x) {
    const Tanh<T> tanh;
    for (i64 v = 0; v < n; v++) x[v] = tanh(x[v]);
}

// d += w s.
template <class T>
void add_scaled(i64 n, T w, const T* RESTRICT s, T* RESTRICT d) {
    for (i64 v = 0; v < n; v++) d[v] = fused(w, s[v], d[v]);
}

// out = (x - old)^2.
template <class T>
void squared_step(i64 n, const T* RESTRICT x, const T* RESTRICT old, T* RESTRICT out) {
    for (i64 v = 0; v < n; v++) out[v] = (x[v] - old[v]) * (x[v] - old[v]);
}

// Move the state to tanh(d + w s) where it is active, and return it as x. If the move is checked,
// also return its square, even where the state does not move.
template <bool CHECKED, class T>
void tanh_move(i64 n, const T* RESTRICT d, T w, const T* RESTRICT s, const T* RESTRICT active,
               T* RESTRICT state, T* RESTRICT x, T* RESTRICT squares) {
    const Tanh<T> tanh;
    for (i64 v = 0; v < n; v++) {
        const T old = state[v], next = tanh(fused(w, s[v], d[v]));
        if (CHECKED) squares[v] = (next - old) * (next - old);
        x[v] = state[v] = active[v] > 0 ? next : old;
    }
}

// total + w y, in float64.
inline double with_product(float w, float y, double total) {
    return total + static_cast<double>(w * y);
}
inline double with_product(double w, double y, double total) { return fused(w, y, total); }

// The sum of w_v y_v over n rows of a graph, a multiple of STRANDS, in float64.
template <class T>
double weighted_sum(i64 n, const T* RESTRICT w, const T* RESTRICT y) {
    double totals[STRANDS] = {};
    for (i64 v = 0; v < n; v += STRANDS)
        for (i64 j = 0; j < STRANDS; j++) totals[j] = with_product(w[v + j], y[v + j], totals[j]);
    for (i64 half = STRANDS / 2; half > 0; half /= 2)
        for (i64 j = 0; j < half; j++) totals[j] += totals[j + half];
    return totals[0];
}

// Partial sums STRAND, STRAND + STEP, ... of the graphs of a bundle, added two by two.
template <i64 STRAND, i64 STEP, class T>
inline void add_strands(i64 n, const T* RESTRICT w, const T* RESTRICT y, double* RESTRICT sums) {
    if constexpr (STEP == STRANDS) {
        const i64 first = STRAND * LANES;
        if (STRAND < n)
            for (i64 k = 0; k < LANES; k++) sums[k] = with_product(w[first + k], y[first + k], 0.0);
        else
            for (i64 k = 0; k < LANES; k++) sums[k] = 0.0;
        for (i64 v = first + STRANDS * LANES; v < n * LANES; v += STRANDS * LANES)
            for (i64 k = 0; k < LANES; k++) sums[k] = with_product(w[v + k], y[v + k], sums[k]);
    } else {
        double others[LANES];
        add_strands<STRAND, 2 * STEP>(n, w, y, sums);
        add_strands<STRAND + STEP, 2 * STEP>(n, w, y, others);
        for (i64 k = 0; k < LANES; k++) sums[k] += others[k];
    }
}

// The sums of w_v y_v over n rows of each graph of a bundle, in the same order as in a graph alone.
template <class T>
void weighted_sums(i64 n, const T* w, const T* y, double* sums) {
    add_strands<0, 1>(n, w, y, sums);
}

constexpr float SLOPE_ROUNDING = 1e-6f;  // of 1 - x^2 where x is off by some ulps of float32

// The largest slope of tanh, 1 - y^2, over n rows of LANES graphs, or 0 where a graph has no rows. Rows of
// size 0 belong to no graph; in others there is at least one vertex.
template <class T>
void largest_slopes(i64 n, const T* RESTRICT sizes, const T* RESTRICT y, float* RESTRICT found) {
    T even[LANES] = {}, odd[LANES] = {};
    const auto slope = [&](i64 v) { return fused(-y[v], y[v], std::min(sizes[v], T(1))); };
    i64 v = 0;
    for (; v + 2 * LANES <= n * LANES; v += 2 * LANES)
        for (i64 k = 0; k < LANES; k++) {
            even[k] = std::max(even[k], slope(v + k));
            odd[k] = std::max(odd[k], slope(v + LANES + k));
        }
    for (; v < n * LANES; v += LANES)
        for (i64 k = 0; k < LANES; k++) even[k] = std::max(even[k], slope(v + k));
    for (i64 k = 0; k < LANES; k++)
        found[k] = static_cast<float>(std::max(even[k], odd[k])) + SLOPE_ROUNDING;
}

// Add N diagonals times x to s, or set s to the sum. Rows lie in stripes of WHOLE_ROWS, `pitch`
// apart. A stripe has its part of one diagonal after the other; each reads x from its own place.
// Without the pragma, GCC keeps the loop over diagonals, whose overhead exceeds its arithmetic.
template <i64 N, bool IS_FIRST, class T>
void add_diagonals(i64 n, const T* RESTRICT stripe, i64 pitch, const T* x,
                   const i64* RESTRICT places, T* RESTRICT s) {
    const T* from[N];
    for (i64 j = 0; j < N; j++) from[j] = x + places[j];
    for (i64 v = 0; v < n; v += WHOLE_ROWS, stripe += pitch) {
        T total[WHOLE_ROWS];
        for (i64 k = 0; k < WHOLE_ROWS; k++) total[k] = IS_FIRST ? T(0) : s[v + k];
#pragma GCC unroll 12
        for (i64 j = 0; j < N; j++)
            for (i64 k = 0; k < WHOLE_ROWS; k++)
                total[k] = fused(stripe[j * WHOLE_ROWS + k], from[j][v + k], total[k]);
        for (i64 k = 0; k < WHOLE_ROWS; k++) s[v + k] = total[k];
    }
}

template <class T>
using AddDiagonals = void (*)(i64 n, const T* stripe, i64 pitch, const T* x, const i64* places,
                              T* s);

// The function for a number of diagonals, at most MOST_DIAGONALS, that is known only at run time.
template <bool IS_FIRST, class T, i64 N = 1>
AddDiagonals<T> adder_of(i64 n_diagonals) {
    if constexpr (N < MOST_DIAGONALS)
        if (n_diagonals > N) return adder_of<IS_FIRST, T, N + 1>(n_diagonals);
    return &add_diagonals<N, IS_FIRST, T>;
}

}  // namespace fdgnn
