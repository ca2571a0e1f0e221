// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "tool/structure_check.h"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "passes/ir/status_macros.h"
#include "passes/operators.h"
#include "proto/attribute_default.h"
#include "proto/tensor_equality.h"

namespace addnorm::tool {
namespace {

class OnnxSchemas : public passes::OperatorSchemas {
 public:
  const ir::Attribute* Default(std::string_view domain,
                               std::string_view op_type, int64_t version,
                               std::string_view attribute) override {
    const ir::Attribute* found =
        proto::AttributeDefault(domain, op_type, version, attribute);
    if (found != nullptr || !(domain.empty() || domain == "com.microsoft"))
      return found;
    return NormDefault(op_type, attribute);
  }
  int64_t SinceVersion(std::string_view domain, std::string_view op_type,
                       int64_t version) override {
    return proto::OperatorSinceVersion(domain, op_type, version);
  }

 private:
  // ONNX has no schema of ONNX Runtime's norms.
  const ir::Attribute* NormDefault(std::string_view op_type,
                                   std::string_view name) {
    const passes::NormOperator* norm = passes::FindNormOperator(op_type);
    if (norm == nullptr) return nullptr;
    const auto [it, added] =
        norms_.try_emplace(fmt::format("{} {}", op_type, name));
    if (!added) return it->second.get();
    auto attribute = std::make_unique<ir::Attribute>();
    if (name == "epsilon") attribute->value = norm->epsilon;
    if (name == "stash_type") attribute->value = norm->stash_type;
    if (name == "axis") attribute->value = int64_t{-1};
    if (!std::holds_alternative<ir::OpaqueAttribute>(attribute->value))
      it->second = std::move(attribute);
    return it->second.get();
  }

  absl::flat_hash_map<std::string, std::unique_ptr<ir::Attribute>> norms_;
};

// Classes of large constants. Side 0 comes first, and its constants are told
// apart by where they are; those of side 1 are looked for among them: the same
// bytes of the same file, else those of the same name, else any of the same
// elements. Constants of side 0 that turn out to be the same are one class from
// then on; numbers given before are too many then (has_merged).
class FileContents : public passes::TensorContents {
 public:
  FileContents(const LoadedModel& a, const LoadedModel& b)
      : files_{a.file.get(), b.file.get()} {}

  absl::StatusOr<int32_t> Classify(passes::Side side,
                                   const ir::Tensor& tensor) override {
    const auto known = classes_.find(&tensor);
    if (known != classes_.end()) return Merged(known->second);
    ASSIGN_OR_RETURN(const std::optional<std::string> place,
                     proto::PlaceOfElements(*files_[side], tensor));
    ASSIGN_OR_RETURN(const int32_t found, Find(side, tensor, place));
    classes_[&tensor] = found;
    return found;
  }

  bool has_merged() const { return !merged_.empty(); }

 private:
  struct Member {
    const ir::Tensor* tensor;
    int32_t number;
    std::optional<uint64_t> digest;
  };

  int32_t Merged(int32_t number) const {
    const auto first = merged_.find(number);
    return first == merged_.end() ? number : first->second;
  }

  absl::StatusOr<int32_t> Find(passes::Side side, const ir::Tensor& tensor,
                               const std::optional<std::string>& place) {
    if (place) {
      const auto same = by_place_.find(*place);
      if (same != by_place_.end()) return Merged(same->second);
    }
    std::vector<Member>& group = groups_[fmt::format(
        "{} [{}]", static_cast<int>(tensor.type), fmt::join(tensor.dims, ","))];
    std::optional<int32_t> number;
    if (side == 1) {
      ASSIGN_OR_RETURN(number, FindEqual(tensor, group));
    }
    if (!number) {
      number = next_++;
      if (side == 0) group.push_back({&tensor, *number, std::nullopt});
    }
    if (place) by_place_[*place] = *number;
    return *number;
  }

