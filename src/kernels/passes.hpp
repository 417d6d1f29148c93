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
// Values of X are all one where there are none.
template <bool ONES>
void add_normal_products(const Sparse<double>& X, Span<const i32> places, const SampleWeights& w,
                         Grid<const double> D, Grid<double> out) {
    const i64 k = D.columns;
    std::vector<double> sums(static_cast<size_t>(k));
    double* RESTRICT y = sums.data();
    Pulse pulse;
    look_around();  // each time: a pass is many calls for parts that may be small
    for (i64 i = 0; i + 1 < X.starts.size; i++) {
        pulse.spend(k * (1 + X.starts[i + 1] - X.starts[i]));
        std::fill(sums.begin(), sums.end(), 0.0);
        for (i64 a = X.starts[i]; a < X.starts[i + 1]; a++) {
            const i64 place = places[X.places[a]];
            if (place < 0) continue;
            const double* RESTRICT d = D[place];
            const double x = ONES ? 1.0 : X.values[a];
            for (i64 c = 0; c < k; c++) y[c] += ONES ? d[c] : x * d[c];
        }
        const double* RESTRICT own = w.of_group[i];
        for (i64 c = 0; c < k; c++) y[c] *= own[w.group[c]];
        for (i64 a = X.starts[i]; a < X.starts[i + 1]; a++) {
            const i64 place = places[X.places[a]];
            if (place < 0) continue;
            double* RESTRICT o = out[place];
            const double x = ONES ? 1.0 : X.values[a];
            for (i64 c = 0; c < k; c++) o[c] += ONES ? y[c] : x * y[c];
        }
    }
}

}  // namespace fdgnn
