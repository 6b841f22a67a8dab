// SPDX-License-Identifier: Apache-2.0
#include "service/spec_history.hpp"

#include "base/core/open_file.hpp"
#include "base/core/replace_file.hpp"
#include "chain/nf_costs.hpp"
#include "service/apply_record.hpp"

#include <catena/core/text.hpp>

#include <absl/strings/ascii.h>
#include <fmt/chrono.h>
#include <fmt/ranges.h>
#include <openssl/evp.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

namespace catena::service {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Clock = std::chrono::system_clock;

constexpr std::string_view kRevisionEnding = ".json";
constexpr std::size_t kIdDigits = 12;
constexpr std::size_t kMaxRevisionBytes = std::size_t{256} << 20;  // above what texts of a chain may have

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) { EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr); }
  void add(std::span<const std::byte> bytes) { EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()); }
  std::string digits() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned length = 0;
    EVP_DigestFinal_ex(context_.get(), digest.data(), &length);
    return fmt::format("{:02x}", fmt::join(digest.begin(), digest.begin() + length, ""));
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

Result<std::string> sha256_of(std::string const& path) {
  CATENA_ASSIGN_OR_RETURN(const OpenedFile file, open_to_read(path, kRegularFile));
  Sha256 hash;
  CATENA_RETURN_IF_ERROR(
      read_pieces(file, path, chain::kMaxHashedBytes, [&hash](std::span<const std::byte> piece) { hash.add(piece); }));
  return hash.digits();
}

/// What makes a revision another one.
Json content_of(SpecRevision const& revision) {
  Json included = Json::array();
  for (chain::IncludedFile const& file : revision.source.included) {
    included.push_back({{"file", file.file}, {"text", file.text}});
  }
  Json files = Json::array();
  for (HashedFile const& file : revision.files) {
    files.push_back({{"path", file.path}, {"sha256", file.sha256}});
  }
  return {{"file", revision.source.file},
          {"text", revision.source.text},
          {"included", std::move(included)},
          {"options", to_json(revision.source.options)},
          {"files", std::move(files)}};
}

std::string text_of(Json const& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

std::string id_of(SpecRevision const& revision) {
  // of the user, too: the same text of another user runs with other rights
  const std::string text = text_of({{"uid", revision.uid}, {"spec", content_of(revision)}});
  Sha256 hash;
  hash.add(std::as_bytes(std::span(text)));
  return hash.digits().substr(0, kIdDigits);
}

SpecRevision from_json(Json const& json) {
  SpecRevision revision;
  revision.id = json.at("revision").get<std::string>();
  revision.applied = Clock::time_point(std::chrono::nanoseconds(json.at("applied_ns").get<std::int64_t>()));
  revision.uid = json.at("uid").get<uid_t>();
  Json const& content = json.at("spec");
  revision.source.file = content.at("file").get<std::string>();
  revision.source.text = content.at("text").get<std::string>();
  for (Json const& file : content.at("included")) {
    revision.source.included.push_back({file.at("file").get<std::string>(), file.at("text").get<std::string>()});
  }
  for (Json const& file : content.at("files")) {
    revision.files.push_back({file.at("path").get<std::string>(), file.at("sha256").get<std::string>()});
  }
  return revision;
}

}  // namespace

Result<std::vector<HashedFile>> hash_files(chain::ChainSource const& source, std::span<const chain::NamedFile> files) {
  std::vector<HashedFile> hashed;
  for (chain::NamedFile const& file : files) {
    const bool is_kept =
        file.path == source.file ||
        std::ranges::find(source.included, file.path, &chain::IncludedFile::file) != source.included.end();
    const bool is_known = std::ranges::find(hashed, file.path, &HashedFile::path) != hashed.end();
    std::error_code error;
    if (file.is_written || is_kept || is_known || file.who == "rx" || file.who == "--rx" || file.who == "'profile'" ||
        file.who == "--profile" || !fs::is_regular_file(file.path, error)) {
      continue;
    }
    CATENA_ASSIGN_OR_RETURN(std::string sha256, sha256_of(file.path));
    hashed.push_back({file.path, std::move(sha256)});
  }
  return hashed;
}

Status check_unchanged(std::span<const HashedFile> files) {
  for (HashedFile const& file : files) {
    const Result<std::string> now = sha256_of(file.path);
    if (!now.ok()) {
      return absl::FailedPreconditionError(std::string(now.status().message()));
    }
    if (*now != file.sha256) {
      return absl::FailedPreconditionError(concat(file.path, " has changed since; put its old content back (sha256 ",
                                                  file.sha256, "), or apply a chain file"));
    }
  }
  return absl::OkStatus();
}

