// SPDX-License-Identifier: Apache-2.0
#include "apps/catena-static-check/frontend.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/catena-static-check/macros.hpp"
#include "apps/catena-static-check/prelude.hpp"
#include "apps/catena-static-check/visitor.hpp"

#include <clang/AST/ASTConsumer.h>
#include <clang/Basic/DiagnosticSema.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/FrontendAction.h>
#include <clang/Lex/Preprocessor.h>
#include <clang/Tooling/Tooling.h>
#include <llvm/Support/VirtualFileSystem.h>

namespace catena::checker {
namespace {

constexpr std::string_view kPreludeFile = "/framework/catena_cuda_prelude.hpp";
constexpr std::string_view kResourceFolder = "/resource";

/// Errors of the compiler as findings. One inside the framework is told where the author's code led there, which notes
/// after it say.
class Errors : public clang::DiagnosticConsumer {
 public:
  explicit Errors(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}
  ~Errors() override { flush(); }

  void HandleDiagnostic(clang::DiagnosticsEngine::Level level, clang::Diagnostic const& info) override {
    DiagnosticConsumer::HandleDiagnostic(level, info);
    const clang::SourceLocation at = info.getLocation();
    const bool is_authors = info.hasSourceManager() && Places(info.getSourceManager()).stands_with_author(at);
    if (level == clang::DiagnosticsEngine::Note && !pending_.empty() && !pending_.back().is_authors && is_authors) {
      pending_.back().at = at;
      pending_.back().is_authors = true;
    }
    if (level < clang::DiagnosticsEngine::Error) {
      return;
    }
    flush();
    llvm::SmallString<256> text;
    info.FormatDiagnostic(text);
    sources_ = info.hasSourceManager() ? &info.getSourceManager() : nullptr;
    pending_.push_back({at, is_authors, rule_of(info.getID()), text.str().str()});
  }
  /// Tells of the last one. Called while the source manager that it names still lives.
  void flush() {
    for (Pending const& error : pending_) {
      std::string message = "the compiler says: " + error.message;
      if (sources_ != nullptr) {
        Places(*sources_).report(diagnostics_, Severity::kRefused, error.at, error.rule, std::move(message));
      } else {
        diagnostics_.add({Severity::kRefused, "", 0, 0, error.rule, std::move(message)});
      }
    }
    pending_.clear();
    sources_ = nullptr;
  }

 private:
  struct Pending {
    clang::SourceLocation at;
    bool is_authors;
    std::string rule;
    std::string message;
  };

  static std::string rule_of(unsigned id) {
    switch (id) {
      case clang::diag::err_access:
      case clang::diag::err_access_ctor:
      case clang::diag::err_access_field_ctor:
      case clang::diag::err_access_friend_function:
        return "private";
      default:
        return "compile";
    }
  }

  Diagnostics& diagnostics_;
  clang::SourceManager const* sources_ = nullptr;
  std::vector<Pending> pending_;  ///< one at most
};

class Consumer : public clang::ASTConsumer {
 public:
  Consumer(Diagnostics& diagnostics, Errors& errors) : diagnostics_(diagnostics), errors_(errors) {}
  void HandleTranslationUnit(clang::ASTContext& context) override {
    errors_.flush();
    Visitor(context, diagnostics_).run();
  }

 private:
  Diagnostics& diagnostics_;
  Errors& errors_;
};

class Action : public clang::ASTFrontendAction {
 public:
  Action(Diagnostics& diagnostics, Errors& errors) : diagnostics_(diagnostics), errors_(errors) {}

 protected:
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance& compiler, llvm::StringRef) override {
    compiler.getPreprocessor().addPPCallbacks(macro_check(compiler.getSourceManager(), diagnostics_));
    return std::make_unique<Consumer>(diagnostics_, errors_);
  }
  void EndSourceFileAction() override { errors_.flush(); }

 private:
  Diagnostics& diagnostics_;
  Errors& errors_;
};

std::vector<std::string> arguments_of(Job const& job, Dialect dialect) {
  std::vector<std::string> arguments = {
      "clang", "-fsyntax-only", "-nostdlibinc", "-resource-dir", std::string(kResourceFolder), "-ferror-limit=50",
      "-ftemplate-depth=256", "-fbracket-depth=256", "-fconstexpr-steps=1000000", "-Wno-everything",
      // a function without its return, or a variable before its value, has no meaning
      // that a check could rely on; an attribute may have one to another compiler
      "-Werror=return-type", "-Werror=uninitialized", "-Werror=unknown-attributes", "-Werror=ignored-attributes"};
  if (dialect == Dialect::kOpenCl) {
    arguments.insert(arguments.end(), {"-x", "clcpp", "-cl-std=CLC++2021", "-target", "spir64", "-Xclang",
                                       "-finclude-default-header", "-DCATENA_OPENCL_BITCODE"});
  } else {
    arguments.insert(arguments.end(), {"-x", "c++", "-std=c++17", "-target", "nvptx64-nvidia-cuda", "-fno-exceptions",
                                       "-fno-rtti", "-include", std::string(kPreludeFile)});
  }
  for (std::string const& define : job.defines) {
    arguments.push_back("-D" + define);
  }
  for (const std::string_view folder : {kAuthorFolder, kFrameworkFolder}) {
    arguments.insert(arguments.end(), {"-I", std::string(folder.substr(0, folder.size() - 1))});
  }
  arguments.push_back(std::string(kAuthorFolder) + job.author.front().name);
  return arguments;
}

llvm::IntrusiveRefCntPtr<llvm::vfs::InMemoryFileSystem> files_of(Job const& job) {
  auto files = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  const auto add = [&files](std::string const& path, std::string const& text) {
    files->addFile(path, 0, llvm::MemoryBuffer::getMemBufferCopy(text, path));
  };
  for (File const& file : job.author) {
    add(std::string(kAuthorFolder) + file.name, file.text);
  }
  for (File const& file : job.framework) {
    add(std::string(kFrameworkFolder) + file.name, file.text);
  }
  add(std::string(kPreludeFile), std::string(kCudaPrelude));
  for (const char* header : {"opencl-c-base.h", "opencl-c.h"}) {
    if (auto text = llvm::MemoryBuffer::getFile(std::string(CATENA_CLANG_HEADERS "/") + header); text) {
      add(std::string(kResourceFolder) + "/include/" + header, (*text)->getBuffer().str());
    }
  }
  return files;
}

}  // namespace

void check_dialect(Job const& job, Dialect dialect, Diagnostics& diagnostics) {
  Errors errors(diagnostics);
  const auto files = llvm::makeIntrusiveRefCnt<clang::FileManager>(clang::FileSystemOptions{}, files_of(job));
  clang::tooling::ToolInvocation compiler(arguments_of(job, dialect), std::make_unique<Action>(diagnostics, errors),
                                          files.get());
  compiler.setDiagnosticConsumer(&errors);
  compiler.run();
  errors.flush();
}

}  // namespace catena::checker
