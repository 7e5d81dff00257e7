#include "serve/sqlite.h"

#include <sqlite3.h>

#include <utility>

#include "base/error.h"

namespace sluice {
namespace {

/// How long a writer waits for another process to end its transaction.
constexpr int kBusyMs = 5000;

[[noreturn]] void fail(const std::string& path, sqlite3* handle) {
  throw Error(ErrorCode::kIo, "{}: {}", path,
              handle == nullptr ? "out of memory" : sqlite3_errmsg(handle));
}

}  // namespace

Database::Database(std::string path, int flags) : path_(std::move(path)) {
  if (sqlite3_open_v2(path_.c_str(), &handle_, flags | SQLITE_OPEN_NOMUTEX, nullptr) != SQLITE_OK) {
    const std::string message = handle_ == nullptr ? "out of memory" : sqlite3_errmsg(handle_);
    sqlite3_close(std::exchange(handle_, nullptr));
    throw Error(ErrorCode::kIo, "{}: {}", path_, message);
  }
  sqlite3_busy_timeout(handle_, kBusyMs);
}

Database::Database(std::string path)
    : Database(std::move(path), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) {
  run("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;");
}

Database Database::read_only(std::string path) {
  return Database(std::move(path), SQLITE_OPEN_READONLY);
}

Database::Database(Database&& other) noexcept
    : path_(std::move(other.path_)), handle_(std::exchange(other.handle_, nullptr)) {}

Database::~Database() { sqlite3_close(handle_); }

void Database::run(const char* sql) {
  if (sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail(path_, handle_);
}

Statement::Statement(const Database& database, const std::string& sql) : database_(database) {
  check(sqlite3_prepare_v2(database.handle(), sql.c_str(), int(sql.size()) + 1, &handle_, nullptr));
}

Statement::~Statement() { sqlite3_finalize(handle_); }

void Statement::check(int code) const {
  if (code != SQLITE_OK) fail(database_.path(), database_.handle());
}

void Statement::bind(int parameter, int64_t value) {
  check(sqlite3_bind_int64(handle_, parameter + 1, value));
}

void Statement::bind(int parameter, double value) {
  check(sqlite3_bind_double(handle_, parameter + 1, value));
}

void Statement::bind(int parameter, std::string_view value) {
  check(sqlite3_bind_text64(handle_, parameter + 1, value.data(), value.size(), SQLITE_TRANSIENT,
                            SQLITE_UTF8));
}

void Statement::bind_null(int parameter) { check(sqlite3_bind_null(handle_, parameter + 1)); }

bool Statement::step() {
  const int code = sqlite3_step(handle_);
  if (code != SQLITE_ROW && code != SQLITE_DONE) fail(database_.path(), database_.handle());
  return code == SQLITE_ROW;
}

void Statement::reset() {
  sqlite3_reset(handle_);  // repeats the error that step() has thrown
  sqlite3_clear_bindings(handle_);
}

int64_t Statement::integer(int column) const { return sqlite3_column_int64(handle_, column); }

double Statement::number(int column) const { return sqlite3_column_double(handle_, column); }

std::string Statement::text(int column) const {
  const auto* text = sqlite3_column_text(handle_, column);
  if (text == nullptr) return "";
  return {reinterpret_cast<const char*>(text), size_t(sqlite3_column_bytes(handle_, column))};
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(handle_, column) == SQLITE_NULL;
}

Transaction::Transaction(Database& database) : database_(database) {
  // Waits for another writer here and not at the first write, where SQLite would not.
  database_.run("BEGIN IMMEDIATE");
}

Transaction::~Transaction() {
  if (open_) sqlite3_exec(database_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::commit() {
  database_.run("COMMIT");
  open_ = false;
}

}  // namespace sluice
