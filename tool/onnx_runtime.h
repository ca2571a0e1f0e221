// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// ONNX Runtime, loaded from its shared library if there is one: for comparisons
// in one process, with the same clocks, threads and buffers.
//
// Nothing is linked and no header is needed: its C API is a table of functions
// whose places never change. Sessions are what users have by default: all
// optimisations, CPU.
//
//   ASSIGN_OR_RETURN(auto ort, OnnxRuntime::Open(""));
//   ASSIGN_OR_RETURN(auto session, ort->Load(request));
//   ASSIGN_OR_RETURN(OrtValue x, ort->Wrap(type, dims, data, bytes));
#ifndef ADDNORM_TOOL_ONNX_RUNTIME_H_
#define ADDNORM_TOOL_ONNX_RUNTIME_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/tensor.h"

namespace addnorm::tool {

class OnnxRuntime;

// A tensor of ONNX Runtime's; must not outlive the OnnxRuntime.
class OrtValue {
 public:
  OrtValue() = default;
  OrtValue(const OnnxRuntime* ort, void* handle) : ort_(ort), handle_(handle) {}
  OrtValue(OrtValue&& other) noexcept { *this = std::move(other); }
  OrtValue& operator=(OrtValue&& other) noexcept {
    std::swap(ort_, other.ort_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~OrtValue();

  void* handle() const { return handle_; }
  // A copy.
  absl::StatusOr<runtime::Tensor> ToTensor() const;

 private:
  const OnnxRuntime* ort_ = nullptr;
  void* handle_ = nullptr;
};

struct OrtModel {
  std::string bytes;   // a serialised ModelProto
  std::string folder;  // where its external data are, "" if it has none
  std::vector<std::string> inputs, outputs;  // names, of what Run is given
};

class OrtSession {
 public:
  OrtSession(const OnnxRuntime* ort, void* handle, const OrtModel& model);
  OrtSession(const OrtSession&) = delete;
  OrtSession& operator=(const OrtSession&) = delete;
  ~OrtSession();

  // Values in the order of the model's names. Outputs that are null are
  // allocated and are the caller's.
  absl::Status Run(std::span<const void* const> inputs,
                   std::span<void*> outputs) const;

 private:
  const OnnxRuntime* ort_;
  void* handle_;
  std::vector<std::string> inputs_, outputs_;
  std::vector<const char*> input_names_, output_names_;
};

class OnnxRuntime {
 public:
  // The library of that path, which no name is: it is not looked for. With "",
  // where the system and a Python environment have it; kNotFound says so.
  static absl::StatusOr<std::unique_ptr<OnnxRuntime>> Open(
      const std::string& path);
  OnnxRuntime(const OnnxRuntime&) = delete;
  OnnxRuntime& operator=(const OnnxRuntime&) = delete;
  ~OnnxRuntime();

  const std::string& version() const { return version_; }
  const std::string& path() const { return path_; }

  // Its workers go to cores[1], cores[2], …, if there are as many as threads.
  // kUnimplemented, in its words, if it cannot run the model.
  absl::StatusOr<std::unique_ptr<OrtSession>> Load(
      const OrtModel& model, int threads,
      std::span<const int> cores = {}) const;

  // The elements stay where they are.
  absl::StatusOr<OrtValue> Wrap(ir::DataType type, const runtime::Dims& dims,
                                void* data, size_t bytes) const;

 private:
  friend class OrtValue;
  friend class OrtSession;

  OnnxRuntime() = default;
  absl::Status Start(void* library);
  absl::Status ToStatus(void* status) const;
  template <typename Signature>
  Signature* Function(size_t place) const {
    return reinterpret_cast<Signature*>(const_cast<void*>(table_[place]));
  }
  // Functions that return a status.
  template <typename... Args>
  absl::Status Call(size_t place, Args... args) const {
    return ToStatus(Function<void*(Args...)>(place)(args...));
  }
  void Release(size_t place, void* handle) const {
    if (handle != nullptr) Function<void(void*)>(place)(handle);
  }

  std::string path_, version_;
  const void* const* table_ = nullptr;
  void* environment_ = nullptr;
  void* memory_ = nullptr;
};

}  // namespace addnorm::tool

#endif  // ADDNORM_TOOL_ONNX_RUNTIME_H_
