// The fixed points of a batch, each graph by its own method, and of a few graphs from their arcs on.
#pragma once

#include "plan.hpp"
#include "program.hpp"
#include "quotient.hpp"
#include "scheduled.hpp"
#include "spectral.hpp"
#include "trajectory.hpp"

namespace fdgnn {

// How many graphs were solved by each method, and how many sums of states are infinite or NaN.
struct Counts {
    i64 n_single = 0, n_double = 0, n_steps = 0, n_infinite = 0;
};

// The blocks `first` to `last` with the quotients of this method only.
struct BlocksByMethod {
    std::vector<i64> offsets{0}, blocks;

    BlocksByMethod(i64 first, i64 last, const BoundQuotients& b, Span<const Plan> plans,
                   Method method) {
        for (i64 i = first; i < last; i++) {
            for (i64 k : b.blocks.part(b.block_offsets[i], b.block_offsets[i + 1]))
                if (plans[k].method == method) blocks.push_back(k);
            if (size() > offsets.back()) offsets.push_back(size());
        }
    }
    i64 size() const { return static_cast<i64>(blocks.size()); }
};

template <class T>
i64 solve_blocks(const BlocksByMethod& some, const Task& task, const Program& program,
                 Span<Plan> plans, const Outputs& out) {
    const i64 n = static_cast<i64>(some.offsets.size()) - 1;
    if (n == 0) return 0;
    BlockSolver<T> solver(0, n, span(some.offsets), span(some.blocks), task, program, plans, out);
    for (i64 i = 0; i < n; i++)
        solver.solve(span(some.blocks).part(some.offsets[i], some.offsets[i + 1]));
    return solver.n_infinite;
}

// Solve the quotients in the blocks `first` to `last`, or all if `last` is negative; fill `out` for all
// graphs that have them. With `only_certified`, no graph is solved if one is not certified.
inline Counts solve(i64 first, i64 last, const Task& task, const Program& program,
                    bool only_certified, const Outputs& out) {
    const BoundQuotients& b = task.graphs;
    if (last < 0) last = b.block_offsets.size - 1;
    std::vector<Plan> plans(b.graphs.size);
    const Span<Plan> all{plans.data(), b.graphs.size};
    for (i64 k : b.blocks.part(b.block_offsets[first], b.block_offsets[last]))
        plans[k] = plan(k, task, program);

    Counts counts;
    const BlocksByMethod singles(first, last, b, span(plans), Method::FLOAT32);
    const BlocksByMethod steps(first, last, b, span(plans), Method::LITERAL);
    counts.n_steps = steps.size();
    if (steps.size() > 0 && only_certified) return counts;
    counts.n_infinite = solve_blocks<float>(singles, task, program, all, out);
    const BlocksByMethod doubles(first, last, b, span(plans), Method::FLOAT64);  // some were single
    counts.n_double = doubles.size();
    counts.n_single =
        b.block_offsets[last] - b.block_offsets[first] - doubles.size() - steps.size();
    for (i64 k : doubles.blocks)
        for (i64 layer = 0; layer < out.n_iter.rows; layer++) {
            out.n_iter[layer][b.graphs[k]] = 0;
            out.residual[layer][b.graphs[k]] = 0.0;
        }
    counts.n_infinite += solve_blocks<double>(doubles, task, program, all, out);
    if (steps.size() > 0) follow_graphs(span(steps.blocks), task, program, out);

    for (i64 g = 0; g < b.quotient_of.size; g++) {  // the same for graphs with one quotient
        const i64 k = b.quotient_of[g], own = b.graphs[k];
        if (own == g || plans[k].method == Method::NONE) continue;
        for (i64 i = 0; i < out.pooled.layers; i++)
            std::copy_n(&out.pooled[i][own][0], out.pooled.columns, &out.pooled[i][g][0]);
        for (i64 layer = 0; layer < out.n_iter.rows; layer++) {
            out.n_iter[layer][g] = out.n_iter[layer][own];
            out.residual[layer][g] = out.residual[layer][own];
        }
    }
    return counts;
}

// A few graphs without arc weights: their quotients, built from their arcs, and the data that the
// engine needs.
struct FewGraphs {
    BuiltQuotients built;
    BoundQuotients quotients;
    std::vector<double> radii;  // of each graph: rho(A)

    FewGraphs(const Structure& s, Span<const u64> first_colors)
        : built(quotients_of(s, first_colors)),
          quotients(views_of(built)),
          radii(radii_of_graphs(quotients)) {}
    FewGraphs(const FewGraphs&) = delete;  // the views are of its own memory

  private:
    static BuiltQuotients quotients_of(const Structure& s, Span<const u64> first_colors) {
        std::vector<u64> colors(first_colors.begin(), first_colors.end());
        const Refined found = refine(s, {nullptr, 0}, {colors.data(), first_colors.size}, 0);
        return build_quotients(s, span(found.classes), span(found.n_classes),
                               span(found.signatures));
    }
};

}  // namespace fdgnn
