// The last steps of a prediction of a few graphs: random features and a linear readout, eq. 3.
#pragma once

#include "reservoir.hpp"
#include "rows.hpp"

namespace fdgnn {

// out (n, q) = tanh(X W^T) coef^T + intercept, for pooled states X (n, H), and W by its columns (H, P).
inline void read_out(Grid<const double> X, Grid<const double> W, Grid<const double> coef,
                     Span<const double> intercept, Grid<double> out) {
    Row<double> features(W.columns);
    for (i64 g = 0; g < X.rows; g++) {
        std::fill(features.begin(), features.end(), 0.0);
        for (i64 h = 0; h < W.rows; h++)
            add_scaled<double>(W.columns, X[g][h], W[h], features.data());
        tanh_all(W.columns, features.data());
        for (i64 o = 0; o < coef.rows; o++) {
            double total = 0.0;
            for (i64 p = 0; p < W.columns; p++) total = fused(coef[o][p], features[p], total);
            out[g][o] = total + intercept[o];
        }
    }
}

}  // namespace fdgnn
