// A thin layer over SQLite: failures become Error, handles are closed. A Database belongs to one
// thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace sluice {

class Database {
 public:
  /// Opens `path`, creating the file if it is not there; ":memory:" is a database of its own. It
  /// keeps a write-ahead log; a commit is on the disk when it returns. Throws kIo naming the path.
  explicit Database(std::string path);
  /// As above, for a file that must be there and will not be written.
  static Database read_only(std::string path);
  ~Database();
  Database(Database&&) noexcept;

  /// Statements without parameters or results, separated by semicolons.
  void run(const char* sql);

  const std::string& path() const { return path_; }
  sqlite3* handle() const { return handle_; }

 private:
  Database(std::string path, int flags);

  std::string path_;
  sqlite3* handle_ = nullptr;
};

/// A prepared statement. Parameters and columns are counted from 0.
class Statement {
 public:
  /// `database` outlives it. Throws kIo.
  Statement(const Database& database, const std::string& sql);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  void bind(int parameter, int64_t value);
  void bind(int parameter, double value);
  void bind(int parameter, std::string_view value);
  void bind_null(int parameter);

  /// True: there is a row to read. Throws kIo.
  bool step();
  /// Ready for new parameters and step().
  void reset();

  int64_t integer(int column) const;
  double number(int column) const;
  std::string text(int column) const;
  bool is_null(int column) const;

 private:
  void check(int code) const;

  const Database& database_;
  sqlite3_stmt* handle_ = nullptr;
};

/// Everything until commit(), or nothing.
class Transaction {
 public:
  explicit Transaction(Database& database);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  void commit();

 private:
  Database& database_;
  bool open_ = true;
};

}  // namespace sluice
