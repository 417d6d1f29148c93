// How far the states of a reservoir can be from the fixed point when its components stop moving.
//
// On a symmetric graph with rho = rho(|A|), let e_h = |x_h - x*_h| be the errors of the units of a layer
// and d_h the errors of the arguments of tanh, where |.| is the Euclidean norm over vertices. Then
//
//     d = rho |W_H| e + |W_I| e_below + r       and       e_h <= f_h d_h,
//
// where r_h is how far the sources of unit h moved since h was evaluated: 0 if it is evaluated once.
// In a component that is swept, sources move after h was evaluated for the last time: if the checked
// units moved by m in the last sweep, r_h <= rho |W_H[h, those]| m.
//
// Before states are known, f_h = 1, because tanh has a slope of at most 1. `ErrorBound` solves the
// equations for this, with m = 1; its solution is the amplification of a graph.
//
// When states are known, f_h can be much smaller. Let a state x have the error e, and the argument of
// tanh the error d. Because tanh a - tanh b = tanh(a - b) (1 - tanh a tanh b),
//
//     e <= d (1 - x x*) <= d (1 - x^2 + |x| e) <= d (1 - x^2) + d e,   so   e <= d (1 - x^2) / (1 - d)
//
// if d < 1. With s_h, the largest 1 - x^2 over the vertices of the graph, and because 1 / (1 - d) is at
// most 1 + 2 d for d <= 1/2, f_h = min(1, s_h (1 + 2 d_h)) if d_h <= 1/2, else 1. Where units form one
// cycle, d_h is first bounded with f = 1. `SlopeBound` does this for the graphs of a block.
#pragma once

#include <atomic>
#include <cmath>
#include <limits>

#include "reservoir.hpp"

namespace fdgnn {

constexpr i64 MOST_ERROR_SWEEPS = 1000;
constexpr double MOST_AMPLIFIED = 1e9;  // beyond this, the bound is useless even in float64
constexpr double UNBOUNDED = 1e300;

class ErrorBound {
  public:
    ErrorBound(const Weights<double>& weights, const Schedule& every)
        : weights(weights),
          every(every),
          errors(weights.n_units()),
          below(errors.size()),
          sources(errors.size()),
          steps(errors.size()) {}

    // The largest Frobenius norm of the errors of a layer, where every component stopped after moving
    // by 1, on a graph with this spectral radius; UNBOUNDED if it is too large to be of use.
    double amplification(double rho) {
        double largest = 0.0;
        for (i64 layer = 0; layer < weights.n_layers(); layer++) {
            std::swap(errors, below);
            double square = 0.0;
            for (i64 c = every.layers[layer]; c < every.layers[layer + 1]; c++)
                if (!solve(layer, c, rho)) return UNBOUNDED;
            for (double error : errors) square += error * error;
            largest = std::max(largest, std::sqrt(square));
        }
        return largest < MOST_AMPLIFIED ? largest : UNBOUNDED;
    }

  private:
    const Weights<double>& weights;
    const Schedule& every;
    std::vector<double> errors, below;  // (H,) of the layer and of the one below
    std::vector<double> sources,
        steps;  // (H,) the constant terms; how far a sweep moved each error

    // Errors of one component, all that it reads outside being known.
    bool solve(i64 layer, i64 c, double rho) {
        const Span<const i64> units = every.units_of(c);
        for (i64 h : units) {
            sources[h] = 0.0;
            if (every.n_checked[c] > 0) errors[h] = 0.0;
            if (layer == 0) continue;
            const Wiring<double> in = weights.input(layer);
            for (i64 k = 0; k < in.sources.columns; k++)
                sources[h] += std::abs(in.values[h][k]) * below[in.sources[h][k]];
        }
        if (every.n_checked[c] == 0) {
            errors[units[0]] = swept(layer, units[0], rho);
            return true;
        }
        if (every.is_cycle(c)) return go_around(layer, units, rho);
        add_residuals(layer, units, rho);
        return sweep(layer, units, rho);
    }

