// SPDX-License-Identifier: MIT
// What tells a trace's contents from others', without reading them.
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>

namespace karst::reader {

/// 128 bits over the headers of a trace: of the file and of all chunks, which hold the sizes and checksums of what is
/// in them. Two traces with the same one have the same contents, unless one is damaged (checksums do not fit what they
/// are of) or was made to look like the other: it keeps accidents apart, not forgers.
using Fingerprint = std::array<std::uint64_t, 2>;

/// Of a whole trace: nothing where a header is damaged, the end is missing, or more follows it; nor of what is none.
std::optional<Fingerprint> fingerprint(const std::filesystem::path& trace);

}  // namespace karst::reader
