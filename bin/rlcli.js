#!/usr/bin/env node
import { readFileSync } from "node:fs";
import module from "node:module";

// The version is the one answer that scripts ask for in a loop: give it without loading the program.
if (process.argv.length === 3 && (process.argv[2] === "--version" || process.argv[2] === "-V")) {
  process.stdout.write(`${JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")).version}\n`);
} else {
  module.enableCompileCache?.();
  await import("../dist/cli.js");
}