    double swept(i64 layer, i64 h, double rho) const {
        const Wiring<double> W = weights.recurrent(layer);
        double total = sources[h];
        for (i64 k = 0; k < W.sources.columns; k++)
            total += rho * std::abs(W.values[h][k]) * errors[W.sources[h][k]];
        return total;
    }

    // Solve a cycle. Its first unit is checked, and evaluated once more at the end, so only the
    // second one was evaluated before its move. Errors are linear in the first unit's, here zero.
    bool go_around(i64 layer, Span<const i64> units, double rho) {
        const i64 m = units.size;
        double gain = 1.0, error = 0.0;
        for (i64 j = 1; j <= m; j++) {
            const i64 h = units[j % m];
            const double weight = rho * std::abs(inner_weight(layer, h, units[j - 1]));
            sources[h] =
                swept(layer, h, rho) + (j == 1 ? weight : 0.0);  // all but the error before
            steps[h] = weight;
            error = weight * error + sources[h];
            gain *= weight;
        }
        if (!(gain < 1.0)) return false;
        error /= 1.0 - gain;
        errors[units[0]] = error;
        for (i64 j = 1; j < m; j++) {
            error = steps[units[j]] * error + sources[units[j]];
            errors[units[j]] = error;
        }
        return true;
    }

    // The weight with which a unit of a cycle reads the one before it.
    double inner_weight(i64 layer, i64 h, i64 before) const {
        const Wiring<double> W = weights.recurrent(layer);
        i64 k = 0;
        while (W.sources[h][k] != before) k++;
        return W.values[h][k];
    }

    // Units of a denser component are evaluated in order, and all are checked. A unit reads old
    // states of itself and of sources that are evaluated after it.
    void add_residuals(i64 layer, Span<const i64> units, double rho) {
        const Wiring<double> W = weights.recurrent(layer);
        std::vector<i64> time(errors.size(), -1);
        for (i64 j = 0; j < units.size; j++) time[units[j]] = j;
        for (i64 j = 0; j < units.size; j++) {
            const i64 h = units[j];
            double square = 0.0;
            for (i64 k = 0; k < W.sources.columns; k++)
                if (time[W.sources[h][k]] >= j) square += W.values[h][k] * W.values[h][k];
            sources[h] += rho * std::sqrt(square);
            steps[h] = 0.0;
        }
    }

    // Sweep from zero. A sweep is linear without negative coefficients. If it moves all errors by
    // at most `ratio` times the previous move, all later sweeps together move them by at most
    // ratio / (1 - ratio) times its move.
    bool sweep(i64 layer, Span<const i64> units, double rho) {
        for (i64 n = 0; n < MOST_ERROR_SWEEPS; n++) {
            double least = std::numeric_limits<double>::infinity(), ratio = 0.0;
            for (i64 h : units) {
                const double error = swept(layer, h, rho), step = error - errors[h];
                if (step > 0.0) {
                    const double own = steps[h] > 0.0 ? step / steps[h] : 2.0;
                    ratio = std::max(ratio, own);
                    least = std::min(least, own);
                }
                errors[h] = error;
                steps[h] = step;
            }
            if (!(ratio < 1.0)) continue;  // also NaN
            const double rest = ratio / (1.0 - ratio);
            if (rest > 1e-2 && rest > 1.1 * least / (1.0 - least)) continue;
            for (i64 h : units) errors[h] += rest * steps[h];
            return true;
        }
        return false;
    }
};

// Amplification by spectral radius. It is computed on a grid of contractions q = 1 - 2^(-k / 4) that
// does not depend on the graphs of a batch, and rounded up, because it grows with the radius. Threads may
// compute the same entry, with the same result.
class Amplifications {
  public:
    Amplifications(const Weights<double>& weights, const Schedule& every, Span<const double> radii)
        : weights(weights), every(every), known(MOST_ENTRIES) {
        for (double radius : radii) largest = std::max(largest, radius);
        for (std::atomic<double>& each : known) each.store(-1.0, std::memory_order_relaxed);
    }

