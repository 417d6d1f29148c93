// The engine as a Python module, compiled once for each kind of processor (FDGNN_MODULE is its name).
#include "few.hpp"
#include "paper_loop.hpp"
#include "passes.hpp"
#include "python.hpp"
#include "readout.hpp"
#include "trajectory.hpp"

#include <variant>

using namespace fdgnn;

template <class T>
Weights<T> weights_of(nb::handle w) {
    return {{field<Array2<const i32>>(w, "first_sources"), field<Array2<const T>>(w, "first_values")},
            field<Array3<const i32>>(w, "in_sources"), field<Array3<const T>>(w, "in_values"),
            field<Array3<const i32>>(w, "rec_sources"), field<Array3<const T>>(w, "rec_values"),
            field<Array2<const T>>(w, "bias")};
}

static Schedule schedule_of(nb::handle s) {
    return {field<Array1<const i64>>(s, "order"), field<Array1<const i64>>(s, "components"),
            field<Array1<const i64>>(s, "layers"), field<Array1<const i64>>(s, "n_checked"),
            field<Array1<const i64>>(s, "period"), field<Array2<const bool>>(s, "summed"),
            field<Array2<const bool>>(s, "kept"), field<Array1<const i64>>(s, "slots")};
}

constexpr const char* PROGRAM = "fdgnn.program";

// `fdgnn.reservoir.weights.DeepReservoir.program`: the weights in one precision, and a schedule.
template <class T>
struct Program {
    Weights<T> weights;
    Schedule schedule;
    Span<const double> radii;  // (L,) rho(|W_H|)
};
using AnyProgram = std::variant<Program<float>, Program<double>>;

static AnyProgram program_of(nb::handle weights, nb::handle schedule, Span<const double> radii) {
    const auto bias = nb::cast<nb::ndarray<nb::ro>>(weights.attr("bias"));
    if (bias.dtype() == nb::dtype<float>())
        return Program<float>{weights_of<float>(weights), schedule_of(schedule), radii};
    return Program<double>{weights_of<double>(weights), schedule_of(schedule), radii};
}

static Trees trees_of(nb::handle t) {
    return {field<Array2<const bool>>(t, "core"), field<Array2<const i64>>(t, "heights"),
            field<Array2<const i64>>(t, "first_rows"), nb::cast<i64>(t.attr("window")),
            nb::cast<i64>(t.attr("n_rows"))};
}

static Goal goal_of(nb::handle g) {
    return {field<Array2<const double>>(g, "contractions"), nb::cast<double>(g.attr("target")),
            field<Array1<const double>>(g, "resolution")};
}

static Outputs outputs_of(nb::handle o) {
    return {field<Array3<double>>(o, "pooled"), field<Array2<i32>>(o, "n_iter"),
            field<Array2<double>>(o, "residual"), field<Array3<double>>(o, "states")};
}

template <class T>
void bind_tanh(nb::module_& m) {
    m.def("tanh_sum",
          [](const Array1<const T>& d, double w, const Array1<const T>& s, const Array1<T>& x,
             i64 times) {
              unlocked([&] {
                  for (i64 i = 0; i < times; i++)
                      tanh_sum<T>(length(x.shape(0)), d.data(), static_cast<T>(w), s.data(),
                                  x.data());
              });
          },
          nb::arg().noconvert(), nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg() = 1);
}

// Find the fixed points of a few graphs by each program: pooled states, steps and residuals, or None
// for a program that float32 and certificates cannot follow.
static nb::list solve_few_by(nb::handle structure, const Array1<const u64>& first_colors,
                             const Array1<const i32>& codes, const Array2<const double>& features,
                             const nb::list& programs, double tol, double target) {
    const Structure s = structure_of(structure);
    const FewGraphs few = unlocked(
        [&] { return FewGraphs(s, view(first_colors), view(codes), view(features)); });
    nb::list results;
    for (nb::handle each : programs) {
        const auto& any = views_of<AnyProgram>(nb::cast<nb::capsule>(each), PROGRAM);
        const auto& p = std::get<Program<float>>(any);
        FewSolved found = unlocked(
            [&] { return solve_few(few, p.weights, p.schedule, p.radii, tol, target); });
        if (!found.solved) {
            results.append(nb::none());
            continue;
        }
        const i64 L = p.weights.n_layers();
        const size_t n_slots = size_t(found.n_slots), n_graphs = size_t(few.n_graphs());
        results.append(nb::make_tuple(
            shaped(std::move(found.pooled), {n_slots, n_graphs, size_t(p.weights.n_units())}),
            numpy(std::move(found.n_iter), L), numpy(std::move(found.residual), L)));
    }
    return results;
}

// Whether this processor has the instructions that _engine_avx2 and _engine_avx512 are compiled for.
static bool has_avx2() {
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
#else
    return false;
#endif
}

