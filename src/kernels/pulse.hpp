// Long work that can be interrupted: kernels count what they do, and now and then ask whether to go on.
#pragma once

#include "views.hpp"

namespace fdgnn {

constexpr i64 BETWEEN_LOOKS = i64(1) << 21;  // states or arcs: some milliseconds

// Throw if the kernel that this thread runs is to end (python.hpp).
inline void look_around();

class Pulse {
public:
    // Count n more states or arcs.
    void spend(i64 n) {
        if ((left -= n) < 0) {
            left = BETWEEN_LOOKS;
            look_around();
        }
    }

private:
    i64 left = BETWEEN_LOOKS;
};

}  // namespace fdgnn
