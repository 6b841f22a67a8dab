// SPDX-License-Identifier: Apache-2.0
#include "pipeline/generations.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace catena::runtime {
namespace {

using ::testing::ElementsAre;

/// Is in a set as long as it lives.
class LivingObject {
 public:
  LivingObject(int number, std::set<int>& living) : number_(number), living_(&living) { living_->insert(number_); }
  ~LivingObject() { living_->erase(number_); }
  LivingObject(LivingObject const&) = delete;
  LivingObject& operator=(LivingObject const&) = delete;

 private:
  int number_;
  std::set<int>* living_;
};

TEST(Generations, one_ends_with_its_last_holder) {
  std::set<int> living;
  LivingObject first(0, living);
  Generations<LivingObject> generations(first, 2);
  EXPECT_EQ(&generations.latest(), &first);
  auto made = std::make_unique<LivingObject>(1, living);
  LivingObject const* const second = made.get();
  generations.add(std::move(made));
  EXPECT_EQ(&generations.latest(), second);
  generations.hold_latest(0);
  generations.hold_latest(1);
  generations.add(std::make_unique<LivingObject>(2, living));
  generations.hold_latest(1);
  EXPECT_THAT(living, ElementsAre(0, 1, 2)) << "the other holder has it";
  generations.hold_latest(0);
  EXPECT_THAT(living, ElementsAre(0, 2)) << "the first one is of the caller";
}

TEST(Generations, one_replaced_before_it_had_a_holder_ends_too) {
  std::set<int> living;
  LivingObject first(0, living);
  {
    Generations<LivingObject> generations(first, 2);
    generations.add(std::make_unique<LivingObject>(1, living));
    generations.add(std::make_unique<LivingObject>(2, living));
    generations.hold_latest(0);
    EXPECT_THAT(living, ElementsAre(0, 2));
  }
  EXPECT_THAT(living, ElementsAre(0));
}

}  // namespace
}  // namespace catena::runtime
