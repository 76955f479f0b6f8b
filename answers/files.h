// SPDX-License-Identifier: MIT
// The relations of files and sockets (analysis/files.h): each call, and calls by file or by the function that made
// them.
#pragma once
#include "analysis/files.h"
#include "answers/relation.h"

namespace karst::answers {

/// What rows of files have in common.
struct FileFacts {
  const reader::Trace& trace;
  const analysis::Descriptors& files;
  Times times;
};

struct FileCallRow {
  const FileFacts& facts;
  const analysis::FileCall& of;
};
/// Calls to one file, or by one function.
struct FileRow {
  const FileFacts& facts;
  const analysis::FileGroup& of;

  const analysis::FileSums& sums() const { return of.sums; }
};
/// Of such a row those of one kind: of a file by one function, of a function to one file.
struct FileUseRow {
  const FileFacts& facts;
  const analysis::FileUse& of;

  const analysis::FileSums& sums() const { return of.sums; }
};

const Relation& file_calls();
const Relation& files();
const Relation& file_users();
/// Rows in those of files, and of functions that used some.
const Relation& file_uses();
const Relation& files_of_user();

}  // namespace karst::answers
