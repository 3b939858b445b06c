// The layouts of in-application.md 2.4.
#include "client/libprofd/mspti/mspti_abi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace profd::lib::mspti {
namespace {

using ::testing::ElementsAre;
using Offsets = std::vector<size_t>;

TEST(MsptiAbi, HasTheSizesOfTheVendorsRecords) {
  std::vector<size_t> sizes;
  for (uint32_t kind = 0; kind <= kKindCount; ++kind) sizes.push_back(RecordSize(kind));
  EXPECT_THAT(sizes, ElementsAre(0, 56, 56, 48, 56, 64, 56, 56, 24, 72, 48, 48, 48, 0));
  EXPECT_EQ(RecordSize(0xFFFFFFFF), 0u);
}

TEST(MsptiAbi, HasTheOffsetsOfTheVendorsRecords) {
  {
    using R = MarkerRecord;
    EXPECT_THAT((Offsets{offsetof(R, flag), offsetof(R, source), offsetof(R, timestamp), offsetof(R, id),
                         offsetof(R, process_or_device), offsetof(R, thread_or_stream), offsetof(R, name),
                         offsetof(R, domain)}),
                ElementsAre(4, 8, 12, 20, 28, 32, 36, 44));
  }
  {
    using R = KernelRecord;
    EXPECT_THAT((Offsets{offsetof(R, start), offsetof(R, end), offsetof(R, device), offsetof(R, stream),
                         offsetof(R, correlation), offsetof(R, type), offsetof(R, name)}),
                ElementsAre(4, 12, 20, 24, 28, 36, 44));
  }
  {
    using R = ApiRecord;
    EXPECT_THAT((Offsets{offsetof(R, start), offsetof(R, end), offsetof(R, process), offsetof(R, thread),
                         offsetof(R, correlation), offsetof(R, name)}),
                ElementsAre(4, 12, 20, 24, 28, 36));
  }
  {
    using R = HcclRecord;
    EXPECT_THAT((Offsets{offsetof(R, start), offsetof(R, end), offsetof(R, device), offsetof(R, stream),
                         offsetof(R, bandwidth), offsetof(R, name), offsetof(R, communicator)}),
                ElementsAre(4, 12, 20, 24, 28, 36, 44));
  }
  {
    using R = MemoryRecord;
    EXPECT_THAT((Offsets{offsetof(R, operation), offsetof(R, memory_kind), offsetof(R, correlation),
                         offsetof(R, start), offsetof(R, end), offsetof(R, address), offsetof(R, bytes),
                         offsetof(R, process), offsetof(R, device), offsetof(R, stream)}),
                ElementsAre(4, 8, 12, 20, 28, 36, 44, 52, 56, 60));
  }
  {
    using R = MemsetRecord;
    EXPECT_THAT((Offsets{offsetof(R, value), offsetof(R, bytes), offsetof(R, start), offsetof(R, end),
                         offsetof(R, device), offsetof(R, stream), offsetof(R, correlation), offsetof(R, is_async)}),
                ElementsAre(4, 8, 16, 24, 32, 36, 40, 48));
  }
  {
    using R = MemcpyRecord;
    EXPECT_THAT((Offsets{offsetof(R, copy_kind), offsetof(R, bytes), offsetof(R, start), offsetof(R, end),
                         offsetof(R, device), offsetof(R, stream), offsetof(R, correlation), offsetof(R, is_async)}),
                ElementsAre(4, 8, 16, 24, 32, 36, 40, 48));
  }
  {
    using R = ExternalCorrelationRecord;
    EXPECT_THAT((Offsets{offsetof(R, external_kind), offsetof(R, external_id), offsetof(R, correlation)}),
                ElementsAre(4, 8, 16));
  }
  {
    using R = CommunicationRecord;
    EXPECT_THAT((Offsets{offsetof(R, data_type), offsetof(R, count), offsetof(R, device), offsetof(R, stream),
                         offsetof(R, start), offsetof(R, end), offsetof(R, algorithm), offsetof(R, name),
                         offsetof(R, communicator), offsetof(R, correlation)}),
                ElementsAre(4, 8, 16, 20, 24, 32, 40, 48, 56, 64));
  }
}

TEST(MsptiAbi, ReadsFromAnyAddress) {
  const KernelRecord kernel = {kKernel, 0x0102030405060708, 0x1112131415161718, 3, 40, 0x2122232425262728, "type", "MatMul"};
  std::vector<uint8_t> bytes(sizeof kernel + 1);
  std::memcpy(bytes.data() + 1, &kernel, sizeof kernel);
  const auto read = Read<KernelRecord>(bytes.data() + 1);
  EXPECT_EQ(std::memcmp(&read, &kernel, offsetof(KernelRecord, name) + sizeof(Text)), 0);
}

}  // namespace
}  // namespace profd::lib::mspti
