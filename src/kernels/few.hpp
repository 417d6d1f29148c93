// Graphs solved in one call, in one precision and by one thread: of small ones, calls are most of the time.
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

// A few graphs without arc weights, from their arcs on: their quotients, and what the engine has to know
// of each.
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
    bool complete = false;         // whether this precision is that of all graphs
    i64 n_slots = 0;
    Row<double> pooled;            // (n_slots, n_graphs, H)
    std::vector<i32> n_iter;       // (L, n_graphs)
    std::vector<double> residual;  // (L, n_graphs)
};

// Give each graph the number that its quotient has, in (n_rows, n_quotients).
template <class T>
std::vector<T> of_graphs(const BoundQuotients& b, std::vector<T>&& values) {
    const i64 n = b.graphs.size, n_graphs = b.quotient_of.size;
    if (n == n_graphs) return std::move(values);  // all graphs differ: quotient k is graph k
    std::vector<T> found;
    found.reserve(values.size() / n * n_graphs);
    for (const T* row = values.data(); row < values.data() + values.size(); row += n)
        for (i64 k : b.quotient_of) found.push_back(row[k]);
    return found;
}

// Give the other graphs of each quotient the sums that its first one has, in (n_slots, n_graphs, H).
inline void copy_sums(const BoundQuotients& b, Cube<double> pooled) {
    for (i64 g = 0; g < b.quotient_of.size; g++) {
        const i64 first = b.graphs[b.quotient_of[g]];
        for (i64 i = 0; first != g && i < pooled.layers; i++)
            std::copy_n(pooled[i][first], pooled.columns, pooled[i][g]);
    }
}

// Solve all quotients in the precision of the program, if that is the way of each of them. radii
// (n_graphs,) are rho(A).
template <class T>
Solved solve_at_once(const BoundQuotients& b, Span<const double> radii, const Inputs& inputs,
                     const Program<T>& program, double tol, bool directed) {
    const i64 n = b.graphs.size, L = program.weights.n_layers(), H = program.weights.n_units();
    Solved found;
    constexpr bool single = std::is_same_v<T, float>;
    Ways ways = choose_ways(radii, program, b.graphs, b.quotients.row_offsets,
                                  b.quotients.sizes, tol, true, directed);
    if (ways.counts[single ? SINGLE : DOUBLE] < n) return found;
    if (!single)
        for (double& each : ways.resolution) each *= FINER;
    const Schedule& schedule = program.schedule;
    found.n_slots = *std::max_element(schedule.slots.begin(), schedule.slots.end()) + 1;
    found.pooled = Row<double>(found.n_slots * radii.size * H);
    const Cube<double> pooled{found.pooled.data(), found.n_slots, radii.size, H};
    std::vector<double> residual(L * n, 0.0);
    std::vector<i32> n_iter(L * n, 0);
    const Goal goal{{ways.contractions.data(), L, n}, tol, span(ways.resolution),
                    span(ways.amplification)};
    const Outputs out{pooled, {n_iter.data(), L, n}, {residual.data(), L, n}, {nullptr, 0, 0, 0},
                      b.graphs.at};
    found.complete = solve_blocks(0, b.block_offsets.size - 1, b.block_offsets, b.blocks, b.quotients,
                                  inputs, program.weights, schedule, goal, out);
    copy_sums(b, pooled);
    found.n_iter = of_graphs(b, std::move(n_iter));
    found.residual = of_graphs(b, std::move(residual));
    return found;
}

}  // namespace fdgnn
