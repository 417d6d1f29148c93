// NumPy arrays in and out: passed without copies, and never converted.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>

#include "graphs.hpp"
#include "interrupts.hpp"

namespace nb = nanobind;

namespace fdgnn {

// ---------------------------------------------------------------------- arrays in

template <class T>
using Array1 = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Array2 = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Array3 = nb::ndarray<T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

inline i64 length(size_t n) { return static_cast<i64>(n); }

template <class T>
Span<T> view(const Array1<T>& a) {
    return {a.data(), length(a.shape(0))};
}
template <class T>
Grid<T> view(const Array2<T>& a) {
    return {a.data(), length(a.shape(0)), length(a.shape(1))};
}
template <class T>
Cube<T> view(const Array3<T>& a) {
    return {a.data(), length(a.shape(0)), length(a.shape(1)), length(a.shape(2))};
}

// An array that a named tuple holds, which keeps it alive. It is never converted.
template <class A>
auto field(nb::handle tuple, const char* name) {
    A found;
    nb::object given = tuple.attr(name);
    if (!nb::try_cast<A>(given, found, false))
        throw nb::type_error(
            (std::string(name) + ": of the wrong type, shape or memory order for the kernels")
                .c_str());
    return view(found);
}

inline Structure structure_of(nb::handle s) {
    return {field<Array1<const i64>>(s, "vertex_offsets"), field<Array1<const i64>>(s, "indptr"),
            field<Array1<const i32>>(s, "neighbors"), field<Array1<const double>>(s, "weights")};
}

// `fdgnn.graphs.colors.QuotientArrays`.
inline BoundQuotients quotients_of(nb::handle q) {
    const auto whole = [&](const char* name) { return field<Array1<const i64>>(q, name); };
    const auto real = [&](const char* name) { return field<Array1<const double>>(q, name); };
    return {{whole("row_offsets"), real("sizes"), whole("indptr"),
             field<Array1<const i32>>(q, "sources"), real("multiplicities"), whole("bands")},
            whole("quotient_of"),
            whole("graphs"),
            whole("row_of_vertex"),
            whole("representatives"),
            whole("block_offsets"),
            whole("blocks")};
}

// ---------------------------------------------------------------------- looked up once

// What views show, with the Python objects that keep their arrays alive. A batch and a reservoir are
// read by many calls, and finding some twenty arrays takes longer than a small graph.
template <class Views>
struct Bound {
    Views views;
    std::vector<nb::object> owners;
};

// Return views as an object that Python keeps for other kernels, which identify it by its name.
template <class Views>
nb::capsule bound(const char* name, Views views, std::initializer_list<nb::handle> owners) {
    auto* kept = new Bound<Views>{std::move(views), {}};
    for (nb::handle owner : owners) kept->owners.push_back(nb::borrow(owner));
    return nb::capsule(kept, name, [](void* p) noexcept { delete static_cast<Bound<Views>*>(p); });
}

// The views behind such an object.
template <class Views>
const Views& views_of(const nb::capsule& given, const char* name) {
    return static_cast<Bound<Views>*>(given.data(name))->views;
}

constexpr const char* QUOTIENTS = "fdgnn.quotients";

// ---------------------------------------------------------------------- arrays out

template <class T>
using Numpy = nb::ndarray<nb::numpy, T>;

template <class T, class Memory>
Numpy<T> shaped(std::vector<T, Memory>&& values, std::initializer_list<size_t> shape) {
    using Values = std::vector<T, Memory>;
    auto* kept = new Values(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<Values*>(p); });
    return Numpy<T>(kept->data(), shape, owner);
}

template <class T>
Numpy<T> numpy(std::vector<T>&& values, i64 rows = -1) {
    const size_t n = values.size(), r = static_cast<size_t>(rows);
    if (rows < 0) return shaped(std::move(values), {n});
    return shaped(std::move(values), {r, r ? n / r : 0});
}

// A list owned by other code, as a read-only array.
template <class T>
nb::ndarray<nb::numpy, const T> fixed(Span<const T> values, nb::handle owner) {
    return {values.at, {size_t(values.size)}, owner};
}

// ---------------------------------------------------------------------- interrupts

// Python handles signals: only its main thread may check for them, holding the GIL. Kernels in
// other threads end when the interrupt flag of their thread is set.
using Flag = std::shared_ptr<std::atomic<bool>>;
constexpr const char* FLAG = "fdgnn.interrupt_flag";

inline nb::capsule new_flag() {
    return nb::capsule(new Flag(std::make_shared<std::atomic<bool>>(false)), FLAG,
                       [](void* p) noexcept { delete static_cast<Flag*>(p); });
}
inline const Flag& flag_of(const nb::capsule& given) {
    return *static_cast<Flag*>(given.data(FLAG));
}

inline std::atomic<unsigned long> main_thread{0};
inline thread_local Flag interrupt_flag;
constexpr std::chrono::milliseconds BETWEEN_CHECKS{50};  // asking may have to wait for the lock

inline void check_interrupts() {
    using Clock = std::chrono::steady_clock;
    static thread_local Clock::time_point checked{};
    if (interrupt_flag && interrupt_flag->load(std::memory_order_relaxed))
        throw std::runtime_error("this kernel was interrupted");
    if (PyThread_get_thread_ident() != main_thread.load(std::memory_order_relaxed) ||
        Clock::now() - checked < BETWEEN_CHECKS)
        return;
    checked = Clock::now();
    nb::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

inline void bind_interrupts(nb::module_& m) {
    m.def("set_main_thread", [](unsigned long thread) { main_thread = thread; });
    m.def("watch_interrupt_flag", [](const nb::capsule& flag) { interrupt_flag = flag_of(flag); });
}

// Operations below which other threads gain less from the lock of Python (GIL) than it takes to get it
// back: some tens of microseconds.
constexpr i64 SHORT_WORK = 1 << 16;

// Run `work`, which takes about this many operations, without the GIL, so that other threads can run
// meanwhile; short work keeps it.
template <class F>
auto unlocked(i64 n_operations, F work) {
    if (n_operations < SHORT_WORK) return work();
    nb::gil_scoped_release free;
    return work();
}

template <class F>
auto unlocked(F work) {
    return unlocked(SHORT_WORK, work);
}

}  // namespace fdgnn
