// One pass over sparse samples for a linear solver: X^T (W o (X D)), without X D in memory.
#pragma once

#include "products.hpp"

#define RESTRICT __restrict
#if defined(__GNUC__) || defined(__clang__)
#define PREFETCH(address) __builtin_prefetch(address)
#else
#define PREFETCH(address) (void)(address)
#endif

namespace fdgnn {

// The weight of each sample for each of k unknowns.
struct SampleWeights {
    Grid<const double> of_group;  // (n, groups)
    Span<const i32> group;        // (k,) the group of each unknown
};

// out (P', k) += X^T (W o (X D)). Column j of X has row places[j] of D and out, or none if that is -1.
// Without values, all entries of X are 1. K is k, or 0 if k is not known at compile time. Rows of D
// and out are scattered in memory, so the rows of the next sample are prefetched.
template <bool ONES, int K>
void add_normal_products(const Sparse<double>& X, Span<const i32> places, const SampleWeights& w,
                         Grid<const double> D, Grid<double> out) {
    const i64 k = K > 0 ? K : D.columns;
    std::vector<double> sums(static_cast<size_t>(k));
    std::vector<i32> found, next;
    double* RESTRICT y = sums.data();
    Interrupts interrupts;
    check_interrupts();  // each time: a pass is many calls for parts that may be small
    const i64 n_samples = X.starts.size - 1;
    const auto used = [&](i64 i) {
        const double* own = w.of_group[i];
        return std::any_of(own, own + w.of_group.columns, [](double x) { return x != 0.0; });
    };
    const auto find = [&](i64 i, std::vector<i32>& into) {
        const i64 start = X.starts[i], n = X.starts[i + 1] - start;
        into.resize(static_cast<size_t>(n));
        for (i64 a = 0; a < n; a++) {
            const i32 place = into[a] = places[X.places[start + a]];
            if (K == 0 || place < 0) continue;  // rows of many numbers hide the wait themselves
            PREFETCH(D[place]);
            PREFETCH(out[place]);
        }
    };
    i64 i = 0;
    const auto skip = [&] {
        while (i < n_samples && !used(i)) i++;
    };
    skip();
    if (i < n_samples) find(i, next);
    while (i < n_samples) {
        const i64 start = X.starts[i], n = X.starts[i + 1] - start;
        const double* RESTRICT own = w.of_group[i];
        interrupts.count(k * (1 + n));
        found.swap(next);
        i++;
        skip();
        if (i < n_samples) find(i, next);
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
        case 1:
            return add_normal_products<ONES, 1>(X, places, w, D, out);
        case 2:
            return add_normal_products<ONES, 2>(X, places, w, D, out);
        case 3:
            return add_normal_products<ONES, 3>(X, places, w, D, out);
        case 4:
            return add_normal_products<ONES, 4>(X, places, w, D, out);
        case 5:
            return add_normal_products<ONES, 5>(X, places, w, D, out);
        default:
            return add_normal_products<ONES, 0>(X, places, w, D, out);
    }
}

}  // namespace fdgnn
