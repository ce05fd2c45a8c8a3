// SPDX-License-Identifier: Apache-2.0
// What launchers and collectors put before the lines of a program:
//
//   [1,0]<stdout>:                        Open MPI 4 --tag-output; 5 with a blank, `[host@1,0]`, `[1,0][host:77]`,
//   `[0]` Mon Jul 20 10:11:12 2026<stdout>:     Open MPI 4 --timestamp-output, also before a tag; 5 in brackets <stdout
//   rank="0">...</stdout>         both, --xml [0]                                   MPICH and Intel MPI -prepend-rank;
//   `[rank0]:`, `[default0]:` torchrun 2026-07-20T10:11:12.123456789Z        kubectl --timestamps and other collectors;
//   `[pod/launcher/main]` --prefix Jul 20 10:11:12                       syslog, ts 0: srun -l, flux -l, jsrun;
//   `node0:` pdsh, clush; `node0 0:` PALS; `main-1  |` compose
//
// Sources: PMIx src/common/pmix_iof.c and ORTE iof_base_output.c (tags), the programs' manuals.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "readers/text.hpp"

namespace fabricast::readers {

/// Length of the tags and times at the start of a line, whatever the program prints behind them.
std::size_t prefix_length(std::string_view line);

/// Length of a rank's tag at the start of `text`, also where it is glued between words: `[3]`, `[1,3]<stdout>:`.
std::size_t rank_tag_length(std::string_view text);

/// A line of XML output as the program printed it.
std::string without_xml_tag(std::string text);

/// Drops labels (`0: `, `node0: `, `main-1  | `) where they stand before the start of a table. Words before a colon may
/// be the program's own: only those are labels behind which a table starts.
void drop_labels(std::vector<Line>& lines, bool (*starts_table)(std::string_view line));

}  // namespace fabricast::readers
