#include "serve/response_store.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <future>

#include "serve/fields.h"

namespace sluice {
namespace {

OrderedJson item(const std::string& id) { return {{"id", id}, {"type", "message"}}; }

OrderedJson response(const std::string& id, const OrderedJson& previous, const OrderedJson& output,
                     int64_t created = 4'000'000'000) {
  return {{"id", id},
          {"created_at", created},
          {"status", output.empty() ? "in_progress" : "completed"},
          {"previous_response_id", previous},
          {"output", output}};
}

void keep(ResponseStore& store, const std::string& id, const OrderedJson& previous = nullptr) {
  store.begin("", response(id, previous, OrderedJson::array()),
              OrderedJson::array({item(id + "_in")}), {});
  store.end(response(id, previous, OrderedJson::array({item(id + "_out")})), "{}\n", {});
}

/// The error of a conversation of which a part is missing.
std::string missing(ResponseStore& store, const ResponseKey& key) {
  try {
    store.history(key);
  } catch (const ApiError& error) {
    EXPECT_EQ(error.code(), "previous_response_not_found");
    return error.what();
  }
  return "no error";
}

struct File {
  std::string path = (std::filesystem::temp_directory_path() / "sluice_response_store.db").string();
  File() { remove(); }
  ~File() { remove(); }
  void remove() const {
    for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(path + end);
  }
};

TEST(ResponseStore, FollowsAConversation) {
  ResponseStore store("");
  keep(store, "a");
  keep(store, "b", "a");
  keep(store, "c", "b");
  std::string ids;
  for (const OrderedJson& each : store.history({"", "c"}))
    ids += each["id"].get<std::string>() + " ";
  EXPECT_EQ(ids, "a_in a_out b_in b_out c_in c_out ");
  EXPECT_EQ((*store.find_item({"", "b_out"}))["id"], "b_out");
  EXPECT_TRUE(store.remove({"", "a"}));
  EXPECT_FALSE(store.remove({"", "a"}));
  EXPECT_FALSE(store.find_item({"", "a_in"}));
  EXPECT_EQ(missing(store, {"", "c"}), "Previous response with id 'a' not found.");
  EXPECT_TRUE(store.find({"", "c"}));
}

TEST(ResponseStore, TellsWhenAResponseIsKept) {
  ResponseStore store("");
  std::promise<void> kept;
  store.begin("", response("a", nullptr, OrderedJson::array()), OrderedJson::array(),
              [&] { kept.set_value(); });
  kept.get_future().wait();
  EXPECT_EQ(store.find({"", "a"})->resource["status"], "in_progress");
}

TEST(ResponseStore, WhatWasRemovedIsNotWrittenAgain) {
  ResponseStore store("");
  store.begin("", response("a", nullptr, OrderedJson::array()), OrderedJson::array(), {});
  EXPECT_TRUE(store.remove({"", "a"}));
  store.end(response("a", nullptr, OrderedJson::array({item("x")})), "", {});
  EXPECT_FALSE(store.find({"", "a"}));
}

TEST(ResponseStore, AFileOutlivesTheProcess) {
  const File file;
  {
    ResponseStore store(file.path);
    keep(store, "done");
    store.begin("", response("cut", nullptr, OrderedJson::array()), OrderedJson::array(), {});
    store.begin("", response("old", nullptr, OrderedJson::array(), 1000), OrderedJson::array(), {});
  }
  ResponseStore store(file.path);
  EXPECT_EQ(store.find({"", "done"})->resource["status"], "completed");
  EXPECT_EQ(store.find({"", "done"})->events, "{}\n");
  EXPECT_EQ(store.find({"", "cut"})->resource["status"], "failed");
  EXPECT_EQ(store.find({"", "cut"})->resource["error"]["code"], "server_error");
  EXPECT_FALSE(store.find({"", "old"}));
}

TEST(ResponseStore, OwnersDoNotSeeEachOther) {
  ResponseStore store("");
  const OrderedJson input = OrderedJson::array({item("same")});
  store.begin("ann", response("a", nullptr, OrderedJson::array()), input, {});
  store.begin("bob", response("b", "a", OrderedJson::array()), input, {});
  EXPECT_TRUE(store.find({"ann", "a"}));
  EXPECT_FALSE(store.find({"bob", "a"}));
  EXPECT_FALSE(store.find({"", "a"}));
  EXPECT_EQ(missing(store, {"bob", "a"}), "Previous response with id 'a' not found.");
  EXPECT_EQ(missing(store, {"bob", "b"}), "Previous response with id 'a' not found.");
  EXPECT_FALSE(store.remove({"bob", "a"}));
  EXPECT_TRUE(store.remove({"bob", "b"}));
  EXPECT_TRUE(store.find_item({"ann", "same"}));
  EXPECT_FALSE(store.find_item({"bob", "same"}));
}

TEST(ResponseStore, TakesAFileWithoutOwners) {
  const File file;
  {
    Database old(file.path);
    old.run(
        "CREATE TABLE response (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,"
        "  previous TEXT, created INTEGER NOT NULL, ended INTEGER NOT NULL,"
        "  bytes INTEGER NOT NULL, resource TEXT NOT NULL, input TEXT NOT NULL,"
        "  events TEXT NOT NULL);"
        "CREATE TABLE response_item (id TEXT PRIMARY KEY, response TEXT NOT NULL"
        "  REFERENCES response (id) ON DELETE CASCADE) WITHOUT ROWID;"
        "CREATE INDEX response_item_response ON response_item (response);"
        "INSERT INTO response VALUES (1, 'a', NULL, 4000000000, 1, 9, '{\"output\":[]}',"
        "  '[{\"id\":\"i\"}]', '');"
        "INSERT INTO response_item VALUES ('i', 'a');");
  }
  for (int i = 0; i < 2; ++i) {
    ResponseStore store(file.path);
    EXPECT_TRUE(store.find({"", "a"}));
    EXPECT_FALSE(store.find({"ann", "a"}));
    EXPECT_TRUE(store.find_item({"", "i"}));
  }
  ResponseStore store(file.path);
  EXPECT_TRUE(store.remove({"", "a"}));
  EXPECT_FALSE(store.find_item({"", "i"}));
}

TEST(ResponseStore, MemoryIsBounded) {
  ResponseStore store("");
  for (int i = 0; i < 5; ++i) {
    OrderedJson big = response(std::to_string(i), nullptr, OrderedJson::array());
    big["instructions"] = std::string(64 << 20, 'x');
    store.begin("", std::move(big), OrderedJson::array(), {});
  }
  EXPECT_FALSE(store.find({"", "0"}));
  EXPECT_FALSE(store.find({"", "1"}));
  EXPECT_TRUE(store.find({"", "2"}));
}

}  // namespace
}  // namespace sluice
