// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What is removed again if the work ends before it is done: by a failure, by a
// signal (INT, TERM, HUP, QUIT, XCPU), or for want of memory.
//
// It does not write files, and SIGKILL is beyond it. Guards are made and
// published in the main thread while no other thread runs.
//
//   RemovalGuard guard(path);
//   if (!guard.Make([&] { return ::mkdir(path.c_str(), 0777) == 0; }))
//     return ErrnoError(errno, path);
//   ... what may fail ...
//   guard.Release();
#ifndef ADDNORM_PROTO_REMOVAL_GUARD_H_
#define ADDNORM_PROTO_REMOVAL_GUARD_H_

#include <csignal>
#include <string>
#include <utility>

namespace addnorm::proto {

// Keeps the signals that remove files from coming between two steps; they come
// when it goes out of scope.
class SignalsBlocked {
 public:
  SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked();

 private:
  sigset_t before_;
};

// Removes a file, or a directory that is empty by then, when it goes out of
// scope or when the process ends.
class RemovalGuard {
 public:
  RemovalGuard() = default;
  // Nothing is removed before Make; all that can fail is done here.
  explicit RemovalGuard(const std::string& path);
  RemovalGuard(RemovalGuard&& other) noexcept
      : entry_(std::exchange(other.entry_, nullptr)) {}
  RemovalGuard& operator=(RemovalGuard&& other) noexcept;
  ~RemovalGuard() { Remove(); }

  // Makes the path with `make`, which says whether it did and must not
  // allocate. What somebody else made is never removed: the path is guarded
  // only if `make` made it, and no signal comes between the two.
  template <typename Function>
  bool Make(const Function& make) {
    const SignalsBlocked blocked;
    const bool is_made = make();
    if (is_made) Arm();
    return is_made;
  }

  // It stays.
  void Release() noexcept;
  void Remove() noexcept;

  struct Entry;

 private:
  void Arm() noexcept;

  Entry* entry_ = nullptr;
};

// Removes what all guards guard, for whoever ends the process without leaving
// scopes. Async-signal-safe.
void RemoveGuarded() noexcept;

}  // namespace addnorm::proto

#endif  // ADDNORM_PROTO_REMOVAL_GUARD_H_
