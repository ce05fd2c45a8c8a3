# SPDX-License-Identifier: Apache-2.0
# Run with -P: writes OUTPUT, a C++ table of the YAML files below ROOT (names relative to ROOT). FILES is separated by "|".
string(REPLACE "|" ";" files "${FILES}")
set(text "// Made by cmake/EmbedData.cmake from models/catalogue, models/params and models/networks.\n#include \"config/embedded.hpp\"\n\n")
string(APPEND text "namespace fabricast::config {\n\nconst std::vector<EmbeddedFile>& embedded_files() {\n  static const std::vector<EmbeddedFile> files{\n")
foreach(file IN LISTS files)
  file(READ "${ROOT}/${file}" content)
  string(APPEND text "      {\"${file}\", R\"~yaml~(${content})~yaml~\"},\n")
endforeach()
string(APPEND text "  };\n  return files;\n}\n\n}  // namespace fabricast::config\n")
file(WRITE "${OUTPUT}" "${text}")
