// Patterns against names. The answers are those of Python 3.11's fnmatch.fnmatchcase; the second half are random.
#include "config/match/name_match.h"

#include <doctest/doctest.h>

#include <string>

using wasmquant::is_glob;
using wasmquant::NamePattern;

namespace {

struct NameMatchCase {
  const char* pattern;
  const char* name;
  bool matches;
};

constexpr NameMatchCase kNameMatchCases[] = {
    {"*.q_proj", "model.layers.0.self_attn.q_proj", true},
    {"lm_head", "model.lm_head", false},
    {"lm_head", "lm_head", true},
    {"model.layers.1*", "model.layers.10.mlp", true},
    {"model.layers.1.*", "model.layers.10.mlp", false},
    {"model.layers.\?.mlp", "model.layers.3.mlp", true},
    {"model.layers.\?.mlp", "model.layers.13.mlp", false},
    {"model.layers.[0-3].*", "model.layers.2.mlp.up_proj", true},
    {"model.layers.[0-3].*", "model.layers.4.mlp.up_proj", false},
    {"model.layers.[!0-3].*", "model.layers.4.mlp", true},
    {"model.layers.[!0-3].*", "model.layers.0.mlp", false},
    {"*", "", true},
    {"*", "anything.at.all", true},
    {"", "", true},
    {"", "a", false},
    {"\?", "", false},
    {"**", "a.b", true},
    {"*a*b*c", "xaybzc", true},
    {"*a*b*c", "xaybzcd", false},
    {"*expert*", "model.layers.0.mlp.experts.11.gate_proj", true},
    {"Q_PROJ", "q_proj", false},
    {"[", "[", true},
    {"[a", "[a", true},
    {"a[", "a[", true},
    {"[]", "[]", true},
    {"[]]", "]", true},
    {"[!]]", "]", false},
    {"[!]]", "a", true},
    {"[!]", "[!]", true},
    {"[!a]", "!", true},
    {"[a!]", "!", true},
    {"[^a]", "^", true},
    {"[^a]", "b", false},
    {"[-a]", "-", true},
    {"[a-]", "-", true},
    {"[a-]", "b", false},
    {"[z-a]", "m", false},
    {"[!z-a]", "m", true},
    {"[--a]", "A", true},
    {"[a-c-e]", "-", true},
    {"[a-c-e]", "d", false},
    {"[a-c-e]", "b", true},
    {"[\\]", "\\", true},
    {"\\*", "\\x", true},
    {"\\*", "*", false},
    {"[[]", "[", true},
    {"[*]", "*", true},
    {"[*]", "x", false},
    {"[\?]", "\?", true},
    {"[&&a]", "&", true},
    {"[a||b]", "|", true},
    {"[~~a]", "~", true},
    {"a.b", "axb", false},
    {"a+", "aa", false},
    {"(a|b)", "a", false},
    {"^a$", "a", false},
    {"caf\?", "caf\303\251", true},
    {"caf[\303\240-\303\277]", "caf\303\251", true},
    {"*\345\261\202.\?", "\347\254\254\345\261\202.\346\235\203", true},
    {"[!a]", "\303\251", true},
    {"\?\?", "\303\251", false},
    {"a*", "a\012b", true},
    {"a\?b", "a\012b", true},
    {"abaa", "-a", false},
    {"**\?*[ab..]", "-.ab", true},
    {"[!-b]", "c-ba", false},
    {"[!a]][!.]-][^cb]b*", "-.", false},
    {".[*", "b.", false},
    {"*c[.c[^]", ".a", false},
    {".", "-.c.c", false},
    {".", "-", false},
    {"[!b.]", "..a", false},
    {"[-].", ".bbab", false},
    {"**", "-bc", true},
    {"*\?\?", "cb--", true},
    {"a[^--a[a][]a]**", "", false},
    {"[]**", "-c", false},
    {"*ab[]*", "c.", false},
    {"**c\?a.", "ac-cb", false},
    {"c[]]ab", "bb-.c", false},
    {"****.[ab]", ".", false},
    {"\?[.c.]", "a.b.b.", false},
    {"\?ab[b]*[^].", "-", false},
    {"**a[!bba]*", "b-cc", false},
    {"\?*.cc", "-b-", false},
    {"[b]a]*", "-a-", false},
    {"\?", "--.a", false},
    {"****[", "--", false},
    {"[]]-].bb\?", ".ca", false},
    {"**ab.*", ".", false},
    {"a\?", "bbb", false},
    {"[^-b]\?a\?[c]]][]", "", false},
    {"**", "c.b", true},
    {"c[]*ab.", "", false},
    {"**[!]ab*ab", "-b", false},
    {"[!]", "ab", false},
    {".[!-]]", "ca", false},
    {"**[!-b-a", ".-.-c", false},
    {"***b\?\?", "", false},
    {"*[baa", "-c-bca", false},
    {"***\?", "-c", true},
    {"*b", "ba", false},
    {"\?[!]]*", "ab.-a.", true},
    {"*", "ba--b", true},
    {"c\?\?b*[!", "-b---", false},
    {"c", "baaabc", false},
    {"\?", "-aa", false},
    {"[!ca-]caaab*", "", false},
    {"*bab", ".a.", false},
    {"**[!]\?.[!", "", false},
    {"*b..", "..a", false},
    {"*ab*[^-b]*", "", false},
    {".b", "-cac", false},
    {"[^abaab", "b.", false},
    {"\?*\?", "c.", true},
    {"b", "accca", false},
    {"\?a\?[]", "", false},
    {"*\?a", ".--baa", true},
    {"\?[!-a]*\?**", "c.bc.", true},
    {"*", ".acb.", true},
    {"**\?", "c.b", true},
    {"*", "-bac-b", true},
    {"**\?", "cac-.", true},
    {"*", "aaaa-", true},
    {"*", "ac.aba", true},
    {"*a", "a", true},
    {"[!]]*[!]a.]", "c..b", true},
    {"*", "c..a", true},
    {"\?**", "bc", true},
    {"*\?", "a", true},
    {"*.[b]", "c.b", true},
    {"b***[^bb]", "b-cb", true},
    {"*", "-.a-c", true},
    {"\?*\?", "-c.", true},
    {"*", "-c-c-", true},
    {"*", "-.", true},
    {"[^-a.a]****", "a-acb", true},
    {"**\?\?*", "b-", true},
    {"c*\?", "c-", true},
    {"*", "-cbabc", true},
    {"**", "-", true},
    {"[^..b]*", ".b", true},
    {"*b*", "--.b-", true},
    {"*", "b-.", true},
    {"*", "-b--a", true},
    {".\?\?", ".b.", true},
    {"***\?", "--c.ac", true},
    {"*", "a-aa.a", true},
    {"b", "b", true},
    {"*bb*", "bb", true},
    {"\?**", "-.", true},
    {"[!-]**", ".", true},
    {"*", ".a", true},
    {"b[!-b]**", "bc--b", true},
    {"[c.a]*", "ac", true},
    {"*", "cbc", true},
    {"*", ".cb", true},
};

}  // namespace

