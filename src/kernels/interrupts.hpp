// Interruptible kernels: they count operations, and regularly check for interrupts.
#pragma once

#include <algorithm>

#include "views.hpp"

namespace fdgnn {

constexpr i64 WORK_BETWEEN_CHECKS = i64(1) << 21;  // states or arcs: some milliseconds

// Throw if the kernel of this thread must end (python.hpp).
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

    // Call a function for each number below n, counting them by the thousand, which takes no time.
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
