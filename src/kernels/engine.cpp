// The engine as a Python module, compiled once for each kind of processor (FDGNN_MODULE is its name).
#include "paper_loop.hpp"
#include "passes.hpp"
#include "python.hpp"
#include "readout.hpp"
#include "solver.hpp"

using namespace fdgnn;

static Weights<double> weights_of(nb::handle w) {
    return {{field<Array2<const i32>>(w, "first_sources"),
             field<Array2<const double>>(w, "first_values")},
            field<Array3<const i32>>(w, "in_sources"),
            field<Array3<const double>>(w, "in_values"),
            field<Array3<const i32>>(w, "rec_sources"),
            field<Array3<const double>>(w, "rec_values"),
            field<Array2<const double>>(w, "bias")};
}

constexpr const char* PROGRAM = "fdgnn.program";

using OwnProgram = std::unique_ptr<Program>;

static Outputs outputs_of(nb::handle o) {
    return {field<Array3<double>>(o, "pooled"), field<Array2<i32>>(o, "n_iter"),
            field<Array2<double>>(o, "residual"), field<Array3<double>>(o, "states")};
}

template <class T>
void bind_tanh(nb::module_& m) {
    m.def(
        "tanh_sum",
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

// The approximate number of operations to solve graphs.
static i64 operations(const BoundQuotients& b, const Program& program) {
    return 20 * b.quotients.sizes.size * program.weights<double>().n_layers() *
           program.weights<double>().n_units();
}

// Solve the quotients in the blocks `first` to `last`: how many in float32, in float64 and by steps, and
// how many sums of states are not finite.
static auto solve_graphs(i64 first, i64 last, const nb::capsule& quotients,
                         const Array1<const double>& radii, const Array1<const double>& degrees,
                         double most_degree, bool directed, const Array1<const i32>& codes,
                         const Array2<const double>& features, const nb::capsule& program,
                         double tol, i64 max_iter, nb::handle out) {
    const BoundQuotients& b = views_of<BoundQuotients>(quotients, QUOTIENTS);
    const Program& p = *views_of<OwnProgram>(program, PROGRAM);
    const Inputs inputs{view(codes), view(features), b.representatives};
    const Task task{b, inputs, view(radii), view(degrees), most_degree, directed, tol, max_iter};
    const Outputs filled = outputs_of(out);
    const Counts found =
        unlocked(operations(b, p), [&] { return solve(first, last, task, p, false, filled); });
    return std::make_tuple(found.n_single, found.n_double, found.n_steps, found.n_infinite);
}

// Solve a few graphs by several reservoirs: pooled states, steps and residuals, or None where not all
// graphs are certified.
static nb::list solve_few(nb::handle structure, const Array1<const u64>& first_colors,
                          const Array1<const i32>& codes, const Array2<const double>& features,
                          const nb::list& programs, double tol, bool directed) {
    const Structure s = structure_of(structure);
    const FewGraphs few =
        unlocked(40 * s.neighbors.size, [&] { return FewGraphs(s, view(first_colors)); });
    const BoundQuotients& b = few.quotients;
    const Inputs inputs{view(codes), view(features), b.representatives};
    const Task task{b, inputs, span(few.radii), {nullptr, 0}, 0.0, directed, tol, 0};
    const size_t n = few.radii.size();
    nb::list results;
    for (nb::handle program : programs) {
        const Program& p = *views_of<OwnProgram>(nb::cast<nb::capsule>(program), PROGRAM);
        const i64 L = p.weights<double>().n_layers(), H = p.weights<double>().n_units();
        const i64 n_slots = p.n_slots();
        Row<double> pooled(n_slots * n * H);
        std::vector<i32> n_iter(L * n, 0);
        std::vector<double> residual(L * n, 0.0);
        const Outputs out{{pooled.data(), n_slots, length(n), H},
                          {n_iter.data(), L, length(n)},
                          {residual.data(), L, length(n)},
                          {nullptr, 0, 0, 0}};
        const Counts found =
            unlocked(operations(b, p), [&] { return solve(0, -1, task, p, true, out); });
        if (found.n_steps > 0 || found.n_infinite > 0)
            results.append(nb::none());
        else
            results.append(
                nb::make_tuple(shaped(std::move(pooled), {size_t(n_slots), n, size_t(H)}),
                               numpy(std::move(n_iter), L), numpy(std::move(residual), L)));
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
    bind_interrupts(m);
    m.def("has_avx2", &has_avx2);
    m.def("has_avx512", &has_avx512);
    m.def(
        "refine_labels",
        [](nb::handle structure, const Array1<const u64>& weight_bits, const Array1<u64>& colors,
           i64 n_rounds) {
            const Structure s = structure_of(structure);
            Refined found = unlocked(20 * s.neighbors.size, [&] {
                return refine(s, view(weight_bits), view(colors), n_rounds);
            });
            return std::make_tuple(
                numpy(std::move(found.classes)), numpy(std::move(found.n_classes)),
                numpy(std::move(found.rounds)), numpy(std::move(found.signatures)));
        },
        nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg());
    m.def(
        "build_quotients",
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
    m.def(
        "tanh_all",
        [](const Array2<double>& x) {
            unlocked(4 * length(x.size()), [&] { tanh_all(length(x.size()), x.data()); });
        },
        nb::arg().noconvert());
    m.def(
        "read_out",
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
        nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert());
    m.def("weight_facts", [](nb::handle weights) {
        const Weights<double> w = weights_of(weights);
        const double others[] = {largest_of(flat(w.first.values)), largest_of(flat(w.in_values)),
                                 largest_of(flat(w.bias))};
        return std::make_tuple(numpy(cycle_radii(w.rec_sources, w.rec_values)),
                               largest_of(flat(w.rec_values)), largest_of({others, 3}));
    });
    m.def(
        "bind_program",
        [](nb::handle weights, const Array1<const i64>& slots, nb::handle radii, bool fits_single) {
            const auto own = view(nb::cast<Array1<const double>>(radii, false));
            return bound(
                PROGRAM,
                std::make_unique<Program>(weights_of(weights), view(slots), own, fits_single),
                {weights, radii});
        },
        nb::arg(), nb::arg().noconvert(), nb::arg(), nb::arg());
    m.def(
        "add_normal_products",
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
        nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(),
        nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert());
    m.def("solve_graphs", &solve_graphs, nb::arg(), nb::arg(), nb::arg(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg(), nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg(), nb::arg(), nb::arg(), nb::arg());
    m.def("solve_few", &solve_few, nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg(), nb::arg(), nb::arg());
    m.def(
        "iterate_layers",
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
