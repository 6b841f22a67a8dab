// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/mark.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace catena::nf {

inline constexpr std::uint32_t kMaxYamlNesting = 64;  ///< levels below the outermost mapping

/// Measures a document during parsing, before it is built in memory: its number of nodes and its nesting depth, with
/// aliases expanded. So an accepted document is small for all later walks, and the parser, which recurses once per
/// level, does not exhaust the stack.
class YamlGauge final : public YAML::EventHandler {
 public:
  /// Thrown if the document exceeds a limit.
  struct Refused {
    YAML::Mark mark;
    std::string why;
  };
  /// Thrown at the start of a second document.
  struct Second {
    YAML::Mark mark;
  };

  /// `nodes`: of earlier files of the document.
  explicit YamlGauge(std::size_t max_nodes, std::size_t nodes = 0) : max_nodes_(max_nodes), nodes_(nodes) {}

  /// Of all files so far.
  std::size_t nodes() const { return nodes_; }

  void OnDocumentStart(YAML::Mark const& mark) override;
  void OnDocumentEnd() override {}
  void OnNull(YAML::Mark const& mark, YAML::anchor_t anchor) override { add(mark, anchor, {1, 0}); }
  void OnAlias(YAML::Mark const& mark, YAML::anchor_t anchor) override;
  void OnScalar(YAML::Mark const& mark, std::string const& /*tag*/, YAML::anchor_t anchor,
                std::string const& /*value*/) override {
    add(mark, anchor, {1, 0});
  }
  void OnSequenceStart(YAML::Mark const& mark, std::string const& /*tag*/, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(mark, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(YAML::Mark const& mark, std::string const& /*tag*/, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(mark, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Size {
    std::size_t nodes = 0;
    std::uint32_t levels = 0;  ///< of lists and mappings; 0 for a text
  };
  /// A list or mapping before its end.
  struct Open {
    YAML::anchor_t anchor;
    Size size;
  };

  void add(YAML::Mark const& mark, YAML::anchor_t anchor, Size size);
  void open(YAML::Mark const& mark, YAML::anchor_t anchor);
  void close();
  void name(YAML::anchor_t anchor, Size size);

  std::size_t max_nodes_;
  std::size_t nodes_;  ///< so far
  std::uint32_t documents_ = 0;
  std::vector<Open> open_;
  std::vector<Size> anchors_;  ///< by number; without nodes while its node is open
};

}  // namespace catena::nf
