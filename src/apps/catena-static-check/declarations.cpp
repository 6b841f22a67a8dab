// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "apps/catena-static-check/visitor.hpp"

#include <clang/AST/Attr.h>

namespace catena::checker {
namespace {

constexpr unsigned kMaxAlignment = 16;
constexpr std::string_view kAllowedAttributes =
    "': a kernel may have alignas, [[maybe_unused]], [[nodiscard]] and [[fallthrough]]";

/// A namespace of the framework. `catena` itself is shared with the NFs of the tree.
bool is_framework(clang::NamespaceDecl const* space, Places const& places) {
  return qualified_name(space) != "catena" &&
         std::ranges::any_of(space->redecls(),
                             [&](clang::NamespaceDecl const* part) { return places.of_framework(part); });
}

/// Whether the compiler's own default constructor leaves a member as it was.
bool leaves_members(clang::CXXRecordDecl const* record) {
  return std::ranges::any_of(record->fields(), [](clang::FieldDecl const* field) {
    if (field->hasInClassInitializer()) {
      return false;
    }
    clang::CXXRecordDecl const* inner = field->getType()->getBaseElementTypeUnsafe()->getAsCXXRecordDecl();
    return inner == nullptr || !inner->hasDefinition() ||
           (!inner->hasUserProvidedDefaultConstructor() && leaves_members(inner->getDefinition()));
  });
}

/// `construction` calls a default constructor that leaves members as they were.
bool leaves_object(clang::Expr const* initializer) {
  auto const* construction = llvm::dyn_cast<clang::CXXConstructExpr>(initializer->IgnoreImplicit());
  return construction != nullptr && construction->getConstructor()->isDefaultConstructor() &&
         !construction->getConstructor()->isUserProvided() && !construction->requiresZeroInitialization() &&
         !construction->isListInitialization() && leaves_members(construction->getConstructor()->getParent());
}

/// A variable, or a part of one, or a temporary object that lives as long as the reference to it.
bool stays(clang::Expr const* expression) {
  expression = expression->IgnoreParens();
  if (auto const* whole = llvm::dyn_cast<clang::FullExpr>(expression); whole != nullptr) {
    return stays(whole->getSubExpr());
  }
  if (auto const* made = llvm::dyn_cast<clang::MaterializeTemporaryExpr>(expression); made != nullptr) {
    return true;
  }
  if (auto const* cast = llvm::dyn_cast<clang::ImplicitCastExpr>(expression); cast != nullptr) {
    return stays(cast->getSubExpr());
  }
  if (auto const* member = llvm::dyn_cast<clang::MemberExpr>(expression); member != nullptr) {
    return stays(member->getBase());
  }
  if (auto const* element = llvm::dyn_cast<clang::ArraySubscriptExpr>(expression); element != nullptr) {
    return stays(element->getBase());
  }
  if (auto const* chosen = llvm::dyn_cast<clang::ConditionalOperator>(expression); chosen != nullptr) {
    return stays(chosen->getTrueExpr()) && stays(chosen->getFalseExpr());
  }
  return llvm::isa<clang::DeclRefExpr>(expression) || llvm::isa<clang::CXXThisExpr>(expression) ||
         expression->isPRValue();
}

}  // namespace

bool Visitor::is_entry(clang::FunctionDecl const* function) const {
  clang::Stmt const* body = function->doesThisDeclarationHaveABody() ? function->getBody() : nullptr;
  return body != nullptr && function->isExternC() && !places_.typed_by_author(body->getBeginLoc());
}

void Visitor::check_declaration(clang::Decl const* declaration) {
  check_attributes(declaration);
  if (auto const* named = llvm::dyn_cast<clang::NamedDecl>(declaration); named != nullptr) {
    check_place(named);
  }
  const clang::SourceLocation at = declaration->getLocation();
  if (auto const* space = llvm::dyn_cast<clang::NamespaceDecl>(declaration); space != nullptr) {
    check_namespace(space);
  } else if (llvm::isa<clang::DecompositionDecl>(declaration)) {
    refuse(at, "structured-binding", "it may refer to a dead object; name the members");
  } else if (auto const* variable = llvm::dyn_cast<clang::VarDecl>(declaration); variable != nullptr) {
    check_variable(variable);
  } else if (auto const* field = llvm::dyn_cast<clang::FieldDecl>(declaration); field != nullptr) {
    check_type(at, field->getType(), false);
    if (field->isMutable()) {
      refuse(at, "mutable",
             "it changes in constant objects, too, which all work-items share; leave `mutable` out, and make the "
             "object a variable");
    }
    if (field->isBitField()) {
      refuse(at, "bit-field", "compilers differ in where bits are; use masks and shifts");
    } else if (types_.is_context(field->getType())) {
      refuse(at, "context-lifetime", "a member may outlive the launch; pass the Context as a parameter");
    }
  } else if (auto const* function = llvm::dyn_cast<clang::FunctionDecl>(declaration); function != nullptr) {
    check_function(function);
  } else if (auto const* record = llvm::dyn_cast<clang::CXXRecordDecl>(declaration); record != nullptr) {
    check_record(record);
  } else if (auto const* alias = llvm::dyn_cast<clang::TypedefNameDecl>(declaration); alias != nullptr) {
    check_type(at, alias->getUnderlyingType(), true);
  } else if (auto const* constant = llvm::dyn_cast<clang::NonTypeTemplateParmDecl>(declaration); constant != nullptr) {
    check_type(at, constant->getType(), false);
  } else if (llvm::isa<clang::UsingDirectiveDecl>(declaration)) {
    if (scopes_.empty()) {
      refuse(at, "using-directive",
             "it changes the meaning of names in the framework's headers; write it in functions, or "
             "qualify the names");
    }
  } else if (llvm::isa<clang::FileScopeAsmDecl>(declaration)) {
    refuse(at, "asm", "an instruction reaches any memory; write it in the kernel dialect");
  } else if (!llvm::isa<clang::EnumDecl, clang::EnumConstantDecl, clang::UsingDecl, clang::UsingShadowDecl,
                        clang::StaticAssertDecl, clang::TemplateDecl, clang::TemplateTypeParmDecl,
                        clang::AccessSpecDecl, clang::EmptyDecl, clang::NamespaceAliasDecl, clang::BindingDecl,
                        clang::LinkageSpecDecl, clang::LifetimeExtendedTemporaryDecl>(declaration)) {
    refuse(at, "declaration", shown(declaration->getDeclKindName()) + " is no declaration of the kernel dialect");
  }
}

void Visitor::check_place(clang::NamedDecl const* declaration) {
  clang::DeclContext const* context = declaration->getDeclContext()->getRedeclContext();
  if (declaration->isTemplateParameter() || llvm::isa<clang::UsingDirectiveDecl, clang::UsingShadowDecl>(declaration)) {
    return;
  }
  const bool is_space = llvm::isa<clang::NamespaceDecl>(declaration);
  if (context->isTranslationUnit() && !is_space) {
    refuse(
        declaration->getLocation(), "global-name",
        "a name outside every namespace may be taken for one of the compiler's; put it into a namespace of your own");
  } else if (auto const* space = llvm::dyn_cast<clang::NamespaceDecl>(context); space != nullptr) {
    if (is_framework(space, places_) || (qualified_name(space) == "catena" && !is_space)) {
      refuse(declaration->getLocation(), "framework-namespace",
             "namespace '" + qualified_name(space) +
                 "' is the framework's: nothing is added to it or specialised in it; use a namespace of your own");
    }
  } else if (auto const* record = llvm::dyn_cast<clang::CXXRecordDecl>(context);
             record != nullptr && places_.of_framework(record)) {
    refuse(declaration->getLocation(), "framework-namespace", "classes of the framework are not changed");
  }
}

void Visitor::check_attributes(clang::Decl const* declaration) {
  for (clang::Attr const* attribute : declaration->attrs()) {
    if (attribute->isImplicit() || attribute->isInherited() || !places_.typed_by_author(attribute->getLocation())) {
      continue;
    }
    auto const* aligned = llvm::dyn_cast<clang::AlignedAttr>(attribute);
    if (aligned != nullptr && !declaration->getDeclContext()->isDependentContext()) {
      if (aligned->getAlignment(context_) > 8 * kMaxAlignment) {
        refuse(attribute->getLocation(), "attribute", "memory of a launch is aligned to 16 bytes; ask for no more");
      }
    } else if (aligned == nullptr &&
               !llvm::isa<clang::UnusedAttr, clang::WarnUnusedResultAttr, clang::FinalAttr>(attribute)) {
      refuse(attribute->getLocation(), "attribute",
             std::string("'") + attribute->getSpelling() + std::string(kAllowedAttributes));
    }
  }
}

/// Attributes that belong to a type, as that of a function.
void Visitor::check_type_attributes(clang::TypeLoc type) {
  while (!type.isNull()) {
    auto const attributed = type.getAs<clang::AttributedTypeLoc>();
    if (attributed.isNull()) {
      return;
    }
    clang::Attr const* attribute = attributed.getAttr();
    if (attribute != nullptr && places_.typed_by_author(attribute->getLocation())) {
      refuse(attribute->getLocation(), "attribute",
             std::string("'") + attribute->getSpelling() + std::string(kAllowedAttributes));
    }
    type = attributed.getModifiedLoc();
  }
}

void Visitor::check_namespace(clang::NamespaceDecl const* space) {
  if (space->isInline() || space->isAnonymousNamespace()) {
    refuse(space->getLocation(), "namespace",
           "names of an inline or unnamed namespace are found outside it; give it a name, and no `inline`");
  }
}

void Visitor::check_variable(clang::VarDecl const* variable) {
  const clang::SourceLocation at = variable->getLocation();
  const bool is_parameter = llvm::isa<clang::ParmVarDecl>(variable);
  if (variable->hasGlobalStorage() && !variable->isConstexpr()) {
    refuse(at, "static-storage",
           "a variable outliving the work-item is shared; use Context::local(), or make it constexpr");
  }
  check_type(at, variable->getType(), is_parameter || variable->isLocalVarDecl());
  if (variable->getType()->isDependentType() || scopes_.empty()) {
    return;
  }
  if (!variable->getType()->isReferenceType()) {
    scopes_.back().has_context = scopes_.back().has_context || types_.is_context(variable->getType());
    if (!variable->hasGlobalStorage() && !variable->isInvalidDecl()) {
      count_storage(at, variable->getType());
    }
  }
  if (variable->isLocalVarDecl() && !variable->isCXXForRangeDecl()) {
    check_initializer(variable);
  }
}

void Visitor::check_initializer(clang::VarDecl const* variable) {
  clang::Expr const* initializer = variable->getInit();
  if (initializer == nullptr || names(initializer, variable) ||
      (variable->getInitStyle() == clang::VarDecl::CallInit && leaves_object(initializer))) {
    refuse(variable->getLocation(), "uninitialized",
           "it holds data left by another NF, and no check can rely on its value; write '" +
               variable->getNameAsString() + "{}'");
    return;
  }
  if (initializer->isTypeDependent() || initializer->isValueDependent()) {
    return;
  }
  if (variable->getType()->isReferenceType() && !stays(initializer)) {
    refuse(variable->getLocation(), "reference", "it may outlive its target; refer to a variable, or keep a value");
  }
  if (types_.is_context(variable->getType().getNonReferenceType())) {
    clang::Expr const* made = initializer->IgnoreImplicit();
    harmless_.insert(made);
    scopes_.back().has_context = scopes_.back().has_context || !llvm::isa<clang::DeclRefExpr>(made);
  }
}

void Visitor::count_storage(clang::SourceLocation at, clang::QualType type) {
  if (scopes_.empty() || type->isIncompleteType()) {
    return;
  }
  constexpr std::uint64_t kMost = Types::kMaxLocalBytes;
  const std::uint64_t bytes = types_.size_of(type);
  std::uint64_t& sum = scopes_.back().storage;
  if (sum <= kMost && (bytes > kMost || sum + bytes > kMost)) {
    refuse(at, "local-storage",
           "the variables and temporary objects of this function take more than 4096 bytes, which every work-item "
           "would have; use Context::local() or PacketView::spill()");
  }
  sum = bytes > kMost ? kMost + 1 : sum + bytes;
}

void Visitor::check_record(clang::CXXRecordDecl const* record) {
  if (record->isUnion()) {
    refuse(record->getLocation(), "union", "a union makes any value of any other; convert with static_cast and shifts");
  } else if (record->isThisDeclarationADefinition() && record->getNumBases() != 0) {
    refuse(record->getLocation(), "inheritance",
           "a base class opens its protected members to derived classes; use a member");
  }
}

void Visitor::check_function(clang::FunctionDecl const* function) {
  const clang::SourceLocation at = function->getLocation();
  check_type(at, function->getReturnType(), false);
  if (function->isNoReturn()) {
    refuse(at, "attribute", "a compiler drops the code after a call of it; write a returning function");
  }
  if (function->isVariadic()) {
    refuse(at, "variadic", "arguments of any type are read as pointers; use a template");
  }
  if (llvm::isa<clang::CXXDestructorDecl>(function) && function->isUserProvided()) {
    refuse(at, "destructor", "it runs without a visible call; write a function");
  }
  if (llvm::isa<clang::CXXDeductionGuideDecl>(function)) {
    refuse(at, "declaration", "a deduction guide; name the template's arguments");
  }
  check_operator(function);
  if (auto const* constructor = llvm::dyn_cast<clang::CXXConstructorDecl>(function); constructor != nullptr) {
    check_constructor(constructor);
  }
}

void Visitor::check_operator(clang::FunctionDecl const* function) {
  const std::size_t operands = function->getNumParams() + (llvm::isa<clang::CXXMethodDecl>(function) ? 1 : 0);
  const clang::OverloadedOperatorKind kind = function->getOverloadedOperator();
  const bool is_unary = operands == 1 && (kind == clang::OO_Amp || kind == clang::OO_Star);
  if (is_unary || kind == clang::OO_Comma || kind == clang::OO_Arrow || kind == clang::OO_ArrowStar) {
    refuse(function->getLocation(), "operator",
           "it looks like a pointer or like nothing; write a function with a name");
  } else if (function->getLiteralIdentifier() != nullptr) {
    refuse(function->getLocation(), "literal-operator", "a literal with a hidden call; write a constexpr function");
  }
}

/// A member is made of members that have their value already. What else its own object offers, as its functions, reads
/// those that have none. No `field`: another constructor makes them all.
void Visitor::check_order(clang::FieldDecl const* field, clang::Stmt const* value) {
  if (value == nullptr) {
    return;
  }
  auto const* member = llvm::dyn_cast<clang::MemberExpr>(value);
  if (member != nullptr && llvm::isa<clang::CXXThisExpr>(member->getBase()->IgnoreParenImpCasts())) {
    auto const* named = llvm::dyn_cast<clang::FieldDecl>(member->getMemberDecl());
    auto const* method = llvm::dyn_cast<clang::CXXMethodDecl>(member->getMemberDecl());
    if ((named != nullptr && (field == nullptr || named->getFieldIndex() >= field->getFieldIndex())) ||
        (method != nullptr && !method->isStatic())) {
      refuse(member->getMemberLoc(), "uninitialized",
             (field == nullptr ? "the object" : "'" + field->getNameAsString() + "'") +
                 " gets its value here, before later members have theirs; make it of parameters, of members "
                 "above it and of functions outside the class");
    }
    return;
  }
  for (clang::Stmt const* part : value->children()) {
    check_order(field, part);
  }
}

void Visitor::check_constructor(clang::CXXConstructorDecl const* constructor) {
  if (!constructor->isUserProvided() || !constructor->doesThisDeclarationHaveABody() ||
      constructor->isDelegatingConstructor() || constructor->isDependentContext()) {
    return;
  }
  for (clang::FieldDecl const* field : constructor->getParent()->fields()) {
    const bool is_set = std::ranges::any_of(constructor->inits(), [field](clang::CXXCtorInitializer const* set) {
      return set->getMember() == field && (set->isWritten() || !leaves_object(set->getInit()));
    });
    if (!is_set) {
      refuse(constructor->getLocation(), "uninitialized",
             "this constructor leaves '" + field->getNameAsString() + "' as it was; give the member a value");
    }
  }
}

}  // namespace catena::checker
