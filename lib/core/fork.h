// Support for fork(): locks that are free in the child, and whether this process is a child.
#pragma once
#include <mutex>

namespace tapedeck {

/// The library's locks, in nesting order: for warnings, for machine code, which compiled functions give back
/// when they end, for rare events such as the begin or end of threads and tapes, and for the memory that
/// threads share. All of them are held during fork(), so that in the child they are free, and the data that
/// they guard is consistent.
extern constinit std::mutex warnings_lock, code_lock, rare_lock, memory_lock;

/// Whether this process was forked after it had loaded the library. The thread pool's threads exist only in
/// the parent.
bool forked();

}   // namespace tapedeck
