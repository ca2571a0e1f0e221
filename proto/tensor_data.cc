// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/tensor_data.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fmt/ranges.h"
#include "passes/ir/status_macros.h"
#include "proto/errors.h"
#include "proto/external_data.h"
#include "proto/tensor_encoding.h"

namespace addnorm::proto {
namespace {

using ir::DataType;
using onnx::TensorProto;

// A data field of TensorProto with its contents, in the message or left out of
// it.
struct DataField {
  int number;
  std::string_view name;
  uint64_t items = 0;                      // in the message
  std::vector<ir::ByteRange> ranges = {};  // left out of it
  uint64_t bytes = 0;                      // of the ranges
  uint64_t occurrences = 0;
};

// The data fields that have something in them.
std::vector<DataField> UsedFields(const Document& document,
                                  const TensorProto& proto,
                                  std::span<const RecordId> parts) {
  const auto size = [](const auto& items) {
    return static_cast<uint64_t>(items.size());
  };
  std::vector<DataField> fields = {
      {TensorProto::kFloatDataFieldNumber, "float_data",
       size(proto.float_data())},
      {TensorProto::kInt32DataFieldNumber, "int32_data",
       size(proto.int32_data())},
      {TensorProto::kStringDataFieldNumber, "string_data",
       size(proto.string_data())},
      {TensorProto::kInt64DataFieldNumber, "int64_data",
       size(proto.int64_data())},
      {TensorProto::kRawDataFieldNumber, "raw_data", size(proto.raw_data())},
      {TensorProto::kDoubleDataFieldNumber, "double_data",
       size(proto.double_data())},
      {TensorProto::kUint64DataFieldNumber, "uint64_data",
       size(proto.uint64_data())},
  };
  for (const RecordId id : document.Children(parts, Kind::kPayload)) {
    const Record& run = document.record(id);
    for (DataField& field : fields) {
      if (field.number != run.field) continue;
      const bool is_raw = field.number == TensorProto::kRawDataFieldNumber;
      // raw_data is one value, the last; the others are runs that protobuf must
      // decode.
      const uint32_t begin = is_raw ? run.body : run.begin;
      if (is_raw) field.ranges.clear();
      field.ranges.push_back({.offset = begin, .length = run.end - begin});
      field.bytes =
          is_raw ? run.end - run.body : field.bytes + run.end - run.begin;
      field.occurrences += run.index;
      if (field.number == TensorProto::kStringDataFieldNumber)
        field.items += run.index;
    }
  }
  std::erase_if(fields, [](const DataField& f) {
    return f.items == 0 && f.ranges.empty();
  });
  return fields;
}

// What can be said of the number of items that are left out, without reading
// them.
bool MayHave(const DataField& field, uint64_t items) {
  constexpr uint64_t kMaxVarint = 10;
  constexpr uint64_t kMaxOverhead =
      2 * kMaxVarint;  // tag and length of an occurrence
  const bool is_float = field.number == TensorProto::kFloatDataFieldNumber;
  const bool is_double = field.number == TensorProto::kDoubleDataFieldNumber;
  const uint64_t least = is_float ? 4 : is_double ? 8 : 1;
  const uint64_t most = is_float || is_double ? least : kMaxVarint;
  return items <= field.bytes / least &&
         field.bytes <= items * most + field.occurrences * kMaxOverhead;
}

absl::Status CheckCount(const ir::Tensor& tensor, const DataField& field,
                        int64_t count) {
  const bool is_raw = field.number == TensorProto::kRawDataFieldNumber;
  if (!is_raw && TypedField(tensor.type) == 0) return absl::OkStatus();
  if (!is_raw && field.number != TypedField(tensor.type)) {
    return InvalidModel("has data in {}, which is not for type {}", field.name,
                        ir::DataTypeName(tensor.type));
  }
  if (is_raw && tensor.type == DataType::kString) {
    return InvalidModel(
        "is of type string and has raw_data, expected string_data");
  }
  const uint64_t have = is_raw ? field.items + field.bytes : field.items;
  const std::optional<uint64_t> need =
      is_raw ? ByteSize(tensor.type, count) : ItemCount(tensor.type, count);
  const bool is_counted = is_raw || field.ranges.empty() ||
                          field.number == TensorProto::kStringDataFieldNumber;
  if (!need || (is_counted ? have == *need : MayHave(field, *need)))
    return absl::OkStatus();
  return InvalidModel("has {} {} in {}, expected {} for {}[{}]",
                      is_counted ? have : field.bytes,
                      is_raw || !is_counted ? "bytes" : "items", field.name,
                      *need, ir::DataTypeName(tensor.type),
                      fmt::join(tensor.dims, ","));
}

DataEntries Entries(const TensorProto& proto) {
  DataEntries entries;
  for (const auto& entry : proto.external_data())
    entries.emplace_back(entry.key(), entry.value());
  return entries;
}

absl::StatusOr<ir::ExternalElements> ImportExternal(const ModelFile& file,
                                                    const TensorProto& proto,
                                                    const ir::Tensor& tensor) {
  if (tensor.type == DataType::kString) {
    return InvalidModel("is of type string, which cannot be external");
  }
  ASSIGN_OR_RETURN(const int64_t count, ElementCount(tensor));
  ASSIGN_OR_RETURN(const DataRegion region,
                   file.external_data().Resolve(Entries(proto),
                                                ByteSize(tensor.type, count)));
  return ir::ExternalElements{.location = region.file->location,
                              .offset = region.offset,
                              .length = region.length};
}

ir::OpaqueElements StringsOf(const TensorProto& proto, const DataField& field) {
  if (!field.ranges.empty()) {
    // Some of them here and some there: not known.
    return proto.string_data().empty()
               ? ir::OpaqueElements{.ranges = field.ranges}
               : ir::OpaqueElements{};
  }
  TensorProto strings;
  *strings.mutable_string_data() = proto.string_data();
  return {.encoded = strings.SerializeAsString()};
}

absl::Status ImportElements(const ModelFile& file, const TensorProto& proto,
                            std::span<const RecordId> parts,
                            ir::Tensor& tensor) {
  if (proto.data_location() == TensorProto::EXTERNAL) {
    ASSIGN_OR_RETURN(tensor.elements, ImportExternal(file, proto, tensor));
    return absl::OkStatus();
  }
  tensor.elements = ir::OpaqueElements{};
  if (proto.has_segment()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const int64_t count, ElementCount(tensor));
  const std::vector<DataField> fields =
      UsedFields(file.document(), proto, parts);
  if (fields.size() > 1) {
    return InvalidModel("has data in {} and in {}", fields[0].name,
                        fields[1].name);
  }
  if (fields.empty()) {
    if (count != 0 && TypedField(tensor.type) != 0) {
      return InvalidModel("has no data, expected {} elements", count);
    }
    if (tensor.type == DataType::kString) {
      tensor.elements = ir::OpaqueElements{.encoded = ""};
    } else {
      tensor.elements = ir::InlineElements{};
    }
    return absl::OkStatus();
  }
  const DataField& field = fields.front();
  RETURN_IF_ERROR(CheckCount(tensor, field, count));
  if (tensor.type == DataType::kString) {
    tensor.elements = StringsOf(proto, field);
    return absl::OkStatus();
  }
  if (!field.ranges.empty()) {
    tensor.elements =
        ir::FileElements{.field = field.number, .ranges = field.ranges};
  } else if (field.number == TensorProto::kRawDataFieldNumber) {
    tensor.elements = ir::InlineElements{proto.raw_data()};
  } else if (std::optional<std::string> bytes =
                 DecodeTyped(tensor.type, proto)) {
    tensor.elements = ir::InlineElements{*std::move(bytes)};
  }
  return absl::OkStatus();
}

ir::Tensor Header(const TensorProto& proto) {
  return {.name = proto.name(),
          .type = static_cast<DataType>(proto.data_type()),
          .dims = {proto.dims().begin(), proto.dims().end()},
          .elements = ir::OpaqueElements{}};
}

}  // namespace

absl::StatusOr<ir::Tensor> ImportTensor(const ModelFile& file,
                                        const TensorProto& proto,
                                        std::span<const RecordId> parts) {
  ir::Tensor tensor = Header(proto);
  RETURN_IF_ERROR(
      WithTensorName(ImportElements(file, proto, parts, tensor), tensor.name));
  return tensor;
}

absl::Status CheckExternal(const ModelFile& file, const TensorProto& proto) {
  if (proto.data_location() != TensorProto::EXTERNAL) return absl::OkStatus();
  return WithTensorName(ImportExternal(file, proto, Header(proto)).status(),
                        proto.name());
}

}  // namespace addnorm::proto
