// A reservoir as the engine runs it: its weights in both precisions, and the orders of evaluation.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>

#include "amplification.hpp"
#include "reservoir.hpp"
#include "wiring.hpp"

namespace fdgnn {

// A schedule with the memory that its views show.
class OwnSchedule {
  public:
    // slots (L,) are the places of the requested layers, or -1.
    OwnSchedule(const Weights<double>& weights, Span<const i64> slots)
        : slots(slots.begin(), slots.end()) {
        const i64 L = weights.n_layers(), H = weights.n_units();
        marks.reset(new bool[2 * L * H + L]());
        const Grid<bool> summed{marks.get(), L, H}, kept{marks.get() + L * H, L, H};
        const Span<bool> wanted{marks.get() + 2 * L * H, L};
        for (i64 i = 0; i < L; i++) wanted[i] = slots[i] >= 0;
        order = order_layers(weights.rec_sources, weights.in_sources, {wanted.at, L}, summed, kept);
        views = {span(order.units),     span(order.components), span(order.layers),
                 span(order.n_checked), span(order.period),     {summed.at, L, H},
                 {kept.at, L, H},       span(this->slots)};
    }
    OwnSchedule(const OwnSchedule&) = delete;  // the views are of its own memory

    Schedule views;

  private:
    std::vector<i64> slots;
    std::unique_ptr<bool[]> marks;
    Order order;
};

constexpr i64 MOST_ROWS = 64;  // earlier steps remembered for each unit, on average

// The units of each layer: the core, which has dynamics, and the trees that depend on it.
//
// Drawn wirings need about ten earlier steps for each unit. Long chains, which a file can have, would
// need as many as they have units: these count as core, which gives the same result.
class Trees {
  public:
    // `every` schedules all units.
    Trees(const Weights<double>& weights, const Schedule& every)
        : L(weights.n_layers()),
          H(weights.n_units()),
          marks(new bool[L * H]()),
          own_heights(L * H),
          own_first_rows(L * H),
          core{marks.get(), L, H},
          heights{own_heights.data(), L, H},
          first_rows{own_first_rows.data(), L, H} {
        for (i64 i = 0; i < L; i++) {
            const i64 a = every.layers[i], b = every.layers[i + 1];
            tree_heights(weights.rec_sources[i], every.order, every.components.part(a, b + 1),
                         every.n_checked.part(a, b), {core[i], H}, {heights[i], H});
        }
        while (count_rows() > MOST_ROWS * H)
            for (i64 i = 0; i < L; i++) {
                if (tallest(i) + 3 < window) continue;
                std::fill_n(&core[i][0], H, true);
                std::fill_n(&heights[i][0], H, 0);
            }
    }
    Trees(const Trees&) = delete;  // the views are of its own memory

  private:
    const i64 L, H;
    std::unique_ptr<bool[]> marks;
    std::vector<i64> own_heights, own_first_rows;

    i64 tallest(i64 layer) const {
        return *std::max_element(&heights[layer][0], &heights[layer][0] + H);
    }

    i64 count_rows() {
        window = 0, n_rows = 0;
        for (i64 i = 0; i < L; i++) window = std::max(window, tallest(i) + 3);
        for (i64 i = 0; i < L; i++) {
            i64 end = 0;
            for (i64 h = 0; h < H; h++) {
                first_rows[i][h] = end;
                end += core[i][h] ? window : heights[i][h] + 1;
            }
            n_rows = std::max(n_rows, end);
        }
        return n_rows;
    }

  public:
    const Grid<bool> core;       // (L, H) does the unit have dynamics?
    const Grid<i64> heights;     // (L, H) over how many units outside the core its state travels
    const Grid<i64> first_rows;  // (L, H) where the unit begins among the earlier steps
    i64 window = 0;              // how many steps of the core are remembered
    i64 n_rows = 0;              // number of steps of all units, in the layer with the most
};

// `fdgnn.reservoir.weights.DeepReservoir.program`. Others own the given weights and radii.
class Program {
  public:
    // slots (L,) are the places of the requested layers, or -1; radii (L,) are rho(|W_H|).
    Program(const Weights<double>& given, Span<const i64> slots, Span<const double> radii,
            bool fits_single)
        : radii(radii),
          fits_single(fits_single),
          exact(given),
          first(converted(flat(given.first.values))),
          in(converted(flat(given.in_values))),
          rec(converted(flat(given.rec_values))),
          bias(converted(flat(given.bias))),
          own(given, slots) {
        const i64 L = given.n_layers(), H = given.n_units();
        rounded = {{given.first.sources, {first.data(), H, given.first.values.columns}},
                   given.in_sources,
                   {in.data(), L - 1, H, given.in_values.columns},
                   given.rec_sources,
                   {rec.data(), L, H, given.rec_values.columns},
                   {bias.data(), L, H}};
        if (std::count(slots.begin(), slots.end(), -1) > 0) {
            std::vector<i64> everything(L);
            for (i64 i = 0; i < L; i++) everything[i] = i;
            all.emplace(given, span(everything));
        }
        has_only_cycles = every().has_only_cycles();
        amplifications.emplace(exact, every(), radii);
    }
    Program(const Program&) = delete;  // the views are of its own memory

    template <class T>
    const Weights<T>& weights() const {
        if constexpr (std::is_same_v<T, float>)
            return rounded;
        else
            return exact;
    }
    const Schedule& schedule() const { return own.views; }
    // The schedule of all units, whichever layers are requested.
    const Schedule& every() const { return all ? all->views : own.views; }
    // How far errors of cycles may be amplified on a graph with this spectral radius.
    double amplification(double rho) const { return amplifications->at(rho); }

    // The trees of all units, computed on first use.
    const Trees& trees() const {
        std::call_once(parted, [&] { own_trees.emplace(exact, every()); });
        return *own_trees;
    }

    i64 n_slots() const {
        return *std::max_element(own.views.slots.begin(), own.views.slots.end()) + 1;
    }

    const Span<const double> radii;  // (L,) rho(|W_H|)
    const bool fits_single;          // whether no weight is too large for float32
    bool has_only_cycles;            // whether no component is more than one cycle

  private:
    Weights<double> exact;
    Weights<float> rounded;
    std::vector<float> first, in, rec, bias;
    OwnSchedule own;
    std::optional<OwnSchedule> all;
    std::optional<Amplifications> amplifications;
    mutable std::once_flag parted;
    mutable std::optional<Trees> own_trees;

    static std::vector<float> converted(Span<const double> values) {
        return std::vector<float>(values.begin(), values.end());
    }
};

}  // namespace fdgnn
