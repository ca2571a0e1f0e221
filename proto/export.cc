// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/export.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "google/protobuf/io/coded_stream.h"
#include "onnx/onnx_pb.h"
#include "passes/ir/status_macros.h"
#include "proto/errors.h"
#include "proto/serialize.h"
#include "proto/splice.h"
#include "proto/wire.h"

namespace addnorm::proto {
namespace {

using ir::kNoSource;

// A longest subsequence whose sources rise: those nodes can stay where they
// are. Patience sorting, O(n log n).
std::vector<const ir::Node*> LongestRise(
    const std::vector<const ir::Node*>& nodes) {
  std::vector<size_t>
      tails;  // tails[k]: the lowest end of a rise of k + 1 nodes
  std::vector<size_t> before(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    const auto place =
        std::lower_bound(tails.begin(), tails.end(), nodes[i]->source,
                         [&](size_t tail, ir::Source source) {
                           return nodes[tail]->source < source;
                         });
    before[i] = place == tails.begin() ? i : *(place - 1);
    if (place == tails.end()) {
      tails.push_back(i);
    } else {
      *place = i;
    }
  }
  std::vector<const ir::Node*> rise(tails.size());
  size_t at = tails.empty() ? 0 : tails.back();
  for (size_t k = rise.size(); k-- > 0; at = before[at]) rise[k] = nodes[at];
  return rise;
}

class Exporter {
 public:
  Exporter(const ModelFile& file, const ir::Model& model)
      : file_(file),
        document_(file.document()),
        model_(model),
        splice_(document_) {}

  absl::StatusOr<Rope> Export() {
    RETURN_IF_ERROR(ExportIrVersion());
    ExportOpsetImports(kRoot, model_.opset_imports,
                       onnx::ModelProto::kOpsetImportFieldNumber);
    // AllGraphs is not const for those who edit; this only reads.
    for (const ir::Graph* graph : const_cast<ir::Model&>(model_).AllGraphs()) {
      const bool is_new = graph->source == kNoSource;
      if (graph->edited() && !is_new) RETURN_IF_ERROR(ExportGraph(*graph));
    }
    for (const ir::Function& function : model_.functions) {
      if (function.source == kNoSource) continue;
      ExportOpsetImports(function.source, function.opset_imports,
                         onnx::FunctionProto::kOpsetImportFieldNumber);
    }
    RETURN_IF_ERROR(ExportNewFunctions());
    return splice_.Build();
  }

 private:
  std::vector<RecordId> InRoot(Kind kind) const {
    const RecordId root = kRoot;
    return document_.Children({&root, 1}, kind);
  }

  absl::Status ExportIrVersion() {
    const std::vector<RecordId> records = InRoot(Kind::kIrVersion);
    if (records.empty()) {
      if (model_.ir_version != 0)
        splice_.InsertAtStart(kRoot, IrVersionField(model_.ir_version));
      return absl::OkStatus();
    }
    const Record& last = document_.record(records.back());
    std::string bytes(last.end - last.body, '\0');
    RETURN_IF_ERROR(file_.Read(last.body, bytes.size(), bytes.data()));
    google::protobuf::io::CodedInputStream in(
        reinterpret_cast<const uint8_t*>(bytes.data()),
        static_cast<int>(bytes.size()));
    uint64_t version = 0;
    in.ReadVarint64(&version);
    if (static_cast<int64_t>(version) == model_.ir_version)
      return absl::OkStatus();
    splice_.InsertBefore(records.back(), IrVersionField(model_.ir_version));
    splice_.Erase(records.back());
    return absl::OkStatus();
  }

  void ExportOpsetImports(RecordId message,
                          const std::vector<ir::OpsetImport>& imports,
                          int field) {
    const std::vector<RecordId> records =
        document_.Children({&message, 1}, Kind::kOpsetImport);
    for (const ir::OpsetImport& import : imports) {
      if (!import.added) continue;
      if (records.empty()) {
        splice_.InsertAtEnd(message, OpsetImportField(import, field));
      } else {
        splice_.InsertAfter(records.back(), OpsetImportField(import, field));
      }
    }
  }

  // New nodes go before the next node that stays, so that one pass from the
  // back knows every node's place.
  absl::Status ExportGraph(const ir::Graph& graph) {
    for (const RecordId source : graph.erased_sources()) splice_.Erase(source);
    std::vector<const ir::Node*> kept;
    for (const ir::Node& node : graph.nodes()) {
      if (node.source != kNoSource) kept.push_back(&node);
    }
    const std::vector<const ir::Node*> staying = LongestRise(kept);
    auto next = staying.begin();
    for (const ir::Node& node : graph.nodes()) {
      if (next != staying.end() && *next == &node) {
        ++next;
        continue;
      }
      const RecordId anchor =
          next != staying.end() ? (*next)->source : kNoSource;
      const RecordId last =
          staying.empty() ? kNoSource : staying.back()->source;
      RETURN_IF_ERROR(PlaceNode(graph, node, anchor, last));
    }
    return absl::OkStatus();
  }

  // Before `anchor`, or, at the end of the list, after `last`.
  absl::Status PlaceNode(const ir::Graph& graph, const ir::Node& node,
                         RecordId anchor, RecordId last) {
    if (node.source != kNoSource) {
      if (anchor != kNoSource) {
        splice_.MoveBefore(node.source, anchor);
      } else {
        splice_.MoveAfter(node.source, last);
      }
      return absl::OkStatus();
    }
    const bool in_function =
        document_.record(graph.source).kind == Kind::kFunction;
    const int field = in_function ? int{onnx::FunctionProto::kNodeFieldNumber}
                                  : int{onnx::GraphProto::kNodeFieldNumber};
    ASSIGN_OR_RETURN(std::string bytes, NodeField(file_, node, field));
    if (anchor != kNoSource) {
      splice_.InsertBefore(anchor, std::move(bytes));
    } else if (last != kNoSource) {
      splice_.InsertAfter(last, std::move(bytes));
    } else {
      splice_.InsertAtEnd(graph.source, std::move(bytes));
    }
    return absl::OkStatus();
  }

  absl::Status ExportNewFunctions() {
    const std::vector<RecordId> records = InRoot(Kind::kFunction);
    auto next = records.begin();
    for (const ir::Function& function : model_.functions) {
      if (function.source != kNoSource) {
        next = std::find(records.begin(), records.end(), function.source) + 1;
        continue;
      }
      ASSIGN_OR_RETURN(std::string bytes, FunctionField(function));
      if (next != records.end()) {
        splice_.InsertBefore(*next, std::move(bytes));
      } else if (!records.empty()) {
        splice_.InsertAfter(records.back(), std::move(bytes));
      } else {
        splice_.InsertAtEnd(kRoot, std::move(bytes));
      }
    }
    return absl::OkStatus();
  }

  const ModelFile& file_;
  const Document& document_;
  const ir::Model& model_;
  Splice splice_;
};

}  // namespace

absl::StatusOr<Rope> Export(const ModelFile& file, const ir::Model& model) {
  absl::StatusOr<Rope> rope = Exporter(file, model).Export();
  if (!rope.ok()) return WithContext(rope.status(), file.name());
  return rope;
}

}  // namespace addnorm::proto
