// What fork() must not break: locks that the child finds free, and the knowledge of being a child.
#pragma once
#include <mutex>

namespace tapedeck {

/// The library's locks, in the order in which they nest: for warnings, and for what is rare, such as threads
/// and tapes that begin or end. The process forks with both held, so that in the child they are free and what
/// they guard is whole.
extern constinit std::mutex warnings_lock, rare_lock;

/// Whether the process has come out of fork() since it loaded the library: the pool's threads have stayed
/// behind.
bool forked();

}   // namespace tapedeck
