#include "proto/enum_word/enum_word.h"

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include "profd/v1/profd.pb.h"

namespace profd {
namespace {

TEST(EnumWordTest, AWordIsTheValueWithoutItsEnumsName) {
  EXPECT_EQ(EnumWord(v1::Session::STATE_RUNNING), "running");
  EXPECT_EQ(EnumWord(v1::Outcome::RESULT_NEEDS_PROCESS), "needs_process");
  EXPECT_EQ(EnumWord(v1::JobProcess::FOUND_BY_DEVICE_PROCESS_LIST), "device_process_list");
  EXPECT_EQ(EnumWord(static_cast<v1::Session::State>(77)), "");
}

TEST(EnumWordTest, AWordIsFoundAgain) {
  EXPECT_EQ(EnumOf<v1::CollectorInfo::Source>("driver channel"), v1::CollectorInfo::SOURCE_DRIVER_CHANNEL);
  EXPECT_EQ(EnumOf<v1::CollectorInfo::Source>("DCMI"), v1::CollectorInfo::SOURCE_DCMI);
  EXPECT_EQ(EnumOf<v1::CollectorInfo::Source>("a guess"), v1::CollectorInfo::SOURCE_UNSPECIFIED);
}

// One rule for all of the contract: a value begins with the name of its enum, and 0 is not a value.
void CheckEnum(const google::protobuf::EnumDescriptor& type) {
  EXPECT_EQ(EnumWord(type, 0), "unspecified") << type.full_name();
  for (int i = 0; i < type.value_count(); ++i) {
    EXPECT_EQ(EnumNumber(type, EnumWord(type, type.value(i)->number())), type.value(i)->number())
        << type.value(i)->full_name();
  }
}

// And one for its times: a field's name ends in its unit, which is never the second. Rates are by the second.
void CheckMessage(const google::protobuf::Descriptor& message) {
  for (int i = 0; i < message.enum_type_count(); ++i) CheckEnum(*message.enum_type(i));
  for (int i = 0; i < message.nested_type_count(); ++i) CheckMessage(*message.nested_type(i));
  for (int i = 0; i < message.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *message.field(i);
    const std::string& name = field.name();
    EXPECT_FALSE((name.ends_with("_s") && !name.ends_with("_per_s")) || name.ends_with("_us")) << field.full_name();
    if (name.ends_with("_ms")) {
      EXPECT_EQ(field.type(), google::protobuf::FieldDescriptor::TYPE_UINT64) << field.full_name();
    }
  }
}

TEST(ContractTest, EnumsHaveTheirPrefixAndTimesTheirUnit) {
  const google::protobuf::FileDescriptor& file = *v1::Session::descriptor()->file();
  for (int i = 0; i < file.enum_type_count(); ++i) CheckEnum(*file.enum_type(i));
  for (int i = 0; i < file.message_type_count(); ++i) CheckMessage(*file.message_type(i));
}

}  // namespace
}  // namespace profd
