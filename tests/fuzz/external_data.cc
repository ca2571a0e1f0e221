// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// Hostile locations, offsets and lengths. What is resolved is a file inside the
// model's folder and a range of it, the two ways of looking a path up agree,
// copies go below the output's folder, and nothing outside is ever opened.
//
// The input is lines: the tensor's size in bytes ("-": unknown), then
// key=value for each external_data entry.
#include "proto/external_data.h"

#include <algorithm>
#include <charconv>

#include "onnx/onnx_pb.h"
#include "proto/data_copy.h"
#include "proto/import.h"
#include "tests/fuzz/claims.h"
#include "tests/fuzz/data_folder.h"

namespace addnorm::fuzz {
namespace {

struct Request {
  std::optional<uint64_t> bytes;
  proto::DataEntries entries;
};

Request Parse(std::string_view text) {
  Request request;
  bool is_first = true;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const size_t equals = line.find('=');
    uint64_t bytes = 0;
    if (std::exchange(is_first, false)) {
      if (std::from_chars(line.begin(), line.end(), bytes).ec == std::errc())
        request.bytes = bytes;
    } else if (equals != line.npos) {
      request.entries.emplace_back(line.substr(0, equals),
                                   line.substr(equals + 1));
    }
  }
  return request;
}

absl::StatusOr<proto::DataRegion> Resolve(proto::ExternalData& data,
                                          const Request& request,
                                          const DataFolder& folder) {
  const auto region = data.Resolve(request.entries, request.bytes);
  if (!region.ok()) return region.status();
  const auto size = static_cast<uint64_t>(region->file->info.st_size);
  Claim(folder.IsInside(region->file->info), "a data file is inside");
  Claim(region->length <= size && region->offset <= size - region->length,
        "a region is in its file");
  struct stat opened {};
  const auto fd = Expected(data.OpenFile(*region->file), "it can be opened");
  Claim(::fstat(fd.get(), &opened) == 0 && folder.IsInside(opened),
        "the file that is opened is inside");
  return region;
}

void CompareLookups(const std::string& path, const Request& request,
                    const DataFolder& folder) {
  using proto::ExternalData;
  ExternalData by_kernel(path, proto::Lookup::kKernel);
  ExternalData by_components(path, proto::Lookup::kComponents);
  const auto a = Resolve(by_kernel, request, folder);
  const auto b = Resolve(by_components, request, folder);
  if (!a.ok()) ClaimIsAnswer(a.status());
  Claim(a.status().code() == b.status().code(),
        "both ways of looking up: " + a.status().ToString() + " / " +
            b.status().ToString());
  if (!a.ok()) return;
  Claim(a->file->info.st_ino == b->file->info.st_ino &&
            a->offset == b->offset && a->length == b->length,
        "both ways find the same");
}

// A model whose only tensor has the entries.
std::string ModelWith(const Request& request) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  model.mutable_graph()->set_name("g");
  onnx::TensorProto& tensor = *model.mutable_graph()->add_initializer();
  tensor.set_name("w");
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  tensor.set_data_type(request.bytes ? onnx::TensorProto::UINT8 : 99);
  tensor.add_dims(static_cast<int64_t>(request.bytes.value_or(1)));
  for (const auto& [key, value] : request.entries) {
    auto& entry = *tensor.add_external_data();
    entry.set_key(std::string(key));
    entry.set_value(std::string(value));
  }
  return model.SerializeAsString();
}

void CopyData(const std::string& path, const Request& request,
              const DataFolder& folder) {
  const std::shared_ptr<proto::ModelFile> file = Expected(
      proto::ModelFile::FromBytes("model", ModelWith(request), path), "model");
  const auto imported = Answered(proto::Import(file));
  if (!imported) return;
  for (const auto& [location, data] : file->external_data().files())
    Claim(folder.IsInside(data.info), "a model's data file is inside");
  const auto files = Answered(proto::FilesToCopy(*file, folder.output()));
  if (!files) return;
  proto::DataCopies copies;
  const absl::Status status =
      copies.Make(*file, folder.output(), *files, /*on_copied=*/{});
  if (!status.ok()) ClaimIsAnswer(status);
}

}  // namespace
}  // namespace addnorm::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace addnorm::fuzz;
  static const DataFolder folder;
  const Request request = Parse({reinterpret_cast<const char*>(data), size});
  for (const std::string& path : folder.models()) {
    CompareLookups(path, request, folder);
    CopyData(path, request, folder);
    Claim(folder.IsOutputClean(), "copies that are not kept are removed");
    Claim(!folder.WasLeft(), "nothing outside is opened");
  }
  return 0;
}
