// How far the states of a reservoir can be from the fixed point when its components stop moving.
//
// On a symmetric graph with rho = rho(|A|), errors obey |x_h - x*_h| <= rho sum_s |W_H[h, s]| |x_s - x*_s|
// + |W_I| (errors of the layer below) + |residual of h|, where |.| is the Euclidean norm over vertices,
// because tanh has a slope of at most 1. So the errors e of a layer are at most the solution of
//
//     e = rho |W_H| e + |W_I| e_below + r,      r_h = |x_h - tanh(d_h + sum_s W_H[h, s] A x_s)|.
//
// A neuron that is evaluated once has r_h = 0. In a component that is swept, r_h comes from the sources
// that moved after h was evaluated for the last time: if the checked neurons moved by d in the last sweep,
// r_h <= rho |W_H[h, those]| d. `amplification` solves this with d = 1.
#pragma once

#include <cmath>
#include <limits>

#include "program.hpp"

namespace fdgnn {

constexpr i64 MOST_ERROR_SWEEPS = 1000;
constexpr double MOST_AMPLIFIED = 1e9;  // what float64 can resolve is proven to 1e-5 or so
constexpr double UNBOUNDED = 1e300;

template <class T>
class ErrorBound {
public:
    explicit ErrorBound(const Program<T>& program)
        : program(program),
          errors(program.given.n_units()),
          below(errors.size()),
          sources(errors.size()),
          steps(errors.size()) {}

    // The largest Frobenius norm of the errors of a layer, where every component stopped after moving
    // by 1, on a graph with this spectral radius; UNBOUNDED if it is too large to be of use.
    double amplification(double rho) {
        double largest = 0.0;
        for (i64 layer = 0; layer < program.given.n_layers(); layer++) {
            std::swap(errors, below);
            double square = 0.0;
            const Order& order = program.every;
            for (i64 c = order.layers[layer]; c < order.layers[layer + 1]; c++)
                if (!solve(layer, c, rho)) return UNBOUNDED;
            for (double error : errors) square += error * error;
            largest = std::max(largest, std::sqrt(square));
        }
        return largest < MOST_AMPLIFIED ? largest : UNBOUNDED;
    }

private:
    const Program<T>& program;
    std::vector<double> errors, below;   // (H,) of the layer and of the one below
    std::vector<double> sources, steps;  // (H,) the constant terms; how far a sweep moved each error

    // Errors of one component, all that it reads outside being known.
    bool solve(i64 layer, i64 c, double rho) {
        const Order& order = program.every;
        const i64 size = order.components[c + 1] - order.components[c];
        const i64* neurons = order.neurons.data() + order.components[c];
        for (i64 j = 0; j < size; j++) {
            const i64 h = neurons[j];
            sources[h] = 0.0;
            steps[h] = 0.0;
            if (order.n_checked[c] > 0) errors[h] = 0.0;
            if (layer == 0) continue;
            const Wiring<double> in = program.given.input(layer);
            for (i64 k = 0; k < in.sources.columns; k++)
                sources[h] += std::abs(in.values[h][k]) * below[in.sources[h][k]];
        }
        if (order.n_checked[c] == 0) {
            errors[neurons[0]] = swept(layer, neurons[0], rho);
            return true;
        }
        add_residuals(layer, c, rho);
        return sweep(layer, neurons, size, rho);
    }

    double swept(i64 layer, i64 h, double rho) const {
        const Wiring<double> W = program.given.recurrent(layer);
        double total = sources[h];
        for (i64 k = 0; k < W.sources.columns; k++)
            total += rho * std::abs(W.values[h][k]) * errors[W.sources[h][k]];
        return total;
    }

    // Neuron j of a component is evaluated at time j, but the checked neuron of a cycle once more at the
    // end. What it reads is older than its sources where these were evaluated later, or are itself.
    void add_residuals(i64 layer, i64 c, double rho) {
        const Order& order = program.every;
        const Wiring<double> W = program.given.recurrent(layer);
        const i64 first = order.components[c], size = order.components[c + 1] - first;
        const auto time = [&](i64 j) { return j == 0 && order.n_checked[c] < size ? size : j; };
        std::vector<i64> at(errors.size(), -1);
        for (i64 j = 0; j < size; j++) at[order.neurons[first + j]] = time(j);
        for (i64 j = 0; j < size; j++) {
            const i64 h = order.neurons[first + j];
            double square = 0.0;
            for (i64 k = 0; k < W.sources.columns; k++)
                if (at[W.sources[h][k]] >= time(j)) square += W.values[h][k] * W.values[h][k];
            sources[h] += rho * std::sqrt(square);
        }
    }

    // Sweep from zero. The sweep is linear and has no negative entries, so where one moves all errors by
    // at most `ratio` times what the one before did, all later ones together move them by at most
    // ratio / (1 - ratio) times that.
    bool sweep(i64 layer, const i64* neurons, i64 size, double rho) {
        for (i64 n = 0; n < MOST_ERROR_SWEEPS; n++) {
            double least = std::numeric_limits<double>::infinity(), ratio = 0.0;
            for (i64 j = 0; j < size; j++) {
                const i64 h = neurons[j];
                const double error = swept(layer, h, rho), step = error - errors[h];
                if (step > 0.0) {
                    const double own = steps[h] > 0.0 ? step / steps[h] : 2.0;
                    ratio = std::max(ratio, own);
                    least = std::min(least, own);
                }
                errors[h] = error;
                steps[h] = step;
            }
            if (!(ratio < 1.0)) continue;  // NaN, too
            const double rest = ratio / (1.0 - ratio);
            if (rest > 1e-2 && rest > 1.1 * least / (1.0 - least)) continue;
            for (i64 j = 0; j < size; j++) errors[neurons[j]] += rest * steps[neurons[j]];
            return true;
        }
        return false;
    }
};

}  // namespace fdgnn
