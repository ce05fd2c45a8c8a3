// SPDX-License-Identifier: Apache-2.0
// What the rows of an nccl-tests table say together, where its lines alone do not: which collective it is of, and
// whether its algbw is that of old versions.
//
//   root >= 0           broadcast, gather, scatter (redop none); reduce
//   root -1             all_gather, alltoall (redop none); all_reduce, reduce_scatter, sendrecv
//   size / (count x element)   1, or n: all_gather, reduce_scatter, alltoall, gather, scatter count one rank's share
//   busbw / algbw       2(n-1)/n all_reduce; (n-1)/n where the count is one rank's share; 1 elsewhere
//   in-place #wrong N/A alltoall, sendrecv: they have no in-place form
//
// Source: nccl-tests, src/common.cu and GetBw, GetCollByteCount, InitData of each src/*.cu. In old versions GetBw of
// all_gather and reduce_scatter is `algBw = busBw = count * typesize * (nranks - 1) / sec`, count being one rank's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fabricast/measurement.hpp"
#include "readers/nccl_row.hpp"
#include "readers/text.hpp"

namespace fabricast::readers {

/// A line that is a row, read or lost, and the header it stands below.
struct RowLine {
  Line line;
  Columns columns;
  std::optional<NcclRow::Scale> scale;
};

/// Reads a table whose rows were lost because their algbw is size (n-1)/n / time, when one n explains every row; says
/// so in a warning instead of those of the lost rows.
void read_scaled_rows(const LogText& log, const std::vector<RowLine>& lines, MeasuredLog& table);

/// Bytes of an element of a type as NCCL, nccl-tests or PyTorch name it ("half", "bf16", "int8"); 0 for an unknown
/// name.
int datatype_bytes(const std::string& datatype);

/// Collectives that print such rows; all of them when the rows say nothing.
std::vector<Benchmark> benchmarks_by_content(const MeasuredLog& table);

/// Sets the benchmark by what the rows allow and the file is named; leaves `possible_benchmarks` when several remain.
void recognise_benchmark(const std::string& file, MeasuredLog& table);

}  // namespace fabricast::readers
