// One neuron over all rows of a block: a contiguous vector.
//
// All loops here are plain passes that the compiler turns into vector instructions. Terms are added
// in an order that depends on the graph alone.
#pragma once

#include "views.hpp"

#define RESTRICT __restrict

namespace fdgnn {

constexpr i64 STRANDS = 32;  // the sizes of a graph's rows are padded to a multiple of this
constexpr i64 LANES = 16;    // and its rows are summed in so many partial sums

// tanh(x) = x P(x^2) / Q(x^2), fitted for the smallest relative error on [0, 8.5].
inline float fast_tanh(float z) {
    z = std::min(std::max(z, -8.5f), 8.5f);
    const float y = z * z;
    const float p = z * (9.9999998818e-01f + y * (1.3413245299e-01f + y * (3.5340249526e-03f +
                    y * (2.1251014349e-05f + y * 1.4269189622e-08f))));
    const float q = 1.0f + y * (4.6746568033e-01f + y * (2.6022744024e-02f +
                    y * (3.3488617438e-04f + y * 8.1451070264e-07f)));
    return std::min(std::max(p / q, -1.0f), 1.0f);
}

// Lambert's continued fraction for tanh(z / 8), seven terms deep, then three doublings. With
// tanh = p / q, doubling the angle is p, q = 2 p q, p^2 + q^2: one division in all.
inline double fast_tanh(double z) {
    z = std::min(std::max(z, -19.1), 19.1) * 0.125;
    const double y = z * z;
    double p = z * (1.0 + y * (5.0 / 39 + y * (2.0 / 715 + y * (1.0 / 135135))));
    double q = 1.0 + y * (6.0 / 13 + y * (10.0 / 429 + y * (4.0 / 19305)));
    for (int doubling = 0; doubling < 3; doubling++) {
        const double product = 2.0 * p * q;
        q = p * p + q * q;
        p = product;
    }
    return p / q;
}

// x = tanh(d + w s).
template <class T>
void tanh_sum(i64 n, const T* RESTRICT d, T w, const T* RESTRICT s, T* RESTRICT x) {
    for (i64 v = 0; v < n; v++) x[v] = fast_tanh(d[v] + w * s[v]);
}

// d += w s.
template <class T>
void add_scaled(i64 n, T w, const T* RESTRICT s, T* RESTRICT d) {
    for (i64 v = 0; v < n; v++) d[v] += w * s[v];
}

// out = (x - old)^2.
template <class T>
void squared_step(i64 n, const T* RESTRICT x, const T* RESTRICT old, T* RESTRICT out) {
    for (i64 v = 0; v < n; v++) out[v] = (x[v] - old[v]) * (x[v] - old[v]);
}

// Set x back to what it was where it is no longer active.
template <class T>
void undo(i64 n, const T* RESTRICT active, const T* RESTRICT old, T* RESTRICT x) {
    for (i64 v = 0; v < n; v++) x[v] = active[v] > 0 ? x[v] : old[v];
}

// The sum of w_v y_v over n rows, a multiple of STRANDS, in float64.
template <class T>
double weighted_sum(i64 n, const T* RESTRICT w, const T* RESTRICT y) {
    double totals[LANES] = {};
    for (i64 v = 0; v < n; v += LANES)
        for (i64 j = 0; j < LANES; j++) totals[j] += static_cast<double>(w[v + j] * y[v + j]);
    for (i64 half = LANES / 2; half > 0; half /= 2)
        for (i64 j = 0; j < half; j++) totals[j] += totals[j + half];
    return totals[0];
}

// s += four diagonals times x, each of which begins at its own place.
template <class T>
void add_diagonals(i64 n, const T* RESTRICT a, const T* RESTRICT b, const T* RESTRICT c,
                   const T* RESTRICT d, const T* xa, const T* xb, const T* xc, const T* xd,
                   T* RESTRICT s) {
    for (i64 v = 0; v < n; v++)
        s[v] = s[v] + a[v] * xa[v] + b[v] * xb[v] + c[v] * xc[v] + d[v] * xd[v];
}

}  // namespace fdgnn
