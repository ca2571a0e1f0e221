// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/onnx_runtime.h"

#include <dlfcn.h>
#include <glob.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>

#include "fmt/format.h"
#include "passes/ir/printable.h"
#include "passes/ir/status_macros.h"

namespace addnorm::tool {
namespace {

using runtime::Dims;
using runtime::Tensor;

// ONNX Runtime 1.4 (2020) and all that followed. The table of a version is a
// prefix of those of later ones, and its authors assert that places stay.
constexpr uint32_t kApiVersion = 5;

enum Place : size_t {
  kGetErrorMessage = 2,
  kCreateEnv = 3,
  kCreateSessionFromArray = 8,
  kRun = 9,
  kCreateSessionOptions = 10,
  kSetIntraOpNumThreads = 24,
  kCreateTensorWithData = 49,
  kGetTensorData = 51,
  kGetElementType = 60,
  kGetDimensionsCount = 61,
  kGetDimensions = 62,
  kGetTypeAndShape = 65,
  kCreateCpuMemoryInfo = 69,
  kReleaseEnv = 92,
  kReleaseStatus = 93,
  kReleaseMemoryInfo = 94,
  kReleaseSession = 95,
  kReleaseValue = 96,
  kReleaseTypeAndShape = 99,
  kReleaseSessionOptions = 100,
  kAddConfigEntry = 130
};

// What OrtGetApiBase returns.
struct ApiBase {
  const void* const* (*get_api)(uint32_t version);
  const char* (*get_version)();
};

constexpr int kFatal = 4;  // of log levels: errors are returned
constexpr int kDeviceAllocator = 0, kDefaultMemory = 0;

// Where libraries are by name, and where a Python package has its own.
std::vector<std::string> Candidates() {
  std::vector<std::string> found = {"libonnxruntime.so.1", "libonnxruntime.so"};
  std::vector<std::string> environments;
  if (const char* active = std::getenv("VIRTUAL_ENV"))
    environments.emplace_back(active);
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) environments.push_back(self.parent_path().parent_path() / "venv");
  for (const std::string& environment : environments) {
    const std::string pattern = environment +
                                "/lib/python3*/site-packages/onnxruntime/capi/"
                                "libonnxruntime.so.*";
    glob_t files = {};
    if (glob(pattern.c_str(), 0, nullptr, &files) == 0)
      found.insert(found.end(), files.gl_pathv,
                   files.gl_pathv + files.gl_pathc);
    globfree(&files);
  }
  return found;
}

// A name without a slash would be looked for where libraries are.
std::string AsPath(const std::string& path) {
  return path.find('/') == std::string::npos ? "./" + path : path;
}

absl::Status NotFound(const std::string& path) {
  const char* hint =
      "--ort PATH names its shared library; pip's package has one, "
      "onnxruntime/capi/libonnxruntime.so.1.…";
  if (path.empty()) {
    return absl::NotFoundError(fmt::format(
        "ONNX Runtime: no libonnxruntime.so, neither the system's nor that of "
        "an active Python environment\nhint: {}",
        hint));
  }
  const char* reason = dlerror();
  return absl::NotFoundError(
      fmt::format("--ort {}: not a library that can be loaded ({})\nhint: {}",
                  ir::Printable(path), reason == nullptr ? "?" : reason, hint));
}

// One thread a group, numbered from 1; the first thread is the caller.
std::string Affinities(std::span<const int> cores) {
  std::string groups;
  for (const int core : cores.subspan(1))
    groups += fmt::format("{}{}", groups.empty() ? "" : ";", core + 1);
  return groups;
}

}  // namespace

absl::StatusOr<std::unique_ptr<OnnxRuntime>> OnnxRuntime::Open(
    const std::string& path) {
  std::vector<std::string> candidates = {AsPath(path)};
  if (path.empty()) candidates = Candidates();
  for (const std::string& candidate : candidates) {
    void* library = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    std::unique_ptr<OnnxRuntime> ort(new OnnxRuntime);
    ort->path_ = candidate;
    RETURN_IF_ERROR(ort->Start(library));
    return ort;
  }
  return NotFound(path);
}

// The library stays loaded: it has threads and static objects.
absl::Status OnnxRuntime::Start(void* library) {
  using GetApiBase = const ApiBase* (*)();
  const auto get_base =
      reinterpret_cast<GetApiBase>(dlsym(library, "OrtGetApiBase"));
  if (get_base == nullptr) {
    return absl::NotFoundError(fmt::format(
        "--ort {}: not a library of ONNX Runtime: it has no OrtGetApiBase",
        ir::Printable(path_)));
  }
  version_ = get_base()->get_version();
  table_ = get_base()->get_api(kApiVersion);
  if (table_ == nullptr) {
    return absl::UnimplementedError(
        fmt::format("{}: ONNX Runtime {}, expected 1.4 or newer",
                    ir::Printable(path_), version_));
  }
  RETURN_IF_ERROR(Call(kCreateEnv, kFatal, "onnx-addnorm", &environment_));
  return Call(kCreateCpuMemoryInfo, kDeviceAllocator, kDefaultMemory, &memory_);
}

