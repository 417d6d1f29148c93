// One pass over sparse samples for a linear solver: X^T (W o (X D)), without X D in memory.
#pragma once

#include "products.hpp"

#define RESTRICT __restrict

namespace fdgnn {

// Of each sample and each of k unknowns: by what the sample counts for that unknown.
struct SampleWeights {
    Grid<const double> of_group;  // (n, groups)
    Span<const i32> group;        // (k,) the group of each unknown
};

// out (P', k) += X^T (W o (X D)). Column j of X has row places[j] of D and out, or none if that is -1.
// Values of X are all one where there are none. K is k, or 0 if that is not known when this is compiled.
template <bool ONES, int K>
void add_normal_products(const Sparse<double>& X, Span<const i32> places, const SampleWeights& w,
                         Grid<const double> D, Grid<double> out) {
    const i64 k = K > 0 ? K : D.columns;
    std::vector<double> sums(static_cast<size_t>(k));
    std::vector<i32> found;
    double* RESTRICT y = sums.data();
    Pulse pulse;
    look_around();  // each time: a pass is many calls for parts that may be small
    for (i64 i = 0; i + 1 < X.starts.size; i++) {
        const i64 start = X.starts[i], n = X.starts[i + 1] - start;
        pulse.spend(k * (1 + n));
        const double* RESTRICT own = w.of_group[i];
        if (std::all_of(own, own + w.of_group.columns, [](double x) { return x == 0.0; })) continue;
        found.resize(static_cast<size_t>(n));
        for (i64 a = 0; a < n; a++) found[a] = places[X.places[start + a]];
        std::fill(sums.begin(), sums.end(), 0.0);
        for (i64 a = 0; a < n; a++) {
            if (found[a] < 0) continue;
            const double* RESTRICT d = D[found[a]];
            const double x = ONES ? 1.0 : X.values[start + a];
            for (i64 c = 0; c < k; c++) y[c] += ONES ? d[c] : x * d[c];
        }
        for (i64 c = 0; c < k; c++) y[c] *= own[w.group[c]];
        for (i64 a = 0; a < n; a++) {
            if (found[a] < 0) continue;
            double* RESTRICT o = out[found[a]];
            const double x = ONES ? 1.0 : X.values[start + a];
            for (i64 c = 0; c < k; c++) o[c] += ONES ? y[c] : x * y[c];
        }
    }
}

// The same, by a loop that was compiled for k, if k is small.
template <bool ONES>
void add_normal_products(const Sparse<double>& X, Span<const i32> places, const SampleWeights& w,
                         Grid<const double> D, Grid<double> out) {
    switch (D.columns) {
        case 1: return add_normal_products<ONES, 1>(X, places, w, D, out);
        case 2: return add_normal_products<ONES, 2>(X, places, w, D, out);
        case 3: return add_normal_products<ONES, 3>(X, places, w, D, out);
        case 4: return add_normal_products<ONES, 4>(X, places, w, D, out);
        case 5: return add_normal_products<ONES, 5>(X, places, w, D, out);
        default: return add_normal_products<ONES, 0>(X, places, w, D, out);
    }
}

}  // namespace fdgnn