    double at(double rho) const {
        const double q = largest * rho;
        if (q == 0.0) return 0.0;  // no component is swept, or no vertex has neighbors
        const i64 k = static_cast<i64>(std::ceil(-4.0 * std::log2(1.0 - q)));
        double found = known[k].load(std::memory_order_relaxed);
        if (found < 0.0) {
            const double upper = std::max(q, 1.0 - std::exp2(-static_cast<double>(k) / 4.0));
            found = ErrorBound(weights, every).amplification(upper / largest);
            known[k].store(found, std::memory_order_relaxed);
        }
        return found;
    }

  private:
    static constexpr i64 MOST_ENTRIES = 4 * 53 + 1;  // of q < 1 in float64

    const Weights<double>& weights;
    const Schedule& every;
    double largest = 0.0;  // rho(|W_H|) of all layers
    mutable std::vector<std::atomic<double>> known;
};

// Errors of the computed states, with one column for each graph of a block, in whole vectors of
// float32. Columns beyond the last graph are zero.
class SlopeBound {
  public:
    using Columns = Row<float>;

    SlopeBound(const Weights<double>& weights, i64 n_columns)
        : weights(weights),
          errors{Table<float>(weights.n_units(), n_columns),
                 Table<float>(weights.n_units(), n_columns)},
          gains(weights.n_units(), n_columns),
          terms(weights.n_units(), n_columns),
          products(n_columns),
          squares(n_columns) {}

    // Begin a layer on graphs with these spectral radii, in n columns.
    void begin(i64 of_layer, i64 n_columns, const Columns& spectral_radii) {
        layer = of_layer;
        n = n_columns;
        rho = spectral_radii.data();
        std::fill_n(squares.begin(), n, 0.0f);
    }

    // Bound the error of a unit that was evaluated once, with the slopes at its states.
    void evaluate(i64 h, const Columns& slopes) {
        float* RESTRICT e = here()[h];
        float* RESTRICT total = squares.data();
        const float* RESTRICT slope = slopes.data();
        const auto keep = [&](i64 k, float d) {
            e[k] = d * factor(slope[k], d);
            total[k] += e[k] * e[k];
        };
        const Wiring<double> W = weights.recurrent(layer), in = weights.input(layer);
        if (W.sources.columns > 1 || (layer > 0 && in.sources.columns > 1)) {
            find_terms(h, -1, e);
            return each([&](i64 k) { keep(k, e[k]); });
        }
        const float w = magnitude(W.values[h][0]),
                    u = layer > 0 ? magnitude(in.values[h][0]) : 0.0f;
        const float* RESTRICT radius = rho;
        const float* RESTRICT source = here()[W.sources[h][0]];
        const float* RESTRICT below = layer > 0 ? there()[in.sources[h][0]] : source;
        each([&](i64 k) { keep(k, radius[k] * w * source[k] + u * below[k]); });
    }

    // Bound the errors of a cycle that moved by `moved` in its last sweep; slopes(h) are those at the
    // states of a unit.
    template <class Slopes>
    void solve_cycle(Span<const i64> units, const Columns& moved, Slopes slopes) {
        const i64 m = units.size;
        const float* RESTRICT radius = rho;
        for (i64 j = 1; j <= m; j++) {
            const i64 h = units[j % m];
            float* RESTRICT term = terms[h];
            float* RESTRICT gain = gains[h];
            const float* RESTRICT move = moved.data();
            const float w = find_terms(h, units[j - 1], term), unseen = j == 1 ? 1.0f : 0.0f;
            each([&](i64 k) {
                gain[k] = radius[k] * w;
                term[k] += unseen * gain[k] * move[k];
            });
        }
        go_around(units);
        for (i64 h : units) {
            const float* RESTRICT slope = slopes(h).data();
            const float* RESTRICT d = here()[h];
            float* RESTRICT gain = gains[h];
            float* RESTRICT term = terms[h];
            each([&](i64 k) {
                const float f = factor(slope[k], d[k]);
                gain[k] *= f;
                term[k] *= f;
            });
        }
        go_around(units);
        float* RESTRICT total = squares.data();
        for (i64 h : units) {
            const float* RESTRICT e = here()[h];
            each([&](i64 k) { total[k] += e[k] * e[k]; });
        }
    }

