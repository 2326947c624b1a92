/** Options that say what is asked and how it is graded, shared by verbs that build an environment without a spec. */
import { type Command, Option } from "commander";
import { nonNegative, wholeNumber } from "../options.ts";
import { duration } from "../predecessor.ts";

const GRADERS = ["math", "match", "json_schema", "command", "http", "module", "judge"];

export function bindEnvironmentOptions(command: Command): Command {
  return command
    .addOption(new Option("--env <type>", "the grader").choices(GRADERS).default("math"))
    .option("--question <field>", "field of a row with the question (default: question)")
    .option("--answer <field>", "math, match, json_schema: field with the right answer (default: answer)")
    .option("--system <text>", "said before every question; {field} stands for a field of the row")
    .option("--prompt <text>", "the user's message, around {question}")
    .option("--tag <field>", "field by whose values results are also told apart")
    .option("--tolerance <x>", "math: relative difference that decimals may have", nonNegative)
    .addOption(
      new Option("--mode <how>", "match: how texts are compared").choices(["exact", "contains", "regex", "choice"]),
    )
    .option("--pattern <regex>", "match: what --mode regex looks for")
    .option("--ignore-case", "match: upper and lower case count as equal")
    .option("--choices <letters>", "match: letters of --mode choice")
    .option("--schema <file>", "json_schema: a file with the JSON Schema")
    .option("--command <line>", "command: a program and its arguments, JSON lines in and out")
    .option("--module <file>", "module: a JavaScript file that exports `grade`")
    .option("--max-turns <n>", "module: answers at the most, where it answers back", wholeNumber(1))
    .option("--url <url>", "http, judge: where to ask")
    .option("--judge-model <name>", "judge: the model that judges")
    .option("--rubric <text>", "judge: what it judges by")
    .option("--api-key-env <name>", "http, judge: environment variable that holds the key")
    .option("--timeout <duration>", "longest time for one grade (default: 30s)", duration);
}
