// The weights of a reservoir with one connection each way: drawn and scaled.
#pragma once

#include "random.hpp"
#include "wiring.hpp"

namespace fdgnn {

// The matrices of a layer, in the order of `fdgnn.seeds.Matrix`.
enum Drawn : u32 { INPUT, RECURRENT, BIAS };

// Layers of H units with one connection each.
struct DrawnLayers {
    std::vector<i32> inputs, recurrent;                        // (L, H) sources
    std::vector<double> input_values, recurrent_values, bias;  // (L, H)
};

// Draw L layers, with weights from -1 to 1; the units of the first read n_inputs inputs. Each matrix
// has a stream of its own.
inline DrawnLayers draw_layers(Span<const u32> entropy, i64 L, i64 H, i64 n_inputs) {
    const size_t n = static_cast<size_t>(L * H);
    DrawnLayers found{std::vector<i32>(n), std::vector<i32>(n), std::vector<double>(n),
                      std::vector<double>(n), std::vector<double>(n)};
    for (i64 i = 0; i < L; i++) {
        const auto stream = [&](Drawn matrix) {
            const u32 key[] = {static_cast<u32>(i), matrix};
            return Stream(entropy, {key, 2});
        };
        const auto connect = [&](Drawn matrix, i64 n_sources, i32* sources, double* values) {
            Stream numbers = stream(matrix);
            numbers.fill_below(static_cast<u32>(n_sources), {sources + i * H, H});
            numbers.fill_uniform({values + i * H, H});
        };
        connect(INPUT, i == 0 ? n_inputs : H, found.inputs.data(), found.input_values.data());
        connect(RECURRENT, H, found.recurrent.data(), found.recurrent_values.data());
        stream(BIAS).fill_uniform({found.bias.data() + i * H, H});
    }
    return found;
}

// The scales of the weights.
struct Scaling {
    double rho, k;              // rho(W_H) k = rho
    double first_input, input;  // W_I of the first layer, and of the others
    double bias;                // NaN: as the input of the layer
};

inline void scale(double factor, Span<double> values) {
    for (double& value : values) value *= factor;
}

// Scale weights that were drawn from -1 to 1.
inline void scale_layers(DrawnLayers& drawn, i64 L, i64 H, const Scaling& to) {
    const std::vector<double> radii =
        cycle_radii({drawn.recurrent.data(), L, H, 1}, {drawn.recurrent_values.data(), L, H, 1});
    for (i64 i = 0; i < L; i++) {
        const auto layer = [&](std::vector<double>& values) {
            return Span<double>{values.data() + i * H, H};
        };
        const double omega = i == 0 ? to.first_input : to.input;
        scale(to.rho / (radii[i] * to.k), layer(drawn.recurrent_values));
        scale(omega, layer(drawn.input_values));
        scale(std::isnan(to.bias) ? omega : to.bias, layer(drawn.bias));
    }
}

}  // namespace fdgnn
