// Patterns against names. The answers are those of Python 3.11's re.match.
#include "config/match/regex.h"

#include <doctest/doctest.h>

#include <string>

#include "config/match/name_match.h"

using wasmquant::NamePattern;
using wasmquant::Regex;

namespace {

struct RegexCase {
  const char* pattern;
  const char* name;
  bool matches;
};

constexpr RegexCase kRegexCases[] = {
    {R"x(.*lm_head)x", "model.lm_head", true},
    {R"x(.*lm_head)x", "lm_head", true},
    {R"x(.*lm_head)x", "lm_head2", true},
    {R"x(.*lm_head)x", "model.norm", false},
    {R"x(.*lm_head)x", "model.layers.12.mlp.up_proj", false},
    {R"x(.*lm_head)x", "model.layers.1.mlp.down_proj", false},
    {R"x(lm_head$)x", "lm_head", true},
    {R"x(lm_head$)x", "a", false},
    {R"x(lm_head$)x", "a{x}", false},
    {R"x(lm_head$)x", "lm_head2", false},
    {R"x(.*\.(q|k|v)_proj$)x", "model.layers.0.self_attn.q_proj", true},
    {R"x(.*\.(q|k|v)_proj$)x", "model.lm_head", false},
    {R"x(.*\.(q|k|v)_proj$)x", "lm_head2", false},
    {R"x(.*\.(q|k|v)_proj$)x", "aaa", false},
    {R"x(^model\.layers\.\d+\.mlp\..*)x", "model.layers.1.mlp.down_proj", true},
    {R"x(^model\.layers\.\d+\.mlp\..*)x", "model.layers.12.mlp.up_proj", true},
    {R"x(^model\.layers\.\d+\.mlp\..*)x", "experts.11.w3", false},
    {R"x(^model\.layers\.\d+\.mlp\..*)x", "lm_head2", false},
    {R"x(^model\.layers\.\d+\.mlp\..*)x", "a{x}", false},
    {R"x(model\.layers\.(1|12)\.)x", "model.layers.1.mlp.down_proj", true},
    {R"x(model\.layers\.(1|12)\.)x", "model.layers.12.mlp.up_proj", true},
    {R"x(model\.layers\.(1|12)\.)x", "...", false},
    {R"x(model\.layers\.(1|12)\.)x", "]a]", false},
    {R"x(model\.layers\.(1|12)\.)x", "model.layers.0.self_attn.q_proj", false},
    {R"x(.*self_attn\.o_proj)x", "model.layers.3.self_attn.o_proj", true},
    {R"x(.*self_attn\.o_proj)x", "model.layers.7.self_attn.o_proj", true},
    {R"x(.*self_attn\.o_proj)x", "]a]", false},
    {R"x(.*self_attn\.o_proj)x", "aaa", false},
    {R"x(.*self_attn\.o_proj)x", "model.lm_head", false},
    {R"x(model\.layers\.[0-3]\.)x", "model.layers.0.self_attn.q_proj", true},
    {R"x(model\.layers\.[0-3]\.)x", "model.layers.3.self_attn.o_proj", true},
    {R"x(model\.layers\.[0-3]\.)x", "model.layers.1.mlp.down_proj", true},
    {R"x(model\.layers\.[0-3]\.)x", "a", false},
    {R"x(model\.layers\.[0-3]\.)x", "b", false},
    {R"x(model\.layers\.[0-3]\.)x", "model.layers.7.self_attn.o_proj", false},
    {R"x(model\.layers\.[^0-3]\.)x", "model.layers.7.self_attn.o_proj", true},
    {R"x(model\.layers\.[^0-3]\.)x", "a{x}", false},
    {R"x(model\.layers\.[^0-3]\.)x", "expert.2.w2", false},
    {R"x(model\.layers\.[^0-3]\.)x", "aab", false},
    {R"x(model\.layers\.\d{2}\.)x", "model.layers.12.mlp.up_proj", true},
    {R"x(model\.layers\.\d{2}\.)x", "model.layers.0.self_attn.q_proj", false},
    {R"x(model\.layers\.\d{2}\.)x", "a{x}", false},
    {R"x(model\.layers\.\d{2}\.)x", "a-z", false},
    {R"x(model\.layers\.\d{1,2}\.mlp)x", "model.layers.12.mlp.up_proj", true},
    {R"x(model\.layers\.\d{1,2}\.mlp)x", "model.layers.1.mlp.down_proj", true},
    {R"x(model\.layers\.\d{1,2}\.mlp)x", "model.layers.0.self_attn.q_proj", false},
    {R"x(model\.layers\.\d{1,2}\.mlp)x", "a{x}", false},
    {R"x(model\.layers\.\d{1,2}\.mlp)x", "x", false},
    {R"x((?:vision|audio)_tower.*)x", "vision_tower.0", true},
    {R"x((?:vision|audio)_tower.*)x", "a{x}", false},
    {R"x((?:vision|audio)_tower.*)x", "model.lm_head", false},
    {R"x((?:vision|audio)_tower.*)x", "]a]", false},
    {R"x(.*experts?\.\d+\.w[13])x", "experts.11.w3", true},
    {R"x(.*experts?\.\d+\.w[13])x", "b", false},
    {R"x(.*experts?\.\d+\.w[13])x", "0_9", false},
    {R"x(.*experts?\.\d+\.w[13])x", "aab", false},
    {R"x()x", "xz", true},
    {R"x()x", "]a]", true},
    {R"x()x", "a.b", true},
    {R"x($)x", "", true},
    {R"x($)x", "a", false},
    {R"x($)x", "experts.11.w3", false},
    {R"x($)x", "model.layers.7.self_attn.o_proj", false},
    {R"x(^$)x", "", true},
    {R"x(^$)x", "model.norm", false},
    {R"x(^$)x", "y", false},
    {R"x(^$)x", "model.layers.7.self_attn.o_proj", false},
    {R"x(a*)x", "model.layers.1.mlp.down_proj", true},
    {R"x(a*)x", "a{x}", true},
    {R"x(a*)x", "c-a", true},
    {R"x((a*)*b)x", "aab", true},
    {R"x((a*)*b)x", "abc", true},
    {R"x((a*)*b)x", "ab", true},
    {R"x((a*)*b)x", "experts.11.w3", false},
    {R"x((a*)*b)x", "0_9", false},
    {R"x((a*)*b)x", "lm_head2", false},
    {R"x((a|aa)+$)x", "a", true},
    {R"x((a|aa)+$)x", "aaa", true},
    {R"x((a|aa)+$)x", "aa", true},
    {R"x((a|aa)+$)x", "model.layers.1.mlp.down_proj", false},
    {R"x((a|aa)+$)x", "...", false},
    {R"x((a|aa)+$)x", "expert.2.w2", false},
    {R"x(a{2}$)x", "aa", true},
    {R"x(a{2}$)x", "abc", false},
    {R"x(a{2}$)x", "b", false},
    {R"x(a{2}$)x", "aaa", false},
    {R"x(a{,2}$)x", "", true},
    {R"x(a{,2}$)x", "aa", true},
    {R"x(a{,2}$)x", "a", true},
    {R"x(a{,2}$)x", "expert.2.w2", false},
    {R"x(a{,2}$)x", "y", false},
    {R"x(a{,2}$)x", "aaa", false},
    {R"x(a{2,}$)x", "aaaa", true},
    {R"x(a{2,}$)x", "aaa", true},
    {R"x(a{2,}$)x", "aa", true},
    {R"x(a{2,}$)x", "lm_head2", false},
    {R"x(a{2,}$)x", "a.b", false},
    {R"x(a{2,}$)x", "vision_tower.0", false},
    {R"x(a{x})x", "a{x}", true},
    {R"x(a{x})x", "model.norm", false},
    {R"x(a{x})x", "0_9", false},
    {R"x(a{x})x", "lm_head2", false},
    {R"x([]a]+$)x", "a", true},
    {R"x([]a]+$)x", "aaa", true},
    {R"x([]a]+$)x", "aaaa", true},
    {R"x([]a]+$)x", "model.norm", false},
    {R"x([]a]+$)x", "z", false},
    {R"x([]a]+$)x", "c-a", false},
    {R"x([a\-z]+$)x", "aaaa", true},
    {R"x([a\-z]+$)x", "aaa", true},
    {R"x([a\-z]+$)x", "z", true},
    {R"x([a\-z]+$)x", "xz", false},
    {R"x([a\-z]+$)x", "", false},
    {R"x([a\-z]+$)x", "lm_head", false},
    {R"x([\d_]+$)x", "0_9", true},
    {R"x([\d_]+$)x", "", false},
    {R"x([\d_]+$)x", "model.layers.1.mlp.down_proj", false},
    {R"x([\d_]+$)x", "a{x}", false},
    {R"x(\Alm)x", "lm_head", true},
    {R"x(\Alm)x", "lm_head2", true},
    {R"x(\Alm)x", "model.layers.0.self_attn.q_proj", false},
    {R"x(\Alm)x", "vision_tower.0", false},
    {R"x(\Alm)x", "z", false},
    {R"x(.*norm\Z)x", "model.norm", true},
    {R"x(.*norm\Z)x", "model.layers.12.mlp.up_proj", false},
    {R"x(.*norm\Z)x", "x", false},
    {R"x(.*norm\Z)x", "model.layers.7.self_attn.o_proj", false},
    {R"x(a??b)x", "ab", true},
    {R"x(a??b)x", "abc", true},
    {R"x(a??b)x", "b", true},
    {R"x(a??b)x", "lm_head2", false},
    {R"x(a??b)x", "model.layers.1.mlp.down_proj", false},
    {R"x(a??b)x", "aaa", false},
    {R"x(x|y|)x", "y", true},
    {R"x(x|y|)x", "ab", true},
    {R"x(x|y|)x", "vision_tower.0", true},
    {R"x((x|y|)z$)x", "xz", true},
    {R"x((x|y|)z$)x", "z", true},
    {R"x((x|y|)z$)x", "0_9", false},
    {R"x((x|y|)z$)x", "aa", false},
    {R"x((x|y|)z$)x", "", false},
    {R"x(\.+)x", "...", true},
    {R"x(\.+)x", "c-a", false},
    {R"x(\.+)x", "model.layers.7.self_attn.o_proj", false},
    {R"x(\.+)x", "model.layers.12.mlp.up_proj", false},
    {R"x([^.]+\.[^.]+$)x", "model.lm_head", true},
    {R"x([^.]+\.[^.]+$)x", "a.b", true},
    {R"x([^.]+\.[^.]+$)x", "model.norm", true},
    {R"x([^.]+\.[^.]+$)x", "experts.11.w3", false},
    {R"x([^.]+\.[^.]+$)x", "x", false},
    {R"x([^.]+\.[^.]+$)x", "lm_head", false},
    {R"x(\w+\.\W)x", "c-a", false},
    {R"x(\w+\.\W)x", "", false},
    {R"x(\w+\.\W)x", "b", false},
    {R"x(a|b$)x", "b", true},
    {R"x(a|b$)x", "a", true},
    {R"x(a|b$)x", "aaa", true},
    {R"x(a|b$)x", "0_9", false},
    {R"x(a|b$)x", "z", false},
    {R"x(a|b$)x", "", false},
    {R"x(((((((a)))))))x", "abc", true},
    {R"x(((((((a)))))))x", "aab", true},
    {R"x(((((((a)))))))x", "aaa", true},
    {R"x(((((((a)))))))x", "x", false},
    {R"x(((((((a)))))))x", "xz", false},
    {R"x(((((((a)))))))x", "...", false},
    {R"x([a-c-]+$)x", "a", true},
    {R"x([a-c-]+$)x", "abc", true},
    {R"x([a-c-]+$)x", "aab", true},
    {R"x([a-c-]+$)x", "...", false},
    {R"x([a-c-]+$)x", "x", false},
    {R"x([a-c-]+$)x", "a{x}", false},
    {R"x(\S+proj)x", "model.layers.3.self_attn.o_proj", true},
    {R"x(\S+proj)x", "model.layers.7.self_attn.o_proj", true},
    {R"x(\S+proj)x", "model.layers.12.mlp.up_proj", true},
    {R"x(\S+proj)x", "vision_tower.0", false},
    {R"x(\S+proj)x", "]a]", false},
    {R"x(\S+proj)x", "y", false},
    {R"x((ab|a)(bc|c)$)x", "abc", true},
    {R"x((ab|a)(bc|c)$)x", "model.lm_head", false},
    {R"x((ab|a)(bc|c)$)x", "model.layers.3.self_attn.o_proj", false},
    {R"x((ab|a)(bc|c)$)x", "lm_head2", false},
};

}  // namespace

