// Zones of Tracy's CSV: nesting by times, names that hold the separator, what is damaged or absurd.
#include "test/import/imported.h"

namespace karst::importing {
namespace {

constexpr const char* kColumns = "name,src_file,src_line,ns_since_start,exec_time_ns,thread,value\n";

struct ImportedZones : Imported {
  explicit ImportedZones(const std::string& lines) : Imported(import_tracy, kColumns + lines) {}
};
using Trees = std::vector<std::string>;

TEST(ImportTracy, ZonesNestByTheirTimes) {
  EXPECT_TRUE(may_be_tracy(kColumns));
  const ImportedZones imported(
      "inner,a.cc,5,20,10,0,\ninner,a.cc,5,40,10,0,some text\r\nouter,a.cc,3,10,90,0,\nouter,a.cc,9,10,5,1,\n");
  EXPECT_EQ(imported.trees(), (Trees{"0/900000000: outer90(inner10 inner10)", "0/900000001: outer5"}));
  EXPECT_TRUE(imported.summary.left_out.empty());
  const reader::Process& process = imported.trace().processes()[0];
  EXPECT_EQ(process.functions[1].file, "a.cc");
  EXPECT_EQ(process.functions[1].line, 5U);
  EXPECT_EQ(process.threads[1].name, "thread 1");
}

TEST(ImportTracy, NamesMayHoldTheSeparator) {
  EXPECT_EQ(ImportedZones("f<a, b>(1, 2),x.cc,5,20,10,0,\n").trees(), Trees{"0/900000000: f<a, b>(1, 2)10"});
  EXPECT_EQ(ImportedZones(",x.cc,5,20,10,0,1,2,3,4\n").trees(), Trees{"0/900000000: (no name)10"});
  const Imported other(import_tracy,
                       "name; src_file; src_line; ns_since_start; exec_time_ns; thread\n"
                       "a,b; c.cc; 1; 2; 3; 4\n");
  EXPECT_EQ(other.trees(), Trees{"0/900000004: a,b3"});
}

TEST(ImportTracy, WhatIsNoZoneIsCounted) {
  const ImportedZones imported(
      "f,x.cc,5,20,10,0,\nplot,,,17,,,3.5\nshort,x.cc,1,2\nf,x.cc,5,20,-1,0,\nf,x.cc,5,9000000000000000000,1,0,\n"
      "f,x.cc,5,20,9223372036854775807,0,\nf,x.cc,5,20,1,70000,\nf,x.cc,5,20,1,-1,\nf,x.cc,99999999999,40,1,0,\n\n");
  EXPECT_EQ(imported.trees(), Trees{"0/900000000: f10 f1"});
  EXPECT_EQ(imported.summary.left_out,
            (std::map<std::string, std::uint64_t>{{"lines that are no zones, as values of plots", 2},
                                                  {"zones of no thread that can be", 2},
                                                  {"zones without a time that can be", 3}}));
}

TEST(ImportTracy, WhatIsNoneIsAnError) {
  EXPECT_EQ(ImportedZones("").error, "there are no calls and no samples in it");
  for (const char* other : {"", "name", "name,src_file", "name,src_file,src_line,total_ns,total_perc\n",
                            "namesrc_filesrc_linens_since_startexec_time_nsthread\n", "x,name,src_file\n"}) {
    EXPECT_FALSE(may_be_tracy(other));
    EXPECT_EQ(Imported(import_tracy, other).error, "its first line is not that of 'tracy-csvexport -u'");
  }
}

}  // namespace
}  // namespace karst::importing