static bool has_avx512() {
#if defined(__x86_64__) && defined(__GNUC__)
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
#else
    return false;
#endif
}

NB_MODULE(FDGNN_MODULE, m) {
    m.attr("STATE") = FDGNN_STATE;
    bind_interrupts(m);
    m.def("has_avx2", &has_avx2);
    m.def("has_avx512", &has_avx512);
    bind_tanh<float>(m);
    bind_tanh<double>(m);
    m.def("tanh_all",
          [](const Array2<double>& x) {
              unlocked([&] { tanh_all(length(x.size()), x.data()); });
          },
          nb::arg().noconvert());
    m.def("read_out",
          [](const Array2<const double>& X, const Array2<const double>& W,
             const Array2<const double>& coef, const Array1<const double>& intercept) {
              const i64 n = length(X.shape(0));
              std::vector<double> out(n * length(coef.shape(0)));
              unlocked([&] {
                  read_out(view(X), view(W), view(coef), view(intercept),
                           {out.data(), n, length(coef.shape(0))});
              });
              return numpy(std::move(out), n);
          },
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert());
    m.def("bind_program", [](nb::handle weights, nb::handle schedule, nb::handle radii) {
        const auto own = nb::cast<Array1<const double>>(radii, false);
        return bound(PROGRAM, program_of(weights, schedule, view(own)), {weights, schedule, radii});
    });
    m.def("add_normal_products",
          [](const Array1<const i64>& indptr, const Array1<const i32>& indices,
             const Array1<const double>& values, const Array1<const i32>& places,
             const Array2<const double>& weights, const Array1<const i32>& group,
             const Array2<const double>& D, const Array2<double>& out) {
              const Sparse<double> X{view(indptr), view(indices), view(values)};
              const SampleWeights w{view(weights), view(group)};
              unlocked([&] {
                  if (X.values.empty())
                      add_normal_products<true>(X, view(places), w, view(D), view(out));
                  else
                      add_normal_products<false>(X, view(places), w, view(D), view(out));
              });
          },
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg().noconvert());
    m.def("solve_blocks",
          [](i64 first, i64 last, const Array1<const i64>& block_offsets,
             const Array1<const i64>& blocks, const nb::capsule& q, const Array1<const i32>& codes,
             const Array2<const double>& features, const nb::capsule& program, nb::handle goal,
             nb::handle out) {
              const Inputs inputs{view(codes), view(features)};
              const Quotients& quotients = views_of<BoundQuotients>(q, QUOTIENTS).quotients;
              const Goal aim = goal_of(goal);
              const Outputs filled = outputs_of(out);
              const auto solve = [&](const auto& p) {
                  solve_blocks(first, last, view(block_offsets), view(blocks), quotients, inputs,
                               p.weights, p.schedule, aim, filled);
              };
              unlocked([&] { std::visit(solve, views_of<AnyProgram>(program, PROGRAM)); });
          },
          nb::arg(), nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg(),
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg(), nb::arg(), nb::arg());
    m.def("solve_few", &solve_few_by, nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg(), nb::arg(), nb::arg());
    m.def("follow_graphs",
          [](i64 first, i64 last, const Array1<const i64>& graphs, const nb::capsule& q,
             const Array1<const i32>& codes, const Array2<const double>& features,
             const nb::capsule& program, nb::handle trees, double eps, i64 max_iter,
             const Array1<const i64>& slots, nb::handle out) {
              const Inputs inputs{view(codes), view(features)};
              const Quotients& quotients = views_of<BoundQuotients>(q, QUOTIENTS).quotients;
              const auto& p = std::get<Program<double>>(views_of<AnyProgram>(program, PROGRAM));
              const Trees parted = trees_of(trees);
              const Outputs filled = outputs_of(out);
              unlocked([&] {
                  follow_graphs(first, last, view(graphs), quotients, inputs, p.weights, p.schedule,
                                parted, {eps, max_iter}, view(slots), filled);
              });
          },
          nb::arg(), nb::arg(), nb::arg().noconvert(), nb::arg(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg().noconvert(), nb::arg());
    m.def("iterate_layers",
          [](i64 first, i64 last, nb::handle structure, const Array2<const double>& first_drive,
             const Array1<const i32>& row_of_vertex, nb::handle weights, double eps, i64 max_iter,
             nb::handle out) {
              const Structure s = structure_of(structure);
              const Weights<double> own = weights_of<double>(weights);
              const Outputs filled = outputs_of(out);
              unlocked([&] {
                  iterate_layers(first, last, s, view(first_drive), view(row_of_vertex), own, eps,
                                 max_iter, filled);
              });
          },
          nb::arg(), nb::arg(), nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg(),
          nb::arg(), nb::arg(), nb::arg());
}
