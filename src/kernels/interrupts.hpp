// Long work that can be interrupted: kernels count what they do, and now and then check for interrupts.
#pragma once

#include <algorithm>

#include "views.hpp"

namespace fdgnn {

constexpr i64 WORK_BETWEEN_CHECKS = i64(1) << 21;  // states or arcs: some milliseconds

// Throw if the kernel that this thread runs is to end (python.hpp).
inline void check_interrupts();

class Interrupts {
  public:
    // Count n more states or arcs.
    void count(i64 n) {
        left -= n;
        if (left < 0) {
            left = WORK_BETWEEN_CHECKS;
            check_interrupts();
        }
    }

    // Do something with each number below n; they are counted by the thousand, which costs nothing.
    template <class F>
    void each(i64 n, F work) {
        for (i64 start = 0; start < n; start += 1024) {
            const i64 end = std::min(n, start + 1024);
            count(end - start);
            for (i64 i = start; i < end; i++) work(i);
        }
    }

  private:
    i64 left = WORK_BETWEEN_CHECKS;
};

}  // namespace fdgnn
