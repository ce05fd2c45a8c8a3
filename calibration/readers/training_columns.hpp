// SPDX-License-Identifier: Apache-2.0
// What the columns of published training tables are called: GPUs, batch, step time, images or tokens per second. A
// table is told by its head, whatever parts its cells (tabs, bars, blanks) and whichever project printed it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fabricast/measurement.hpp"

namespace fabricast::readers {

enum class Column {
  other,
  gpus,
  hosts,
  model,
  precision,
  batch,
  global_batch,
  tokens,
  kv_length,
  hidden,
  path,
  exchange,
  bucket_mib,
  step,                ///< seconds = cell x unit
  layer,               ///< the same, of one layer
  samples_rate,        ///< of all GPUs
  tokens_rate,         ///< of all GPUs
  tokens_rate_of_one,  ///< per GPU
  train_time,          ///< s, of a whole training
  model_rate,          ///< images/s of the model that the column is named after
};

struct ColumnRole {
  Column column = Column::other;
  double unit = 1;
  std::string name;  ///< as printed
};

/// Cells of a line, parted by tabs, bars or blanks, whichever it has; without bars at its ends.
std::vector<std::string> cells_of(std::string_view line);

/// Roles of a table's head; empty when the line is none: it needs a rate or a time, and what tells the GPUs.
std::vector<ColumnRole> roles_of_head(std::string_view line);

/// A number as tables print them: "5,762", "57.65%", "17.50".
std::optional<double> number_in(std::string_view cell);
/// The precision that words name: "amp_bf16", "Float8", "tf32".
std::optional<Precision> precision_in(std::string_view text);
/// "16GPU-RDMA-..." -> 16, "Baseline-single-GPU" -> 1, "on 2304x H100 GPUs" -> 2304, "128 GPUs." -> 128.
std::optional<int> gpus_in(std::string_view text);
/// GPUs of a system as MLPerf results call it: "2xXE9680x8H100" 16, "eos_n64" 512, "1536xBM.GPU.H100.8" 1536. Names
/// without a count of GPUs per host mean eight.
std::optional<int> gpus_of_system(std::string_view name);

/// Words and numbers of a name: "Llama 3.1 8B" and "llama3.1-8b" alike. One model names another when all words of the
/// shorter are words of the longer.
bool is_same_model(std::string_view one, std::string_view other);

}  // namespace fabricast::readers
