// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// The attributes of a node as an op reads them: with defaults, and inside a
// function with references to the caller's attributes followed.
//
// An attribute of the wrong type reads as its default and leaves an error in
// status(), which the executor reports after the op.
//
//   const int64_t axis = attributes.Int("axis", -1);
#ifndef ADDNORM_RUNTIME_ATTRIBUTES_H_
#define ADDNORM_RUNTIME_ATTRIBUTES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "passes/ir/graph.h"

namespace addnorm::runtime {

class Attributes {
 public:
  // caller: of the call whose function the node is in, nullptr outside of
  // functions.
  Attributes(const ir::Node& node, const Attributes* caller)
      : node_(&node), caller_(caller) {}

  bool Has(std::string_view name) const { return Find(name) != nullptr; }
  int64_t Int(std::string_view name, int64_t fallback) const;
  float Float(std::string_view name, float fallback) const;
  std::string String(std::string_view name, std::string_view fallback) const;
  std::optional<std::vector<int64_t>> Ints(std::string_view name) const;
  std::optional<std::vector<float>> Floats(std::string_view name) const;
  const ir::Tensor* Tensor(std::string_view name) const;

  absl::Status status() const { return status_; }

 private:
  const ir::AttributeValue* Find(std::string_view name) const;
  template <typename T>
  const T* Get(std::string_view name) const;

  const ir::Node* node_;
  const Attributes* caller_;
  mutable absl::Status status_;
};

}  // namespace addnorm::runtime

#endif  // ADDNORM_RUNTIME_ATTRIBUTES_H_
