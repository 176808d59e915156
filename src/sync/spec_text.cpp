/// Takes the texts of `--sync` apart.
#include "sync/spec_text.hpp"

#include <fmt/format.h>

#include "fluentps/error.hpp"
#include "text/words.hpp"

namespace fluentps {
namespace {

constexpr std::string_view kServer = "server";
constexpr std::int64_t kMaxIteration = INT64_MAX / 4;

/// Cuts off what stands before the separator, or all; both sides trimmed.
std::string_view take_until(std::string_view& rest, char separator) {
  const auto end = rest.find(separator);
  const auto head = trim(rest.substr(0, end));
  rest = end == std::string_view::npos ? std::string_view{} : trim(rest.substr(end + 1));
  return head;
}

Iteration parse_from(std::string_view text, std::string_view part) {
  const auto from = parse_integer(text);
  if (!from || *from < 0 || *from > kMaxIteration)
    throw UsageError(
        fmt::format("--sync: '{}' in '{}' is no iteration, write a number from 0, as in '@2000 asp' or "
                    "'server1@500=bsp'",
                    text, part));
  return *from;
}

PlanPartText parse_server_part(std::string_view part) {
  std::string_view model = part;
  std::string_view index = take_until(model, '=');
  index.remove_prefix(kServer.size());
  PlanPartText parsed;
  if (index.find('@') != std::string_view::npos) {
    std::string_view from = index;
    index = take_until(from, '@');
    parsed.from = parse_from(from, part);
  }
  const auto server = parse_integer(index);
  if (!server || *server < 0 || *server > UINT32_MAX)
    throw UsageError(
        fmt::format("--sync: '{}' names no server, write its number and a model, as in 'server1=bsp'", part));
  parsed.server = ServerIndex{static_cast<std::uint32_t>(*server)};
  parsed.model = model;
  return parsed;
}

PlanPartText parse_part(std::string_view part) {
  if (part.starts_with(kServer)) return parse_server_part(part);
  if (!part.starts_with('@')) return {.server = {}, .from = {}, .model = part};
  const auto end = part.find_first_of(kBlanks);
  const auto from = parse_from(part.substr(1, end == std::string_view::npos ? end : end - 1), part);
  return {
      .server = {}, .from = from, .model = end == std::string_view::npos ? std::string_view{} : trim(part.substr(end))};
}

}  // namespace

ModelSpecText parse_model_spec(std::string_view text) {
  std::string_view rest = trim(text);
  const bool has_arguments = rest.find(':') != std::string_view::npos;
  ModelSpecText parsed{.name = std::string(take_until(rest, ':')), .arguments = {}};
  if (parsed.name.empty())
    throw UsageError(fmt::format("--sync: a model is missing in '{}', write one, such as ssp:s=3", text));
  if (!has_arguments) return parsed;
  for (const auto item : split(rest, ',')) {
    auto value = item;
    const auto key = take_until(value, '=');
    if (key.empty() || value.empty())
      throw UsageError(fmt::format("--sync: '{}' in '{}' is no argument, write key=value, as in ssp:s=3", item, text));
    if (!parsed.arguments.emplace(key, value).second)
      throw UsageError(fmt::format("--sync: the argument {} is given twice in '{}', give it once", key, text));
  }
  return parsed;
}

std::vector<PlanPartText> parse_plan(std::string_view text) {
  std::vector<PlanPartText> parts;
  for (const auto part : split(text, ';')) {
    if (part.empty())
      throw UsageError(
          fmt::format("--sync: an empty part in '{}', write a model, such as ssp:s=3, between the ';'", text));
    parts.push_back(parse_part(part));
  }
  if (parts.front().server || parts.front().from)
    throw UsageError(
        fmt::format("--sync: '{}' begins with an exception, begin with the model of all servers, as in "
                    "'ssp:s=3; {}'",
                    text, trim(text)));
  return parts;
}

}  // namespace fluentps