  absl::StatusOr<std::optional<int32_t>> FindEqual(const ir::Tensor& tensor,
                                                   std::vector<Member>& group) {
    std::vector<Member*> namesakes, others;
    for (Member& member : group)
      (member.tensor->name == tensor.name ? namesakes : others)
          .push_back(&member);
    // The usual case, without a digest: every weight has a name of its own.
    if (namesakes.size() == 1) {
      ASSIGN_OR_RETURN(const bool equal, Equal(*namesakes[0]->tensor, tensor));
      if (equal) return namesakes[0]->number;
    }
    if (group.empty()) return std::nullopt;
    ASSIGN_OR_RETURN(const uint64_t digest,
                     proto::DigestOfElements(*files_[1], tensor));
    ASSIGN_OR_RETURN(const std::optional<int32_t> number,
                     MergeEqual(tensor, digest, namesakes));
    return number ? number : MergeEqual(tensor, digest, others);
  }

  // The class of those members that have these elements: one for all of them.
  absl::StatusOr<std::optional<int32_t>> MergeEqual(
      const ir::Tensor& tensor, uint64_t digest,
      const std::vector<Member*>& members) {
    std::optional<int32_t> number;
    for (Member* member : members) {
      if (!member->digest) {
        ASSIGN_OR_RETURN(member->digest,
                         proto::DigestOfElements(*files_[0], *member->tensor));
      }
      if (*member->digest != digest || member->number == number) continue;
      ASSIGN_OR_RETURN(const bool equal, Equal(*member->tensor, tensor));
      if (!equal) continue;
      if (number) merged_[member->number] = *number;
      number = number.value_or(member->number);
      member->number = *number;
    }
    return number;
  }

  absl::StatusOr<bool> Equal(const ir::Tensor& a, const ir::Tensor& b) {
    return proto::ElementsEqual(*files_[0], a, *files_[1], b);
  }

  std::array<const proto::ModelFile*, 2> files_;
  absl::flat_hash_map<const ir::Tensor*, int32_t> classes_;
  absl::flat_hash_map<std::string, int32_t> by_place_;
  absl::flat_hash_map<std::string, std::vector<Member>> groups_;
  // From classes that are no more to the ones they are in.
  absl::flat_hash_map<int32_t, int32_t> merged_;
  int32_t next_ = 0;
};

// Of two imports of the same bytes: all values are twins, by their places.
passes::Structure SameStructure(const ir::Model& a, const ir::Model& b) {
  passes::Structure same;
  const std::vector<ir::Value*> values_a = a.graph.values();
  const std::vector<ir::Value*> values_b = b.graph.values();
  for (size_t i = 0; i < values_a.size() && i < values_b.size(); ++i)
    same.twins[values_b[i]] = values_a[i];
  return same;
}

}  // namespace

absl::StatusOr<passes::Structure> CheckStructure(const LoadedModel& a,
                                                 const LoadedModel& b) {
  FileContents contents(a, b);
  OnnxSchemas schemas;
  absl::StatusOr<passes::Structure> structure =
      passes::CompareStructure(*a.model, *b.model, contents, schemas);
  if (structure.ok() && !structure->is_equal() && contents.has_merged()) {
    // Every constant has its class now.
    structure = passes::CompareStructure(*a.model, *b.model, contents, schemas);
  }
  if (!absl::IsUnimplemented(structure.status())) return structure;
  // Whatever is in them.
  ASSIGN_OR_RETURN(const bool are_same, proto::FilesEqual(*a.file, *b.file));
  if (are_same) return SameStructure(*a.model, *b.model);
  return structure;
}

absl::Status KeepEqualWeights(const LoadedModel& a, const LoadedModel& b,
                              ValueMap& twins) {
  std::vector<const ir::Value*> unequal;
  for (const auto& [value_b, value_a] : twins) {
    const ir::Tensor* y = value_b->initializer();
    const ir::Tensor* x = value_a->initializer();
    if (x == nullptr || y == nullptr) continue;
    bool equal = x->type == y->type && x->dims == y->dims;
    if (equal) {
      ASSIGN_OR_RETURN(equal, proto::ElementsEqual(*a.file, *x, *b.file, *y));
    }
    if (!equal) unequal.push_back(value_b);
  }
  for (const ir::Value* value : unequal) twins.erase(value);
  return absl::OkStatus();
}

}  // namespace addnorm::tool
