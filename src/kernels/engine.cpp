// The engine as a Python module, compiled once for each kind of processor (FDGNN_MODULE is its name).
#include "paper_loop.hpp"
#include "passes.hpp"
#include "python.hpp"
#include "scheduled.hpp"
#include "trajectory.hpp"
#include "ways.hpp"

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
};
using AnyProgram = std::variant<Program<float>, Program<double>>;

static AnyProgram program_of(nb::handle weights, nb::handle schedule) {
    const auto bias = nb::cast<nb::ndarray<nb::ro>>(weights.attr("bias"));
    if (bias.dtype() == nb::dtype<float>())
        return Program<float>{weights_of<float>(weights), schedule_of(schedule)};
    return Program<double>{weights_of<double>(weights), schedule_of(schedule)};
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

// Solve all blocks of quotients in float32, if that is the way of each of them, or give None.
static nb::object solve_at_once(const Array2<const double>& bounds, const nb::capsule& q,
                                const Array1<const i32>& codes, const Array2<const double>& features,
                                const nb::capsule& program, double tol, double target) {
    const auto& given = views_of<BoundQuotients>(q, QUOTIENTS);
    const auto& p = std::get<Program<float>>(views_of<AnyProgram>(program, PROGRAM));
    const i64 n = given.graphs.size, L = p.weights.n_layers(), H = p.weights.n_units();
    const Span<const i64> slots = p.schedule.slots;
    const i64 n_slots = *std::max_element(slots.begin(), slots.end()) + 1;
    const Ways ways = choose_ways(view(bounds), given.graphs, given.quotients.row_offsets,
                                  given.quotients.sizes, tol, true);
    if (ways.counts[SINGLE] < n) return nb::none();
    std::vector<double> pooled(n_slots * n * H, 0.0), residual(L * n, 0.0);
    std::vector<i32> n_iter(L * n, 0);
    unlocked([&] {
        solve_blocks(0, given.block_offsets.size - 1, given.block_offsets, given.blocks,
                     given.quotients, Inputs{view(codes), view(features)}, p.weights, p.schedule,
                     Goal{{ways.contractions.data(), L, n}, target, span(ways.resolution)},
                     Outputs{{pooled.data(), n_slots, n, H}, {n_iter.data(), L, n},
                             {residual.data(), L, n}, {nullptr, 0, 0, 0}});
    });
    return nb::cast(std::make_tuple(
        shaped(std::move(pooled), {size_t(n_slots), size_t(n), size_t(H)}),
        numpy(std::move(n_iter), L), numpy(std::move(residual), L)));
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
    m.def("bind_program", [](nb::handle weights, nb::handle schedule) {
        return bound(PROGRAM, program_of(weights, schedule), {weights, schedule});
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
    m.def("solve_at_once", &solve_at_once, nb::arg().noconvert(), nb::arg(),
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg(), nb::arg(), nb::arg());
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