OnnxRuntime::~OnnxRuntime() {
  if (table_ == nullptr) return;
  Release(kReleaseMemoryInfo, memory_);
  Release(kReleaseEnv, environment_);
}

absl::Status OnnxRuntime::ToStatus(void* status) const {
  if (status == nullptr) return absl::OkStatus();
  const std::string message =
      Function<const char*(const void*)>(kGetErrorMessage)(status);
  Release(kReleaseStatus, status);
  return absl::UnimplementedError(
      fmt::format("ONNX Runtime {}: {}", version_, ir::Printable(message)));
}

absl::StatusOr<std::unique_ptr<OrtSession>> OnnxRuntime::Load(
    const OrtModel& model, int threads, std::span<const int> cores) const {
  void* options = nullptr;
  RETURN_IF_ERROR(Call(kCreateSessionOptions, &options));
  const auto release = [this](void* handle) {
    Release(kReleaseSessionOptions, handle);
  };
  const std::unique_ptr<void, decltype(release)> owner(options, release);
  RETURN_IF_ERROR(Call(kSetIntraOpNumThreads, options, threads));
  // Else its workers go on spinning in the time of the arm after it.
  std::vector<std::pair<const char*, std::string>> entries = {
      {"session.force_spinning_stop", "1"}};
  if (!model.folder.empty()) {
    entries.emplace_back("session.model_external_initializers_file_folder_path",
                         model.folder);
  }
  if (threads > 1 && cores.size() == static_cast<size_t>(threads))
    entries.emplace_back("session.intra_op_thread_affinities",
                         Affinities(cores));
  for (const auto& [key, value] : entries)
    RETURN_IF_ERROR(Call(kAddConfigEntry, options, key, value.c_str()));
  void* session = nullptr;
  RETURN_IF_ERROR(Call(kCreateSessionFromArray, environment_,
                       static_cast<const void*>(model.bytes.data()),
                       model.bytes.size(), options, &session));
  return std::make_unique<OrtSession>(this, session, model);
}

absl::StatusOr<OrtValue> OnnxRuntime::Wrap(ir::DataType type, const Dims& dims,
                                           void* data, size_t bytes) const {
  if (ir::BitWidth(type).value_or(0) < 8) {
    return absl::UnimplementedError(
        fmt::format("inputs of {} for ONNX Runtime", ir::DataTypeName(type)));
  }
  void* value = nullptr;
  RETURN_IF_ERROR(Call(kCreateTensorWithData, memory_, data, bytes, dims.data(),
                       dims.size(), static_cast<int>(type), &value));
  return OrtValue(this, value);
}

OrtValue::~OrtValue() {
  if (handle_ != nullptr) ort_->Release(kReleaseValue, handle_);
}

absl::StatusOr<Tensor> OrtValue::ToTensor() const {
  void* info = nullptr;
  RETURN_IF_ERROR(ort_->Call(kGetTypeAndShape, handle_, &info));
  const auto release = [this](void* handle) {
    ort_->Release(kReleaseTypeAndShape, handle);
  };
  const std::unique_ptr<void, decltype(release)> owner(info, release);
  int type = 0;
  size_t rank = 0;
  RETURN_IF_ERROR(ort_->Call(kGetElementType, info, &type));
  RETURN_IF_ERROR(ort_->Call(kGetDimensionsCount, info, &rank));
  Dims dims(rank);
  RETURN_IF_ERROR(ort_->Call(kGetDimensions, info, dims.data(), rank));
  void* data = nullptr;
  RETURN_IF_ERROR(ort_->Call(kGetTensorData, handle_, &data));
  const auto element = static_cast<ir::DataType>(type);
  const int64_t count = runtime::ElementCount(dims).value_or(0);
  const auto bits = static_cast<int64_t>(ir::BitWidth(element).value_or(0));
  const auto bytes = static_cast<size_t>((count * bits + 7) / 8);
  return Tensor::FromBytes(element, dims,
                           std::string(static_cast<const char*>(data), bytes),
                           nullptr);
}

OrtSession::OrtSession(const OnnxRuntime* ort, void* handle,
                       const OrtModel& model)
    : ort_(ort),
      handle_(handle),
      inputs_(model.inputs),
      outputs_(model.outputs) {
  for (const std::string& name : inputs_) input_names_.push_back(name.c_str());
  for (const std::string& name : outputs_)
    output_names_.push_back(name.c_str());
}

OrtSession::~OrtSession() { ort_->Release(kReleaseSession, handle_); }

absl::Status OrtSession::Run(std::span<const void* const> inputs,
                             std::span<void*> outputs) const {
  const void* run_options = nullptr;
  return ort_->Call(kRun, handle_, run_options, input_names_.data(),
                    inputs.data(), inputs.size(), output_names_.data(),
                    outputs.size(), outputs.data());
}

}  // namespace addnorm::tool
