// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// How libFuzzer changes a model: as a tree of messages, since changed bytes
// seldom get past protobuf. One input in four is changed by bytes all the same.
//
// An edit takes a random field of a random message: elements of lists are
// erased, copied or swapped, scalars get values that other fields have or that
// are extreme. Names of values are strings like any other, so edges are
// rewired.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "onnx/onnx_pb.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

class Mutator {
 public:
  Mutator(Message& root, unsigned seed) : random_(seed) { Collect(root); }

  void Edit() {
    Message& message = *Pick(messages_);
    const FieldDescriptor& field = PickField(message);
    if (field.is_repeated() && Chance(3)) {
      EditList(message, field);
    } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      EditMessage(message, field);
    } else {
      EditScalar(message, field);
    }
  }

 private:
  // Far fewer than there are in a large seed, which has enough to choose from.
  static constexpr size_t kMaxMessages = 5000;

  bool Chance(unsigned out_of) { return random_() % out_of != 0; }
  int Below(int count) {
    return static_cast<int>(random_() % static_cast<unsigned>(count));
  }
  template <typename T>
  const T& Pick(const std::vector<T>& from) {
    return from[random_() % from.size()];
  }

  void Collect(Message& message) {
    if (messages_.size() >= kMaxMessages) return;
    messages_.push_back(&message);
    const Reflection& reflection = *message.GetReflection();
    std::vector<const FieldDescriptor*> fields;
    reflection.ListFields(message, &fields);
    for (const FieldDescriptor* field : fields) {
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING)
        CollectStrings(message, *field);
      if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
      if (!field->is_repeated())
        Collect(*reflection.MutableMessage(&message, field));
      for (int i = 0;
           field->is_repeated() && i < reflection.FieldSize(message, field);
           ++i)
        Collect(*reflection.MutableRepeatedMessage(&message, field, i));
    }
  }

  void CollectStrings(const Message& message, const FieldDescriptor& field) {
    const Reflection& reflection = *message.GetReflection();
    if (!field.is_repeated())
      strings_.push_back(reflection.GetString(message, &field));
    for (int i = 0;
         field.is_repeated() && i < reflection.FieldSize(message, &field); ++i)
      strings_.push_back(reflection.GetRepeatedString(message, &field, i));
  }

  // Mostly one that is there.
  const FieldDescriptor& PickField(const Message& message) {
    std::vector<const FieldDescriptor*> fields;
    message.GetReflection()->ListFields(message, &fields);
    if (!fields.empty() && Chance(5)) return *Pick(fields);
    const auto& type = *message.GetDescriptor();
    return *type.field(Below(type.field_count()));
  }

  void EditList(Message& message, const FieldDescriptor& field) {
    const Reflection& reflection = *message.GetReflection();
    const int size = reflection.FieldSize(message, &field);
    if (size == 0) return AddElement(message, field);
    switch (Below(3)) {
      case 0:
        reflection.SwapElements(&message, &field, Below(size), size - 1);
        reflection.RemoveLast(&message, &field);
        break;
      case 1:
        reflection.SwapElements(&message, &field, Below(size), Below(size));
        break;
      default:
        AddElement(message, field);
    }
    // Pointers to what was removed must not be used.
    messages_ = {&message};
  }

  void AddElement(Message& message, const FieldDescriptor& field) {
    const Reflection& reflection = *message.GetReflection();
    if (field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE)
      return EditScalar(message, field);
    const Message* other = SameType(*field.message_type());
    if (other == nullptr) {
      reflection.AddMessage(&message, &field);
      return;
    }
    // First a copy of its own: it may be what it is added to.
    Message* copy = other->New();
    copy->CopyFrom(*other);
    reflection.AddAllocatedMessage(&message, &field, copy);
  }

  const Message* SameType(const google::protobuf::Descriptor& type) {
    std::vector<const Message*> same;
    for (const Message* message : messages_) {
      if (message->GetDescriptor() == &type) same.push_back(message);
    }
    return same.empty() ? nullptr : Pick(same);
  }

  void EditMessage(Message& message, const FieldDescriptor& field) {
    const Reflection& reflection = *message.GetReflection();
    if (field.is_repeated()) return EditList(message, field);
    const Message* other = SameType(*field.message_type());
    if (other == nullptr || !Chance(3)) {
      reflection.ClearField(&message, &field);
    } else {
      Message* copy = other->New();
      copy->CopyFrom(*other);
      reflection.SetAllocatedMessage(&message, copy, &field);
    }
    messages_ = {&message};
  }

  std::string AnyString() {
    if (strings_.empty() || !Chance(8)) return "";
    std::string text = Pick(strings_);
    if (Chance(4)) return text;
    const size_t size = text.size();
    text.resize(size + 8);
    text.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(text.data()), size,
                                 text.size()));
    return text;
  }

  int64_t AnyInteger() {
    constexpr int64_t kExtreme[] = {std::numeric_limits<int64_t>::min(),
                                    std::numeric_limits<int64_t>::max(),
                                    std::numeric_limits<int32_t>::max(),
                                    -1,
                                    int64_t{1} << 32,
                                    65536};
    return Chance(4) ? Below(32) : kExtreme[Below(std::size(kExtreme))];
  }

  double AnyFloat() {
    constexpr double kValues[] = {
        0, -0.0,  1,        -1,
        2, 1e-6,  1e-5,     -0.5,
        3, 1e300, 0x1p-149, std::numeric_limits<double>::quiet_NaN()};
    return kValues[Below(std::size(kValues))];
  }

  template <typename Set, typename SetRepeated, typename Add, typename T>
  void Put(Message& message, const FieldDescriptor& field, Set set,
           SetRepeated set_repeated, Add add, T value) {
    const Reflection& reflection = *message.GetReflection();
    if (!field.is_repeated()) {
      (reflection.*set)(&message, &field, std::move(value));
      return;
    }
    const int size = reflection.FieldSize(message, &field);
    if (size > 0 && Chance(4)) {
      (reflection.*set_repeated)(&message, &field, Below(size),
                                 std::move(value));
    } else {
      (reflection.*add)(&message, &field, std::move(value));
    }
  }

  void EditScalar(Message& message, const FieldDescriptor& field) {
#define PUT(Type, value)                                                      \
  Put(message, field, &Reflection::Set##Type, &Reflection::SetRepeated##Type, \
      &Reflection::Add##Type, value)
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return PUT(Int32, static_cast<int32_t>(AnyInteger()));
      case FieldDescriptor::CPPTYPE_INT64:
        return PUT(Int64, AnyInteger());
      case FieldDescriptor::CPPTYPE_UINT64:
        return PUT(UInt64, static_cast<uint64_t>(AnyInteger()));
      case FieldDescriptor::CPPTYPE_FLOAT:
        return PUT(Float, static_cast<float>(AnyFloat()));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return PUT(Double, AnyFloat());
      case FieldDescriptor::CPPTYPE_ENUM:
        return PUT(EnumValue, static_cast<int>(AnyInteger() % 24));
      case FieldDescriptor::CPPTYPE_STRING:
        return PUT(String, AnyString());
      default:  // ONNX has no other types
        return;
    }
#undef PUT
  }

  std::minstd_rand random_;
  std::vector<Message*> messages_;
  std::vector<std::string> strings_;
};

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size,
                                          size_t max_size, unsigned seed) {
  onnx::ModelProto model;
  if (seed % 4 == 0 || !model.ParseFromArray(data, static_cast<int>(size)))
    return LLVMFuzzerMutate(data, size, max_size);
  for (unsigned edit = 0; edit < 1 + seed / 4 % 4; ++edit)
    Mutator(model, seed + edit).Edit();
  const size_t new_size = model.ByteSizeLong();
  if (new_size > max_size) return LLVMFuzzerMutate(data, size, max_size);
  model.SerializeToArray(data, static_cast<int>(new_size));
  return new_size;
}
