// The vendor's declarations once more, as structs: what the compiler makes of them is what
// mspti_abi.h has to say.
#include "client/libprofd/mspti/mspti_abi.h"

#include <gtest/gtest.h>

#include <vector>

namespace profd::lib::mspti {
namespace {

#define PACKED_RECORD struct __attribute__((packed, aligned(8)))
PACKED_RECORD VendorMarker {
  uint32_t kind, flag, source;
  uint64_t timestamp, id;
  uint32_t device, stream;
  const char *name, *domain;
};
PACKED_RECORD VendorKernel {
  uint32_t kind;
  uint64_t start, end;
  uint32_t device, stream;
  uint64_t correlation;
  const char *type, *name;
};
PACKED_RECORD VendorApi {
  uint32_t kind;
  uint64_t start, end;
  uint32_t process, thread;
  uint64_t correlation;
  const char* name;
};
PACKED_RECORD VendorHccl {
  uint32_t kind;
  uint64_t start, end;
  uint32_t device, stream;
  double bandwidth;
  const char *name, *communicator;
};
PACKED_RECORD VendorMemory {
  uint32_t kind, operation, memory_kind;
  uint64_t correlation, start, end, address, bytes;
  uint32_t process, device, stream;
};
PACKED_RECORD VendorMemset {
  uint32_t kind, value;
  uint64_t bytes, start, end;
  uint32_t device, stream;
  uint64_t correlation;
  uint8_t is_async;
};
PACKED_RECORD VendorMemcpy {
  uint32_t kind, copy_kind;
  uint64_t bytes, start, end;
  uint32_t device, stream;
  uint64_t correlation;
  uint8_t is_async;
};
PACKED_RECORD VendorExternal {
  uint32_t kind, external_kind;
  uint64_t external_id, correlation;
};
PACKED_RECORD VendorCommunication {
  uint32_t kind, data_type;
  uint64_t count;
  uint32_t device, stream;
  uint64_t start, end;
  const char *algorithm, *name, *communicator;
  uint64_t correlation;
};

#define EXPECT_FIELD(Vendor, field, Record, constant) \
  EXPECT_EQ(Record::constant.offset, offsetof(Vendor, field))

TEST(MsptiAbi, HasTheSizesOfTheVendorsStructs) {
  EXPECT_EQ(RecordSize(kMarker), sizeof(VendorMarker));
  EXPECT_EQ(RecordSize(kKernel), sizeof(VendorKernel));
  for (Kind api : {kApi, kAclApi, kNodeApi, kRuntimeApi})
    EXPECT_EQ(RecordSize(api), sizeof(VendorApi));
  EXPECT_EQ(RecordSize(kHccl), sizeof(VendorHccl));
  EXPECT_EQ(RecordSize(kMemory), sizeof(VendorMemory));
  EXPECT_EQ(RecordSize(kMemset), sizeof(VendorMemset));
  EXPECT_EQ(RecordSize(kMemcpy), sizeof(VendorMemcpy));
  EXPECT_EQ(RecordSize(kExternalCorrelation), sizeof(VendorExternal));
  EXPECT_EQ(RecordSize(kCommunication), sizeof(VendorCommunication));
  EXPECT_EQ(RecordSize(kInvalid), 0u);
  EXPECT_EQ(RecordSize(kKindCount), 0u);
  EXPECT_EQ(RecordSize(0xFFFFFFFF), 0u);
}

TEST(MsptiAbi, HasTheOffsetsOfTheVendorsStructs) {
  EXPECT_FIELD(VendorMarker, flag, MarkerRecord, kFlag);
  EXPECT_FIELD(VendorMarker, source, MarkerRecord, kSource);
  EXPECT_FIELD(VendorMarker, timestamp, MarkerRecord, kTimestamp);
  EXPECT_FIELD(VendorMarker, id, MarkerRecord, kId);
  EXPECT_FIELD(VendorMarker, device, MarkerRecord, kDevice);
  EXPECT_FIELD(VendorMarker, device, MarkerRecord, kProcess);
  EXPECT_FIELD(VendorMarker, stream, MarkerRecord, kStream);
  EXPECT_FIELD(VendorMarker, stream, MarkerRecord, kThread);
  EXPECT_FIELD(VendorMarker, name, MarkerRecord, kName);
  EXPECT_FIELD(VendorMarker, domain, MarkerRecord, kDomain);
  EXPECT_FIELD(VendorKernel, start, KernelRecord, kStart);
  EXPECT_FIELD(VendorKernel, end, KernelRecord, kEnd);
  EXPECT_FIELD(VendorKernel, device, KernelRecord, kDevice);
  EXPECT_FIELD(VendorKernel, stream, KernelRecord, kStream);
  EXPECT_FIELD(VendorKernel, correlation, KernelRecord, kCorrelation);
  EXPECT_FIELD(VendorKernel, type, KernelRecord, kType);
  EXPECT_FIELD(VendorKernel, name, KernelRecord, kName);
  EXPECT_FIELD(VendorApi, start, ApiRecord, kStart);
  EXPECT_FIELD(VendorApi, end, ApiRecord, kEnd);
  EXPECT_FIELD(VendorApi, process, ApiRecord, kProcess);
  EXPECT_FIELD(VendorApi, thread, ApiRecord, kThread);
  EXPECT_FIELD(VendorApi, correlation, ApiRecord, kCorrelation);
  EXPECT_FIELD(VendorApi, name, ApiRecord, kName);
  EXPECT_FIELD(VendorHccl, bandwidth, HcclRecord, kBandwidth);
  EXPECT_FIELD(VendorHccl, name, HcclRecord, kName);
  EXPECT_FIELD(VendorHccl, communicator, HcclRecord, kCommunicator);
  EXPECT_FIELD(VendorCommunication, data_type, CommunicationRecord, kDataType);
  EXPECT_FIELD(VendorCommunication, count, CommunicationRecord, kCount);
  EXPECT_FIELD(VendorCommunication, device, CommunicationRecord, kDevice);
  EXPECT_FIELD(VendorCommunication, stream, CommunicationRecord, kStream);
  EXPECT_FIELD(VendorCommunication, start, CommunicationRecord, kStart);
  EXPECT_FIELD(VendorCommunication, end, CommunicationRecord, kEnd);
  EXPECT_FIELD(VendorCommunication, algorithm, CommunicationRecord, kAlgorithm);
  EXPECT_FIELD(VendorCommunication, name, CommunicationRecord, kName);
  EXPECT_FIELD(VendorCommunication, communicator, CommunicationRecord, kCommunicator);
  EXPECT_FIELD(VendorCommunication, correlation, CommunicationRecord, kCorrelation);
}

TEST(MsptiAbi, HasTheOffsetsOfTheVendorsMemoryStructs) {
  EXPECT_FIELD(VendorMemory, operation, MemoryRecord, kOperation);
  EXPECT_FIELD(VendorMemory, memory_kind, MemoryRecord, kMemoryKind);
  EXPECT_FIELD(VendorMemory, correlation, MemoryRecord, kCorrelation);
  EXPECT_FIELD(VendorMemory, start, MemoryRecord, kStart);
  EXPECT_FIELD(VendorMemory, end, MemoryRecord, kEnd);
  EXPECT_FIELD(VendorMemory, address, MemoryRecord, kAddress);
  EXPECT_FIELD(VendorMemory, bytes, MemoryRecord, kBytes);
  EXPECT_FIELD(VendorMemory, process, MemoryRecord, kProcess);
  EXPECT_FIELD(VendorMemory, device, MemoryRecord, kDevice);
  EXPECT_FIELD(VendorMemory, stream, MemoryRecord, kStream);
  EXPECT_FIELD(VendorMemset, value, MemsetRecord, kValue);
  EXPECT_FIELD(VendorMemset, bytes, MemsetRecord, kBytes);
  EXPECT_FIELD(VendorMemset, is_async, MemsetRecord, kIsAsync);
  EXPECT_FIELD(VendorMemcpy, copy_kind, MemcpyRecord, kCopyKind);
  EXPECT_FIELD(VendorMemcpy, start, MemcpyRecord, kStart);
  EXPECT_FIELD(VendorMemcpy, correlation, MemcpyRecord, kCorrelation);
  EXPECT_FIELD(VendorMemcpy, is_async, MemcpyRecord, kIsAsync);
  EXPECT_FIELD(VendorExternal, external_kind, ExternalCorrelationRecord, kExternalKind);
  EXPECT_FIELD(VendorExternal, external_id, ExternalCorrelationRecord, kExternalId);
  EXPECT_FIELD(VendorExternal, correlation, ExternalCorrelationRecord, kCorrelation);
}

TEST(MsptiAbi, ReadsFromAnyAddress) {
  VendorKernel kernel = {
      kKernel, 0x0102030405060708, 0x1112131415161718, 3, 40, 0x2122232425262728, "type", "MatMul"};
  std::vector<uint8_t> bytes(sizeof kernel + 1);
  std::memcpy(bytes.data() + 1, &kernel, sizeof kernel);
  const void* record = bytes.data() + 1;
  EXPECT_EQ(kKindField.Read(record), kKernel);
  EXPECT_EQ(KernelRecord::kStart.Read(record), 0x0102030405060708u);
  EXPECT_EQ(KernelRecord::kEnd.Read(record), 0x1112131415161718u);
  EXPECT_EQ(KernelRecord::kDevice.Read(record), 3u);
  EXPECT_EQ(KernelRecord::kStream.Read(record), 40u);
  EXPECT_EQ(KernelRecord::kCorrelation.Read(record), 0x2122232425262728u);
  EXPECT_STREQ(KernelRecord::kName.Read(record), "MatMul");
}

}  // namespace
}  // namespace profd::lib::mspti
