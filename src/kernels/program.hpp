// A reservoir as the engine runs it: its weights in one precision, and the order of evaluation.
#pragma once

#include <memory>

#include "reservoir.hpp"
#include "wiring.hpp"

namespace fdgnn {

// `fdgnn.reservoir.weights.DeepReservoir.program`. Others own the given weights and radii.
template <class T>
class Program {
public:
    // slots (L,) are the places of the layers that are wanted, or -1.
    Program(const Weights<double>& given, Span<const i64> slots, Span<const double> radii)
        : radii(radii),
          given(given),
          first(converted(flat(given.first.values))),
          in(converted(flat(given.in_values))),
          rec(converted(flat(given.rec_values))),
          bias(converted(flat(given.bias))),
          own_slots(slots.begin(), slots.end()) {
        const i64 L = given.n_layers(), H = given.n_units();
        weights = {{given.first.sources, {first.data(), H, given.first.values.columns}},
                   given.in_sources, {in.data(), L - 1, H, given.in_values.columns},
                   given.rec_sources, {rec.data(), L, H, given.rec_values.columns},
                   {bias.data(), L, H}};
        marks.reset(new bool[2 * L * H + L]());
        const Grid<bool> summed{marks.get(), L, H}, kept{marks.get() + L * H, L, H};
        const Span<bool> wanted{marks.get() + 2 * L * H, L};
        for (i64 i = 0; i < L; i++) wanted[i] = slots[i] >= 0;
        order = order_layers(given.rec_sources, given.in_sources, {wanted.at, L}, summed, kept);
        every = order;
        if (std::count(wanted.begin(), wanted.end(), true) < L) {
            std::unique_ptr<bool[]> all(new bool[2 * L * H + L]());
            std::fill_n(all.get(), L, true);
            every = order_layers(given.rec_sources, given.in_sources, {all.get(), L},
                                 {all.get() + L, L, H}, {all.get() + L + L * H, L, H});
        }
        schedule = {span(order.neurons), span(order.components), span(order.layers),
                    span(order.n_checked), span(order.period), {summed.at, L, H}, {kept.at, L, H},
                    span(own_slots)};
    }

    Weights<T> weights;
    Schedule schedule;
    Span<const double> radii;  // (L,) rho(|W_H|)
    Weights<double> given;     // the same in float64
    Order every;               // of all neurons, whichever layers are wanted

private:
    std::vector<T> first, in, rec, bias;
    std::vector<i64> own_slots;
    std::unique_ptr<bool[]> marks;
    Order order;

    static std::vector<T> converted(Span<const double> values) {
        return std::vector<T>(values.begin(), values.end());
    }
};

}  // namespace fdgnn
