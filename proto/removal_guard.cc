// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/removal_guard.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>

namespace addnorm::proto {

// Entries are never freed while a handler could look at them: they are reused.
struct RemovalGuard::Entry {
  std::atomic<const char*> path{nullptr};  // nullptr: nothing to remove
  bool is_taken = true;                    // by a guard
  std::string held;
  Entry* next = nullptr;
};

namespace {

using Entry = RemovalGuard::Entry;

// XCPU: `ulimit -t` is what SECURITY.md recommends.
constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU};

std::mutex mutex;  // guards what follows, except in the handler
std::atomic<Entry*> entries{nullptr};
std::array<struct sigaction, kSignals.size()> previous;
int active = 0;

// Only async-signal-safe calls.
extern "C" void RemoveAndRaise(int signal) {
  const int saved = errno;
  RemoveGuarded();
  for (size_t i = 0; i < kSignals.size(); ++i) {
    if (kSignals[i] == signal) ::sigaction(signal, &previous[i], nullptr);
  }
  errno = saved;
  ::raise(signal);  // delivered when this handler returns
}

void InstallHandlers() {
  struct sigaction ours {};
  ours.sa_handler = RemoveAndRaise;
  ::sigemptyset(&ours.sa_mask);
  for (size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], nullptr, &previous[i]);
    if (previous[i].sa_handler != SIG_IGN)
      ::sigaction(kSignals[i], &ours, nullptr);
  }
}

void RestoreHandlers() {
  for (size_t i = 0; i < kSignals.size(); ++i)
    ::sigaction(kSignals[i], &previous[i], nullptr);
}

// An entry that no guard has, or a new one.
Entry* TakeEntry() {
  for (Entry* entry = entries.load(); entry != nullptr; entry = entry->next) {
    if (!std::exchange(entry->is_taken, true)) return entry;
  }
  auto* entry = new Entry;
  entry->next = entries.load();
  entries.store(entry);
  return entry;
}

// Async-signal-safe.
bool RemovePath(const char* path) {
  return ::unlink(path) == 0 || ::rmdir(path) == 0;
}

}  // namespace

SignalsBlocked::SignalsBlocked() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : kSignals) ::sigaddset(&set, signal);
  ::pthread_sigmask(SIG_BLOCK, &set, &before_);
}

SignalsBlocked::~SignalsBlocked() {
  const int saved = errno;
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  errno = saved;
}

RemovalGuard::RemovalGuard(const std::string& path) {
  const std::lock_guard lock(mutex);
  entry_ = TakeEntry();
  entry_->held = path;
  if (active++ == 0) InstallHandlers();
}

RemovalGuard& RemovalGuard::operator=(RemovalGuard&& other) noexcept {
  if (this != &other) {
    Remove();
    entry_ = std::exchange(other.entry_, nullptr);
  }
  return *this;
}

void RemovalGuard::Arm() noexcept { entry_->path.store(entry_->held.c_str()); }

void RemovalGuard::Release() noexcept {
  if (entry_ == nullptr) return;
  const std::lock_guard lock(mutex);
  entry_->path.store(nullptr);
  entry_->is_taken = false;
  entry_ = nullptr;
  if (--active == 0) RestoreHandlers();
}

void RemovalGuard::Remove() noexcept {
  if (entry_ == nullptr) return;
  const int saved = errno;
  if (const char* path = entry_->path.load()) RemovePath(path);
  Release();
  errno = saved;
}

void RemoveGuarded() noexcept {
  // A directory goes once what is in it did.
  for (bool removed = true; removed;) {
    removed = false;
    for (Entry* entry = entries.load(); entry != nullptr; entry = entry->next) {
      const char* path = entry->path.load();
      removed |= path != nullptr && RemovePath(path);
    }
  }
}

}  // namespace addnorm::proto
