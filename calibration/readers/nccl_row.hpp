// SPDX-License-Identifier: Apache-2.0
// One row of an nccl-tests table. Four layouts are in use, and people cut columns before they publish; so the column
// names of the header line decide where it is there, and the number of words where it is lost:
//
//   size count type redop      time algbw busbw error  time algbw busbw error              (12 words)
//   size count type redop root time algbw busbw #wrong time algbw busbw #wrong             (13)
//   size count type redop root time algbw busbw #wrong i_min i_max i_p99 i_cv% time ...    (21)
//
// broadcast of the first layout has root instead of redop; -S adds date and time; -C prints the CPU's time as cputime,
// beside the algbw of the wall time, which is then taken as size / algbw (BenchTime in src/common.cu).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fabricast/measurement.hpp"
#include "readers/text.hpp"

namespace fabricast::readers {

/// Column names of a header line, in lower case, without '#': "size", "time", "algbw", ...
using Columns = std::vector<std::string>;

/// The columns of an nccl-tests header line, or empty when `line` is none. Words before "size" are dropped.
Columns nccl_header_columns(std::string_view line);

/// A row, or why there is none. Both empty: the line is no row at all.
struct NcclRow {
  std::optional<MeasuredRow> row;
  std::string fault;
  /// algbw / (size / time) as the printed digits allow, of a row that was lost because this is not 1 and whose busbw is
  /// its algbw: so nccl-tests printed all_gather and reduce_scatter before it counted a rank's own share.
  struct Scale {
    double low = 0, high = 0;
  };
  std::optional<Scale> scale;
};

/// Reads a row under the header `columns` (may be empty: unknown), whose algbw is `algbw_scale` times size / time.
NcclRow parse_nccl_row(const Line& line, const Columns& columns, double algbw_scale = 1);

}  // namespace fabricast::readers
