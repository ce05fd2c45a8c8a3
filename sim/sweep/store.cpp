// SPDX-License-Identifier: Apache-2.0
// The store of a sweep: one SQLite file with a write-ahead log. A record and its figures are one transaction.
#include <fmt/format.h>
#include <sqlite3.h>

#include <stdexcept>

#include "fabricast/sweep.hpp"

namespace fabricast {

namespace {

constexpr int k_format = 1;  ///< PRAGMA user_version; docs/FORMATS.md, "Stores of sweeps"
constexpr int k_patience_ms = 10'000;

constexpr const char* k_tables =
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL);"
    "CREATE TABLE design(id INTEGER PRIMARY KEY, name TEXT NOT NULL, status TEXT NOT NULL, reason TEXT NOT NULL,"
    " record TEXT NOT NULL);"
    "CREATE TABLE setting(design INTEGER NOT NULL, path TEXT NOT NULL, value TEXT NOT NULL);"
    "CREATE TABLE metric(design INTEGER NOT NULL, name TEXT NOT NULL, value REAL, low REAL, high REAL,"
    " PRIMARY KEY(design, name));";

sqlite3* base(void* database) { return static_cast<sqlite3*>(database); }

/// A prepared statement.
class Statement {
 public:
  Statement(void* database, const char* sql) : database_(base(database)) {
    if (sqlite3_prepare_v2(database_, sql, -1, &statement_, nullptr) != SQLITE_OK)
      throw std::runtime_error(fmt::format("store: {}", sqlite3_errmsg(database_)));
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(int place, const std::string& text) {
    sqlite3_bind_text(statement_, place, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
    return *this;
  }
  Statement& bind(int place, double value) {
    sqlite3_bind_double(statement_, place, value);
    return *this;
  }
  Statement& bind(int place, std::size_t value) {
    sqlite3_bind_int64(statement_, place, static_cast<sqlite3_int64>(value));
    return *this;
  }
  /// True while there is a row.
  bool step() {
    const int code = sqlite3_step(statement_);
    if (code == SQLITE_ROW) return true;
    if (code != SQLITE_DONE) throw std::runtime_error(fmt::format("store: {}", sqlite3_errmsg(database_)));
    return false;
  }
  [[nodiscard]] std::string text(int column) const {
    const auto* found = sqlite3_column_text(statement_, column);
    if (found == nullptr) return "";
    return {reinterpret_cast<const char*>(found), static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
  }
  [[nodiscard]] std::size_t number(int column) const {
    return static_cast<std::size_t>(sqlite3_column_int64(statement_, column));
  }

 private:
  sqlite3* database_;
  sqlite3_stmt* statement_ = nullptr;
};

tl::unexpected<Diagnostics> refuse(const std::string& path, std::string message, std::string hint = {}) {
  auto fault = make_error(std::move(message), std::move(hint));
  fault.location.file = path;
  return tl::unexpected(Diagnostics{std::move(fault)});
}

}  // namespace

SweepStore::SweepStore(SweepStore&& other) noexcept : database_(other.database_), path_(std::move(other.path_)) {
  other.database_ = nullptr;
}

SweepStore::~SweepStore() {
  if (database_ != nullptr) sqlite3_close(base(database_));
}

void SweepStore::execute(const char* sql) const {
  if (sqlite3_exec(base(database_), sql, nullptr, nullptr, nullptr) != SQLITE_OK)
    throw std::runtime_error(fmt::format("store {}: {}", path_, sqlite3_errmsg(base(database_))));
}

Result<SweepStore> SweepStore::open(const std::string& path, const std::string& fingerprint,
                                    const std::string& header) try {
  sqlite3* opened = nullptr;
  if (sqlite3_open(path.c_str(), &opened) != SQLITE_OK) {
    const std::string why = sqlite3_errmsg(opened);
    sqlite3_close(opened);
    return refuse(path, fmt::format("cannot open the store: {}", why));
  }
  SweepStore store(opened, path);
  sqlite3_busy_timeout(opened, k_patience_ms);
  store.execute("PRAGMA journal_mode=WAL");
  store.execute("PRAGMA synchronous=NORMAL");
  store.execute("BEGIN IMMEDIATE");
  Statement tables(opened, "SELECT count(*) FROM sqlite_master");
  tables.step();
  if (tables.number(0) == 0) {
    store.execute(k_tables);
    store.execute(fmt::format("PRAGMA user_version={}", k_format).c_str());
    for (const auto& [key, value] : {std::pair{"fingerprint", &fingerprint}, std::pair{"header", &header}})
      Statement(opened, "INSERT INTO meta VALUES(?,?)").bind(1, std::string(key)).bind(2, *value).step();
  }
  store.execute("COMMIT");
  if (store.meta("fingerprint") != fingerprint)
    return refuse(path, "this store holds the results of another plan, other input files or another version",
                  "name another file with --store, or remove this one");
  // Objectives, bounds and wording may change: results do not depend on them.
  Statement(opened, "UPDATE meta SET value=? WHERE key='header'").bind(1, header).step();
  return store;
} catch (const std::runtime_error& error) {
  return refuse(path, error.what(), "a store is a SQLite file that `fabricast sweep --store` has made");
}

Result<SweepStore> SweepStore::open_existing(const std::string& path) try {
  sqlite3* opened = nullptr;
  if (sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READWRITE, nullptr) != SQLITE_OK) {
    const std::string why = sqlite3_errmsg(opened);
    sqlite3_close(opened);
    return refuse(path, fmt::format("cannot open the store: {}", why));
  }
  SweepStore store(opened, path);
  sqlite3_busy_timeout(opened, k_patience_ms);
  Statement version(opened, "PRAGMA user_version");
  version.step();
  if (version.number(0) != k_format)
    return refuse(path, fmt::format("a store of format {}, this program reads {}", version.number(0), k_format),
                  "name files that `fabricast sweep --store` has made");
  return store;
} catch (const std::runtime_error& error) {
  return refuse(path, error.what(), "name files that `fabricast sweep --store` has made");
}

void SweepStore::put(std::size_t index, const std::string& record) {
  const auto result = result_of(record);
  if (!result) throw std::runtime_error(fmt::format("store {}: a record that cannot be read", path_));
  execute("BEGIN IMMEDIATE");
  Statement(database_, "INSERT OR REPLACE INTO design VALUES(?,?,?,?,?)")
      .bind(1, index)
      .bind(2, result->name)
      .bind(3, std::string(to_string(result->status)))
      .bind(4, result->reasons.empty() ? std::string() : result->reasons.front())
      .bind(5, record)
      .step();
  Statement(database_, "DELETE FROM setting WHERE design=?").bind(1, index).step();
  Statement(database_, "DELETE FROM metric WHERE design=?").bind(1, index).step();
  for (const auto& one : result->settings)
    Statement(database_, "INSERT INTO setting VALUES(?,?,?)")
        .bind(1, index)
        .bind(2, one.path)
        .bind(3, one.value)
        .step();
  for (const auto& entry : result->metrics)
    Statement(database_, "INSERT INTO metric VALUES(?,?,?,?,?)")
        .bind(1, index)
        .bind(2, entry.first)
        .bind(3, entry.second.value)
        .bind(4, entry.second.low)
        .bind(5, entry.second.high)
        .step();
  execute("COMMIT");
}

std::vector<std::pair<std::size_t, std::string>> SweepStore::records() const {
  std::vector<std::pair<std::size_t, std::string>> out;
  Statement rows(database_, "SELECT id, record FROM design ORDER BY id");
  while (rows.step()) out.emplace_back(rows.number(0), rows.text(1));
  return out;
}

std::string SweepStore::meta(const std::string& key) const {
  Statement row(database_, "SELECT value FROM meta WHERE key=?");
  row.bind(1, key);
  return row.step() ? row.text(0) : "";
}

}  // namespace fabricast
