// All kernels but the engine, as the Python module fdgnn._kernels.
#include "arcs.hpp"
#include "drawing.hpp"
#include "pairs.hpp"
#include "products.hpp"
#include "python.hpp"
#include "spectral.hpp"
#include "text.hpp"
#include "wiring.hpp"
#include "wl.hpp"

using namespace fdgnn;

template <class T>
void bind_products(nb::module_& m) {
    m.def(
        "add_row_products",
        [](const Array1<const i64>& indptr, const Array1<const i32>& indices,
           const Array1<const T>& data, const Array1<const i64>& column_starts,
           const Array1<const i32>& rows, const Array1<const T>& values, const Array2<T>& out) {
            unlocked([&] {
                add_row_products<T>({view(indptr), view(indices), view(data)},
                                    {view(column_starts), view(rows), view(values)}, view(out));
            });
        },
        nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(),
        nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert());
}

NB_MODULE(_kernels, m) {
    bind_interrupts(m);
    m.def("interrupt_flag", &new_flag);
    m.def("set_interrupt_flag", [](const nb::capsule& flag) { flag_of(flag)->store(true); });
    bind_products<float>(m);
    bind_products<double>(m);
    m.def(
        "parse_rows",
        [](const Array1<const std::uint8_t>& text, const Array2<i64>& out) {
            return unlocked([&] { return parse_rows(view(text), view(out)); });
        },
        nb::arg().noconvert(), nb::arg().noconvert());
    m.def(
        "merge_arcs",
        [](const Array2<const i64>& arcs, const Array1<const i64>& vertex_offsets, bool directed,
           bool carrying) {
            const auto merge = carrying ? &merge_arcs<Carrying> : &merge_arcs<Arriving>;
            MergedArcs found = unlocked(8 * length(arcs.size()), [&] {
                return merge(view(arcs), view(vertex_offsets), directed);
            });
            nb::object indptr = nb::cast(numpy(std::move(found.indptr)));
            nb::object neighbors = nb::cast(numpy(std::move(found.neighbors)));
            if (!carrying) return nb::make_tuple(indptr, neighbors, found.n_merged);
            return nb::make_tuple(indptr, neighbors, found.n_merged, numpy(std::move(found.order)),
                                  numpy(std::move(found.first)));
        },
        nb::arg().noconvert(), nb::arg().noconvert(), nb::arg(), nb::arg());
    m.def(
        "mix_rows",
        [](const Array2<const u64>& rows, const Array1<u64>& colors) {
            unlocked(length(rows.size()), [&] { mix_rows(view(rows), view(colors)); });
        },
        nb::arg().noconvert(), nb::arg().noconvert());
    m.def(
        "mix_all",
        [](const Array1<u64>& values) {
            unlocked(length(values.size()), [&] { mix_all(view(values)); });
        },
        nb::arg().noconvert());
    m.def(
        "spectral_radii",
        [](const Array1<const i64>& vertex_offsets, const Array1<const i64>& indptr,
           const Array1<const i32>& neighbors, const Array1<const double>& weights) {
            std::vector<double> radii(vertex_offsets.shape(0) - 1);
            unlocked(20 * length(neighbors.size() + indptr.size()), [&] {
                spectral_radii({view(vertex_offsets), view(indptr), view(neighbors), view(weights)},
                               {radii.data(), length(radii.size())});
            });
            return numpy(std::move(radii));
        },
        nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert());
    m.def("radii_of_graphs", [](const nb::capsule& q) {
        const auto& given = views_of<BoundQuotients>(q, QUOTIENTS);
        const i64 n_operations = 20 * (given.quotients.sources.size + given.quotients.sizes.size);
        return numpy(unlocked(n_operations, [&] { return radii_of_graphs(given); }));
    });
    m.def(
        "strong_components",
        [](const Array1<const i64>& indptr, const Array1<const i32>& sources) {
            Components found =
                unlocked([&] { return strong_components(view(indptr), view(sources)); });
            return std::make_tuple(numpy(std::move(found.order)), numpy(std::move(found.offsets)));
        },
        nb::arg().noconvert(), nb::arg().noconvert());
    m.def(
        "inner_arcs",
        [](const Array1<const i64>& indptr, const Array1<const i32>& sources,
           const Array1<const double>& values, const Array1<const i64>& order,
           const Array1<const i64>& offsets) {
            InnerArcs found =
                inner_arcs(view(indptr), view(sources), view(values), view(order), view(offsets));
            return std::make_tuple(numpy(std::move(found.counts)),
                                   numpy(std::move(found.log_sums)));
        },
        nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(),
        nb::arg().noconvert());
    m.def(
        "cycle_radii",
        [](const Array3<const i32>& sources, const Array3<const double>& values) {
            return numpy(cycle_radii(view(sources), view(values)));
        },
        nb::arg().noconvert(), nb::arg().noconvert());
    m.def("bind_quotients",
          [](nb::handle arrays) { return bound(QUOTIENTS, quotients_of(arrays), {arrays}); });
    m.def("quotient_arrays", [](const nb::capsule& owner) {
        const BoundQuotients& b = views_of<BoundQuotients>(owner, QUOTIENTS);
        const Quotients& q = b.quotients;
        return std::make_tuple(
            fixed(b.quotient_of, owner), fixed(b.graphs, owner), fixed(b.row_of_vertex, owner),
            fixed(q.row_offsets, owner), fixed(b.representatives, owner), fixed(q.sizes, owner),
            fixed(q.indptr, owner), fixed(q.sources, owner), fixed(q.multiplicities, owner),
            fixed(q.bands, owner), fixed(b.block_offsets, owner), fixed(b.blocks, owner));
    });
    m.def(
        "draw_layers",
        [](const Array1<const u32>& entropy, i64 L, i64 H, i64 n_inputs, double rho, double k,
           double first_input, double input, double bias) {
            DrawnLayers found = draw_layers(view(entropy), L, H, n_inputs);
            scale_layers(found, L, H, {rho, k, first_input, input, bias});
            return std::make_tuple(
                numpy(std::move(found.inputs), L), numpy(std::move(found.input_values), L),
                numpy(std::move(found.recurrent), L), numpy(std::move(found.recurrent_values), L),
                numpy(std::move(found.bias), L));
        },
        nb::arg().noconvert(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
        nb::arg(), nb::arg());
    m.def(
        "draw_uniform",
        [](const Array1<const u32>& entropy, const Array2<double>& out) {
            Stream(view(entropy), {nullptr, 0}).fill_uniform(flat(view(out)));
        },
        nb::arg().noconvert(), nb::arg().noconvert());
    m.def(
        "wl_labels",
        [](i64 g0, i64 g1, nb::handle structure, const Array1<const u64>& arc_bits, bool directed,
           const Array1<const i64>& n_rounds, const Array2<u64>& colors) {
            const Structure s = structure_of(structure);
            unlocked(8 * length(colors.size()), [&] {
                wl_labels(g0, g1, s, {view(arc_bits), directed}, view(n_rounds), view(colors));
            });
        },
        nb::arg(), nb::arg(), nb::arg(), nb::arg().noconvert(), nb::arg(), nb::arg().noconvert(),
        nb::arg().noconvert());
    m.def(
        "number_occurrences",
        [](i64 g0, i64 g1, const Array1<const i64>& vertex_offsets, const Array2<const u64>& colors,
           const Array2<i32>& numbers) {
            unlocked(8 * length(colors.size()), [&] {
                number_occurrences(g0, g1, view(vertex_offsets), view(colors), view(numbers));
            });
        },
        nb::arg(), nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert());
    m.def(
        "pack_rows",
        [](i64 g0, i64 g1, const Array1<const i64>& vertex_offsets, const Array2<const u64>& colors,
           const Array2<const i32>& numbers, u64 mask, bool present, const Array1<i32>& indices,
           const Array1<double>& data, const Array1<i64>& lengths) {
            unlocked(8 * length(colors.size()), [&] {
                pack_rows(g0, g1, view(vertex_offsets), view(colors), view(numbers), mask, present,
                          {view(indices), view(data), view(lengths)});
            });
        },
        nb::arg(), nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(),
        nb::arg(), nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert());
    m.def(
        "count_triangles",
        [](i64 g0, i64 g1, const Array1<const i64>& vertex_offsets, const Array1<const i64>& indptr,
           const Array1<const i32>& neighbors, const Array1<i64>& counts) {
            unlocked([&] {
                count_triangles(g0, g1, view(vertex_offsets), view(indptr), view(neighbors),
                                view(counts));
            });
        },
        nb::arg(), nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(),
        nb::arg().noconvert());
    m.def(
        "count_pairs",
        [](i64 g0, i64 g1, nb::handle structure, const Array2<const u64>& labels, i64 max_distance,
           i64 max_sources, bool directed, u64 mask) {
            const Structure s = structure_of(structure);
            PairRows found = unlocked([&] {
                return count_pairs(g0, g1, s, view(labels),
                                   {max_distance, max_sources, directed, mask});
            });
            return std::make_tuple(numpy(std::move(found.indices)), numpy(std::move(found.data)),
                                   numpy(std::move(found.lengths)));
        },
        nb::arg(), nb::arg(), nb::arg(), nb::arg().noconvert(), nb::arg(), nb::arg(), nb::arg(),
        nb::arg());
    m.def(
        "share_pairs",
        [](i64 g, nb::handle structure, const Array2<const u64>& labels, i64 max_distance,
           i64 max_sources, bool directed, u64 mask, const Array1<const double>& direction,
           const Array1<double>& shares) {
            const Structure s = structure_of(structure);
            unlocked([&] {
                share_pairs(g, s, view(labels), {max_distance, max_sources, directed, mask},
                            view(direction), view(shares));
            });
        },
        nb::arg(), nb::arg(), nb::arg().noconvert(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
        nb::arg().noconvert(), nb::arg().noconvert());
}