    // The Frobenius norm of the errors of this layer on graph k, with room for the rounding of the bound.
    double error(i64 k) const { return 1.001 * std::sqrt(static_cast<double>(squares[k])); }

  private:
    const Weights<double>& weights;
    i64 layer = 0, n = 0;
    const float* rho = nullptr;
    Table<float> errors[2];     // of this layer and of the one below
    Table<float> gains, terms;  // of the units of a cycle: e = gain (e of the one before) + term
    Columns products, squares;

    Table<float>& here() { return errors[layer % 2]; }
    Table<float>& there() { return errors[(layer + 1) % 2]; }

    static float magnitude(double weight) { return static_cast<float>(std::abs(weight)); }

    // Full vectors: remainders would take as long as the rest.
    template <class F>
    void each(F work) const {
        for (i64 start = 0; start < n; start += WHOLE_ROWS)
            for (i64 k = start; k < start + WHOLE_ROWS; k++) work(k);
    }

    static float factor(float slope, float d) {
        const float f = std::min(1.0f, slope * (1.0f + 2.0f * d));
        return d <= 0.5f ? f : 1.0f;
    }

    // d = rho |W_H| e + |W_I| e_below for unit h; the weight of the source `before` is left out, and
    // returned.
    float find_terms(i64 h, i64 before, float* RESTRICT d) {
        float left_out = 0.0f;
        const float* RESTRICT radius = rho;
        const Wiring<double> W = weights.recurrent(layer);
        std::fill_n(d, n, 0.0f);
        for (i64 c = 0; c < W.sources.columns; c++) {
            const float w = magnitude(W.values[h][c]);
            const float* RESTRICT e = here()[W.sources[h][c]];
            if (W.sources[h][c] == before)
                left_out = w;
            else
                each([&](i64 k) { d[k] += radius[k] * w * e[k]; });
        }
        if (layer == 0) return left_out;
        const Wiring<double> in = weights.input(layer);
        for (i64 c = 0; c < in.sources.columns; c++) {
            const float w = magnitude(in.values[h][c]);
            const float* RESTRICT e = there()[in.sources[h][c]];
            each([&](i64 k) { d[k] += w * e[k]; });
        }
        return left_out;
    }

    // Solve e = gain (e of the unit before) + term around a cycle.
    void go_around(Span<const i64> units) {
        const i64 m = units.size;
        float* RESTRICT product = products.data();
        float* RESTRICT first = here()[units[0]];
        std::fill_n(product, n, 1.0f);
        std::fill_n(first, n, 0.0f);
        for (i64 j = 1; j <= m; j++) {
            const float* RESTRICT gain = gains[units[j % m]];
            const float* RESTRICT term = terms[units[j % m]];
            each([&](i64 k) {
                first[k] = gain[k] * first[k] + term[k];
                product[k] *= gain[k];
            });
        }
        // Only rounding can make a product 1, where nothing is proven.
        each([&](i64 k) {
            first[k] = product[k] < 1.0f ? first[k] / (1.0f - product[k]) : HUGE_VALF;
        });
        for (i64 j = 1; j < m; j++) {
            const float* RESTRICT before = here()[units[j - 1]];
            const float* RESTRICT gain = gains[units[j]];
            const float* RESTRICT term = terms[units[j]];
            float* RESTRICT e = here()[units[j]];
            each([&](i64 k) { e[k] = gain[k] * before[k] + term[k]; });
        }
    }
};

}  // namespace fdgnn
