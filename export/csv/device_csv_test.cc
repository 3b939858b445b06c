#include "export/csv/csv_test_support.h"

namespace profd::exporting {
namespace {

using DeviceCsvTest = CsvTest;

TEST_F(DeviceCsvTest, HccsHasExtremesAndAverage) {
  Feed(0, TableId::kHccs, [](BatchBuilder& rows) {
    rows.Add(kStartNs, 57061.818, 0.0625);
    rows.Add(kStartNs + 1, 245.133, 0.0625);
    rows.Add(kStartNs + 2, 100.0, 1.0);
  });
  Feed(1, TableId::kHccs, [](BatchBuilder& rows) { rows.Add(kStartNs, 3.0, 4.5); });
  End();
  // 57406.951 / 3 = 19135.65033; SQL rounds 0.0625 up; 1.125 / 3 = 0.375
  EXPECT_EQ(Csv("hccs"),
            "Device_id,Mode,Max,Min,Average\n"
            "0,Tx (MB/s),57061.818,100.0,19135.65\n"
            "0,Rx (MB/s),1.0,0.063,0.375\n"
            "1,Tx (MB/s),3.0,3.0,3.0\n"
            "1,Rx (MB/s),4.5,4.5,4.5\n");
  EXPECT_EQ(outputs_.size(), 1u);
  EXPECT_EQ(outputs_[0].rows, 4u);
  EXPECT_EQ(outputs_[0].bytes, Csv("hccs").size());
}

void AddPcie(BatchBuilder& rows, int64_t t_ns, uint64_t scale) {
  std::array<uint64_t, 21> cells;
  for (size_t i = 0; i < cells.size(); ++i) cells[i] = (i + 1) * scale;
  rows.AddCells(t_ns, cells);
}

TEST_F(DeviceCsvTest, PcieOfAtlasA2IsTheLastRow) {
  Feed(0, TableId::kPcie, [](BatchBuilder& rows) {
    AddPcie(rows, kStartNs, 7);
    AddPcie(rows, kStartNs + 20, 1024);
    AddPcie(rows, kStartNs + 10, 9);
  });
  End();
  // 1024 * 1e6 / 2^20 = 976.5625, even: 976.562; latency 10240 ns = 10.24 us
  EXPECT_EQ(Csv("pcie"),
            "Device_id,Mode,Min,Max,Avg\n"
            "0,Tx_p_avg(MB/s),976.562,1953.125,2929.688\n"
            "0,Tx_np_avg(MB/s),3906.25,4882.812,5859.375\n"
            "0,Tx_cpl_avg(MB/s),6835.938,7812.5,8789.062\n"
            "0,Tx_latency_avg(us),10.24,11.264,12.288\n"
            "0,Rx_p_avg(MB/s),12695.312,13671.875,14648.438\n"
            "0,Rx_np_avg(MB/s),15625.0,16601.562,17578.125\n"
            "0,Rx_cpl_avg(MB/s),18554.688,19531.25,20507.812\n");
}

TEST_F(DeviceCsvTest, PcieOfOthersIsTheAverage) {
  set_chip(1);
  Feed(0, TableId::kPcie, [](BatchBuilder& rows) {
    AddPcie(rows, kStartNs, 1000);
    AddPcie(rows, kStartNs + 1, 1048);
    std::array<uint64_t, 21> nothing = {};
    nothing[0] = 5;  // smallest above largest
    rows.AddCells(kStartNs + 2, nothing);
  });
  End();
  EXPECT_EQ(Csv("pcie").substr(0, 79),
            "Device_id,Mode,Min,Max,Avg\n"
            "0,Tx_p_avg(MB/s),976.562,1953.125,2929.688\n"
            "0,Tx_np_a");
}

TEST_F(DeviceCsvTest, PcieWithoutASmallestValueHasZero) {
  Feed(0, TableId::kPcie, [](BatchBuilder& rows) {
    std::array<uint64_t, 21> cells = {};
    cells[0] = 0xFFFFF;
    cells[1] = 1048576;
    rows.AddCells(kStartNs, cells);
  });
  End();
  EXPECT_EQ(Csv("pcie").substr(27, 43), "0,Tx_p_avg(MB/s),0.0,1000000.0,0.0\n0,Tx_np_");
}

TEST_F(DeviceCsvTest, HbmAveragesItsIds) {
  Feed(0, TableId::kHbm, [](BatchBuilder& rows) {
    for (int64_t id : {1, 0}) {
      rows.Add(kStartNs, id, 0, 0.0);
      rows.Add(kStartNs, id, 1, 0.0);
      rows.Add(kStartNs + 1, id, 0, 200.001 + static_cast<double>(id));
      rows.Add(kStartNs + 1, id, 1, 50.0);
    }
  });
  End();
  // 100.0005 and 100.5005 as decimals: 200.501 / 2 = 100.2505, to even
  EXPECT_EQ(Csv("hbm"),
            "Device_id,Metric,Read(MB/s),Write(MB/s)\n"
            "0,Average,100.250,25.000\n"
            "0,0,100.001,25.0\n"
            "0,1,100.501,25.0\n");
}

TEST_F(DeviceCsvTest, HbmOfOneEventHasNoOther) {
  Feed(0, TableId::kHbm, [](BatchBuilder& rows) { rows.Add(kStartNs, 3, 0, 0.0); });
  End();
  EXPECT_EQ(Csv("hbm"),
            "Device_id,Metric,Read(MB/s),Write(MB/s)\n"
            "0,Average,0.000,0.000\n"
            "0,3,0.0,\n");
}

TEST_F(DeviceCsvTest, DdrHasOneRow) {
  set_chip(4);
  Feed(2, TableId::kDdr, [](BatchBuilder& rows) {
    rows.Add(kStartNs, 0, 0.0, 0.0);
    rows.Add(kStartNs + 1, 0, 1.0, 0.0625 * 2);
  });
  End();
  EXPECT_EQ(Csv("ddr"),
            "Device_id,Metric,Read(MB/s),Write(MB/s)\n"
            "2,Average,0.5,0.062\n");
}

TEST_F(DeviceCsvTest, LlcIsInPercent) {
  PlaceOf(0).llc_mode = "write";
  Feed(0, TableId::kLlc, [](BatchBuilder& rows) {
    rows.Add(kStartNs, 0, 1, 0.5, 0.0);
    rows.Add(kStartNs + 1, 0, 1, 0.694, 1000.5);
    rows.Add(kStartNs, 1, 1, 1.023, 0.0);
  });
  End();
  // 0.597 and 1.023 -> 81.0; 500.25 and 0 -> 250.125
  EXPECT_EQ(Csv("llc_read_write"),
            "Device_id,Mode,Task,Hit Rate(%),Throughput(MB/s)\n"
            "0,write,Average,81.0,250.125\n"
            "0,write,0,59.7,500.25\n"
            "0,write,1,102.3,0.0\n");
}

TEST_F(DeviceCsvTest, LlcOfChipZeroIsOverTheCompleteTime) {
  set_chip(0);
  PlaceOf(0).clock.begin_us = kStartNs / 1000;  // the device started then, too
  Feed(0, TableId::kLlc, [](BatchBuilder& rows) {
    // 32768 and 16384 lines in 100 ms: 20 and 10 MB/s; 1/4 and 3/4 are hits.
    rows.Add(kStartNs + 100'000'000, 0, 0, 0.25, 20.0);
    rows.Add(kStartNs + 100'000'000, 0, 1, 0.0, 0.0);
    rows.Add(kStartNs + 200'000'000, 0, 0, 0.75, 10.0);
    rows.Add(kStartNs + 200'000'000, 0, 1, 1.0, 10.0);
  });
  End();
  // From the first to the last timestamp: 49152 lines in 100 ms; 20480 of them hits.
  EXPECT_EQ(Csv("llc_bandwidth"),
            "Device_id,Metric,l3c_rd,l3c_wr\n"
            "0,BandWidth(MB/s),30.0,10.0\n"
            "0,Hit_Rate(%),41.667,100.0\n"
            "0,Hit_BandWidth(MB/s),12.5,10.0\n");
  EXPECT_EQ(Csv("llc_read_write"), "");
}

void AddNic(BatchBuilder& rows, int64_t t_ns, int64_t port, double bytes, double packets,
            double errors) {
  rows.Add(t_ns, port, 1000, 10.0, 5.0, packets, bytes, errors, 0.0, 0.0, 0.0,  //
           20.0, 5.0, packets, bytes * 2, 0.0, errors, 0.0, 0.0, 0.5, 0.5);
}

TEST_F(DeviceCsvTest, NicIsOverTheCompleteTime) {
  Feed(0, TableId::kNic, [](BatchBuilder& rows) {
    AddNic(rows, kStartNs, 1, 1e6, 100, 1);
    AddNic(rows, kStartNs, 0, 0, 0, 0);
    AddNic(rows, kStartNs + 1'000'000'000, 1, 1e6 + 13107200, 300, 5);
    // Reset: 65536000 bytes and 100 packets since then at least.
    AddNic(rows, kStartNs + 2'000'000'000, 1, 0, 0, 0);
    AddNic(rows, kStartNs + 2'500'000'000, 1, 13107200, 200, 0);
  });
  End();
  // 26214400 bytes * 8 / (2.5 s * 1000 * 2^20) = 0.08; 4 errors of 400 packets
  EXPECT_EQ(Csv("nic"),
            "Device_id,Timestamp(us),Bandwidth(MB/s),Rx Bandwidth efficiency(%),rxPacket/s,"
            "rxError rate(%),rxDropped rate(%),Tx Bandwidth efficiency(%),txPacket/s,"
            "txError rate(%),txDropped rate(%),funcId\n"
            "0,1767225600000000.000\t,1000.0,0.0,10.0,0.0,0.0,0.0,20.0,0.0,0.0,0\n"
            "0,1767225602500000.000\t,1000.0,0.08,10.0,1.0,0.0,0.16,20.0,0.0,1.0,1\n");
  EXPECT_EQ(Csv("roce"), "");
}

TEST_F(DeviceCsvTest, DvppIsPerEngine) {
  Feed(0, TableId::kDvpp, [](BatchBuilder& rows) {
    rows.Add(kStartNs, 0, 0, 0, 700.0, 2.0, 10.0, 0.0, 0.0, 0.0, 0.0, 0.0);
    rows.Add(kStartNs, 0, 6, 1, 1.0, 1.0, 12.5, 0.0, 0.0, 0.0, 0.0, 0.0);
    rows.Add(kStartNs + 1, 0, 0, 0, 700000.0, 2000.0, 90.0, 0.0, 0.0, 0.0, 0.0, 0.0);
    rows.Add(kStartNs + 1, 0, 77, 1, 1.0, 1.0, 12.5, 0.0, 0.0, 0.0, 0.0, 0.0);
  });
  End();
  EXPECT_EQ(Csv("dvpp"),
            "Device_id,Dvpp Id,Engine Type,Engine ID,All Time(us),All Frame,All Utilization(%)\n"
            "0,0,VDEC,0,699300.0,1998.0,90\n"
            "0,0,SCD,1,0.0,0.0,12.5\n"
            "0,0,,1,0.0,0.0,12.5\n");
}

// Channels 135 to 141 beside channel 6. An engine of both is that of dvpp.data.
TEST_F(DeviceCsvTest, DvppHasTheEnginesOfAllItsFiles) {
  const auto engine = [this](std::string base, int64_t type, double from) {
    Feed(0, TableId::kDvpp, [&](BatchBuilder& rows) {
      rows.Add(kStartNs, 0, type, 0, from, from / 10, 7.0, 0.0, 0.0, 0.0, 0.0, 0.0);
      rows.Add(kStartNs + 1, 0, type, 0, from + 100, from / 10 + 1, from, 0.0, 0.0, 0.0, 0.0, 0.0);
      if (base == "dvpp.venc") rows.Add(kStartNs + 1, 0, 0, 0, 5000.0, 5.0, 99.0, 0.0, 0.0, 0.0, 0.0, 0.0);
    }, base);
  };
  engine("dvpp.venc", 5, 20);
  engine("dvpp.jpegd", 1, 30);
  engine("dvpp.data", 0, 40);
  End();
  EXPECT_EQ(Csv("dvpp"),
            "Device_id,Dvpp Id,Engine Type,Engine ID,All Time(us),All Frame,All Utilization(%)\n"
            "0,0,VDEC,0,100.0,1.0,40\n"
            "0,0,JPEGD,0,100.0,1.0,30\n"
            "0,0,VENC,0,100.0,1.0,20\n");
}

TEST_F(DeviceCsvTest, UbHasARowForEachRecord) {
  set_chip(15);
  Feed(0, TableId::kUb, [](BatchBuilder& rows) {
    rows.Add(kStartNs + 1500, 3, 11, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
  });
  End();
  EXPECT_EQ(Csv("ub"),
            "Device_id,PortId,TimeStamp,UBRxPortBandWidth(MB/s),UBTxPortBandWidth(MB/s)\n"
            "0,3,1767225600000001.500\t,11,12\n");
}

TEST_F(DeviceCsvTest, CoresHaveTheirGroupsMetrics) {
  Place& place = PlaceOf(0);
  place.aicore_metrics = "PipeUtilization";
  place.aicore_events = {0x8, 0xa, 0x9, 0xb, 0xc, 0xd, 0x54, 0x55};
  place.aiv_metrics = "Memory";
  place.aiv_events = {0x15, 0x16, 0x31, 0x32, 0xf, 0x10, 0x12};  // 0x13 is missing
  place.aicore_mhz = 1000;
  Feed(0, TableId::kAicorePmu, [](BatchBuilder& rows) {
    rows.Add(kStartNs, 1, 0, 100, 200, 300, 400, 500, 600, 1000, 10, 0, 0, 1000, 8);
    rows.Add(kStartNs, 0, 0, 1, 2, 3, 0, 1, 0, 0, 5, 0, 0, 3, 8);
    rows.Add(kStartNs + 1, 1, 0, 100, 200, 300, 400, 500, 600, 1000, 10, 0, 0, 1000, 8);
    rows.Add(kStartNs, 30, 1, 8388608, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1000000000, 7);
  });
  End();
  EXPECT_EQ(Csv("ai_core_utilization"),
            "Device_id,Core ID,vec_ratio,mac_ratio,scalar_ratio,mte1_ratio,mte2_ratio,mte3_ratio,"
            "icache_miss_rate,memory_bound\n"
            "0,Core0,0.333,0.667,1.0,0.0,0.333,0.0,0.0,0.499\n"
            "0,Core1,0.1,0.2,0.3,0.4,0.5,0.6,0.01,2.5\n"
            "0,Average,0.217,0.433,0.65,0.2,0.416,0.3,0.005,0.961\n");
  // 2^23 * 1024 / 1 s / 2^33
  EXPECT_EQ(Csv("ai_vector_core_utilization"),
            "Device_id,Core ID,ub_read_bw(GB/s),ub_write_bw(GB/s),l1_read_bw(GB/s),"
            "l1_write_bw(GB/s),l2_read_bw(GB/s),l2_write_bw(GB/s),main_mem_read_bw(GB/s)\n"
            "0,Core30,1.0,0.0,0.0,0.0,0.0,0.0,0.0\n"
            "0,Average,1.0,0.0,0.0,0.0,0.0,0.0,0.0\n");
}

TEST_F(DeviceCsvTest, CoresOfTheNewestChipsHaveEventsOfTheirOwn) {
  set_chip(15);
  Place& place = PlaceOf(0);
  place.aicore_metrics = "ArithmeticUtilization";
  place.aicore_events = {0x323, 0x324};
  place.aiv_metrics = "ResourceConflictRatio";
  place.aiv_events = {0x540, 0x556, 0x528, 0x502};
  place.aicore_mhz = 1000;
  Feed(0, TableId::kAicorePmu, [](BatchBuilder& rows) {
    rows.Add(kStartNs, 0, 0, 100, 200, 0, 0, 0, 0, 0, 0, 0, 0, 1000, 2);
    rows.Add(kStartNs, 3, 1, 100, 200, 30, 60, 0, 0, 0, 0, 0, 0, 1000, 4);
  });
  End();
  std::string cube = Csv("ai_core_utilization");
  EXPECT_TRUE(
      cube.starts_with("Device_id,Core ID,mac_fp16_ratio,mac_int8_ratio,cube_fops\n"
                       "0,Core0,0.1,0.2,"))
      << cube;
  EXPECT_EQ(Csv("ai_vector_core_utilization"),
            "Device_id,Core ID,vec_bank_cflt_ratio,vec_resc_cflt_ratio\n"
            "0,Core3,0.3,0.5\n"
            "0,Average,0.3,0.5\n");
}

TEST_F(DeviceCsvTest, DevicesComeInTheVendorsOrder) {
  for (int device : {2, 10, 0}) {
    Feed(device, TableId::kDdr, [&](BatchBuilder& rows) { rows.Add(kStartNs, 0, 1.0, 1.0); });
  }
  End();
  EXPECT_EQ(Csv("ddr"),
            "Device_id,Metric,Read(MB/s),Write(MB/s)\n"
            "0,Average,1.0,1.0\n10,Average,1.0,1.0\n2,Average,1.0,1.0\n");
}

TEST_F(DeviceCsvTest, NothingMakesNoFiles) {
  Feed(0, TableId::kHccs, [](BatchBuilder&) {});
  Feed(0, TableId::kQos, [](BatchBuilder& rows) { rows.Add(kStartNs, 0, 0, 1); });
  End();
  EXPECT_TRUE(FileNames().empty());
  EXPECT_TRUE(outputs_.empty());
}

}  // namespace
}  // namespace profd::exporting