TEST_CASE("regular expressions match as Python's re.match does") {
  for (const RegexCase& c : kRegexCases) {
    CAPTURE(c.pattern);
    CAPTURE(c.name);
    std::string problem;
    CHECK(Regex(c.pattern, &problem).matches(c.name) == c.matches);
    CHECK(problem == "");
  }
}

TEST_CASE("what is not understood is said, and matches nothing") {
  for (const char* pattern : {"(", ")", "(a", "a)", "*", "a|*", "+a", "[", "[a", "[z-a]", "\\", "(?=a)", "(?!a)",
                              "(?P<x>a)", "\\1", "\\b", "a{300}", "((a{200}){200}){200}", "(?i)a"}) {
    CAPTURE(pattern);
    std::string problem;
    CHECK_FALSE(Regex(pattern, &problem).matches("a"));
    CHECK(problem != "");
  }
}

TEST_CASE("hostile patterns end") {
  CHECK_FALSE(Regex("(a*)*(a*)*(a*)*b").matches(std::string(5000, 'a')));
  CHECK_FALSE(Regex("(a|a|a|a)*(a|aa|aaa)*$").matches(std::string(5000, 'a') + "b"));
  for (const std::string& text :
       {std::string(100000, '('), std::string(100000, '|'), std::string(100000, '['), "a" + std::string(100000, '*'),
        "a" + std::string(50000, '{'), std::string(50000, '(') + std::string(50000, ')')})
    Regex(text).matches("aaaa");
}

TEST_CASE("a pattern of a config that begins with re: is a regular expression") {
  CHECK(NamePattern("re:.*\\.q_proj").matches("a.b.q_proj"));
  CHECK(NamePattern("re:a").matches("abc"));
  CHECK_FALSE(NamePattern("re:b").matches("abc"));
  CHECK(wasmquant::is_glob("re:a"));
}
