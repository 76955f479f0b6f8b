// SPDX-License-Identifier: MIT
// Numbers of the fields of pprof's protobuf that pprof.cc writes, as profile.proto has them.
#pragma once

namespace karst::exporting::pprof {

enum Profile : unsigned {
  kSampleType = 1,
  kSample = 2,
  kMapping = 3,
  kLocation = 4,
  kFunction = 5,
  kStringTable = 6,
  kTimeNanos = 9,
  kDurationNanos = 10,
  kComment = 13,
  kDefaultSampleType = 14,
};
enum ValueType : unsigned { kValueName = 1, kValueUnit = 2 };
enum Sample : unsigned { kLocationIds = 1, kValues = 2 };
enum Mapping : unsigned { kMappingId = 1, kFilename = 5, kHasFunctions = 7, kHasFilenames = 8, kHasLineNumbers = 9 };
enum Location : unsigned { kLocationId = 1, kLocationMapping = 2, kLocationLine = 4 };
enum Line : unsigned { kLineFunction = 1, kLineNumber = 2 };
enum Function : unsigned { kFunctionId = 1, kFunctionName = 2, kSystemName = 3, kFunctionFile = 4, kStartLine = 5 };

}  // namespace karst::exporting::pprof