TEST_CASE("patterns match as Python's fnmatchcase") {
  for (const NameMatchCase& c : kNameMatchCases) {
    CAPTURE(c.pattern);
    CAPTURE(c.name);
    CHECK(NamePattern(c.pattern).matches(c.name) == c.matches);
  }
}

TEST_CASE("many stars do not explode") {
  std::string pattern, name(3000, 'a');
  for (int i = 0; i < 300; ++i) pattern += "a*";
  CHECK(NamePattern(pattern).matches(name));
  CHECK_FALSE(NamePattern(pattern + "b").matches(name));
  CHECK_FALSE(NamePattern(std::string(20000, '[')).matches(name));
}

TEST_CASE("what begins and ends a pattern may overlap in no name") {
  CHECK_FALSE(NamePattern("ab*ba").matches("aba"));
  CHECK(NamePattern("ab*ba").matches("abba"));
  CHECK(NamePattern("ab").matches("ab"));
  CHECK(NamePattern("*.layers.*.mlp.*").matches("model.layers.0.mlp.up_proj"));
  CHECK_FALSE(NamePattern("*.layers.*.mlp.*").matches("model.mlp.0.layers.up_proj"));
  CHECK(NamePattern("a[bc]d*").matches("acd"));
  CHECK_FALSE(NamePattern("ab").matches("abab"));
  CHECK(
      NamePattern("?b").matches("\xc3\xa9"
                                "b"));
  CHECK(NamePattern("*\xc3\xa9").matches("caf\xc3\xa9"));
}

TEST_CASE("bytes that are not UTF-8 match themselves") {
  CHECK(NamePattern("a\xff*").matches("a\xff\xfe"));
  CHECK(NamePattern("a?").matches("a\xc3"));
  CHECK_FALSE(NamePattern("\xff").matches("\xfe"));
}

TEST_CASE("plain names are distinguished from globs") {
  CHECK_FALSE(is_glob("model.layers.0"));
  CHECK(is_glob("model.*"));
  CHECK(is_glob("layer[0]"));
  CHECK(is_glob("a?"));
}
