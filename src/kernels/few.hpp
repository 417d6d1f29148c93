// A few graphs from their arcs to their fixed points, in one call: calls are most of their time.
#pragma once

#include "quotient.hpp"
#include "scheduled.hpp"
#include "spectral.hpp"
#include "ways.hpp"

namespace fdgnn {

// The quotients of a few graphs, with what the engine has to know of each.
struct FewGraphs {
    BuiltQuotients q;
    std::vector<double> radii;     // of each graph: rho(A)
    std::vector<i32> codes;        // of each row, or none
    std::vector<double> features;  // of each row, or none
    Inputs inputs;                 // views of the two

    FewGraphs(const Structure& s, Span<const u64> first_colors, Span<const i32> vertex_codes,
              Grid<const double> vertex_features) {
        std::vector<u64> colors(first_colors.begin(), first_colors.end());
        const Refined found = refine(s, {nullptr, 0}, {colors.data(), first_colors.size}, 0);
        q = build_quotients(s, span(found.classes), span(found.n_classes), span(found.signatures));
        find_radii();
        for (i64 v : q.representatives) {
            if (!vertex_codes.empty()) codes.push_back(vertex_codes[v]);
            if (!vertex_features.empty())
                features.insert(features.end(), vertex_features[v], vertex_features[v + 1]);
        }
        const i64 n_rows = vertex_features.empty() ? 0 : static_cast<i64>(q.representatives.size());
        inputs = {span(codes), {features.data(), n_rows, vertex_features.columns}};
    }

    FewGraphs(const FewGraphs&) = delete;  // the views are of its own memory

    i64 n_graphs() const { return static_cast<i64>(q.quotient_of.size()); }
    i64 n_quotients() const { return static_cast<i64>(q.graphs.size()); }

    // Give each graph the numbers that its quotient has, in (n_rows, n_quotients, width).
    template <class T>
    std::vector<T> of_graphs(const std::vector<T>& values, i64 width) const {
        const i64 n = n_quotients(), n_rows = static_cast<i64>(values.size()) / (n * width);
        std::vector<T> found;
        found.reserve(n_rows * n_graphs() * width);
        for (i64 i = 0; i < n_rows; i++)
            for (i64 k : q.quotient_of) {
                const auto own = values.begin() + (i * n + k) * width;
                found.insert(found.end(), own, own + width);
            }
        return found;
    }

private:
    void find_radii() {
        std::vector<double> own(n_quotients());
        spectral_radii({span(q.row_offsets), span(q.indptr), span(q.sources), span(q.multiplicities)},
                       {own.data(), n_quotients()});
        for (i64 k : q.quotient_of) radii.push_back(own[k]);
    }
};

// What one reservoir gives, for each graph.
struct FewSolved {
    bool solved = false;           // whether certificates and float32 give it
    i64 n_slots = 0;
    std::vector<double> pooled;    // (n_slots, n_graphs, H)
    std::vector<i32> n_iter;       // (L, n_graphs)
    std::vector<double> residual;  // (L, n_graphs)
};

// Solve all quotients in float32, if that is the way of each of them. reservoir_radii (L,) are
// rho(|W_H|).
inline FewSolved solve_few(const FewGraphs& few, const Weights<float>& weights,
                           const Schedule& schedule, Span<const double> reservoir_radii, double tol,
                           double target) {
    const BuiltQuotients& q = few.q;
    const i64 n = few.n_quotients(), L = weights.n_layers(), H = weights.n_units();
    FewSolved found;
    std::vector<double> bounds;
    for (i64 i = 0; i < L; i++)
        for (double radius : few.radii) bounds.push_back(reservoir_radii[i] * radius);
    const Ways ways = choose_ways({bounds.data(), L, few.n_graphs()}, span(q.graphs),
                                  span(q.row_offsets), span(q.sizes), tol, true);
    if (ways.counts[SINGLE] < n) return found;
    found.n_slots = *std::max_element(schedule.slots.begin(), schedule.slots.end()) + 1;
    std::vector<double> pooled(found.n_slots * n * H, 0.0), residual(L * n, 0.0);
    std::vector<i32> n_iter(L * n, 0);
    solve_blocks(0, static_cast<i64>(q.block_offsets.size()) - 1, span(q.block_offsets),
                 span(q.blocks), views_of(q), few.inputs, weights, schedule,
                 Goal{{ways.contractions.data(), L, n}, target, span(ways.resolution)},
                 Outputs{{pooled.data(), found.n_slots, n, H}, {n_iter.data(), L, n},
                         {residual.data(), L, n}, {nullptr, 0, 0, 0}});
    found.solved =
        std::all_of(pooled.begin(), pooled.end(), [](double x) { return std::isfinite(x); });
    found.pooled = few.of_graphs(pooled, H);
    found.n_iter = few.of_graphs(n_iter, 1);
    found.residual = few.of_graphs(residual, 1);
    return found;
}

}  // namespace fdgnn
