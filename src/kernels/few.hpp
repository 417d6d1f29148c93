// Graphs solved in one call, in float32 and by one thread: of small ones, calls are most of the time.
#pragma once

#include "program.hpp"
#include "quotient.hpp"
#include "scheduled.hpp"
#include "spectral.hpp"
#include "ways.hpp"

namespace fdgnn {

// What the first layer reads in each row of quotients.
class RowInputs {
public:
    RowInputs(Span<const i64> representatives, Span<const i32> vertex_codes,
              Grid<const double> vertex_features) {
        if (!vertex_codes.empty()) {
            codes.resize(representatives.size);
            for (i64 r = 0; r < representatives.size; r++) codes[r] = vertex_codes[representatives[r]];
        }
        if (!vertex_features.empty())
            for (i64 v : representatives)
                features.insert(features.end(), vertex_features[v], vertex_features[v + 1]);
        const i64 n_rows = vertex_features.empty() ? 0 : representatives.size;
        views = {span(codes), {features.data(), n_rows, vertex_features.columns}};
    }
    RowInputs(const RowInputs&) = delete;  // the views are of its own memory

    Inputs views;

private:
    std::vector<i32> codes;
    std::vector<double> features;
};

// A few graphs, from their arcs on: their quotients, and what the engine has to know of each.
struct FewGraphs {
    BuiltQuotients built;
    BoundQuotients quotients;
    std::vector<double> radii;  // of each graph: rho(A)
    RowInputs inputs;

    FewGraphs(const Structure& s, Span<const u64> first_colors, Span<const i32> vertex_codes,
              Grid<const double> vertex_features)
        : built(quotients_of(s, first_colors)),
          quotients(views_of(built)),
          radii(radii_of_graphs(quotients)),
          inputs(quotients.representatives, vertex_codes, vertex_features) {}

private:
    static BuiltQuotients quotients_of(const Structure& s, Span<const u64> first_colors) {
        std::vector<u64> colors(first_colors.begin(), first_colors.end());
        const Refined found = refine(s, {nullptr, 0}, {colors.data(), first_colors.size}, 0);
        return build_quotients(s, span(found.classes), span(found.n_classes),
                               span(found.signatures));
    }
};

// What one reservoir gives, for each graph.
struct Solved {
    bool complete = false;         // whether certificates and float32 give it
    i64 n_slots = 0;
    Row<double> pooled;            // (n_slots, n_graphs, H)
    std::vector<i32> n_iter;       // (L, n_graphs)
    std::vector<double> residual;  // (L, n_graphs)
};

// Give each graph the numbers that its quotient has, in (n_rows, n_quotients, width).
template <class Values>
Values of_graphs(const BoundQuotients& b, Values&& values, i64 width) {
    const i64 n = b.graphs.size, n_graphs = b.quotient_of.size;
    if (n == n_graphs) return std::move(values);  // all graphs differ: quotient k is graph k
    const i64 n_rows = static_cast<i64>(values.size()) / (n * width);
    Values found(n_rows * n_graphs * width);
    auto* next = found.data();
    for (i64 i = 0; i < n_rows; i++)
        for (i64 k : b.quotient_of)
            next = std::copy_n(values.data() + (i * n + k) * width, width, next);
    return found;
}

// Whether no number is infinite or NaN; all are looked at, which takes less than to stop at the first.
inline bool all_finite(const Row<double>& numbers) {
    u64 n_others = 0;
    for (double x : numbers) n_others += !(std::abs(x) <= std::numeric_limits<double>::max());
    return n_others == 0;
}

// Solve all quotients in float32, if that is the way of each of them. radii (n_graphs,) are rho(A).
inline Solved solve_at_once(const BoundQuotients& b, Span<const double> radii, const Inputs& inputs,
                            const Program<float>& program, double tol, double target) {
    const i64 n = b.graphs.size, L = program.weights.n_layers(), H = program.weights.n_units();
    Solved found;
    std::vector<double> bounds(L * radii.size);
    for (i64 i = 0; i < L; i++)
        for (i64 g = 0; g < radii.size; g++) bounds[i * radii.size + g] = program.radii[i] * radii[g];
    const Ways ways = choose_ways({bounds.data(), L, radii.size}, b.graphs, b.quotients.row_offsets,
                                  b.quotients.sizes, tol, true);
    if (ways.counts[SINGLE] < n) return found;
    const Schedule& schedule = program.schedule;
    found.n_slots = *std::max_element(schedule.slots.begin(), schedule.slots.end()) + 1;
    Row<double> pooled(found.n_slots * n * H);
    std::vector<double> residual(L * n, 0.0);
    std::vector<i32> n_iter(L * n, 0);
    solve_blocks(0, b.block_offsets.size - 1, b.block_offsets, b.blocks, b.quotients, inputs,
                 program.weights, schedule,
                 Goal{{ways.contractions.data(), L, n}, target, span(ways.resolution)},
                 Outputs{{pooled.data(), found.n_slots, n, H}, {n_iter.data(), L, n},
                         {residual.data(), L, n}, {nullptr, 0, 0, 0}});
    found.complete = all_finite(pooled);
    found.pooled = of_graphs(b, std::move(pooled), H);
    found.n_iter = of_graphs(b, std::move(n_iter), 1);
    found.residual = of_graphs(b, std::move(residual), 1);
    return found;
}

}  // namespace fdgnn
