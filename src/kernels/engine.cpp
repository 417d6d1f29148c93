// The engine as a Python module, compiled once for each kind of processor (FDGNN_MODULE is its name).
#include "few.hpp"
#include "paper_loop.hpp"
#include "passes.hpp"
#include "python.hpp"
#include "readout.hpp"
#include "trajectory.hpp"

#include <variant>

using namespace fdgnn;

static Weights<double> weights_of(nb::handle w) {
    return {{field<Array2<const i32>>(w, "first_sources"),
             field<Array2<const double>>(w, "first_values")},
            field<Array3<const i32>>(w, "in_sources"), field<Array3<const double>>(w, "in_values"),
            field<Array3<const i32>>(w, "rec_sources"), field<Array3<const double>>(w, "rec_values"),
            field<Array2<const double>>(w, "bias")};
}

constexpr const char* PROGRAM = "fdgnn.program";

using AnyProgram = std::variant<Program<float>, Program<double>>;

static Trees trees_of(nb::handle t) {
    return {field<Array2<const bool>>(t, "core"), field<Array2<const i64>>(t, "heights"),
            field<Array2<const i64>>(t, "first_rows"), nb::cast<i64>(t.attr("window")),
            nb::cast<i64>(t.attr("n_rows"))};
}

static Goal goal_of(nb::handle g) {
    return {field<Array2<const double>>(g, "contractions"), nb::cast<double>(g.attr("tol")),
            field<Array1<const double>>(g, "resolution"),
            field<Array1<const double>>(g, "amplification")};
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

// Pooled states, steps and residuals of each graph; None where they are not found in one call.
template <class T>
nb::object arrays_of(Solved&& found, const Program<T>& program, i64 n_graphs) {
    if (!found.complete) return nb::none();
    const i64 L = program.weights.n_layers();
    const size_t n_slots = size_t(found.n_slots), H = size_t(program.weights.n_units());
    return nb::make_tuple(shaped(std::move(found.pooled), {n_slots, size_t(n_graphs), H}),
                          numpy(std::move(found.n_iter), L), numpy(std::move(found.residual), L));
}

// Find the fixed points of quotients by one program, in its precision.
static nb::object solve_all(const BoundQuotients& b, Span<const double> radii, const Inputs& inputs,
                            nb::handle given, double tol, bool directed) {
    const auto solve = [&](const auto& program) {
        const i64 n_operations = 20 * b.quotients.sizes.size * program.weights.bias.rows *
                                 program.weights.bias.columns;
        Solved found = unlocked(
            n_operations, [&] { return solve_at_once(b, radii, inputs, program, tol, directed); });
        return arrays_of(std::move(found), program, b.quotient_of.size);
    };
    return std::visit(solve, views_of<AnyProgram>(nb::cast<nb::capsule>(given), PROGRAM));
}

// Find the fixed points of a few graphs by several reservoirs; `programs` has a tuple for each, of its
// programs in the precisions that are tried in turn.
static nb::list solve_few(nb::handle structure, const Array1<const u64>& first_colors,
                          const Array1<const i32>& codes, const Array2<const double>& features,
                          const nb::list& programs, double tol, bool directed) {
    const Structure s = structure_of(structure);
    const FewGraphs few = unlocked(40 * s.neighbors.size, [&] {
        return FewGraphs(s, view(first_colors), view(codes), view(features));
    });
    nb::list results;
    for (nb::handle precisions : programs) {
        nb::object found = nb::none();
        for (nb::handle program : precisions)
            if (found.is_none())
                found = solve_all(few.quotients, span(few.radii), few.inputs.views, program, tol,
                                  directed);
        results.append(found);
    }
    return results;
}

// The same for graphs whose quotients and radii are known, by one program.
static nb::object solve_known(const nb::capsule& quotients, const Array1<const double>& radii,
                              const Array1<const i32>& codes, const Array2<const double>& features,
                              const nb::capsule& program, double tol, bool directed) {
    const BoundQuotients& b = views_of<BoundQuotients>(quotients, QUOTIENTS);
    const RowInputs inputs(b.representatives, view(codes), view(features));
    return solve_all(b, view(radii), inputs.views, program, tol, directed);
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
    m.def("refine_colors",
          [](nb::handle structure, const Array1<const u64>& weight_bits, const Array1<u64>& colors,
             i64 n_rounds) {
              const Structure s = structure_of(structure);
              Refined found =
                  unlocked(20 * s.neighbors.size, [&] { return refine(s, view(weight_bits), view(colors), n_rounds); });
              return std::make_tuple(numpy(std::move(found.classes)),
                                     numpy(std::move(found.n_classes)),
                                     numpy(std::move(found.rounds)),
                                     numpy(std::move(found.signatures)));
          },
          nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg());
    m.def("build_quotients",
          [](nb::handle structure, const Array1<const i32>& classes,
             const Array1<const i64>& n_classes, const Array1<const u64>& signatures) {
              const Structure s = structure_of(structure);
              auto* built = new BuiltQuotients;
              const nb::capsule owner(
                  built, [](void* p) noexcept { delete static_cast<BuiltQuotients*>(p); });
              unlocked(20 * s.neighbors.size, [&] {
                  *built = build_quotients(s, view(classes), view(n_classes), view(signatures));
              });
              return bound(QUOTIENTS, views_of(*built), {owner});
          },
          nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert());
    bind_tanh<float>(m);
    bind_tanh<double>(m);
    m.def("tanh_all",
          [](const Array2<double>& x) {
              unlocked(4 * length(x.size()), [&] { tanh_all(length(x.size()), x.data()); });
          },
          nb::arg().noconvert());
    m.def("read_out",
          [](const Array2<const double>& X, const Array2<const double>& W,
             const Array2<const double>& coef, const Array1<const double>& intercept) {
              const i64 n = length(X.shape(0));
              std::vector<double> out(n * length(coef.shape(0)));
              unlocked(n * length(W.size() + coef.size()), [&] {
                  read_out(view(X), view(W), view(coef), view(intercept),
                           {out.data(), n, length(coef.shape(0))});
              });
              return numpy(std::move(out), n);
          },
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert());
    m.def("weight_facts", [](nb::handle weights) {
        const Weights<double> w = weights_of(weights);
        const double others[] = {largest_of(flat(w.first.values)), largest_of(flat(w.in_values)),
                                 largest_of(flat(w.bias))};
        return std::make_tuple(numpy(cycle_radii(w.rec_sources, w.rec_values)),
                               largest_of(flat(w.rec_values)), largest_of({others, 3}));
    });
    m.def("bind_program",
          [](nb::handle weights, const Array1<const i64>& slots, nb::handle radii, bool single) {
              const Weights<double> given = weights_of(weights);
              const auto own = view(nb::cast<Array1<const double>>(radii, false));
              const auto program = [&]() -> AnyProgram {
                  if (single) return Program<float>(given, view(slots), own);
                  return Program<double>(given, view(slots), own);
              };
              return bound(PROGRAM, program(), {weights, radii});
          },
          nb::arg(), nb::arg().noconvert(), nb::arg(), nb::arg());
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
    m.def("choose_ways",
          [](const Array1<const double>& radii, const nb::capsule& q, const nb::capsule& program,
             double tol, bool fits_single, bool directed) {
              const auto& given = views_of<BoundQuotients>(q, QUOTIENTS);
              const auto choose = [&](const auto& p) {
                  return choose_ways(view(radii), p, given.graphs, given.quotients.row_offsets,
                                     given.quotients.sizes, tol, fits_single, directed);
              };
              Ways found = std::visit(choose, views_of<AnyProgram>(program, PROGRAM));
              const i64 L = length(found.contractions.size()) / std::max<i64>(given.graphs.size, 1);
              return std::make_tuple(numpy(std::move(found.ways)), found.counts[SINGLE],
                                     found.counts[DOUBLE], found.counts[STEPS],
                                     numpy(std::move(found.contractions), L),
                                     numpy(std::move(found.resolution)),
                                     numpy(std::move(found.amplification)));
          },
          nb::arg().noconvert(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg());
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
    m.def("solve_few", &solve_few, nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg(), nb::arg(), nb::arg());
    m.def("solve_known", &solve_known, nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(),
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
              const Weights<double> own = weights_of(weights);
              const Outputs filled = outputs_of(out);
              unlocked([&] {
                  iterate_layers(first, last, s, view(first_drive), view(row_of_vertex), own, eps,
                                 max_iter, filled);
              });
          },
          nb::arg(), nb::arg(), nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg(),
          nb::arg(), nb::arg(), nb::arg());
}
