#include "serve/sqlite.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.h"

namespace sluice {
namespace {

struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() /
      ("sluice-sqlite-" +
       std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
  Folder() {
    std::filesystem::remove_all(path);
    std::filesystem::create_directory(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }
};

TEST(Sqlite, ValuesComeBackAsTheyWere) {
  Database db(":memory:");
  db.run("CREATE TABLE t (a, b, c, d)");
  Statement insert(db, "INSERT INTO t VALUES (?, ?, ?, ?)");
  const std::string text("a\0ü", 4);
  insert.bind(0, int64_t(1) << 60);
  insert.bind(1, 0.1);
  insert.bind(2, text);
  insert.bind_null(3);
  EXPECT_FALSE(insert.step());
  insert.reset();
  EXPECT_FALSE(insert.step());  // parameters are null again
  Statement select(db, "SELECT * FROM t ORDER BY rowid");
  ASSERT_TRUE(select.step());
  EXPECT_EQ(select.integer(0), int64_t(1) << 60);
  EXPECT_EQ(select.number(1), 0.1);
  EXPECT_EQ(select.text(2), text);
  EXPECT_TRUE(select.is_null(3));
  ASSERT_TRUE(select.step());
  EXPECT_TRUE(select.is_null(0));
  EXPECT_FALSE(select.step());
}

TEST(Sqlite, ATransactionIsAllOrNothing) {
  const Folder folder;
  const std::string path = folder.path / "db";
  Database db(path);
  db.run("CREATE TABLE t (a UNIQUE)");
  {
    Transaction transaction(db);
    db.run("INSERT INTO t VALUES (1)");
    EXPECT_THROW(db.run("INSERT INTO t VALUES (1)"), Error);
  }
  {
    Transaction transaction(db);
    db.run("INSERT INTO t VALUES (2)");
    transaction.commit();
  }
  const Database reader = Database::read_only(path);
  Statement count(reader, "SELECT count(*), sum(a) FROM t");
  ASSERT_TRUE(count.step());
  EXPECT_EQ(count.integer(0), 1);
  EXPECT_EQ(count.integer(1), 2);
}

TEST(Sqlite, SaysWhatIsWrong) {
  const Folder folder;
  EXPECT_THROW(Database(folder.path / "no/such/folder"), Error);
  EXPECT_THROW(Database::read_only(folder.path / "none"), Error);
  std::ofstream(folder.path / "text") << std::string(5000, 'x');
  try {
    Database db(folder.path / "text");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("text: file is not a database"), std::string::npos);
  }
  Database db(":memory:");
  EXPECT_THROW(Statement(db, "SELEC 1"), Error);
}

}  // namespace
}  // namespace sluice