SpecRevision make_revision(chain::ChainSource source, std::vector<HashedFile> files, uid_t uid) {
  SpecRevision revision{{}, Clock::now(), uid, std::move(source), std::move(files)};
  revision.id = id_of(revision);
  return revision;
}

std::string time_text(Clock::time_point time) { return fmt::format("{:%FT%TZ}", fmt::gmtime(Clock::to_time_t(time))); }

std::string to_text(SpecRevision const& revision) {
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(revision.applied.time_since_epoch()).count();
  return text_of(
      {{"revision", revision.id}, {"applied_ns", ns}, {"uid", revision.uid}, {"spec", content_of(revision)}});
}

Result<SpecRevision> revision_from(std::string const& text) {
  try {
    const Json json = Json::parse(text);
    SpecRevision revision = from_json(json);
    CATENA_ASSIGN_OR_RETURN(RequestOptions options, options_from(json.at("spec").at("options")));
    revision.source.options = std::move(options.over_file);
    return id_of(revision) == revision.id ? Result<SpecRevision>(std::move(revision))
                                          : absl::DataLossError("its content does not have its id");
  } catch (Json::exception const& error) {
    return absl::DataLossError(error.what());
  }
}

std::string SpecHistory::folder_of(std::string const& name) const { return concat(folder_, "/", name, ".d"); }

Status SpecHistory::save(std::string const& name, SpecRevision revision, std::string_view spared) const {
  const std::string folder = folder_of(name);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    return absl::ErrnoToStatus(error.value(), concat(folder, ": cannot be created"));
  }
  std::vector<RevisionInfo> earlier = list(name);
  if (!earlier.empty()) {
    revision.applied = std::max(revision.applied, earlier.front().applied + std::chrono::nanoseconds(1));
  }
  std::erase_if(earlier, [&revision](RevisionInfo const& each) { return each.id == revision.id; });
  const std::string text = to_text(revision);
  CATENA_RETURN_IF_ERROR(
      replace_file(concat(folder, "/", revision.id, kRevisionEnding), std::as_bytes(std::span(text))));
  std::size_t kept = 1;
  std::size_t bytes = text.size();
  for (RevisionInfo const& each : earlier) {
    const std::string path = concat(folder, "/", each.id, kRevisionEnding);
    bytes += fs::file_size(path, error);
    ++kept;
    if (each.id != spared && (kept > kMaxRevisions || bytes > kMaxBytes)) {
      fs::remove(path, error);
    }
  }
  return absl::OkStatus();
}

std::vector<RevisionInfo> SpecHistory::list(std::string const& name) const {
  std::vector<RevisionInfo> all;
  std::error_code error;
  for (fs::directory_iterator entry(folder_of(name), error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() == kRevisionEnding) {
      Result<SpecRevision> revision = load(name, entry->path().stem());
      if (revision.ok()) {
        all.push_back({revision->id, revision->applied, revision->uid, revision->source.file});
      }
    }
  }
  std::ranges::sort(all, std::ranges::greater(), &RevisionInfo::applied);
  return all;
}

Result<SpecRevision> SpecHistory::load(std::string const& name, std::string const& id) const {
  const bool is_id = id.size() == kIdDigits && std::ranges::all_of(id, absl::ascii_isxdigit);
  const std::string path = concat(folder_of(name), "/", id, kRevisionEnding);
  std::error_code error;
  if (!is_id || !fs::exists(path, error)) {
    return absl::NotFoundError(
        concat("chain '", name, "' has no revision '", id, "'; `catena history ", name, "` lists its revisions"));
  }
  CATENA_ASSIGN_OR_RETURN(const std::string text, read_file(path, kMaxRevisionBytes));
  CATENA_ASSIGN_OR_RETURN(SpecRevision revision, revision_from(text));
  return revision.id == id ? Result<SpecRevision>(std::move(revision))
                           : absl::DataLossError(concat(path, ": is revision ", revision.id));
}

Status SpecHistory::remove(std::string const& name) const {
  std::error_code error;
  fs::remove_all(folder_of(name), error);
  return error ? absl::ErrnoToStatus(error.value(), concat(folder_of(name), ": cannot be removed")) : absl::OkStatus();
}

}  // namespace catena::service
